// Commits into a branch: whole, merged, refused by path, partial; groups; rebase, revert, take, resolve; undo.
#include "native/branchfs/store_test_world.h"

using namespace bough;
using namespace bough::test;

TEST_CASE("a commit into an unchanged parent gives it the child's files") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "d/g", "g");
  world.open();
  const BranchId parent = world.branch();
  world.files(parent).write("own", "parent's");
  const BranchId child = world.branch(parent);
  world.files(child).write("f", "child");
  world.files(child).unlink("d/g");
  world.files(child).mkdir("e");
  world.commit(child);
  CHECK(world.state(child) == BranchState::Committed);
  CHECK(world.files(parent).read("f") == "child");
  CHECK_FALSE(world.files(parent).has("d/g"));
  CHECK(world.diff(parent) == Lines{"D d/g", "A e /", "M f content", "A own"});
  CHECK(world.diff(child) == Lines{"D d/g", "A e /", "M f content"});

  // The parent's later writes do not reach the committed child.
  world.files(parent).write("f", "later");
  CHECK(world.files(child).read("f") == "child");
  CHECK(world.files(child).tryWrite("f") == EROFS);
  CHECK(world.commitFails(child) == "E_STATE");
  world.crash();
  CHECK(world.diff(parent) == Lines{"D d/g", "A e /", "M f content", "A own"});
  CHECK(world.diff(child) == Lines{"D d/g", "A e /", "M f content"});
  world.restart();
  CHECK(world.diff(parent) == Lines{"D d/g", "A e /", "M f content", "A own"});
  CHECK(world.files(parent).read("f") == "later");
  world.sound();
}

TEST_CASE("a grandchild's commit travels up, level by level") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "g", "base");
  world.open();
  const BranchId top = world.branch();
  const BranchId middle = world.branch(top);
  const BranchId low = world.branch(middle);
  world.files(low).write("f", "low");
  world.commit(low);
  world.files(middle).write("g", "middle");
  world.commit(middle);
  CHECK(world.diff(top) == Lines{"M f content", "M g content"});
  CHECK(world.files(top).read("f") == "low");
  world.crash();
  CHECK(world.diff(top) == Lines{"M f content", "M g content"});
  world.sound();
}

TEST_CASE("a parent that changed other paths is merged with, also across a renamed folder") {
  World world;
  putFile(world.base / "src/a", "a");
  putFile(world.base / "src/b", "b");
  putFile(world.base / "mode", "m");
  world.open();
  const BranchId parent = world.branch();
  const BranchId child = world.branch(parent);
  world.files(child).rename("src", "lib");
  world.files(child).write("lib/a", "child");
  world.files(child).chmod("mode", 0700);
  world.files(parent).write("src/b", "parent");
  world.files(parent).write("mode", "parent's");
  world.files(parent).write("new", "parent's");
  world.commit(child);
  CHECK(world.files(parent).picture() == Picture{{"lib", "d 755 "},
                                                 {"lib/a", "f 644 child"},
                                                 {"lib/b", "f 644 parent"},
                                                 {"mode", "f 700 parent's"},
                                                 {"new", "f 644 parent's"}});
  world.crash();
  CHECK(world.files(parent).read("lib/b") == "parent");
  world.sound();
}

TEST_CASE("paths that both changed stop a commit, by name, and nothing is touched") {
  World world;
  putFile(world.base / "both", "base");
  putFile(world.base / "ours-gone", "base");
  putFile(world.base / "theirs-gone", "base");
  putFile(world.base / "same", "base");
  putFile(world.base / "dir/x", "x");
  world.open();
  const BranchId parent = world.branch();
  const BranchId child = world.branch(parent);
  Files ours = world.files(child);
  Files theirs = world.files(parent);
  for (Files* one : {&ours, &theirs}) {
    one->write("same", "agreed");
    one->write("added-same", "agreed");
  }
  ours.write("both", "ours");
  theirs.write("both", "theirs");
  ours.write("added", "ours");
  theirs.write("added", "theirs");
  ours.unlink("ours-gone");
  theirs.write("ours-gone", "theirs");
  ours.write("theirs-gone", "ours");
  theirs.unlink("theirs-gone");
  ours.removeAll("dir");
  theirs.write("dir/y", "y");
  ours.write("free", "ours");
  const Picture before = theirs.picture();

  CHECK(world.commitFails(child) == "E_CONFLICT");
  std::map<std::string, ConflictReason> told;
  for (const Conflict& one : world.refusal.conflicts) told[one.path] = one.reason;
  CHECK(told == std::map<std::string, ConflictReason>{{"both", ConflictReason::BothChanged},
                                                      {"added", ConflictReason::AddedInBoth},
                                                      {"ours-gone", ConflictReason::ChangedInParent},
                                                      {"theirs-gone", ConflictReason::DeletedInParent},
                                                      {"dir/y", ConflictReason::ChangedInParent}});
  CHECK(theirs.picture() == before);
  CHECK(world.state(child) == BranchState::Live);
  CHECK(world.store->conflicts(child, {})->size() == 5);
  CHECK(world.store->conflicts(child, {"free"})->empty());

  const auto page = world.store->diff(child, "", 0, 100);
  CHECK(page->drift.changed.size() >= 4);

  // Each can be settled by itself.
  REQUIRE(world.store->resolve(child, "both", Take::Ours, "", std::nullopt));
  REQUIRE(world.store->resolve(child, "added", Take::Theirs, "", std::nullopt));
  REQUIRE(world.store->resolve(child, "ours-gone", Take::Ours, "", std::nullopt));
  REQUIRE(world.store->resolve(child, "theirs-gone", Take::Content, "merged", 0600));
  REQUIRE(world.store->resolve(child, "dir", Take::Theirs, "", std::nullopt));
  world.crash();
  CHECK(world.store->conflicts(child, {})->empty());
  world.commit(child);
  Files after = world.files(parent);
  CHECK(after.read("both") == "ours");
  CHECK(after.read("added") == "theirs");
  CHECK_FALSE(after.has("ours-gone"));
  CHECK(after.read("theirs-gone") == "merged");
  CHECK(after.read("dir/y") == "y");
  CHECK(after.read("free") == "ours");
  world.sound();
}

