// Pseudoterminals for the terminals that the helper owns, so that they survive a reload of the window.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "addon/errors.h"
#include "addon/functions.h"
#include "addon/owned_fd.h"

namespace bough::addon {
namespace {

winsize WindowSize(const Napi::Value& rows, const Napi::Value& columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows.As<Napi::Number>().Uint32Value());
  size.ws_col = static_cast<unsigned short>(columns.As<Napi::Number>().Uint32Value());
  return size;
}

}  // namespace

Napi::Value OpenPty(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const winsize size = WindowSize(info[0], info[1]);

  OwnedFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master.valid()) return ThrowErrno(env, errno, "open", "/dev/ptmx");
  if (grantpt(master.get()) != 0) return ThrowErrno(env, errno, "grantpt");
  if (unlockpt(master.get()) != 0) return ThrowErrno(env, errno, "unlockpt");
  std::array<char, 128> slave{};
  // ptsname_r gives the error as its result.
  if (const int error = ptsname_r(master.get(), slave.data(), slave.size()); error != 0) {
    return ThrowErrno(env, error, "ptsname_r");
  }
  if (ioctl(master.get(), TIOCSWINSZ, &size) != 0) return ThrowErrno(env, errno, "ioctl TIOCSWINSZ");

  Napi::Object result = Napi::Object::New(env);
  result.Set("master", Napi::Number::New(env, master.release()));
  result.Set("slave", Napi::String::New(env, slave.data()));
  return result;
}

Napi::Value ResizePty(const Napi::CallbackInfo& info) {
  const winsize size = WindowSize(info[1], info[2]);
  if (ioctl(info[0].As<Napi::Number>().Int32Value(), TIOCSWINSZ, &size) != 0) {
    return ThrowErrno(info.Env(), errno, "ioctl TIOCSWINSZ");
  }
  return info.Env().Undefined();
}

}  // namespace bough::addon
