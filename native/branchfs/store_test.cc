// Branches: made at once, frozen, nested, discarded without a trace; their diffs.
#include <chrono>
#include <thread>

#include "native/branchfs/store_test_world.h"

using namespace bough;
using namespace bough::test;

namespace {

/// Waits for what another thread does; the machine may be slow.
template <typename Condition>
bool within(Condition&& condition) {
  for (int i = 0; i < 600; i++) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace

TEST_CASE("a branch point is frozen on both sides") {
  World world;
  putFile(world.base / "a.txt", "base");
  world.open();
  const BranchId parent = world.branch();
  world.files(parent).write("a.txt", "parent");
  world.files(parent).write("p.txt", "p");
  const BranchId child = world.branch(parent);

  world.files(parent).write("a.txt", "parent later");
  world.files(child).write("a.txt", "child");
  world.files(parent).write("p.txt", "p later");
  CHECK(world.files(parent).read("a.txt") == "parent later");
  CHECK(world.files(child).read("a.txt") == "child");
  CHECK(world.files(child).read("p.txt") == "p");
  CHECK(getFile(world.base / "a.txt") == "base");
  CHECK(world.diff(child) == Lines{"M a.txt content"});
  CHECK(world.diff(parent) == Lines{"M a.txt content", "A p.txt"});
  world.sound();
}

TEST_CASE("branches nest a hundred deep, each with its own files") {
  World world;
  putFile(world.base / "dir/f", "0");
  world.open();
  BranchId parent = kBase;
  std::vector<BranchId> chain;
  for (int i = 1; i <= 100; i++) {
    const BranchId id = world.branch(parent);
    world.files(id).write("dir/f", std::to_string(i));
    world.files(id).write("n" + std::to_string(i), "x");
    chain.push_back(id);
    parent = id;
  }
  CHECK(world.files(chain[99]).read("dir/f") == "100");
  CHECK(world.files(chain[49]).read("dir/f") == "50");
  CHECK(world.files(chain[99]).has("n1"));
  CHECK_FALSE(world.files(chain[49]).has("n51"));
  CHECK(world.diff(chain[99]) == Lines{"M dir/f content", "A n100"});
  world.restart();
  CHECK(world.files(chain[99]).read("dir/f") == "100");
  CHECK(world.files(chain[0]).read("dir/f") == "1");
  CHECK(world.diff(chain[99]) == Lines{"M dir/f content", "A n100"});
  world.sound();
}

TEST_CASE("the diff tells every kind of change, and a rename is one") {
  World world;
  putFile(world.base / "mod.txt", "one\n");
  putFile(world.base / "gone.txt", "gone");
  putFile(world.base / "old/inner/deep.txt", "deep");
  putFile(world.base / "old/side.txt", "side");
  putFile(world.base / "run.sh", "#!/bin/sh\n");
  putFile(world.base / "dos.txt", "a\nb\n");
  putFile(world.base / "moved.txt", "some words that are long enough\n");
  putFile(world.base / "full/x", "x");
  fs::create_symlink("mod.txt", world.base / "link");
  fs::create_directories(world.base / "hollow");
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  CHECK(world.diff(id).empty());
  files.write("mod.txt", "two\n");
  files.unlink("gone.txt");
  files.rename("old", "new");
  files.write("new/side.txt", "other");
  files.chmod("run.sh", 0755);
  files.write("dos.txt", "a\r\nb\r\n");
  files.unlink("link");
  files.symlink("link", "elsewhere");
  files.mkdir("empty");
  files.mkdir("dir");
  files.write("dir/new.txt", std::string("bin\0ary", 7));
  files.rename("moved.txt", "dir/moved.txt");
  files.removeAll("full");
  files.rmdir("hollow");
  CHECK(world.diff(id) == Lines{"R moved.txt > dir/moved.txt", "A dir/new.txt", "M dos.txt content", "A empty /",
                                "D full/x", "D gone.txt", "D hollow /", "M link target", "M mod.txt content",
                                "R old > new /", "M new/side.txt content", "M run.sh mode"});
  const auto page = world.store->diff(id, "", 0, 1000);
  REQUIRE(page);
  for (const FileChange& change : page->changes) {
    CHECK(change.lineEndingOnly == (change.path == "dos.txt"));
    CHECK(change.binary == (change.path == "dir/new.txt"));
    if (change.path == "run.sh") CHECK(change.modeAfter == 0755);
    if (change.path == "link") CHECK(change.targetAfter == "elsewhere");
    if (change.path == "mod.txt") CHECK(change.sizeBefore == 4);
  }
  const auto part = world.store->diff(id, "", 2, 3);
  REQUIRE(part);
  CHECK(part->total == 12);
  CHECK(part->changes.size() == 3);
  world.crash();
  CHECK(world.diff(id).size() == 12);
  world.sound();
}

TEST_CASE("what looks like a change and is none") {
  World world;
  putFile(world.base / "same.txt", "same");
  putFile(world.base / "d/x", "x");
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  files.write("new.txt", "n");
  files.unlink("new.txt");
  files.write("same.txt.tmp", "same");
  files.rename("same.txt.tmp", "same.txt");
  files.mkdir("e");
  files.rmdir("e");
  files.rename("d/x", "d/y");
  files.rename("d/y", "d/x");
  CHECK(world.diff(id).empty());
}

TEST_CASE("deleted here and added there with the same bytes is a rename") {
  World world;
  putFile(world.base / "a/one.txt", "the same bytes\n");
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  files.mkdir("b");
  files.write("b/one.txt", "the same bytes\n");
  files.unlink("a/one.txt");
  CHECK(world.diff(id) == Lines{"R a/one.txt > b/one.txt"});
}

TEST_CASE("two names exchanged, a folder put in place of another") {
  World world;
  putFile(world.base / "a/in-a", "a");
  putFile(world.base / "b/in-b", "b");
  putFile(world.base / "x", "x");
  putFile(world.base / "y", "y");
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  files.rename("a", "b", RENAME_EXCHANGE);
  files.rename("x", "y", RENAME_EXCHANGE);
  CHECK(world.diff(id) == Lines{"R b > a /", "R a > b /", "M x content", "M y content"});
  world.commit(id);
  CHECK(getFile(world.base / "b/in-a") == "a");
  CHECK(getFile(world.base / "a/in-b") == "b");
  CHECK(getFile(world.base / "x") == "y");
}

TEST_CASE("siblings compared with each other") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "g", "base");
  world.open();
  const auto ids = world.branches(kBase, 2, true);
  world.files(ids[0]).write("f", "one");
  world.files(ids[1]).write("f", "two");
  world.files(ids[1]).write("g", "two");
  world.files(ids[1]).write("h", "two");
  world.files(ids[0]).write("k", "both");
  world.files(ids[1]).write("k", "both");
  CHECK(world.diff(ids[1], ids[0]) == Lines{"M f content", "M g content", "A h"});
  CHECK(world.diff(ids[0], ids[1]) == Lines{"M f content", "M g content", "D h"});
}

