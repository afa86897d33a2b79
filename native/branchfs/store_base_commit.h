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
/// What a transaction moved. `known`: the base as it was at its paths.
std::vector<BaseMove> movesOf(const Outcome& outcome, const KnownByPath& known, const Base& base);

/// A transaction's note: what recovery needs to write the record that a crash kept from being written.
struct CommitNote {
  Record record;
  KnownByPath known;
};
std::string encodeNote(const Record& record, const KnownByPath& known);
std::optional<CommitNote> decodeNote(const std::string& bytes, const LeaseOf& leaseOf);
std::optional<std::pair<NodeId, NodePtr>> nodeOfKept(const Base& base, std::uint32_t root);

}  // namespace bough
