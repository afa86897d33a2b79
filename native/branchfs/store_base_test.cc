// Commits into the base: every kind of change arrives, nobody else sees it, conflicts and drift by path, exact undo.
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "native/branchfs/store_test_world.h"

using namespace bough;
using namespace bough::test;

namespace {

/// Everything that a commit can carry.
void fillBase(const fs::path& base) {
  putFile(base / "mod.txt", "one");
  putFile(base / "gone.txt", "gone");
  putFile(base / "run.sh", "#!/bin/sh\n");
  putFile(base / "old/inner/deep.txt", "deep");
  putFile(base / "old/side.txt", "side");
  putFile(base / "moved.txt", "moved");
  putFile(base / "becomes-folder", "file");
  putFile(base / "becomes-file/x", "x");
  putFile(base / "tree/a/b", "b");
  putFile(base / "keep/untouched", "u");
  fs::create_symlink("mod.txt", base / "link");
  fs::create_directories(base / "hollow");
  fs::permissions(base / "mod.txt", fs::perms(0640));
}

void changeAll(Files files) {
  files.write("mod.txt", "two");
  files.unlink("gone.txt");
  files.chmod("run.sh", 0755);
  files.rename("old", "new");
  files.write("new/side.txt", "changed");
  files.rename("moved.txt", "keep/moved.txt");
  files.unlink("becomes-folder");
  files.mkdir("becomes-folder");
  files.write("becomes-folder/in", "in");
  files.removeAll("becomes-file");
  files.write("becomes-file", "now a file");
  files.removeAll("tree");
  files.unlink("link");
  files.symlink("link", "elsewhere");
  files.rmdir("hollow");
  files.mkdir("empty", 0700);
  files.write("one", "linked");
  files.link("one", "two");
  files.chmod("keep", 0711);
  files.mkdir("fresh");
  files.write("fresh/bin", "#!/bin/sh\necho\n", 0755);
}

const Picture kChanged = {{"mod.txt", "f 640 two"},
                          {"run.sh", "f 755 #!/bin/sh\n"},
                          {"new", "d 755 "},
                          {"new/inner", "d 755 "},
                          {"new/inner/deep.txt", "f 644 deep"},
                          {"new/side.txt", "f 644 changed"},
                          {"keep", "d 711 "},
                          {"keep/moved.txt", "f 644 moved"},
                          {"keep/untouched", "f 644 u"},
                          {"becomes-folder", "d 755 "},
                          {"becomes-folder/in", "f 644 in"},
                          {"becomes-file", "f 644 now a file"},
                          {"link", "l 777 elsewhere"},
                          {"empty", "d 700 "},
                          {"one", "f 644 linked"},
                          {"two", "f 644 linked"},
                          {"fresh", "d 755 "},
                          {"fresh/bin", "f 755 #!/bin/sh\necho\n"}};

struct stat statOf(const fs::path& path) {
  struct stat status{};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

}  // namespace

TEST_CASE("a commit into the base carries every kind of change; no other branch sees it; undo is exact") {
  World world;
  fillBase(world.base);
  world.open();
  const Picture before = pictureOf(world.base);
  const auto rivals = world.branches(kBase, 2, true);
  const BranchId other = world.branch();    // has touched nothing
  const BranchId touched = world.branch();  // has touched something of its own
  const BranchId nested = world.branch(touched);
  world.files(touched).write("keep/mine", "mine");
  world.files(touched).write("old/side.txt", "touched");
  world.files(rivals[1]).rename("old", "elsewhere");
  const Picture otherSees = world.files(other).picture();
  const Picture touchedSees = world.files(touched).picture();
  const Picture nestedSees = world.files(nested).picture();
  const Picture rivalSees = world.files(rivals[1]).picture();
  const NodeId modId = world.files(other).id("mod.txt");
  const struct stat modBefore = statOf(world.base / "mod.txt");

  changeAll(world.files(rivals[0]));
  CHECK(world.files(rivals[0]).picture() == kChanged);
  const std::string id = world.commit(rivals[0]);

  CHECK(pictureOf(world.base) == kChanged);
  CHECK(statOf(world.base / "one").st_ino == statOf(world.base / "two").st_ino);
  CHECK(world.state(rivals[0]) == BranchState::Committed);
  CHECK(world.state(rivals[1]) == BranchState::Superseded);
  const auto unchangedForOthers = [&] {
    CHECK(world.files(other).picture() == otherSees);
    CHECK(world.files(touched).picture() == touchedSees);
    CHECK(world.files(nested).picture() == nestedSees);
    CHECK(world.files(rivals[1]).picture() == rivalSees);
    CHECK(world.files(rivals[0]).picture() == kChanged);
    CHECK(world.diff(other).empty());
    CHECK(world.diff(nested).empty());
    CHECK(world.diff(touched) == Lines{"A keep/mine", "M old/side.txt content"});
    CHECK(world.diff(rivals[1]) == Lines{"R old > elsewhere /"});
  };
  unchangedForOthers();
  CHECK(world.files(other).id("mod.txt") == modId);
  const BranchId later = world.branch();
  CHECK(world.files(later).picture() == kChanged);
  world.crash();
  unchangedForOthers();
  world.restart();
  unchangedForOthers();
  world.sound();

  world.undo(id);
  CHECK(pictureOf(world.base) == before);
  const struct stat modAfter = statOf(world.base / "mod.txt");
  CHECK(modAfter.st_mtim.tv_sec == modBefore.st_mtim.tv_sec);
  CHECK(modAfter.st_mtim.tv_nsec == modBefore.st_mtim.tv_nsec);
  CHECK(world.state(rivals[0]) == BranchState::Live);
  CHECK(world.state(rivals[1]) == BranchState::Live);
  unchangedForOthers();
  CHECK(world.files(later).picture() == kChanged);
  CHECK(world.diff(later).empty());
  world.crash();
  CHECK(world.files(later).picture() == kChanged);
  CHECK(pictureOf(world.base) == before);
  world.sound();
  world.commit(rivals[0]);
  CHECK(pictureOf(world.base) == kChanged);
}

TEST_CASE("a store on another file system than the base") {
  World world("/dev/shm/bough-store-other-" + std::to_string(::getpid()));
  struct Away {
    fs::path path;
    ~Away() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } away{world.folder};
  fillBase(world.base);
  world.open();
  const Picture before = pictureOf(world.base);
  const BranchId id = world.branch();
  const BranchId other = world.branch();
  changeAll(world.files(id));
  const std::string commit = world.commit(id);
  CHECK(pictureOf(world.base) == kChanged);
  CHECK(world.files(other).picture() == before);
  world.crash();
  CHECK(world.files(other).picture() == before);
  world.undo(commit);
  CHECK(pictureOf(world.base) == before);
  CHECK(world.files(other).picture() == before);
  world.store.reset();
}

TEST_CASE("holes, large files and extended attributes arrive") {
  World world;
  putFile(world.base / "big", std::string(300 * 1024, 'b'));
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  const BranchId other = world.branch();
  files.write("sparse", "start");
  SetAttr grow;
  grow.size = std::uint64_t{8} << 20;
  REQUIRE(files.view().setattr(Files::kCaller, files.id("sparse"), std::nullopt, grow));
  REQUIRE(files.view().setxattr(files.id("sparse"), "user.note", "kept", 0));
  const auto opened = files.view().open(files.id("big"), O_WRONLY);
  REQUIRE(opened);
  REQUIRE(files.view().write(opened->handle, 1000, std::as_bytes(std::span("X", 1)), false));
  files.view().release(opened->handle);
  world.commit(id);
  const struct stat sparse = statOf(world.base / "sparse");
  CHECK(sparse.st_size == 8 << 20);
  CHECK(sparse.st_blocks < 1024);
  char note[16];
  const ssize_t n = ::getxattr((world.base / "sparse").c_str(), "user.note", note, sizeof note);
  if (n >= 0) CHECK(std::string(note, static_cast<std::size_t>(n)) == "kept");
  std::string big(300 * 1024, 'b');
  CHECK(world.files(other).read("big") == big);
  big[1000] = 'X';
  CHECK(getFile(world.base / "big") == big);
  world.sound();
}

TEST_CASE("paths that the person changed meanwhile stop a commit; others are merged; drift says so") {
  World world;
  putFile(world.base / "both", "base");
  putFile(world.base / "same", "base");
  putFile(world.base / "theirs-gone", "base");
  putFile(world.base / "dir/x", "x");
  putFile(world.base / "free", "base");
  putFile(world.base / "other", "base");
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  files.write("both", "ours");
  files.write("same", "agreed");
  files.write("theirs-gone", "ours");
  files.removeAll("dir");
  files.write("free", "ours");
  files.write("added", "ours");
  CHECK(world.store->diff(id, "", 0, 100)->drift.changed.empty());
  putFile(world.base / "both", "person");
  putFile(world.base / "same", "agreed");
  putFile(world.base / "dir/y", "person");
  putFile(world.base / "added", "person");
  putFile(world.base / "other", "person");
  fs::remove(world.base / "theirs-gone");
  const Picture before = pictureOf(world.base);

  CHECK(world.commitFails(id) == "E_CONFLICT");
  std::map<std::string, ConflictReason> told;
  for (const Conflict& one : world.refusal.conflicts) told[one.path] = one.reason;
  CHECK(told == std::map<std::string, ConflictReason>{{"both", ConflictReason::BothChanged},
                                                      {"added", ConflictReason::AddedInBoth},
                                                      {"theirs-gone", ConflictReason::DeletedInParent},
                                                      {"dir/y", ConflictReason::ChangedInParent}});
  CHECK(pictureOf(world.base) == before);
  CHECK(world.state(id) == BranchState::Live);
  const auto page = world.store->diff(id, "", 0, 100);
  CHECK(std::count(page->drift.changed.begin(), page->drift.changed.end(), "both") == 1);
  CHECK(std::count(page->drift.changed.begin(), page->drift.changed.end(), "free") == 0);

  CHECK(world.store->read(id, Side::Point, "both", 0, 100)->data == "base");
  CHECK(world.store->read(id, Side::Parent, "both", 0, 100)->data == "person");
  REQUIRE(world.store->resolve(id, "both", Take::Content, "merged", std::nullopt));
  REQUIRE(world.store->resolve(id, "added", Take::Theirs, "", std::nullopt));
  REQUIRE(world.store->resolve(id, "theirs-gone", Take::Ours, "", std::nullopt));
  REQUIRE(world.store->resolve(id, "dir", Take::Theirs, "", std::nullopt));
  CHECK(world.store->conflicts(id, {})->empty());
  world.crash();
  world.commit(id);
  CHECK(getFile(world.base / "both") == "merged");
  CHECK(getFile(world.base / "added") == "person");
  CHECK(getFile(world.base / "theirs-gone") == "ours");
  CHECK(getFile(world.base / "dir/y") == "person");
  CHECK(getFile(world.base / "free") == "ours");
  CHECK(getFile(world.base / "other") == "person");
  world.sound();
}

TEST_CASE("a merge is settled against the parent's text that it was made of, and can be made again") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId id = world.branch();
  world.files(id).write("f", "ours");
  putFile(world.base / "f", "person 1");
  CHECK(world.commitFails(id) == "E_CONFLICT");
  const auto settle = [&](const std::string& merged, const std::string& seen) {
    const auto done = world.store->resolve(id, "f", Take::Content, merged, std::nullopt, seen);
    return done ? std::string("settled") : done.error().code;
  };
  putFile(world.base / "f", "");  // an editor that saves, between truncate and write
  CHECK(settle("ours + person 1", "person 1") == "E_MOVED");
  CHECK(world.store->read(id, Side::Point, "f", 0, 100)->data == "base");
  CHECK(world.files(id).read("f") == "ours");
  putFile(world.base / "f", "person 22");
  CHECK(settle("ours + person 2", "person 2") == "E_MOVED");
  CHECK(settle("ours + person 22", "person 22") == "settled");
  putFile(world.base / "f", "person 3");
  CHECK(world.commitFails(id) == "E_CONFLICT");
  CHECK(world.store->read(id, Side::Point, "f", 0, 100)->data == "person 22");
  world.crash();
  CHECK(world.store->read(id, Side::Point, "f", 0, 100)->data == "person 22");
  CHECK(settle("ours + person 3", "person 3") == "settled");
  world.commit(id);
  CHECK(getFile(world.base / "f") == "ours + person 3");
  world.sound();
}