TEST_CASE("an abort gives everything back, and what is below goes only when asked for") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const std::size_t before = world.objectFiles();
  const BranchId id = world.branch();
  for (int i = 0; i < 50; i++) world.files(id).write("n" + std::to_string(i), std::string(1000, 'x'));
  world.files(id).write("f", "changed");
  const BranchId child = world.branch(id);
  world.files(child).write("c", "c");
  CHECK(world.objectFiles() >= before + 52);

  auto refused = world.store->abort(id, false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "E_HAS_CHILDREN");
  const auto gone = world.store->abort(id, true);
  REQUIRE(gone);
  CHECK(gone->size() == 2);
  CHECK(world.store->list().empty());
  CHECK(within([&] { return world.objectFiles() == before; }));
  world.crash();
  CHECK(world.store->list().empty());
  world.sound();
}

TEST_CASE("an abort of one branch leaves the files that another still has") {
  World world;
  world.open();
  const BranchId parent = world.branch();
  world.files(parent).write("shared", "bytes");
  const BranchId child = world.branch(parent);
  REQUIRE(world.store->abort(child, false));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than the collector waits
  CHECK(world.files(parent).read("shared") == "bytes");
  world.sound();
}

TEST_CASE("edits are counted and told") {
  World world;
  world.open();
  std::mutex lock;
  std::vector<StoreEvent> events;
  world.store->onEvent([&](const StoreEvent& event) {
    const std::lock_guard guard(lock);
    events.push_back(event);
  });
  const BranchId id = world.branch();
  const std::uint64_t first = world.store->info(id)->edits;
  world.files(id).write("f", "x");
  const std::uint64_t second = world.store->info(id)->edits;
  CHECK(second > first);
  world.files(id).write("f", "y");
  CHECK(world.store->info(id)->edits > second);
  const auto told = [&] {
    const std::lock_guard guard(lock);
    for (const StoreEvent& event : events) {
      if (const auto* edits = std::get_if<EditsEvent>(&event)) {
        if (edits->branch == id && edits->edits == world.store->info(id)->edits) return true;
      }
    }
    return false;
  };
  CHECK(within(told));
  world.store->onEvent(nullptr);
}

