// A view of one folder of a branch: what is shown, what is not, and that it stays the same folder.
#include "native/branchfs/subtree.h"

#include <algorithm>

#include "native/branchfs/store_test_world.h"

using namespace bough;
using namespace bough::test;

namespace {

constexpr Caller kCaller{0, 0, 1};

/// Remembers what it was told to drop.
struct Told final : Invalidator {
  void node(NodeId id) override { lines.push_back("node " + std::to_string(id)); }
  void entry(NodeId parent, const std::string& name) override {
    lines.push_back("entry " + std::to_string(parent) + " " + name);
  }
  std::vector<std::string> lines;
};

std::shared_ptr<View> viewOf(World& world, const BranchId& id) {
  const auto view = world.store->view(id);
  REQUIRE(view);
  return *view;
}

/// Names with node ids, as readdir tells them.
std::map<std::string, NodeId> listed(Subtree& tree, NodeId folder) {
  std::map<std::string, NodeId> names;
  const auto opened = tree.opendir(folder);
  REQUIRE(opened);
  REQUIRE(tree.readdir(opened->handle, 0, true, [&](DirItem& item) {
    names[item.name] = item.id;
    if (item.looked) tree.forget(item.id, 1);
    return true;
  }));
  tree.releasedir(opened->handle);
  return names;
}

int errorOf(const auto& result) { return result ? 0 : result.error().errnum; }

}  // namespace

TEST_CASE("a subtree has the folder as its root and nothing above it") {
  World world;
  putFile(world.base / "a/b/file", "data");
  putFile(world.base / "a/b/sub/deep", "deep");
  putFile(world.base / "a/beside", "x");
  world.open();
  const BranchId id = world.branch();
  const auto view = viewOf(world, id);
  const auto made = Subtree::at(view, "a/b");
  REQUIRE(made);
  Subtree& tree = **made;

  const auto root = tree.getattr(kRootNode, std::nullopt);
  REQUIRE(root);
  CHECK(root->attr.id == kRootNode);
  CHECK(root->attr.kind == Kind::Directory);
  CHECK(listed(tree, kRootNode).size() == 4);
  CHECK(listed(tree, kRootNode)["."] == kRootNode);
  CHECK(listed(tree, kRootNode)[".."] == kRootNode);
  const auto up = tree.lookup(kRootNode, "..");
  REQUIRE(up);
  CHECK(up->attr.id == kRootNode);
  CHECK(errorOf(tree.lookup(kRootNode, "beside")) == ENOENT);
  CHECK(errorOf(tree.lookup(kRootNode, "a")) == ENOENT);
  const auto sub = tree.lookup(kRootNode, "sub");
  REQUIRE(sub);
  CHECK(listed(tree, sub->attr.id)[".."] == kRootNode);
  const auto back = tree.lookup(sub->attr.id, "..");
  REQUIRE(back);
  CHECK(back->attr.id == kRootNode);

  // What is made and changed there is made and changed in the branch.
  const auto file = tree.create(kCaller, kRootNode, "new", 0644, O_RDWR);
  REQUIRE(file);
  const std::string text = "hello";
  CHECK(tree.write(file->second.handle, 0, std::as_bytes(std::span(text.data(), text.size())), false));
  tree.release(file->second.handle);
  CHECK(tree.rename(sub->attr.id, "deep", kRootNode, "up", 0));
  CHECK(tree.mkdir(kCaller, kRootNode, "made", 0700));
  SetAttr mode;
  mode.mode = 0711;
  const auto changed = tree.setattr(kCaller, kRootNode, std::nullopt, mode);
  REQUIRE(changed);
  CHECK(changed->attr.id == kRootNode);
  CHECK(changed->attr.mode == 0711);
  CHECK(world.files(id).read("a/b/new") == "hello");
  CHECK(world.diff(id) == Lines{"M a/b mode /", "A a/b/made /", "A a/b/new", "R a/b/sub/deep > a/b/up"});
  world.sound();
}

TEST_CASE("a subtree stays the folder that it was, under any name") {
  World world;
  putFile(world.base / "one/file", "one");
  putFile(world.base / "other/file", "other");
  world.open();
  const BranchId id = world.branch();
  const auto view = viewOf(world, id);
  REQUIRE(view->settle("one"));
  const auto made = Subtree::at(view, "one");
  REQUIRE(made);
  Subtree& tree = **made;
  Files files = world.files(id);
  files.rename("one", "other/moved");
  CHECK(listed(tree, kRootNode).contains("file"));
  CHECK(listed(tree, kRootNode)[".."] == kRootNode);
  CHECK(tree.mkdir(kCaller, kRootNode, "here", 0755));
  CHECK(files.has("other/moved/here"));
  files.removeAll("other/moved");
  // As a working directory that was removed: empty, and nothing can be made in it.
  CHECK(listed(tree, kRootNode).size() == 2);
  CHECK(errorOf(tree.mkdir(kCaller, kRootNode, "gone", 0755)) == ENOENT);
  const auto gone = tree.getattr(kRootNode, std::nullopt);
  REQUIRE(gone);
  CHECK(gone->attr.nlink == 0);
  world.sound();
}

