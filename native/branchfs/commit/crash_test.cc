// A commit, an undo and their recovery are killed at every fail point; afterwards the base is wholly old or wholly new,
// and everything still works.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "native/branchfs/commit/fixture.h"
#include "native/branchfs/commit/scenario.h"
#include "native/branchfs/commit/swap.h"

namespace bough::commit_test {

namespace {

struct Places {
  std::string baseParent;     // "": TMPDIR
  std::string journalParent;  // ""
  bool plainRenames = false;
  std::size_t every = 1;  // kills at every n-th point only
};

constexpr std::uint32_t kRoots = 1000;  // numbers for one transaction

struct PlainRenames {
  explicit PlainRenames(bool on) { base_commit::plainRenamesOnly = on; }
  ~PlainRenames() { base_commit::plainRenamesOnly = false; }
};

/// A fresh base and journal for each kill.
struct Stage {
  TempFolder baseFolder;
  TempFolder journalFolder;
  World world;
  explicit Stage(const Places& places)
      : baseFolder(places.baseParent),
        journalFolder(places.journalParent),
        world(baseFolder / "base", journalFolder / "commit") {
    buildBase(world);
    // A copy in `kept` cannot be another name of a file that the commit does not touch (docs/commit-journal.md).
    if (places.baseParent != places.journalParent) {
      REQUIRE(::unlink(world.at("dir/y2").c_str()) == 0);
      setTimesBelow(world.at("dir"), kOldTime);
    }
  }
  std::string trace() const { return journalFolder / "trace"; }
};

void commitIn(World& world, Txn txn) {
  (void)world.commits->commit(world.baseFd.get(), changeEverything(world, txn, txn * kRoots));
}

Outcome undoIn(World& world, Txn txn, Txn as) {
  Transaction transaction;
  transaction.txn = as;
  transaction.firstRoot = as * kRoots;
  return world.commits->undo(world.baseFd.get(), txn, std::move(transaction));
}

std::string words(const Outcome& outcome) {
  return outcome.error ? outcome.error->code + " " + outcome.error->message : "";
}

/// Recovery points that are hit in turn, so that recovery itself is killed as well.
constexpr std::array<const char*, 6> kInRecovery = {"commit.swapped", "commit.applied", "commit.rolledback",
                                                    "commit.kept",    "commit.times",   "commit.meta"};

/// Kills `operation` at each point it passes and checks what recovery makes of it. `check` gets the world after
/// recovery and whether the operation happened.
template <typename Prepare, typename Operation, typename Check>
void killEverywhere(const Places& places, const Prepare& prepare, const Operation& operation, const Check& check) {
  const PlainRenames renames(places.plainRenames);
  std::vector<std::string> points;
  TreeText before;
  TreeText after;
  {
    Stage undisturbed(places);
    prepare(undisturbed.world);
    before = treeText(undisturbed.world.base);
    REQUIRE_FALSE(killedAt("", undisturbed.trace(), [&] { operation(undisturbed.world); }));
    after = treeText(undisturbed.world.base);
    points = passings(undisturbed.trace());
  }
  REQUIRE(before != after);
  REQUIRE(points.size() > 20);

  std::size_t happened = 0;
  for (std::size_t i = 0; i < points.size(); i += places.every) {
    CAPTURE(points[i]);
    Stage stage(places);
    prepare(stage.world);
    REQUIRE(killedAt(points[i], "", [&] { operation(stage.world); }));
    killedAt(kInRecovery[i / places.every % kInRecovery.size()], "", [&] {
      stage.world.reopen();
      (void)stage.world.commits->recover(stage.world.baseFd.get());
    });
    stage.world.reopen();
    auto recovered = stage.world.commits->recover(stage.world.baseFd.get());
    REQUIRE(recovered);
    const TreeText is = treeText(stage.world.base);
    const bool isNew = is == after;
    INFO(difference(is, before), "\n-- or --\n", difference(is, after));
    REQUIRE((isNew || is == before));
    happened += isNew ? 1 : 0;

    auto again = stage.world.commits->recover(stage.world.baseFd.get());
    REQUIRE(again);
    CHECK(again->size() == recovered->size());
    CHECK(difference(treeText(stage.world.base), is) == "");
    for (const Recovered& one : *recovered) CHECK(stage.world.commits->acknowledge(one.txn).ok());
    CHECK(stage.world.commits->recover(stage.world.baseFd.get())->empty());
    check(stage.world, isNew, *recovered, before, after);
  }
  CHECK(happened > 0);
  CHECK(happened < points.size() / places.every);
}

void killCommits(const Places& places) {
  killEverywhere(
      places, [](World&) {}, [](World& world) { commitIn(world, 1); },
      [](World& world, bool isNew, const std::vector<Recovered>& recovered, const TreeText& before,
         const TreeText& after) {
        if (!isNew) {
          for (const Recovered& one : recovered) CHECK(one.outcome.error->code == "E_ROLLED_BACK");
          commitIn(world, 2);
          CHECK(difference(treeText(world.base), after) == "");
        } else {
          REQUIRE(recovered.size() == 1);
          CHECK(recovered[0].note == std::string("note \0 of bytes", 15));
          CHECK(words(recovered[0].outcome) == "");
        }
        const Txn txn = isNew ? 1 : 2;
        CHECK(words(undoIn(world, txn, 3)) == "");
        CHECK(difference(treeText(world.base), before) == "");
      });
}

void killUndos(const Places& places) {
  killEverywhere(
      places, [](World& world) { commitIn(world, 1); }, [](World& world) { (void)undoIn(world, 1, 2); },
      [](World& world, bool isNew, const std::vector<Recovered>&, const TreeText& before, const TreeText& after) {
        // `before`: committed; `after`: undone.
        if (!isNew) CHECK(words(undoIn(world, 1, 3)) == "");
        CHECK(difference(treeText(world.base), after) == "");
        CHECK(words(undoIn(world, isNew ? 2 : 3, 4)) == "");
        CHECK(difference(treeText(world.base), before) == "");
      });
}

}  // namespace

// Killed processes leave what the kernel has, not what the disk has: syncing is for power cuts. So most of these run on
// file systems in memory, where it costs nothing, and some of them on a real one.
TEST_CASE("a commit killed at any point is whole or did not happen") { killCommits({"", "", false, 7}); }
TEST_CASE("an undo killed at any point is whole or did not happen") { killUndos({"", "", false, 7}); }

TEST_CASE("killed at every point, on one file system and on two, with and without exchange of names") {
  if (!ownMounts()) {
    MESSAGE("skipped: no mounts of one's own without privileges");
    return;
  }
  const TempFileSystem one;
  const TempFileSystem two;
  SUBCASE("commit, one file system") { killCommits({one.path(), one.path()}); }
  SUBCASE("commit, two file systems") { killCommits({one.path(), two.path()}); }
  SUBCASE("commit, one, plain renames") { killCommits({one.path(), one.path(), true}); }
  SUBCASE("commit, two, plain renames") { killCommits({one.path(), two.path(), true}); }
  SUBCASE("undo, one file system") { killUndos({one.path(), one.path()}); }
  SUBCASE("undo, two file systems") { killUndos({one.path(), two.path()}); }
  SUBCASE("undo, two, plain renames") { killUndos({one.path(), two.path(), true}); }
}

}  // namespace bough::commit_test
