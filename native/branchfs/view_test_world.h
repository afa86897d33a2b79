// For the tests of View: a base folder with files, an object folder, branches, and file operations by path through the
// FileSystem face. Everything is real but the log, which only counts.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "native/branchfs/branch.h"
#include "native/branchfs/view.h"

namespace bough::test {

namespace fs = std::filesystem;

class CountingLog final : public ChangeLog {
 public:
  Result<> append(const BranchId&, const Change&) override {
    if (failWith) return sys(failWith);
    records++;
    return Done{};
  }
  Result<> sync() override {
    syncs++;
    return Done{};
  }
  NodeId newNode() override { return kFirstNewNode + nodes++; }
  ObjectId newObject() override { return ++objects; }
  std::atomic<int> records{0}, syncs{0};
  std::atomic<std::uint64_t> nodes{0}, objects{0};
  int failWith = 0;
};

/// A temporary folder that goes with the test.
class TempFolder {
 public:
  explicit TempFolder(const fs::path& parent = fs::temp_directory_path()) {
    std::string pattern = (parent / "bough-view-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    path = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  fs::path path;
};

inline void put(const fs::path& path, const std::string& data) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << data;
  REQUIRE(fs::exists(path));
}

inline int errorOf(const auto& result) { return result ? 0 : result.error().errnum; }

/// One branch with its view, and system calls by path on it.
class Seen {
 public:
  Seen(std::shared_ptr<Branch> shown, Base& base, Objects& objects)
      : branch(std::move(shown)), view(std::make_unique<View>(branch, base, objects)) {}

