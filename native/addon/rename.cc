// renameat2's two flags and FICLONE, which Node's fs does not offer. Used where a swap must be one step.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "addon/errors.h"
#include "addon/functions.h"
#include "addon/owned_fd.h"

namespace bough::addon {
namespace {

Napi::Value Rename(const Napi::CallbackInfo& info, unsigned flags) {
  const std::string from = info[0].As<Napi::String>();
  const std::string to = info[1].As<Napi::String>();
  // By number: <stdio.h> and <linux/fs.h> each define the flags, and only one of them may.
  if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) != 0) {
    return ThrowErrno(info.Env(), errno, "renameat2", from);
  }
  return info.Env().Undefined();
}

}  // namespace

Napi::Value RenameExchange(const Napi::CallbackInfo& info) { return Rename(info, RENAME_EXCHANGE); }

Napi::Value RenameNoReplace(const Napi::CallbackInfo& info) { return Rename(info, RENAME_NOREPLACE); }

Napi::Value Ficlone(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::string source = info[0].As<Napi::String>();
  const std::string target = info[1].As<Napi::String>();

  const OwnedFd from(open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from.valid()) return ThrowErrno(env, errno, "open", source);
  struct stat status{};
  if (fstat(from.get(), &status) != 0) return ThrowErrno(env, errno, "fstat", source);
  const OwnedFd to(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, status.st_mode & 07777));
  if (!to.valid()) return ThrowErrno(env, errno, "open", target);

  if (ioctl(to.get(), FICLONE, from.get()) == 0) return Napi::Boolean::New(env, true);
  const int error = errno;
  unlink(target.c_str());  // Made above by O_EXCL, so it is ours to remove.
  switch (error) {
    case EOPNOTSUPP:
    case ENOTTY:
    case ENOSYS:
    case EXDEV:
    case EINVAL:
      return Napi::Boolean::New(env, false);
    default:
      return ThrowErrno(env, error, "ioctl FICLONE", target);
  }
}

}  // namespace bough::addon
