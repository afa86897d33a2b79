// Who is at the other end of a unix socket. The helper's API asks before it answers anything.
#include <sys/socket.h>

#include <cerrno>

#include "addon/errors.h"
#include "addon/functions.h"

namespace bough::addon {

Napi::Value PeerCredentials(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const int fd = info[0].As<Napi::Number>().Int32Value();
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return ThrowErrno(env, errno, "getsockopt");
  Napi::Object result = Napi::Object::New(env);
  result.Set("pid", Napi::Number::New(env, credentials.pid));
  result.Set("uid", Napi::Number::New(env, credentials.uid));
  result.Set("gid", Napi::Number::New(env, credentials.gid));
  return result;
}

}  // namespace bough::addon