TEST_CASE("groups: in an exclusive one the first commit wins, in an independent one all may") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId parent = world.branch();
  const auto rivals = world.branches(parent, 3, true);
  world.files(rivals[0]).write("f", "0");
  world.files(rivals[1]).write("f", "1");
  Refusal refusal;
  const auto done = world.store->commit(rivals[1], {}, refusal);
  REQUIRE(done);
  CHECK(done->superseded == std::vector<BranchId>{rivals[0], rivals[2]});
  CHECK(world.state(rivals[0]) == BranchState::Superseded);
  CHECK(world.commitFails(rivals[0]) == "E_STATE");
  CHECK(world.files(rivals[0]).tryWrite("f") == EROFS);
  CHECK(world.diff(rivals[0]) == Lines{"M f content"});
  CHECK(world.files(rivals[0]).read("f") == "0");

  const auto friends = world.branches(parent, 2, false);
  world.files(friends[0]).write("x", "0");
  world.files(friends[1]).write("y", "1");
  world.commit(friends[0]);
  world.commit(friends[1]);
  CHECK(world.files(parent).read("x") == "0");
  CHECK(world.files(parent).read("y") == "1");
  world.crash();
  CHECK(world.state(rivals[0]) == BranchState::Superseded);
  CHECK(world.state(rivals[1]) == BranchState::Committed);
  world.sound();
}

TEST_CASE("a superseded branch lives again by a rebase that keeps its changes") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "g", "base");
  world.open();
  const BranchId parent = world.branch();
  const auto rivals = world.branches(parent, 2, true);
  world.files(rivals[0]).write("f", "winner");
  world.files(rivals[1]).write("g", "loser");
  world.commit(rivals[0]);
  world.rebase(rivals[1]);
  CHECK(world.state(rivals[1]) == BranchState::Live);
  CHECK(world.files(rivals[1]).read("f") == "winner");
  CHECK(world.files(rivals[1]).read("g") == "loser");
  CHECK(world.diff(rivals[1]) == Lines{"M g content"});
  world.crash();
  CHECK(world.diff(rivals[1]) == Lines{"M g content"});
  world.commit(rivals[1]);
  CHECK(world.files(parent).read("g") == "loser");
  CHECK(world.files(parent).read("f") == "winner");
  world.sound();
}

TEST_CASE("a rebase with conflicts changes nothing") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId parent = world.branch();
  const BranchId child = world.branch(parent);
  world.files(child).write("f", "child");
  world.files(parent).write("f", "parent");
  Refusal refusal;
  const auto done = world.store->rebase(child, refusal);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == "E_CONFLICT");
  REQUIRE(refusal.conflicts.size() == 1);
  CHECK(refusal.conflicts[0].path == "f");
  CHECK(world.files(child).read("f") == "child");
  CHECK(world.diff(child) == Lines{"M f content"});
}

