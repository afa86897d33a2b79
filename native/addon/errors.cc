// See errors.h.
#include "addon/errors.h"

#include <cstring>

namespace bough::addon {

std::string ErrnoName(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "E" + std::to_string(error);
}

Napi::Value ThrowErrno(Napi::Env env, int error, const char* syscall, const std::string& path) {
  const std::string code = ErrnoName(error);
  std::string message = code + ": " + strerrordesc_np(error) + ", " + syscall;
  if (!path.empty()) message += " '" + path + "'";
  Napi::Error thrown = Napi::Error::New(env, message);
  thrown.Set("code", Napi::String::New(env, code));
  thrown.Set("errno", Napi::Number::New(env, -error));  // Node's sign
  thrown.Set("syscall", Napi::String::New(env, syscall));
  if (!path.empty()) thrown.Set("path", Napi::String::New(env, path));
  thrown.ThrowAsJavaScriptException();
  return env.Undefined();
}

}  // namespace bough::addon
