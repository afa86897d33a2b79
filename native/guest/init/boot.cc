// See boot.h.
#include "native/guest/init/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "native/common/log.h"
#include "native/common/unique_fd.h"

namespace bough::guest {
namespace {

constexpr const char* kNewRoot = "/newroot";
constexpr const char* kVirtioFs = "virtiofs";

struct Basic {
  const char* source;
  const char* at;
  const char* type;
  unsigned long flags;
  const char* options;
};

// In the order in which they lie in one another.
constexpr std::array<Basic, 8> kBasics = {
    Basic{"proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr},
    Basic{"sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr},
    Basic{"cgroup2", kCgroupMount, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr},
    Basic{"devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755"},
    Basic{"devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5"},
    Basic{"shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
    Basic{"run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"},
    Basic{"tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
};

// What moves into the new root, with everything that is mounted below it.
constexpr std::array<const char*, 5> kMoved = {"/proc", "/sys", "/dev", "/run", "/tmp"};

// What programs expect in /dev and the kernel does not make.
constexpr std::array<std::array<const char*, 2>, 4> kLinks = {{
    {"/proc/self/fd", "/dev/fd"},
    {"/proc/self/fd/0", "/dev/stdin"},
    {"/proc/self/fd/1", "/dev/stdout"},
    {"/proc/self/fd/2", "/dev/stderr"},
}};

bool makeFolders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) return false;
    if (end == std::string::npos) return true;
  }
}

}  // namespace

std::string readWhole(const char* path, std::size_t most) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece{};
  while (fd && text.size() < most) {
    const ssize_t n = ::read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  return text;
}

void Boot::problem(const char* code, const std::string& message) {
  logLine(std::string(code) + ": " + message);
  problems_.push_back(Error{EIO, code, message});
}

bool Boot::mount(const char* source, const std::string& at, const char* type, unsigned long flags,
                 const char* options) {
  if (::access(at.c_str(), F_OK) != 0 && !makeFolders(at)) {
    problem("E_MOUNT", at + " is not there and cannot be made: " + std::strerror(errno) + ".");
    return false;
  }
  // EBUSY: the same file system lies there already.
  if (::mount(source, at.c_str(), type, flags, options) == 0 || errno == EBUSY) return true;
  problem("E_MOUNT", std::string(type) + " cannot be mounted on " + at + ": " + std::strerror(errno) + ".");
  return false;
}

void Boot::mountBasics() {
  for (const Basic& each : kBasics) mount(each.source, each.at, each.type, each.flags, each.options);
  for (const auto& [target, link] : kLinks) {
    if (::symlink(target, link) != 0 && errno != EEXIST) {
      problem("E_MOUNT", std::string(link) + " cannot be made: " + std::strerror(errno) + ".");
    }
  }
}

void Boot::switchRoot(const std::string& tag) {
  if (tag.empty()) return;
  if (!mount(tag.c_str(), kNewRoot, kVirtioFs, 0, nullptr)) return;
  for (const char* each : kMoved) {
    const std::string to = std::string(kNewRoot) + each;
    if (::access(to.c_str(), F_OK) != 0 && !makeFolders(to)) {
      problem("E_MOUNT",
              std::string("The root has no ") + each + ", and it cannot be made: " + std::strerror(errno) + ".");
    } else if (::mount(each, to.c_str(), nullptr, MS_MOVE, nullptr) != 0) {
      problem("E_MOUNT", std::string(each) + " cannot be moved into the root: " + std::strerror(errno) + ".");
    }
  }
  // The initramfs cannot be unmounted; the new root is put over it (switch_root(8)).
  if (::chdir(kNewRoot) != 0 || ::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || ::chroot(".") != 0 ||
      ::chdir("/") != 0) {
    return problem("E_MOUNT", std::string("The root cannot be switched to: ") + std::strerror(errno) + ".");
  }
  root_ = std::string(kVirtioFs) + ":" + tag;
}

void Boot::mountWorkspaces(const std::vector<Workspace>& workspaces) {
  for (const Workspace& each : workspaces) {
    if (mount(each.tag.c_str(), each.path, kVirtioFs, MS_NOSUID | MS_NODEV, nullptr)) mounted_.push_back(each.path);
  }
}

void Boot::bringLoopbackUp() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (fd && ::ioctl(fd.get(), SIOCGIFFLAGS, &request) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
    if (::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0) return;
  }
  problem("E_IO", std::string("The loopback cannot be brought up: ") + std::strerror(errno) + ".");
}

void Boot::raiseLimits() {
  // The hard limit is for all; the soft one stays, since programs that use select(2) break above 1024.
  constexpr rlim_t kFiles = 1 << 19;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < kFiles) {
    limit.rlim_max = kFiles;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  // A number that is not used again soon: signals to a group whose leader has ended find the right one.
  const UniqueFd most(::open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t written = ::write(most.get(), "4194304", 7);
}

}  // namespace bough::guest
