// View: copy-up. A file whose data the branch may not write in place (the base's, or an object frozen by a branch
// point) gets an object of its own. The copy is made without a lock; it takes its place only if nothing changed
// meanwhile.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "native/branchfs/view_data.h"
#include "native/branchfs/view_draft.h"

namespace bough {

namespace {

/// Up to this size the base's own text is kept as well, for the base side of a diff and three-way merges after the
/// person changed the base.
constexpr std::uint64_t kKeepPristine = 128U << 10;

/// Objects that no tree names yet; removed again unless they get their place.
class FreshObjects {
 public:
  explicit FreshObjects(Objects& objects) : objects_(objects) {}
  ~FreshObjects() {
    for (ObjectId id : ids_) (void)objects_.remove(id);
  }
  FreshObjects(const FreshObjects&) = delete;
  FreshObjects& operator=(const FreshObjects&) = delete;
  Result<SharedFd> copy(ObjectId id, int from, std::uint64_t length) {
    BOUGH_ASSIGN(SharedFd fd, from >= 0 ? objects_.createFrom(id, from, length) : objects_.create(id));
    ids_.push_back(id);
    return fd;
  }
  void placed() { ids_.clear(); }

 private:
  Objects& objects_;
  std::vector<ObjectId> ids_;
};

/// The node of a file that only an open handle still has.
std::shared_ptr<Node> strayNode(const BaseStat& stat) {
  auto node = std::make_shared<Node>();
  node->mode = stat.mode;
  node->uid = stat.uid;
  node->gid = stat.gid;
  node->nlink = 0;
  node->atime = stat.atime;
  node->btime = stat.btime;
  return node;
}

bool sameState(const BaseStat& a, const BaseStat& b) {
  return a.dev == b.dev && a.ino == b.ino && a.size == b.size && a.mtime == b.mtime;
}

}  // namespace

Result<> View::copyUp(NodeId id, OpenFile* file, std::uint64_t keep) {
  std::lock_guard one(copyUpLocks_[stableHash(id) % copyUpLocks_.size()]);

  // What to copy from.
  Content content;
  SharedFd source;
  bool stray = false;
  {
    std::shared_lock lock(branch_->lock);
    BOUGH_TRY(mayChange());
    auto found = find(id);
    if (found) {
      if (found->kind() != Kind::File) return sys(found->kind() == Kind::Directory ? EISDIR : EINVAL);
      if (found->node) {
        content = (**found).content;
      } else {
        content.where = Content::Where::Base;
        content.base = found->ref;
      }
      if (content.where == Content::Where::Object) {
        if (content.epoch == branch_->tree.epoch) return Done{};  // somebody else has just done it
        BOUGH_ASSIGN(source, objects_.get(content.object));
      } else if (content.where == Content::Where::Base) {
        auto opened = base_.openFile(content.base);
        if (opened) {
          source = std::make_shared<const UniqueFd>(std::move(*opened));
        } else {
          if (file) source = file->last().second;
          if (!source) return opened.error();
        }
      }
    } else {
      if (file) source = file->last().second;
      if (!source) return found.error();
      stray = true;
    }
  }

  FreshObjects fresh(objects_);
  Content mine;
  mine.where = Content::Where::Object;
  Content pristine = mine;
  BaseStat before;
  const bool fromBase = content.where == Content::Where::Base;
  if (!source) {
    mine.object = branch_->log->newObject();
    BOUGH_ASSIGN(SharedFd made, fresh.copy(mine.object, -1, 0));
  } else {
    BOUGH_ASSIGN(before, statOf(source->get()));
    int from = source->get();
    SharedFd kept;
    if (fromBase && !stray && before.size <= kKeepPristine) {
      pristine.object = branch_->log->newObject();
      BOUGH_ASSIGN(kept, fresh.copy(pristine.object, from, before.size));
      from = kept->get();
    }
    mine.object = branch_->log->newObject();
    BOUGH_ASSIGN(SharedFd made, fresh.copy(mine.object, from, std::min(before.size, keep)));
    BOUGH_ASSIGN(BaseStat after, statOf(source->get()));
    // The person wrote into the base's file meanwhile: the copy may be of two minds. The caller tries again.
    if (fromBase && !stray && !sameState(before, after)) return Done{};
  }

  NodePtr freedOutsideTheLock;
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  mine.epoch = branch_->tree.epoch;
  mine.lease = objects_.lease(mine.object);
  if (stray) {
    if (find(id)) return Done{};
    auto node = strayNode(before);
    node->content = mine;
    node->ctime = presentTime();
    branch_->orphans[id] = std::move(node);
    std::lock_guard guard(knownLock_);
    known_[id].orphan = true;
    fresh.placed();
    return Done{};
  }
  auto found = find(id);
  if (!found) return Done{};  // the caller sees what has become of it
  const bool nowFromBase = !found->node || (**found).content.where == Content::Where::Base;
  if (fromBase != nowFromBase) return Done{};
  if (!fromBase && !((**found).content == content)) return Done{};
  if (fromBase && !found->node && !sameState(before, found->stat)) return Done{};
  if (found->node && (**found).nlink == 0) {
    auto node = std::make_shared<Node>(**found->node);
    node->content = mine;
    node->timesHeld = false;
    node->ctime = presentTime();
    freedOutsideTheLock = std::exchange(branch_->orphans[id], std::move(node));
    fresh.placed();
    if (pristine.object) (void)objects_.remove(pristine.object);
    return Done{};
  }
  Draft draft(*this);
  BOUGH_TRY(draft.settle(id));
  if (pristine.object) {
    pristine.lease = objects_.lease(pristine.object);
    draft.keepPristine(id, pristine, before);
  }
  Node& node = draft.edit(id);
  node.content = mine;
  node.timesHeld = false;
  node.ctime = presentTime();
  node.size = std::min(before.size, keep);
  BOUGH_TRY(draft.commit());
  fresh.placed();
  return Done{};  // an unused pristine object goes with its lease
}

std::optional<View::Pristine> View::pristineOf(NodeId folder, std::string_view name) {
  Pristine pristine;
  {
    std::shared_lock lock(branch_->lock);
    if (!mayChange()) return std::nullopt;
    auto in = findFolder(folder);
    auto found = in ? child(*in, name) : Result<Found>(in.error());
    if (!found || found->kind() != Kind::File) return std::nullopt;
    if (found->node && (**found).content.where != Content::Where::Base) return std::nullopt;
    pristine.ref = found->node ? (**found).content.base : found->ref;
  }
  auto file = base_.openFile(pristine.ref);
  auto before = file ? statOf(file->get()) : Result<BaseStat>(file.error());
  if (!before || before->size > kKeepPristine) return std::nullopt;
  pristine.content.where = Content::Where::Object;
  pristine.content.object = branch_->log->newObject();
  // Without its place in a tree the object goes with this lease.
  pristine.content.lease = objects_.lease(pristine.content.object);
  auto copied = objects_.createFrom(pristine.content.object, file->get(), before->size);
  auto after = statOf(file->get());
  if (!copied || !after || !sameState(*before, *after)) return std::nullopt;
  pristine.stat = *before;
  return pristine;
}

Result<> View::truncate(NodeId id, OpenFile* file, std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(INT64_MAX)) return sys(EFBIG);
  return withOwnData(id, file, size, [&](int fd) -> Result<> {
    while (::ftruncate(fd, static_cast<off_t>(size)) != 0) {
      if (errno != EINTR) return sys(errno);
    }
    return Done{};
  });
}

}  // namespace bough
