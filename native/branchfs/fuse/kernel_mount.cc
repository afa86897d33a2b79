// Making and removing a FUSE mount; see kernel_mount.h.
#include "native/branchfs/fuse/kernel_mount.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>

extern char** environ;

namespace bough::fuse {
namespace {

// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(((text[i + 1] - '0') << 6) | ((text[i + 2] - '0') << 3) | (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// fusermount3 and its option parser split at commas.
std::string optionValue(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

bool usersMayAllowOthers() {
  std::ifstream conf("/etc/fuse.conf");
  std::string line;
  while (std::getline(conf, line))
    if (line.rfind("user_allow_other", 0) == 0) return true;
  return false;
}

// Runs fusermount3 and gives its exit status, or -1 if it could not be run. `comm` is inherited under the number that
// it is told of. What it says goes to `said` instead of our stderr.
int runFusermount(const std::vector<std::string>& arguments, int comm, std::string& said) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each)
    if (std::string(*each).rfind("_FUSE_COMMFD=", 0) != 0) environment.emplace_back(*each);
  int words[2];
  if (::pipe2(words, O_CLOEXEC) != 0) return -1;
  UniqueFd reader(words[0]), writer(words[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  if (comm >= 0) {
    // dup2 onto another number clears close-on-exec.
    constexpr int kInherited = 3;
    if (comm == kInherited) {
      ::fcntl(comm, F_SETFD, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions, comm, kInherited);
    }
    environment.push_back("_FUSE_COMMFD=" + std::to_string(kInherited));
  }
  std::vector<char*> envp;
  for (const auto& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);

  pid_t pid = -1;
  const int spawned = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (spawned != 0) return -1;
  char buffer[512];
  ssize_t got = 0;
  while ((got = ::read(reader.get(), buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR))
    if (got > 0 && said.size() < 4096) said.append(buffer, static_cast<std::size_t>(got));
  while (!said.empty() && said.back() == '\n') said.pop_back();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

UniqueFd receiveDescriptor(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  while ((got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return UniqueFd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return UniqueFd(fd);
}

Result<UniqueFd> mountWithHelper(const std::string& point, const std::string& source, bool allowOther) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return sysError(errno, "socketpair");
  UniqueFd ours(pair[0]), theirs(pair[1]);
  std::string options = "fsname=" + optionValue(source) + ",subtype=bough,default_permissions";
  if (allowOther && usersMayAllowOthers()) options += ",allow_other";
  std::string said;
  const int status = runFusermount({"fusermount3", "-o", options, "--", point}, theirs.get(), said);
  theirs.reset();
  if (status < 0)
    return Error{ENOENT, "E_MOUNT", "fusermount3 could not be run. Install the package fuse3, then try again."};
  UniqueFd device = receiveDescriptor(ours.get());
  if (status != 0 || !device)
    return Error{EPERM, "E_MOUNT",
                 "fusermount3 refused to mount at " + point + (said.empty() ? "" : " (" + said + ")") +
                     ". You must own that folder, have an entry in /etc/passwd and may need access to /dev/fuse; "
                     "`bough doctor` checks what it can."};
  return device;
}

Result<UniqueFd> mountDirectly(const std::string& point, const std::string& source, bool allowOther) {
  UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device)
    return Error{errno, "E_MOUNT",
                 std::string("/dev/fuse cannot be opened: ") + std::strerror(errno) +
                     ". Load the kernel module fuse, or give the container the device /dev/fuse."};
  std::string options = "fd=" + std::to_string(device.get()) +
                        ",rootmode=40000,user_id=" + std::to_string(::geteuid()) +
                        ",group_id=" + std::to_string(::getegid()) + ",default_permissions";
  if (allowOther) options += ",allow_other";
  // A device node in a branch is a fact to be shown and committed, never a way to the device.
  if (::mount(source.c_str(), point.c_str(), kMountType, MS_NODEV, options.c_str()) != 0)
    return sysError(errno, "mount at " + point);
  return device;
}

void detach(const std::string& point) {
  // MNT_FORCE ends the connection at once, so that nobody waits for a server that is gone.
  if (::umount2(point.c_str(), MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return;
  std::string said;
  if (errno == EPERM) (void)runFusermount({"fusermount3", "-u", "-z", "-q", "--", point}, -1, said);
}

}  // namespace

std::vector<MountEntry> parseMounts(const std::string& mountinfo) {
  std::vector<MountEntry> mounts;
  std::istringstream lines(mountinfo);
  std::string line;
  while (std::getline(lines, line)) {
    // 36 35 98:0 /root /point options optional… - type source options
    std::istringstream fields(line);
    MountEntry entry;
    std::string parent, root, field;
    if (!(fields >> entry.id >> parent >> entry.device >> root >> entry.point)) continue;
    while (fields >> field && field != "-") {
    }
    if (!(fields >> entry.type >> entry.source)) continue;
    entry.point = unescape(entry.point);
    entry.source = unescape(entry.source);
    mounts.push_back(std::move(entry));
  }
  return mounts;
}

std::vector<MountEntry> readMounts() {
  std::ifstream file("/proc/self/mountinfo");
  std::stringstream text;
  text << file.rdbuf();
  return parseMounts(text.str());
}

Result<std::string> canonicalMountPoint(const std::string& point) {
  std::string trimmed = point;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const auto slash = trimmed.rfind('/');
  if (trimmed.empty() || trimmed[0] != '/' || trimmed == "/")
    return Error{EINVAL, "E_MOUNT", "A branch is mounted at an absolute path of a folder, not at \"" + point + "\"."};
  const std::string parent = slash == 0 ? "/" : trimmed.substr(0, slash);
  char resolved[PATH_MAX];
  if (::realpath(parent.c_str(), resolved) == nullptr)
    return Error{
        errno, "E_MOUNT",
        "The mount point's folder " + parent + " cannot be used: " + std::strerror(errno) + ". Create it first."};
  std::string out = resolved;
  if (out != "/") out += '/';
  return out + trimmed.substr(slash + 1);
}

Result<UniqueFd> mountAt(const std::string& point, const std::string& source, bool allowOther) {
  if (::geteuid() == 0) {
    auto device = mountDirectly(point, source, allowOther);
    if (device || device.error().errnum != EPERM) {
      if (!device && device.error().code.empty()) {
        device.error().code = "E_MOUNT";
        device.error().message += ". The mount point must be an existing folder.";
      }
      return device;
    }
    // Root without CAP_SYS_ADMIN (a container): fusermount3 may still be allowed.
  }
  return mountWithHelper(point, source, allowOther);
}

Result<MountEntry> ourMountAt(const std::string& point) {
  auto mounts = readMounts();
  for (auto entry = mounts.rbegin(); entry != mounts.rend(); ++entry)
    if (entry->point == point && entry->type == kMountType) return *entry;
  return sys(ENOENT);
}

void unmountById(std::uint64_t id) {
  auto mounts = readMounts();
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (mounts[i].id != id) continue;
    // Somebody else's mount on top of ours: detaching by path would take theirs.
    for (std::size_t above = i + 1; above < mounts.size(); ++above)
      if (mounts[above].point == mounts[i].point) return;
    detach(mounts[i].point);
    return;
  }
}

int unmountAllAt(const std::string& point) {
  int count = 0;
  while (true) {
    auto mounts = readMounts();
    const MountEntry* top = nullptr;
    for (const auto& entry : mounts)
      if (entry.point == point) top = &entry;
    // The bound is for a mount that will not go.
    if (top == nullptr || top->type != kMountType || count > 16) return count;
    detach(point);
    ++count;
  }
}

}  // namespace bough::fuse
