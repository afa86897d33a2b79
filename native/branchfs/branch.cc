// See branch.h.
#include "native/branchfs/branch.h"

#include <variant>

namespace bough {

Result<> Branch::commit(const Change& change) {
  if (change.empty()) return Done{};
  if (state != BranchState::Live) return sys(EROFS);
  BOUGH_TRY(log->append(id, change));
  if (!change.settles.empty()) foldAdopted();  // settles go into folders that the point has to have
  bough::apply(point, change.settles);
  bough::apply(tree.nodes, change.settles);
  bough::apply(tree.nodes, change.edits);
  if (!change.edits.empty()) editsSeen.store(++edits, std::memory_order_relaxed);
  return Done{};
}

void Branch::foldAdopted() {
  for (const AdoptedPoint& one : adopted) {
    for (const Mutation& mutation : difference(one.unsettled, one.settled)) {
      // What this branch had met itself stays as it met it.
      if (const auto* put = std::get_if<PutNode>(&mutation); put && point.contains(put->id)) continue;
      if (const auto* put = std::get_if<PutEntry>(&mutation)) {
        const NodePtr* folder = point.find(put->dir);
        if (folder && (*folder)->entries.contains(put->name)) continue;
      }
      if (std::holds_alternative<DropNode>(mutation) || std::holds_alternative<DropEntry>(mutation)) continue;
      bough::apply(point, {mutation});
    }
  }
  adopted.clear();
}

}  // namespace bough
