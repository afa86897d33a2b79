// How a failed system call reaches JavaScript: an Error shaped like Node's own (code, errno, syscall, path), so that
// callers treat both alike. Used by every file of the addon.
#pragma once

#include <napi.h>

#include <string>

namespace bough::addon {

// The symbolic name of an errno value, such as "ENOENT".
std::string ErrnoName(int error);

// Leaves a pending JavaScript exception and returns undefined, so that a function can end with `return
// ThrowErrno(...)`.
Napi::Value ThrowErrno(Napi::Env env, int error, const char* syscall, const std::string& path = "");

}  // namespace bough::addon