TEST_CASE("disjoint siblings both commit, and a rebase shows the new base") {
  World world;
  putFile(world.base / "a", "base");
  putFile(world.base / "b", "base");
  putFile(world.base / "c", "base");
  world.open();
  const auto ids = world.branches(kBase, 3, false);
  world.files(ids[0]).write("a", "0");
  world.files(ids[1]).write("b", "1");
  world.commit(ids[0]);
  world.commit(ids[1]);
  CHECK(pictureOf(world.base) == Picture{{"a", "f 644 0"}, {"b", "f 644 1"}, {"c", "f 644 base"}});
  world.files(ids[2]).write("c", "2");
  CHECK(world.files(ids[2]).read("a") == "base");
  world.rebase(ids[2]);
  CHECK(world.files(ids[2]).read("a") == "0");
  CHECK(world.files(ids[2]).read("c") == "2");
  CHECK(world.diff(ids[2]) == Lines{"M c content"});
  world.commit(ids[2]);
  CHECK(getFile(world.base / "c") == "2");
  world.sound();
}

TEST_CASE("a partial commit into the base, then the rest") {
  World world;
  putFile(world.base / "a", "base");
  putFile(world.base / "b", "base");
  world.open();
  const BranchId id = world.branch();
  Files files = world.files(id);
  files.write("a", "1");
  files.write("b", "1");
  files.mkdir("n");
  files.write("n/x", "x");
  const std::string part = world.commit(id, {"a", "n"});
  CHECK(pictureOf(world.base) == Picture{{"a", "f 644 1"}, {"b", "f 644 base"}, {"n", "d 755 "}, {"n/x", "f 644 x"}});
  CHECK(world.state(id) == BranchState::Live);
  CHECK(world.diff(id) == Lines{"M b content"});
  files.write("a", "2");
  CHECK(getFile(world.base / "a") == "1");
  CHECK(world.diff(id) == Lines{"M a content", "M b content"});
  world.crash();
  world.commit(id);
  CHECK(getFile(world.base / "a") == "2");
  CHECK(getFile(world.base / "b") == "1");
  Refusal refusal;
  CHECK(world.store->undo(part, refusal).error().code == "E_UNDO_CONFLICT");
  world.sound();
}

