// The version of the native programs. It is the one of package.json.
#pragma once

namespace bough {

inline constexpr const char* kVersion = BOUGH_VERSION;

}  // namespace bough
