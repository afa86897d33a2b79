// See view_draft.h.
#include "native/branchfs/view_draft.h"

#include <time.h>

#include <algorithm>
#include <iterator>

namespace bough {

Time presentTime() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return Time{now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)};
}

Result<NodePtr> nodeFromBase(const Base& base, const BaseRef& ref, const BaseStat& stat) {
  auto node = std::make_shared<Node>();
  node->kind = stat.kind;
  node->mode = stat.mode;
  node->uid = stat.uid;
  node->gid = stat.gid;
  node->rdev = stat.rdev;
  node->nlink = stat.nlink;
  node->size = stat.size;
  node->atime = stat.atime;
  node->mtime = stat.mtime;
  node->ctime = stat.ctime;
  node->btime = stat.btime;
  node->identity = stat.identity();
  switch (stat.kind) {
    case Kind::File:
      node->content.where = Content::Where::Base;
      node->content.base = ref;
      break;
    case Kind::Directory:
      node->hasUnder = true;
      node->under = ref;
      break;
    case Kind::Symlink: {
      BOUGH_ASSIGN(node->target, base.readlink(ref));
      break;
    }
    default:
      break;
  }
  BOUGH_ASSIGN(node->xattrs, base.xattrs(ref));
  return NodePtr(std::move(node));
}

const Node* Draft::now(NodeId id) const {
  for (const auto& [edited, node] : edited_) {
    if (edited == id) return node.get();
  }
  if (!settled_.empty()) {
    auto settled = settled_.find(id);
    if (settled != settled_.end()) return settled->second.get();
  }
  const NodePtr* inTree = view_.nodes().find(id);
  return inTree ? inTree->get() : nullptr;
}

Result<> Draft::settle(NodeId id) {
  // Up to the first folder that the tree has, then down again.
  std::vector<std::pair<NodeId, View::Place>> way;
  {
    std::lock_guard guard(view_.knownLock_);
    for (NodeId at = id; at != kRootNode && !now(at);) {
      auto known = view_.known_.find(at);
      if (known == view_.known_.end() || way.size() > 4096) return sys(ESTALE);
      way.emplace_back(at, known->second.place);
      at = known->second.place.first;
    }
  }
  if (!now(kRootNode)) {
    BOUGH_ASSIGN(BaseStat stat, view_.base_.stat(BaseRef{}));
    BOUGH_ASSIGN(NodePtr root, nodeFromBase(view_.base_, BaseRef{}, stat));
    settled_[kRootNode] = root;
    settles_.push_back(PutNode{kRootNode, std::move(root)});
  }
  for (auto step = way.rbegin(); step != way.rend(); ++step) {
    const Node* folder = now(step->second.first);
    if (!folder || !folder->hasUnder) return sys(ESTALE);
    View::Found found;
    found.id = step->first;
    found.ref = below(folder->under, step->second.second);
    auto stat = view_.base_.stat(found.ref);
    if (!stat) return sys(stat.error().errnum == ENOENT ? ESTALE : stat.error().errnum);
    found.stat = *stat;
    if (view_.knownAsAnother(found.id, found.stat)) return sys(ESTALE);
    BOUGH_TRY(settleAt(step->second, found));
  }
  return Done{};
}