  struct Split {
    NodeId folder;
    std::string name;
  };
  Split split(const std::string& path) {
    std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {kRootNode, path};
    return {id(path.substr(0, slash)), path.substr(slash + 1)};
  }
  Result<Looked> lookup(const std::string& path) {
    NodeId at = kRootNode;
    std::size_t from = 0;
    if (path.empty()) return view->getattr(kRootNode, {});
    for (;;) {
      std::size_t slash = path.find('/', from);
      auto looked = view->lookup(at, std::string_view(path).substr(from, slash - from));
      if (!looked || slash == std::string::npos) return looked;
      at = looked->attr.id;
      from = slash + 1;
    }
  }
  NodeId id(const std::string& path) {
    auto looked = lookup(path);
    if (!looked) FAIL("lookup of " << path << ": " << std::strerror(looked.error().errnum));
    return looked->attr.id;
  }
  Attr stat(const std::string& path) {
    auto attr = view->getattr(id(path), {});
    if (!attr) FAIL("getattr of " << path << ": " << std::strerror(attr.error().errnum));
    return attr->attr;
  }
  bool exists(const std::string& path) { return lookup(path).ok(); }
  std::string read(Handle handle, std::size_t length = 1 << 20, std::uint64_t offset = 0) {
    std::string data(length, '\0');
    auto got = view->read(handle, offset, std::as_writable_bytes(std::span(data)));
    if (!got) return std::string("error: ") + std::strerror(got.error().errnum);
    data.resize(*got);
    return data;
  }
  Result<std::size_t> write(Handle handle, const std::string& data, std::uint64_t offset = 0, bool append = false) {
    return view->write(handle, offset, std::as_bytes(std::span(data)), append);
  }
  Handle open(const std::string& path, std::uint32_t flags = O_RDONLY) {
    auto opened = view->open(id(path), flags);
    if (!opened) FAIL("open of " << path << ": " << std::strerror(opened.error().errnum));
    return opened->handle;
  }
  std::string cat(const std::string& path) {
    auto looked = lookup(path);
    if (!looked) return std::string("error: ") + std::strerror(looked.error().errnum);
    auto opened = view->open(looked->attr.id, O_RDONLY);
    if (!opened) return std::string("error: ") + std::strerror(opened.error().errnum);
    std::string data = read(opened->handle, 4 << 20);
    view->release(opened->handle);
    return data;
  }
  Result<Handle> create(const std::string& path, std::uint32_t mode = 0644, std::uint32_t flags = O_RDWR | O_EXCL) {
    Split at = split(path);
    auto made = view->create(caller, at.folder, at.name, mode, flags);
    if (!made) return made.error();
    return made->second.handle;
  }
  /// Writes a whole file as `echo … > path` does.
  int echo(const std::string& path, const std::string& data) {
    Handle handle = 0;
    if (auto looked = lookup(path)) {
      auto opened = view->open(looked->attr.id, O_WRONLY | O_TRUNC);
      if (!opened) return opened.error().errnum;
      handle = opened->handle;
    } else {
      auto made = create(path);
      if (!made) return made.error().errnum;
      handle = *made;
    }
    auto wrote = write(handle, data);
    view->release(handle);
    return errorOf(wrote);
  }
  int overwrite(const std::string& path, const std::string& data, std::uint64_t offset = 0) {
    Handle handle = open(path, O_RDWR);
    auto wrote = write(handle, data, offset);
    view->release(handle);
    return errorOf(wrote);
  }
  int mkdir(const std::string& path, std::uint32_t mode = 0755) {
    Split at = split(path);
    return errorOf(view->mkdir(caller, at.folder, at.name, mode));
  }
  int rmdir(const std::string& path) {
    Split at = split(path);
    return errorOf(view->rmdir(at.folder, at.name));
  }
  int unlink(const std::string& path) {
    Split at = split(path);
    return errorOf(view->unlink(at.folder, at.name));
  }
  int symlink(const std::string& target, const std::string& path) {
    Split at = split(path);
    return errorOf(view->symlink(caller, at.folder, at.name, target));
  }
  int link(const std::string& from, const std::string& to) {
    Split at = split(to);
    return errorOf(view->link(id(from), at.folder, at.name));
  }
  int rename(const std::string& from, const std::string& to, std::uint32_t flags = 0) {
    Split a = split(from);
    Split b = split(to);
    return errorOf(view->rename(a.folder, a.name, b.folder, b.name, flags));
  }
  int chmod(const std::string& path, std::uint32_t mode) {
    SetAttr change;
    change.mode = mode;
    return errorOf(view->setattr(caller, id(path), {}, change));
  }
  int truncate(const std::string& path, std::uint64_t size) {
    SetAttr change;
    change.size = size;
    return errorOf(view->setattr(caller, id(path), {}, change));
  }
  /// Names in a folder, sorted, without "." and "..".
  std::vector<std::string> ls(const std::string& path = "", bool plus = false) {
    auto opened = view->opendir(id(path));
    REQUIRE(opened);
    std::vector<std::string> names;
    std::vector<NodeId> counted;
    auto listed = view->readdir(opened->handle, 0, plus, [&](DirItem& item) {
      if (item.name != "." && item.name != "..") names.push_back(item.name);
      if (item.looked) counted.push_back(item.looked->attr.id);
      return true;
    });
    CHECK(listed);
    for (NodeId one : counted) view->forget(one, 1);
    view->releasedir(opened->handle);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::shared_ptr<Branch> branch;
  std::unique_ptr<View> view;
  Caller caller{::geteuid(), ::getegid(), 1};
};

/// A base, objects, and branches of them.
class World {
 public:
  explicit World(const std::vector<std::string>& hide = {}, const std::vector<std::string>& never = {})
      : hide_(hide), never_(never) {
    fs::create_directories(base);
  }
  /// Call after the base has its files; makes the first branch.
  Seen& start() {
    auto openedBase = Base::open(base.string(), hide_, never_);
    REQUIRE(openedBase);
    baseFolder = std::move(*openedBase);
    auto openedObjects = Objects::open(objectsPath.string());
    REQUIRE(openedObjects);
    objects = std::move(*openedObjects);
    return add(Tree(), Nodes());
  }
  Seen& add(Tree tree, Nodes point) {
    auto branch = std::make_shared<Branch>();
    branch->id = "b" + std::to_string(seen.size());
    branch->tree = std::move(tree);
    branch->tree.epoch = ++epoch;
    branch->point = std::move(point);
    branch->log = &log;
    seen.push_back(std::make_unique<Seen>(std::move(branch), *baseFolder, *objects));
    return *seen.back();
  }
  /// A branch point, as the store makes it.
  Seen& fork(Seen& parent) {
    Tree tree;
    {
      std::unique_lock lock(parent.branch->lock);
      tree = parent.branch->tree;
      parent.branch->tree.epoch = ++epoch;
    }
    return add(tree, tree.nodes);
  }
  std::uint64_t objectFiles() {
    std::uint64_t count = 0;
    CHECK(objects->forEach([&](ObjectId) { count++; }));
    return count;
  }
  void collect() {
    for (ObjectId id : objects->takeGarbage()) CHECK(objects->remove(id));
  }

  TempFolder temp;
  fs::path base = temp.path / "base";
  fs::path objectsPath = temp.path / "objects";
  CountingLog log;
  std::unique_ptr<Base> baseFolder;
  std::unique_ptr<Objects> objects;
  std::vector<std::unique_ptr<Seen>> seen;
  std::atomic<Epoch> epoch{0};

 private:
  std::vector<std::string> hide_, never_;
};

}  // namespace bough::test
