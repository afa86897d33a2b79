// A base with something of everything, and a transaction that does something of everything to it. Used by the tests of
// crashes and of undo.
#pragma once

#include "native/branchfs/commit/fixture.h"

namespace bough::commit_test {

/// Fills the base; every mtime is kOldTime.
void buildBase(const World& world);
/// Adds, replaces, removes, changes kinds, renames, links, and sets folders' attributes.
Transaction changeEverything(const World& world, Txn txn, std::uint32_t firstRoot);

}  // namespace bough::commit_test