TEST_CASE("an undo refuses when a path was changed since") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId id = world.branch();
  world.files(id).write("f", "branch");
  world.files(id).write("g", "branch");
  const std::string commit = world.commit(id);
  putFile(world.base / "f", "person");
  Refusal refusal;
  const auto refused = world.store->undo(commit, refusal);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "E_UNDO_CONFLICT");
  CHECK(refusal.paths == std::vector<std::string>{"f"});
  CHECK(getFile(world.base / "f") == "person");
  CHECK(getFile(world.base / "g") == "branch");
}

TEST_CASE("a nested branch commits into the base after its parent did") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "g", "base");
  world.open();
  const BranchId parent = world.branch();
  world.files(parent).write("f", "parent");
  const BranchId child = world.branch(parent);
  world.files(child).write("g", "child");
  world.files(child).write("f", "child");
  world.commit(parent);
  CHECK(getFile(world.base / "f") == "parent");
  CHECK(world.files(child).read("f") == "child");
  world.commit(child);
  CHECK(getFile(world.base / "f") == "child");
  CHECK(getFile(world.base / "g") == "child");
  world.sound();
}

TEST_CASE("what a commit keeps goes when it is forgotten and no branch shows it") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId id = world.branch();
  const BranchId other = world.branch();
  world.files(id).write("f", "new");
  const std::string commit = world.commit(id);
  const auto kept = [&] {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(world.folder / "commit")) {
      count += entry.is_regular_file() && getFile(entry.path()) == "base" ? 1 : 0;
    }
    return count;
  };
  CHECK(kept() == 1);
  REQUIRE(world.store->forget(commit));
  CHECK(world.store->commits().empty());
  CHECK(world.files(other).read("f") == "base");
  CHECK(kept() == 1);
  Refusal refusal;
  CHECK(world.store->undo(commit, refusal).error().code == "E_NO_COMMIT");
  CHECK(world.store->forget(commit).error().code == "E_NO_COMMIT");
  REQUIRE(world.store->abort(other, true));
  world.restart();
  CHECK(kept() == 0);
  world.sound();
}

