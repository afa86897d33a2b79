// Changing a branch by path from outside: revert, take, resolve. See store.h.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "native/branchfs/store.h"
#include "native/branchfs/store_merge.h"
#include "native/branchfs/touched.h"
#include "native/common/fail_point.h"

namespace bough {
namespace {

constexpr int kTries = 20;

Error keepsChanging(const BranchId& id) {
  return Error{EBUSY, "E_STATE", "Branch " + id + " keeps changing. Pause its agent and try again."};
}

/// Makes selected nodes and names of `from` what they are in `to`, as edits of `from`.
Result<std::vector<Mutation>> editsOf(const Nodes& from, const Nodes& to, const Selection& selection,
                                      const NodeCompare& compare) {
  const MergeInput input{from, to, from, nullptr, &selection, true};
  Merge merged = merge(input, compare);
  if (!merged.conflicts.empty()) {
    return Error{EBUSY, "E_CONFLICT",
                 merged.conflicts.front().path + " cannot be changed by itself: take the folder it is in as well."};
  }
  return std::move(merged.edits);
}

std::vector<std::string> below(const std::vector<std::string>& all, const std::vector<std::string>& wanted) {
  std::vector<std::string> result = wanted;
  for (const std::string& path : all) {
    const auto holds = [&](const std::string& one) { return atOrBelow(path, one); };
    if (std::any_of(wanted.begin(), wanted.end(), holds)) result.push_back(path);
  }
  return result;
}

Error committedAlready(const BranchId& id) {
  return Error{EINVAL, "E_STATE",
               "Branch " + id + " is committed, so its files stay as they are. Undo the commit first."};
}

}  // namespace

Result<> Store::edit(const BranchPtr& branch, const std::function<Result<Change>(const Sides&)>& make) {
  for (int attempt = 0; attempt < kTries; attempt++) {
    const Sides sides = sidesOf(*branch);
    BOUGH_ASSIGN(const Change change, make(sides));
    {
      const std::lock_guard guard(lock_);
      BOUGH_TRY(branchOf(branch->id));
      if (branch->state == BranchState::Committed) return committedAlready(branch->id);
      const std::unique_lock hold(branch->lock);
      if (!branch->tree.nodes.sameAs(sides.after) || !branch->point.sameAs(sides.before)) continue;
      failPoint("store.edit.begin");
      BOUGH_TRY(record(Changed{branch->id, change}));
      failPoint("store.edit.logged");
      if (const auto view = views_.find(branch->id); view != views_.end()) view->second->treeReplaced(sides.after);
    }
    showReplaced(branch, sides.after);
    return Done{};
  }
  return keepsChanging(branch->id);
}

Result<std::uint64_t> Store::revert(const BranchId& id, const std::vector<std::string>& paths) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  const NodeCompare compare(*base_, *objects_);
  std::uint64_t count = 0;
  BOUGH_TRY(edit(branch, [&](const Sides& sides) -> Result<Change> {
    const Selection selection = select(changesBetween(sides.before, sides.after, compare), paths);
    count = selection.shown;
    BOUGH_ASSIGN(auto edits, editsOf(sides.after, sides.before, selection, compare));
    if (count == 0) return Error{ENOENT, "E_NO_PATH", "The branch has changed nothing at " + paths.front() + "."};
    return Change{{}, std::move(edits)};
  }));
  return count;
}

Result<std::uint64_t> Store::take(const BranchId& id, const BranchId& from, const std::vector<std::string>& paths) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  BOUGH_ASSIGN(const BranchPtr other, find(from));
  const NodeCompare compare(*base_, *objects_);
  Nodes source;
  {
    // Its objects are shared from here on: it writes on into copies.
    const std::lock_guard guard(lock_);
    const std::unique_lock hold(other->lock);
    BOUGH_TRY(record(PointMoved{from, {}, {}, log_.newEpoch()}));
    source = other->tree.nodes;
  }
  std::uint64_t count = 0;
  BOUGH_TRY(edit(branch, [&](const Sides& sides) -> Result<Change> {
    // Both have to say what they have at those paths, and at what differs below them.
    BOUGH_ASSIGN(const Nodes ours, settled(sides.after, below(touchedPaths(sides.after, source, sides.after), paths)));
    BOUGH_ASSIGN(const Nodes theirs, settled(source, below(touchedPaths(sides.after, source, source), paths)));
    const Selection selection = select(changesBetween(ours, theirs, compare), paths);
    count = selection.shown;
    BOUGH_ASSIGN(auto edits, editsOf(ours, theirs, selection, compare));
    return Change{difference(sides.after, ours), std::move(edits)};
  }));
  return count;
}

/// An object that holds these bytes.
Result<Content> Store::contentOf(const std::string& path, const std::string& data, Epoch epoch) {
  Content content;
  content.where = Content::Where::Object;
  content.object = log_.newObject();
  content.epoch = epoch;
  BOUGH_ASSIGN(const SharedFd fd, objects_->create(content.object));
  content.lease = objects_->lease(content.object);
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t n = ::pwrite(fd->get(), data.data() + done, data.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Error{errno, errno == ENOSPC ? "E_NO_SPACE" : "E_IO",
                   path + " cannot be written: " + std::strerror(errno) + "."};
    done += static_cast<std::size_t>(n);
  }
  return content;
}

