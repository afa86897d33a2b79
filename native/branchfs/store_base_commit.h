// What commits into the base and their undo share. Used inside Store.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "native/branchfs/base.h"
#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/pins.h"
#include "native/branchfs/store_types.h"

namespace bough {

/// Why a transaction did not happen, in the store's codes.
Error refusedBy(Outcome& outcome, Refusal& refusal);
/// What a transaction moved. `before`: the base as it was, settled at its paths; what it does not know is read from the
/// kept things.
std::vector<BaseMove> movesOf(const Outcome& outcome, const Nodes& before, const Base& base);
std::optional<std::pair<NodeId, NodePtr>> nodeOfKept(const Base& base, std::uint32_t root);

}  // namespace bough
