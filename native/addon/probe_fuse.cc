// Can this person open /dev/fuse? For the doctor.
#include <fcntl.h>

#include <cerrno>

#include "addon/errors.h"
#include "addon/functions.h"
#include "addon/owned_fd.h"

namespace bough::addon {

Napi::Value ProbeFuse(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const OwnedFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  const int error = device.valid() ? 0 : errno;
  Napi::Object result = Napi::Object::New(env);
  result.Set("open", Napi::Boolean::New(env, device.valid()));
  result.Set("errno", error == 0 ? env.Null() : Napi::String::New(env, ErrnoName(error)));
  return result;
}

}  // namespace bough::addon
