// Processes held by a descriptor instead of a number that may be given to someone else. Used to stop what a branch ran.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "addon/errors.h"
#include "addon/functions.h"

namespace bough::addon {

// By number: glibc has wrappers only from 2.36 on.
Napi::Value PidfdOpen(const Napi::CallbackInfo& info) {
  const pid_t pid = info[0].As<Napi::Number>().Int32Value();
  const long fd = syscall(SYS_pidfd_open, pid, 0U);
  if (fd < 0) return ThrowErrno(info.Env(), errno, "pidfd_open");
  return Napi::Number::New(info.Env(), static_cast<double>(fd));
}

Napi::Value PidfdSendSignal(const Napi::CallbackInfo& info) {
  const int fd = info[0].As<Napi::Number>().Int32Value();
  const int signal = info[1].As<Napi::Number>().Int32Value();
  if (syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0U) != 0) {
    return ThrowErrno(info.Env(), errno, "pidfd_send_signal");
  }
  return info.Env().Undefined();
}

}  // namespace bough::addon