TEST_CASE("five thousand changed files in one commit") {
  World world;
  for (int i = 0; i < 5000; i++) {
    putFile(world.base / ("d" + std::to_string(i % 50)) / std::to_string(i), "base");
  }
  world.open();
  const BranchId id = world.branch();
  const BranchId other = world.branch();
  Files files = world.files(id);
  for (int i = 0; i < 5000; i++) {
    files.write("d" + std::to_string(i % 50) + "/" + std::to_string(i), "changed " + std::to_string(i));
  }
  const auto page = world.store->diff(id, "", 0, 10);
  CHECK(page->total == 5000);
  const std::string commit = world.commit(id);
  CHECK(getFile(world.base / "d7" / "4957") == "changed 4957");
  CHECK(world.files(other).read("d7/4957") == "base");
  CHECK(world.store->commits()[0].paths == 5000);
  world.restart();
  CHECK(world.files(other).read("d0/0") == "base");
  world.undo(commit);
  CHECK(getFile(world.base / "d7" / "4957") == "base");
}

TEST_CASE("a base that is gone is said, and nothing is lost") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId id = world.branch();
  world.files(id).write("f", "branch");
  const fs::path away = world.root / "away";
  fs::rename(world.base, away);
  CHECK(world.commitFails(id) == "E_BASE_GONE");
  fs::create_directory(world.base);
  CHECK(world.commitFails(id) == "E_BASE_GONE");
  CHECK(fs::is_empty(world.base));
  fs::remove(world.base);
  CHECK(world.openFails().code == "E_BASE_GONE");
  fs::rename(away, world.base);
  world.open();
  CHECK(world.files(id).read("f") == "branch");
  world.commit(id);
  CHECK(getFile(world.base / "f") == "branch");
}