Result<> Draft::settleAt(const View::Place& place, const View::Found& found) {
  const bool settledNow = settled_.contains(found.id);
  if (found.node || settledNow) {
    // A name by which the base has a file that is known by another one: from now on it is that node's, whatever becomes
    // of the base. Otherwise a diff would not see it go, and a commit not change the file under it.
    if (found.id == kRootNode || found.kind() == Kind::Directory) return Done{};
    const auto shows = [&place](const Node* folder) {
      return folder && folder->kind == Kind::Directory && folder->hasUnder && !folder->entries.contains(place.second);
    };
    if (!shows(now(place.first))) return Done{};
    if (!settledNow) {
      Branch& branch = *view_.branch_;
      branch.foldAdopted();
      const NodePtr* folder = branch.point.find(place.first);
      if (!branch.point.contains(found.id) || (folder && !shows(folder->get()))) return Done{};
    }
    settles_.push_back(PutEntry{place.first, place.second, found.id});
    return Done{};
  }
  BOUGH_ASSIGN(NodePtr node, nodeFromBase(view_.base_, found.ref, found.stat));
  settled_[found.id] = node;
  settles_.push_back(PutNode{found.id, std::move(node)});
  if (found.id == kRootNode) return Done{};
  settles_.push_back(PutEntry{place.first, place.second, found.id});
  if (found.stat.kind == Kind::Directory || found.stat.nlink < 2) return Done{};
  // The other names that we know of lead to the same node from now on.
  std::vector<View::Place> others;
  {
    std::lock_guard guard(view_.knownLock_);
    auto known = view_.known_.find(found.id);
    if (known == view_.known_.end()) return Done{};
    others = known->second.otherPlaces;
    others.push_back(known->second.place);
  }
  for (const View::Place& other : others) {
    if (other == place || !settle(other.first)) continue;
    const Node* folder = now(other.first);
    if (!folder || !folder->hasUnder || folder->entries.contains(other.second)) continue;
    auto stat = view_.base_.stat(below(folder->under, other.second));
    if (!stat || stat->dev != found.stat.dev || stat->ino != found.stat.ino) continue;
    settles_.push_back(PutEntry{other.first, other.second, found.id});
  }
  return Done{};
}

void Draft::settleAbsent(NodeId folder, std::string_view name) {
  settles_.push_back(PutEntry{folder, std::string(name), kNoNode});
}

void Draft::keepPristine(NodeId id, const Content& copy, const BaseStat& stat) {
  auto settledNow = settled_.find(id);
  const NodePtr* inPoint = settledNow != settled_.end() ? &settledNow->second : view_.branch_->point.find(id);
  if (!inPoint || (*inPoint)->content.where != Content::Where::Base) return;
  auto node = std::make_shared<Node>(**inPoint);
  node->content = copy;
  node->size = stat.size;
  if (!node->timesHeld) {
    node->atime = stat.atime;
    node->mtime = stat.mtime;
  }
  node->timesHeld = true;  // the copy's own times say nothing
  if (settledNow == settled_.end()) {
    settles_.push_back(PutNode{id, std::move(node)});
    return;
  }
  for (Mutation& mutation : settles_) {
    auto* put = std::get_if<PutNode>(&mutation);
    if (put && put->id == id) put->node = node;
  }
  settledNow->second = std::move(node);
}

Node& Draft::edit(NodeId id) {
  for (const auto& [edited, node] : edited_) {
    if (edited == id) return *node;
  }
  edited_.emplace_back(id, std::make_shared<Node>(*now(id)));
  return *edited_.back().second;
}

void Draft::add(NodeId id, NodePtr node) { added_.push_back(PutNode{id, std::move(node)}); }

void Draft::drop(NodeId id) {
  std::erase_if(edited_, [id](const auto& edited) { return edited.first == id; });
  dropped_.push_back(DropNode{id});
}

void Draft::name(NodeId folder, std::string_view name, NodeId child) {
  names_.push_back(PutEntry{folder, std::string(name), child});
}

void Draft::unname(NodeId folder, std::string_view name, bool whiteout) {
  if (whiteout) {
    names_.push_back(PutEntry{folder, std::string(name), kNoNode});
  } else {
    names_.push_back(DropEntry{folder, std::string(name)});
  }
}

Node& Draft::touch(NodeId folder) {
  Node& node = edit(folder);
  node.mtime = node.ctime = presentTime();
  return node;
}

Change Draft::take() {
  Change change;
  change.settles = std::move(settles_);
  change.edits = std::move(added_);
  for (auto& [id, node] : edited_) change.edits.push_back(PutNode{id, std::move(node)});
  std::move(names_.begin(), names_.end(), std::back_inserter(change.edits));
  std::move(dropped_.begin(), dropped_.end(), std::back_inserter(change.edits));
  return change;
}

Result<> Draft::commit() { return view_.branch_->commit(take()); }

}  // namespace bough