/// The node of the parent's file at a path as the branch's point shall have it: with those bytes kept, so that what was
/// merged once can be merged again when the parent goes on. The parent's file has to hold them now.
Result<Mutation> Store::seenIn(const Nodes& theirs, const std::string& path, const std::string& seen, Epoch epoch) {
  const Error moved{EBUSY, "E_MOVED", "The parent's " + path + " is not what it was any more. Read it again."};
  const NodeId id = walk(theirs, path).value_or(kNoNode);
  const NodePtr* found = theirs.find(id);
  if (!found || (*found)->kind != Kind::File) return moved;
  const Content& content = (*found)->content;
  std::string now(seen.size() + 1, '\0');  // one more: a longer file is another one
  std::size_t size = 0;
  SharedFd fd;
  if (content.where == Content::Where::Object) {
    BOUGH_ASSIGN(fd, objects_->get(content.object));
  } else if (content.where == Content::Where::Base) {
    auto opened = base_->openFile(content.base);
    if (!opened) return moved;
    fd = std::make_shared<const UniqueFd>(std::move(*opened));
  }
  while (fd && size < now.size()) {
    const ssize_t n = ::pread(fd->get(), now.data() + size, now.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (now.substr(0, size) != seen) return moved;
  auto node = std::make_shared<Node>(**found);
  node->size = seen.size();
  BOUGH_ASSIGN(node->content, contentOf(path, seen, epoch));
  node->timesHeld = true;  // the copy's own times say nothing
  return Mutation(PutNode{id, std::move(node), false});
}

Result<std::vector<Mutation>> Store::written(const Nodes& tree, const Nodes& theirs, const std::string& path,
                                             const std::string& data, std::optional<std::uint32_t> mode, Epoch epoch) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? std::string() : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const NodeId dir = walk(tree, folder).value_or(kNoNode);
  if (!tree.contains(dir)) {
    return Error{ENOENT, "E_NO_PATH", "The branch has no folder " + folder + " to write " + name + " in."};
  }
  const auto fileAt = [&](const Nodes& nodes) {
    const NodePtr* node = nodes.find(walk(nodes, path).value_or(kNoNode));
    return node && (*node)->kind == Kind::File ? *node : nullptr;
  };
  std::vector<Mutation> mutations;
  const NodePtr ours = fileAt(tree);
  const NodePtr like = ours ? ours : fileAt(theirs);
  auto node = std::make_shared<Node>();
  if (like) {
    *node = *like;
  } else {
    node->mode = 0644;
    node->uid = ::geteuid();
    node->gid = ::getegid();
  }
  if (!ours) {
    node->identity = Identity();
    node->nlink = 1;
  }
  if (mode) node->mode = *mode;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  node->atime = node->mtime = node->ctime = Time{now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)};
  node->timesHeld = false;
  node->size = data.size();
  BOUGH_ASSIGN(node->content, contentOf(path, data, epoch));
  const NodeId id = ours ? *walk(tree, path) : log_.newNode();
  mutations.push_back(PutNode{id, std::move(node), false});
  if (!ours) mutations.push_back(PutEntry{dir, name, id});
  return mutations;
}

Result<> Store::resolve(const BranchId& id, const std::string& path, Take how, const std::string& data,
                        std::optional<std::uint32_t> mode, const std::optional<std::string>& seen) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  const NodeCompare compare(*base_, *objects_);
  for (int attempt = 0; attempt < kTries; attempt++) {
    BranchId target;
    {
      const std::lock_guard guard(lock_);
      BOUGH_ASSIGN(target, targetOf(*branch));
    }
    const Sides sides = sidesOf(*branch);
    BOUGH_ASSIGN(const Nodes theirs, settled(nodesOf(target), {path}));
    // Where the parent has no folder for it any more, the whole folder is what has to be agreed on.
    std::string at = path;
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const std::string above = path.substr(0, slash);
      if (walk(theirs, above).value_or(kRootNode) == kNoNode) {
        at = above;
        break;
      }
    }
    BOUGH_ASSIGN(const Nodes point, settled(sides.before, {at}));
    BOUGH_ASSIGN(auto pointEdits,
                 editsOf(point, theirs, select(changesBetween(point, theirs, compare), {at}), compare));
    PointMoved moved{id, difference(sides.before, point), {}, log_.newEpoch()};
    moved.point.insert(moved.point.end(), pointEdits.begin(), pointEdits.end());
    if (seen) {
      BOUGH_ASSIGN(Mutation kept, seenIn(theirs, path, *seen, moved.epoch));
      moved.point.push_back(std::move(kept));
    }
    if (how != Take::Ours) {
      BOUGH_ASSIGN(const Nodes tree, settled(sides.after, {at}));
      std::vector<Mutation> edits;
      if (how == Take::Theirs) {
        BOUGH_ASSIGN(edits, editsOf(tree, theirs, select(changesBetween(tree, theirs, compare), {at}), compare));
      } else {
        BOUGH_ASSIGN(edits, written(tree, theirs, path, data, mode, moved.epoch));
      }
      moved.tree = difference(sides.after, tree);
      moved.tree.insert(moved.tree.end(), edits.begin(), edits.end());
    }
    {
      const std::lock_guard guard(lock_);
      BOUGH_TRY(branchOf(id));
      if (branch->state == BranchState::Committed) return committedAlready(id);
      const BranchPtr parent = ledger_.find(target);
      std::unique_lock<std::shared_mutex> holdParent;
      if (parent) holdParent = std::unique_lock(parent->lock);
      const std::unique_lock hold(branch->lock);
      if (!branch->tree.nodes.sameAs(sides.after) || !branch->point.sameAs(sides.before)) continue;
      failPoint("store.resolve.begin");
      // The parent's objects are in the branch's point now: the parent writes on into copies.
      std::vector<Record> records{moved};
      if (parent) records.push_back(PointMoved{target, {}, {}, log_.newEpoch()});
      BOUGH_TRY(record(records));
      failPoint("store.resolve.logged");
      if (const auto shown = views_.find(id); shown != views_.end()) shown->second->treeReplaced(sides.after);
    }
    showReplaced(branch, sides.after);
    return Done{};
  }
  return keepsChanging(id);
}

}  // namespace bough
