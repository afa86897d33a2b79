// Lines for the person who runs a native program: "boughfs: …" on stderr, one write each so that threads do not mix.
#pragma once

#include <string>

namespace bough {

void logLine(const std::string& message);

}  // namespace bough
