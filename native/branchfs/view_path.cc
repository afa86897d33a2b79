// View: work by path, for the store and the control socket. See view.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "native/branchfs/view_draft.h"

namespace bough {

namespace {

Result<> writeAll(int fd, std::string_view data) {
  for (std::size_t done = 0; done < data.size();) {
    ssize_t put = ::pwrite(fd, data.data() + done, data.size() - done, static_cast<off_t>(done));
    if (put < 0) {
      if (errno == EINTR) continue;
      return sys(errno);
    }
    done += static_cast<std::size_t>(put);
  }
  return Done{};
}

}  // namespace

Result<View::Way> View::walk(std::string_view path) {
  Way way;
  BOUGH_ASSIGN(Found root, find(kRootNode));
  way.steps.push_back(Step{kNoNode, "", std::move(root)});
  while (!path.empty()) {
    std::size_t slash = path.find('/');
    std::string_view name = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (name.empty() || name == "." || name == "..") return sys(EINVAL);
    const Found& folder = way.steps.back().found;
    if (folder.kind() == Kind::Symlink) return sys(ELOOP);
    if (folder.kind() != Kind::Directory) return sys(ENOTDIR);
    auto found = child(folder, name);
    if (!found) {
      if (found.error().errnum != ENOENT) return found.error();
      way.missing = name;
      way.missingIsLast = path.empty();
      return way;
    }
    NodeId parent = folder.id;
    way.steps.push_back(Step{parent, std::string(name), std::move(*found)});
  }
  return way;
}

Result<View::Found> View::walkTo(std::string_view path) {
  BOUGH_ASSIGN(Way way, walk(path));
  if (way.missing) return sys(ENOENT);
  return std::move(way.steps.back().found);
}

Result<AtPath> View::resolve(std::string_view path) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, walkTo(path));
  AtPath at;
  BOUGH_ASSIGN(at.attr, attrOf(found));
  if (!found.node) {
    at.ref = found.ref;
    at.inBase = true;
    at.identity = found.stat.identity();
    if (found.stat.kind == Kind::Symlink) {
      BOUGH_ASSIGN(at.target, base_.readlink(found.ref));
    }
    return at;
  }
  at.node = *found.node;
  at.identity = at.node->identity;
  at.target = at.node->target;
  if (at.node->content.where == Content::Where::Base) {
    at.ref = at.node->content.base;
    at.inBase = true;
  } else if (at.node->hasUnder) {
    at.ref = at.node->under;
    at.inBase = true;
  }
  return at;
}

Result<SharedFd> View::openData(std::string_view path) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, walkTo(path));
  if (found.kind() != Kind::File) return sys(EINVAL);
  if (found.node && (*found).content.where == Content::Where::Nothing) return SharedFd();
  if (found.node && (*found).content.where == Content::Where::Object) return objects_.get((*found).content.object);
  BOUGH_ASSIGN(UniqueFd fd, base_.openFile(found.node ? (*found).content.base : found.ref));
  return SharedFd(std::make_shared<const UniqueFd>(std::move(fd)));
}

Result<std::string> View::readFile(std::string_view path, std::uint64_t max) {
  BOUGH_ASSIGN(SharedFd fd, openData(path));
  std::string data;
  if (!fd) return data;
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) return sys(errno);
  if (static_cast<std::uint64_t>(status.st_size) > max) return sys(EFBIG);
  data.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < data.size()) {
    ssize_t got = ::pread(fd->get(), data.data() + done, data.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  data.resize(done);
  return data;
}

Result<std::vector<DirItem>> View::listFolder(std::string_view path) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found folder, walkTo(path));
  if (folder.kind() != Kind::Directory) return sys(ENOTDIR);
  BOUGH_ASSIGN(std::vector<FolderItem> items, itemsOf(folder));
  std::vector<DirItem> result;
  result.reserve(items.size());
  for (FolderItem& item : items) {
    DirItem one;
    one.name = std::move(item.name);
    one.id = item.id;
    one.kind = item.kind;
    one.cookie = result.size() + 1;
    result.push_back(std::move(one));
  }
  return result;
}

Result<std::vector<std::string>> View::xattrNames(std::string_view path) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, walkTo(path));
  return xattrNamesOf(found);
}

Result<std::string> View::xattr(std::string_view path, std::string_view name) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, walkTo(path));
  return xattrOf(found, name);
}

Result<> View::writeFile(const Caller& caller, std::string_view path, std::string_view data) {
  {
    std::shared_lock lock(branch_->lock);
    BOUGH_TRY(mayChange());
  }
  Content content;
  content.where = Content::Where::Object;
  content.object = branch_->log->newObject();
  content.lease = objects_.lease(content.object);  // on an error the object goes with it
  BOUGH_ASSIGN(SharedFd fd, objects_.create(content.object));
  BOUGH_TRY(writeAll(fd->get(), data));
  NodeId id = 0;
  Place place;
  {
    std::unique_lock lock(branch_->lock);
    BOUGH_TRY(mayChange());
    BOUGH_ASSIGN(Way way, walk(path));
    if (way.missing && !way.missingIsLast) return sys(ENOENT);
    content.epoch = branch_->tree.epoch;
    Draft draft(*this);
    const Found& last = way.steps.back().found;
    if (!way.missing && last.kind() != Kind::File) return sys(last.kind() == Kind::Directory ? EISDIR : EINVAL);
    if (way.missing) BOUGH_TRY(mayMake(last, *way.missing));
    for (const Step& step : way.steps) BOUGH_TRY(draft.settleAt(Place(step.folder, step.name), step.found));
    if (way.missing) {
      auto node = std::make_shared<Node>();
      node->mode = 0644;
      node->uid = caller.uid;
      node->gid = draft.now(last.id)->mode & S_ISGID ? draft.now(last.id)->gid : caller.gid;
      node->atime = node->mtime = node->ctime = node->btime = presentTime();
      node->content = content;
      id = branch_->log->newNode();
      place = Place(last.id, *way.missing);
      draft.add(id, std::move(node));
      draft.touch(last.id);
      draft.name(last.id, *way.missing, id);
    } else {
      id = last.id;
      place = Place(way.steps.back().folder, way.steps.back().name);
      Node& node = draft.edit(id);
      node.content = content;
      node.timesHeld = false;
      node.mtime = node.ctime = presentTime();
      node.size = data.size();
    }
    BOUGH_TRY(draft.commit());
  }
  tell({id, place.first}, {place});
  return Done{};
}

Result<Change> View::settleChange(const std::vector<std::string>& paths) {
  Draft draft(*this);
  for (const std::string& path : paths) {
    auto way = walk(path);
    if (!way) {
      int error = way.error().errnum;
      if (error == ENOTDIR || error == ELOOP || error == EACCES || error == ENAMETOOLONG) continue;
      return way.error();
    }
    for (const Step& step : way->steps) BOUGH_TRY(draft.settleAt(Place(step.folder, step.name), step.found));
    if (!way->missing) continue;
    const Found& folder = way->steps.back().found;
    if (folder.kind() != Kind::Directory) continue;
    std::optional<BaseRef> under = underOf(folder);
    if (!under || base_.hidden(*under, *way->missing)) continue;  // nothing could come through there
    if (folder.node && (*folder).entries.contains(*way->missing)) continue;
    draft.settleAbsent(folder.id, *way->missing);
  }
  return draft.take();
}

Result<> View::settle(std::string_view path) {
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Change change, settleChange({std::string(path)}));
  if (change.empty()) return Done{};
  return branch_->commit(change);
}

}  // namespace bough