TEST_CASE("reading each side of a branch by path") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "d/g", "g");
  world.open();
  const BranchId parent = world.branch();
  world.files(parent).write("f", "parent");
  const BranchId child = world.branch(parent);
  world.files(child).write("f", "child and more");
  world.files(parent).write("f", "parent later");
  const auto text = [&](Side side) {
    const auto piece = world.store->read(child, side, "f", 0, 1000);
    REQUIRE(piece);
    CHECK(piece->eof);
    return piece->data;
  };
  CHECK(text(Side::Branch) == "child and more");
  CHECK(text(Side::Point) == "parent");
  CHECK(text(Side::Parent) == "parent later");
  CHECK(world.store->read(parent, Side::Parent, "f", 0, 1000)->data == "base");
  const auto piece = world.store->read(child, Side::Branch, "f", 6, 3);
  CHECK(piece->data == "and");
  CHECK_FALSE(piece->eof);
  CHECK(world.store->stat(child, Side::Branch, "f")->size == 14);
  CHECK(world.store->readdir(child, Side::Branch, "")->size() == 2);
  CHECK(world.store->stat(child, Side::Branch, "nothing").error().code == "E_NO_PATH");
  CHECK(world.store->read(child, Side::Branch, "d", 0, 10).error().code == "E_NO_PATH");
  CHECK(world.store->stat("bnone", Side::Branch, "f").error().code == "E_NO_BRANCH");
}

TEST_CASE("names that are no text, and requests that make no sense") {
  World world;
  world.open();
  const BranchId id = world.branch();
  world.files(id).write("new\nline", "1");
  world.files(id).write("bad\xff name", "2");
  CHECK(world.diff(id) == Lines{"A bad\xff name", "A new\nline"});
  CHECK(world.store->read(id, Side::Branch, "bad\xff name", 0, 10)->data == "2");
  BranchPlan none;
  none.parent = "bmissing";
  CHECK(world.store->create(none).error().code == "E_NO_BRANCH");
  none.parent = kBase;
  none.count = 0;
  CHECK(world.store->create(none).error().code == "E_BAD_REQUEST");
  CHECK(world.store->abort("bmissing", true).error().code == "E_NO_BRANCH");
  CHECK(world.store->rename("bmissing", "x").error().code == "E_NO_BRANCH");
  CHECK(world.store->rename(id, "nice name")->name == "nice name");
  world.crash();
  CHECK(world.store->info(id)->name == "nice name");
}
