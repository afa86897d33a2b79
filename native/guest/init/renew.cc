// See renew.h.
#include "native/guest/init/renew.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstring>

#include "native/common/unique_fd.h"

namespace bough::guest {
namespace {

constexpr const char* kFolder = "/run/bough";
constexpr const char* kIdentity = "/run/bough/identity";
constexpr const char* kBootId = "/run/bough/boot_id";
constexpr const char* kKernelBootId = "/proc/sys/kernel/random/boot_id";
constexpr std::int64_t kTolerableUs = 1000000;  // so long a message may take on a busy host

Error refused(const char* code, int error, const std::string& what) {
  return Error{error, code, what + ": " + std::strerror(error) + "."};
}

Result<Done> writeAll(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return sys(errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return Done{};
}

/// Readers see the old file or the new one, never a half.
Result<Done> replaceFile(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return refused("E_IDENTITY", errno, fresh);
  if (auto written = writeAll(fd, bytes); !written) return refused("E_IDENTITY", written.error().errnum, fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return refused("E_IDENTITY", errno, path);
  return Done{};
}

/// A random UUID (RFC 4122, version 4), as the kernel writes its boot id.
Result<std::string> newBootId() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return refused("E_IDENTITY", errno, "getrandom");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> hex{};
    ::snprintf(hex.data(), hex.size(), "%02x", bytes[i]);
    text += hex.data();
  }
  return text;
}

/// The kernel's own cannot be set: a file lies over it. Mounted once; later ones are written into the same file, so
/// that it changes in every mount namespace that was copied from this one.
Result<Done> changeBootId() {
  BOUGH_ASSIGN(const std::string id, newBootId());
  const bool first = ::access(kBootId, F_OK) != 0;
  const UniqueFd fd(::open(kBootId, O_WRONLY | O_CREAT | O_CLOEXEC, 0444));
  if (!fd) return refused("E_IDENTITY", errno, kBootId);
  if (auto written = writeAll(fd, id + "\n"); !written) return refused("E_IDENTITY", written.error().errnum, kBootId);
  if (!first || ::mount(kBootId, kKernelBootId, nullptr, MS_BIND, nullptr) == 0) return Done{};
  const int error = errno;
  ::unlink(kBootId);
  return refused("E_IDENTITY", error, std::string("The boot id cannot be changed: ") + kKernelBootId);
}

}  // namespace

Result<Done> reseed(std::string_view entropy) {
  struct {
    int entropyBits;
    int bytes;
    std::array<char, kEntropyBytes> data;
  } pool{};
  static_assert(sizeof pool == sizeof(rand_pool_info) + kEntropyBytes);
  if (entropy.size() != kEntropyBytes) return Error{EINVAL, "E_RESEED", "It takes 32 bytes."};
  pool.entropyBits = static_cast<int>(kEntropyBytes * 8);
  pool.bytes = static_cast<int>(kEntropyBytes);
  std::memcpy(pool.data.data(), entropy.data(), entropy.size());
  const UniqueFd fd(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  if (!fd) return refused("E_RESEED", errno, "/dev/urandom cannot be opened");
  if (::ioctl(fd.get(), RNDADDENTROPY, &pool) != 0) return refused("E_RESEED", errno, "RNDADDENTROPY");
  if (::ioctl(fd.get(), RNDRESEEDCRNG) != 0) return refused("E_RESEED", errno, "RNDRESEEDCRNG");
  return Done{};
}

std::uint64_t realtimeUs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

Result<std::int64_t> setClock(std::uint64_t wanted) {
  const auto offUs = static_cast<std::int64_t>(wanted) - static_cast<std::int64_t>(realtimeUs());
  if (offUs >= -kTolerableUs && offUs <= kTolerableUs) return std::int64_t{0};
  timespec time{};
  time.tv_sec = static_cast<time_t>(wanted / 1000000);
  time.tv_nsec = static_cast<long>(wanted % 1000000 * 1000);
  if (::clock_settime(CLOCK_REALTIME, &time) != 0) return refused("E_CLOCK", errno, "The clock cannot be set");
  return offUs;
}

Result<Done> Identity::become(const IdentityRequest& request, bool forked) {
  if (!request.hostname.empty()) BOUGH_TRY(setHostname(request.hostname));
  if (::mkdir(kFolder, 0755) != 0 && errno != EEXIST) return refused("E_IDENTITY", errno, kFolder);
  // Before anybody was told who this is, the kernel's own boot id is as good as any.
  if (forked) BOUGH_TRY(changeBootId());
  Json json = toJson(request);
  json["hostname"] = hostname();
  json["bootId"] = bootId();
  json["forks"] = forks_ + (forked ? 1 : 0);
  BOUGH_TRY(replaceFile(kIdentity, toLine(json)));
  if (forked) forks_++;
  current_ = request;
  return Done{};
}

Json toJson(const IdentityRequest& identity) {
  return Json{{"branch", identity.branch}, {"name", identity.name}, {"index", identity.index}};
}

Result<Done> setHostname(const std::string& name) {
  if (::sethostname(name.data(), name.size()) == 0) return Done{};
  return refused("E_IDENTITY", errno, "The host name cannot be set to " + name);
}

std::string hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string bootId() {
  const UniqueFd fd(::open(kKernelBootId, O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t n = ::read(fd.get(), text.data(), text.size() - 1);
  std::string_view id(text.data(), static_cast<std::size_t>(n > 0 ? n : 0));
  return std::string(id.substr(0, id.find('\n')));
}

}  // namespace bough::guest