TEST_CASE("hide rules hold in a subtree and on the way to it") {
  World world;
  putFile(world.base / "a/secret/file", "x");
  putFile(world.base / "a/b/x.key", "x");
  putFile(world.base / "a/b/open", "x");
  fs::create_symlink("b", world.base / "a/link");
  auto opened = Store::open(StoreOptions{world.folder.string(), world.base.string(), {"*.key", "a/secret"}, {}});
  REQUIRE(opened);
  world.store = std::move(*opened);
  const BranchId id = world.branch();
  const auto view = viewOf(world, id);
  CHECK(errorOf(Subtree::at(view, "a/secret")) == ENOENT);
  CHECK(errorOf(Subtree::at(view, "a/none")) == ENOENT);
  CHECK(errorOf(Subtree::at(view, "a/link")) == ELOOP);
  CHECK(errorOf(Subtree::at(view, "a/link/x")) == ELOOP);
  CHECK(errorOf(Subtree::at(view, "a/b/open")) == ENOTDIR);
  CHECK(errorOf(Subtree::at(view, "a/b/open/x")) == ENOTDIR);
  const auto made = Subtree::at(view, "a/b");
  REQUIRE(made);
  CHECK(listed(**made, kRootNode).size() == 3);
  CHECK(errorOf((*made)->lookup(kRootNode, "x.key")) == ENOENT);
  CHECK(errorOf((*made)->create(kCaller, kRootNode, "y.key", 0644, O_RDWR)) == EACCES);
}

TEST_CASE("what a transport is told to drop comes in the subtree's ids") {
  Told told;
  SubtreeInvalidator invalidator(77, told);
  invalidator.node(77);
  invalidator.entry(77, "name");
  invalidator.node(78);
  invalidator.entry(78, "other");
  invalidator.node(kRootNode);
  invalidator.entry(kRootNode, "above");
  CHECK(told.lines == Lines{"node 1", "entry 1 name", "node 78", "entry 78 other"});
}

TEST_CASE("mounts of a folder: what is refused, and what is remembered") {
  World world;
  putFile(world.base / "a/b/file", "data");
  fs::create_symlink("a", world.base / "link");
  world.open();
  const BranchId id = world.branch();
  const fs::path at = world.root / "mount";
  fs::create_directories(at);
  const auto refused = [&](const std::string& folder) {
    const auto done = world.store->mount(id, at.string(), folder);
    REQUIRE_FALSE(done);
    CHECK(done.error().message.find(folder) != std::string::npos);
    return done.error().code;
  };
  CHECK(refused("none") == "E_NO_PATH");
  CHECK(refused("a/b/file") == "E_NO_PATH");
  CHECK(refused("link") == "E_NO_PATH");
  CHECK(refused("link/b") == "E_NO_PATH");
  CHECK(refused("..") == "E_BAD_REQUEST");
  CHECK(refused("a/../b") == "E_BAD_REQUEST");
  CHECK(refused("/a") == "E_BAD_REQUEST");
  CHECK(world.diff(id).empty());
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return;

  const auto mountFolder = [&] {
    const auto info = world.store->info(id);
    REQUIRE(info);
    return info->mountAt.empty() ? "-" : info->mountFolder;
  };
  const auto mounted = world.store->mount(id, at.string(), "a/b");
  REQUIRE_MESSAGE(mounted, mounted.error().message);
  CHECK(mountFolder() == "a/b");
  CHECK(getFile(at / "file") == "data");
  CHECK(world.store->mount(id, at.string(), "a/b"));
  CHECK_FALSE(world.store->mount(id, at.string(), "a"));
  putFile(at / "new", "new");
  CHECK(world.files(id).read("a/b/new") == "new");
  world.files(id).rename("a/b", "moved");
  putFile(at / "later", "later");
  CHECK(world.diff(id) == Lines{"R a/b > moved /", "A moved/later", "A moved/new"});
  const auto comesBack = [&] {
    world.store->restoreMounts();
    CHECK(mountFolder() == "a/b");
    CHECK(getFile(at / "later") == "later");
    CHECK_FALSE(fs::exists(at / "moved"));
  };
  world.crash();
  comesBack();
  world.restart();
  comesBack();
  REQUIRE(world.store->unmount(id));
  CHECK(mountFolder() == "-");
  world.restart();
  world.store->restoreMounts();
  CHECK(mountFolder() == "-");
  world.sound();
}