TEST_CASE("a partial commit takes some paths and leaves the branch live with the rest") {
  World world;
  putFile(world.base / "a", "base");
  putFile(world.base / "b", "base");
  world.open();
  const BranchId parent = world.branch();
  const auto rivals = world.branches(parent, 2, true);
  const BranchId child = rivals[0];
  world.files(child).write("a", "child");
  world.files(child).write("b", "child");
  world.files(child).mkdir("n");
  world.files(child).write("n/one", "1");
  world.files(child).write("n/two", "2");
  const std::string id = world.commit(child, {"a", "n/one"});
  CHECK(world.state(child) == BranchState::Live);
  CHECK(world.state(rivals[1]) == BranchState::Live);
  CHECK(world.diff(parent) == Lines{"M a content", "A n/one"});
  CHECK(world.diff(child) == Lines{"M b content", "A n/two"});
  CHECK(world.commitFails(child, {"nothing/here"}) == "E_NO_PATH");
  world.files(child).write("a", "again");
  CHECK(world.files(parent).read("a") == "child");
  CHECK(world.diff(child) == Lines{"M a content", "M b content", "A n/two"});
  world.crash();
  CHECK(world.diff(child) == Lines{"M a content", "M b content", "A n/two"});
  world.commit(child);
  CHECK(world.files(parent).read("a") == "again");
  CHECK(world.files(parent).read("n/two") == "2");
  world.sound();
}

TEST_CASE("a commit into a branch can be undone while its paths are as it left them") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "gone", "base");
  world.open();
  const BranchId parent = world.branch();
  world.files(parent).write("own", "1");
  const Picture before = world.files(parent).picture();
  const auto rivals = world.branches(parent, 2, true);
  world.files(rivals[0]).write("f", "child");
  world.files(rivals[0]).unlink("gone");
  world.files(rivals[0]).mkdir("d");
  world.files(rivals[0]).write("d/x", "x");
  const std::string id = world.commit(rivals[0]);
  REQUIRE(world.store->commits().size() == 1);
  CHECK(world.store->commits()[0].paths >= 3);
  world.files(parent).write("unrelated", "later");

  world.files(parent).write("f", "edited");
  Refusal refusal;
  const auto refused = world.store->undo(id, refusal);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "E_UNDO_CONFLICT");
  CHECK(refusal.paths == std::vector<std::string>{"f"});
  world.files(parent).write("f", "child");

  world.crash();
  world.undo(id);
  Picture after = world.files(parent).picture();
  CHECK(after.erase("unrelated") == 1);
  CHECK(after == before);
  CHECK(world.state(rivals[0]) == BranchState::Live);
  CHECK(world.state(rivals[1]) == BranchState::Live);
  CHECK(world.diff(rivals[0]) == Lines{"A d/x", "M f content", "D gone"});
  CHECK(world.store->undo(id, refusal).error().code == "E_NO_COMMIT");
  world.commit(rivals[0]);
  CHECK(world.files(parent).read("f") == "child");
  world.crash();
  world.sound();
}

TEST_CASE("revert puts paths back, take brings them from another branch") {
  World world;
  putFile(world.base / "a", "base");
  putFile(world.base / "b", "base");
  putFile(world.base / "d/x", "x");
  world.open();
  const auto ids = world.branches(kBase, 2, true);
  Files one = world.files(ids[0]);
  one.write("a", "one");
  one.write("b", "one");
  one.write("new", "one");
  one.removeAll("d");
  one.mkdir("n");
  one.write("n/deep", "one");
  CHECK(world.store->revert(ids[0], {"a", "new", "d"}).value() == 3);
  CHECK(world.files(ids[0]).read("a") == "base");
  CHECK(world.files(ids[0]).read("d/x") == "x");
  CHECK_FALSE(world.files(ids[0]).has("new"));
  CHECK(world.diff(ids[0]) == Lines{"M b content", "A n/deep"});
  CHECK(world.store->revert(ids[0], {"a"}).error().code == "E_NO_PATH");

  CHECK(world.store->take(ids[1], ids[0], {"b", "n"}).value() == 2);
  CHECK(world.diff(ids[1]) == Lines{"M b content", "A n/deep"});
  world.files(ids[0]).write("b", "one later");
  CHECK(world.files(ids[1]).read("b") == "one");
  // From one that has not touched it: as it is there.
  const BranchId fresh = world.branch();
  CHECK(world.store->take(ids[1], fresh, {"b"}).value() == 1);
  CHECK(world.files(ids[1]).read("b") == "base");
  world.crash();
  CHECK(world.files(ids[1]).read("n/deep") == "one");
  CHECK(world.files(ids[1]).read("b") == "base");
  world.sound();
}

TEST_CASE("a child of a committed branch goes on with what that was committed into") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId top = world.branch();
  const BranchId middle = world.branch(top);
  world.files(middle).write("m", "m");
  const BranchId low = world.branch(middle);
  world.files(low).write("l", "l");
  world.commit(middle);
  world.commit(low);
  CHECK(world.files(top).read("m") == "m");
  CHECK(world.files(top).read("l") == "l");
  CHECK(world.diff(top) == Lines{"A l", "A m"});
  world.sound();
}
