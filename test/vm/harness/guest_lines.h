// What the tests read from guests that write lines of 16-digit fields and say FAIL when something is not right. Used by
// the tests of one instant and of devices.
#pragma once

#include <cstdint>
#include <string>

#include "test/vm/harness/numbers.h"
#include "test/vm/harness/vm.h"

namespace bough::vmtest {

/// Field number `index` of a line of hexadecimal numbers.
std::uint64_t field(const std::string& line, unsigned index);

/// Waits until the guest has written `count` whole lines from now on, and answers the last.
std::string linesOn(Vm& vm, unsigned count);

/// What the guest found wrong; empty if nothing.
std::string complaint(Vm& vm, std::size_t from = 0);

/// Forks `vm`, whose guest writes `numbers`, while it is paused, and finds what is not right: the child's first byte
/// must be the one that comes after the last byte of the parent. The parent runs on afterwards, and the child waits to
/// be looked at.
std::string forkOfStream(Vm& vm, const Numbers& numbers, const Json& params = Json::object());

}  // namespace bough::vmtest
