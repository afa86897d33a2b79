// What a commit into the base promises besides surviving crashes: conflicts found before anything is touched, errors
// that leave the base as it was, exact attributes, and what the system does not allow said aloud.
#include "native/branchfs/commit/base_commit.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native/branchfs/commit/find_names.h"
#include "native/branchfs/commit/fixture.h"
#include "native/branchfs/commit/scenario.h"

namespace bough::commit_test {

namespace {

struct Fixture {
  TempFolder folder;
  World world;
  Txn next = 1;
  explicit Fixture(const std::string& parent = "") : folder(parent), world(folder / "base", folder / "commit") {}

  Transaction transaction(std::vector<Item> items) {
    Transaction made;
    made.txn = next;
    made.firstRoot = next * 10'000;
    ++next;
    made.items = std::move(items);
    return made;
  }
  Outcome commit(std::vector<Item> items) {
    return world.commits->commit(world.baseFd.get(), transaction(std::move(items)));
  }
  Outcome undo(Txn txn) { return world.commits->undo(world.baseFd.get(), txn, transaction({})); }
};

std::string code(const Outcome& outcome) { return outcome.error ? outcome.error->code : "committed"; }

std::string described(const CommitConflict& conflict) {
  static constexpr const char* kWords[] = {"appeared", "vanished", "replaced", "changed", "below changed"};
  return conflict.path + " " + kWords[static_cast<int>(conflict.why)];
}

std::string firstConflict(const Outcome& outcome) {
  return outcome.conflicts.empty() ? "none" : described(outcome.conflicts[0]);
}

Time now(const World& world) {
  writeFile(world.at(".clock"), "");
  const Time time = unchanged(world, ".clock").identity.ctime;
  REQUIRE(::unlink(world.at(".clock").c_str()) == 0);
  return time;
}

/// A moment that is later for the file system's clock, which ticks slowly.
void waitForClock(const World& world) {
  const Time before = now(world);
  while (now(world) <= before) ::usleep(500);
}

}  // namespace

TEST_CASE("conflicts are found together and nothing is touched") {
  Fixture f;
  for (const char* name : {"same", "edited", "replaced", "removed", "kind"}) writeFile(f.world.at(name), "old\n");
  makeFolder(f.world.at("folder"));
  writeFile(f.world.at("folder/inside"), "old\n");
  std::vector<Item> items;
  for (const char* name : {"edited", "kind", "removed", "replaced", "same"}) {
    items.emplace_back(Put{name, unchanged(f.world, name), fileNode("ours\n")});
  }
  items.emplace_back(Put{"added", absent(), fileNode("ours\n")});
  Expect folder = unchanged(f.world, "folder");
  folder.since = now(f.world);
  items.emplace_back(Remove{"folder", folder});

  waitForClock(f.world);
  writeFile(f.world.at("edited"), "theirs\n");
  writeFile(f.world.at("new"), "old\n");
  REQUIRE(::rename(f.world.at("new").c_str(), f.world.at("replaced").c_str()) == 0);
  REQUIRE(::unlink(f.world.at("removed").c_str()) == 0);
  REQUIRE(::unlink(f.world.at("kind").c_str()) == 0);
  makeFolder(f.world.at("kind"));
  writeFile(f.world.at("added"), "theirs\n");
  writeFile(f.world.at("folder/inside"), "theirs\n");

  const TreeText before = treeText(f.world.base);
  const Outcome outcome = f.commit(std::move(items));
  CHECK(code(outcome) == "E_CONFLICT");
  std::string found;
  for (const CommitConflict& conflict : outcome.conflicts) found += described(conflict) + "; ";
  CHECK(found ==
        "edited changed; kind replaced; removed vanished; replaced replaced; added appeared; folder/inside below "
        "changed; ");
  CHECK(difference(treeText(f.world.base), before) == "");
  CHECK(f.world.commits->recover(f.world.baseFd.get())->empty());
}

TEST_CASE("a folder's attributes changed by somebody else are a conflict, its contents are not") {
  Fixture f;
  makeFolder(f.world.at("folder"), 0755);
  Meta meta;
  meta.path = "folder";
  meta.expect = sameFolder(f.world, "folder");
  meta.was.mode = 0755;
  meta.becomes.mode = 0700;
  writeFile(f.world.at("folder/theirs"), "");
  REQUIRE(::chmod(f.world.at("folder").c_str(), 0711) == 0);
  CHECK(firstConflict(f.commit({meta})) == "folder changed");
  REQUIRE(::chmod(f.world.at("folder").c_str(), 0755) == 0);
  CHECK(code(f.commit({meta})) == "committed");
  CHECK(exists(f.world.at("folder/theirs")));
}

TEST_CASE("a ctime that moved alone is no conflict where the attributes are the same") {
  Fixture f;
  writeFile(f.world.at("file"), "old\n", 0640);
  Expect expect = unchanged(f.world, "file");
  waitForClock(f.world);
  REQUIRE(::link(f.world.at("file").c_str(), f.world.at("link").c_str()) == 0);
  CHECK(firstConflict(f.commit({Put{"file", expect, fileNode("new\n")}})) == "file changed");
  expect.attributes = FolderMeta{0640, std::nullopt, std::nullopt, std::nullopt, Xattrs{}};
  REQUIRE(::chmod(f.world.at("file").c_str(), 0600) == 0);
  CHECK(firstConflict(f.commit({Put{"file", expect, fileNode("new\n")}})) == "file changed");
  REQUIRE(::chmod(f.world.at("file").c_str(), 0640) == 0);
  CHECK(code(f.commit({Put{"file", expect, fileNode("new\n")}})) == "committed");
  CHECK(readFile(f.world.at("link")) == "old\n");
}

TEST_CASE("folders keep their mtime when only contents were replaced") {
  Fixture f;
  makeFolder(f.world.at("replaced"));
  writeFile(f.world.at("replaced/file"), "old\n");
  makeFolder(f.world.at("added"));
  setTimesBelow(f.world.base, kOldTime);
  const TreeText before = treeText(f.world.base);
  CHECK(code(f.commit({Put{"replaced/file", unchanged(f.world, "replaced/file"), fileNode("new\n")},
                       Put{"added/file", absent(), fileNode("new\n")}})) == "committed");
  const TreeText after = treeText(f.world.base);
  CHECK(after.at("replaced") == before.at("replaced"));
  CHECK(after.at("added") != before.at("added"));
  CHECK(code(f.undo(1)) == "committed");
  CHECK(difference(treeText(f.world.base), before) == "");
}

TEST_CASE("undo refuses when a path changed since, and says which") {
  Fixture f;
  buildBase(f.world);
  const Outcome outcome = f.world.commits->commit(f.world.baseFd.get(), changeEverything(f.world, f.next++, 10'000));
  REQUIRE(code(outcome) == "committed");
  waitForClock(f.world);
  writeFile(f.world.at("file-to-folder/empty/new"), "theirs\n");
  const TreeText edited = treeText(f.world.base);
  const Outcome refused = f.undo(1);
  CHECK(code(refused) == "E_UNDO_CONFLICT");
  CHECK(firstConflict(refused) == "file-to-folder below changed");
  CHECK(difference(treeText(f.world.base), edited) == "");
}

TEST_CASE("what was replaced is kept, readable by its number until it is released") {
  Fixture f;
  writeFile(f.world.at("file"), "old\n");
  makeFolder(f.world.at("folder"));
  writeFile(f.world.at("folder/inside"), "old too\n");
  const Outcome outcome =
      f.commit({Put{"file", unchanged(f.world, "file"), fileNode("new\n")},
                Remove{"folder", unchanged(f.world, "folder")}, Put{"added", absent(), fileNode("")}});
  REQUIRE(code(outcome) == "committed");
  REQUIRE(outcome.items.size() == 3);
  CHECK(outcome.items[0].root == 10'000);
  CHECK(outcome.items[1].root == 10'001);
  CHECK_FALSE(outcome.items[1].present);
  CHECK(outcome.items[2].root == 0);
  for (int restart = 0; restart < 2; ++restart) {
    auto file = f.world.commits->openKept(10'000);
    REQUIRE(file);
    CHECK(readFile("/proc/self/fd/" + std::to_string(file->get())) == "old\n");
    auto kept = f.world.commits->openKept(10'001);
    REQUIRE(kept);
    CHECK(readFile("/proc/self/fd/" + std::to_string(kept->get()) + "/inside") == "old too\n");
    CHECK(f.world.commits->openKept(10'002).error().errnum == ENOENT);
    CHECK(f.world.commits->openKept(10'003).error().errnum == ENOENT);
    f.world.reopen();
    CHECK(f.world.commits->recover(f.world.baseFd.get())->size() == 1);
  }
  CHECK(f.world.commits->acknowledge(1).ok());
  CHECK(f.world.commits->sync().ok());
  CHECK(f.world.commits->release(1).ok());
  CHECK(f.world.commits->openKept(10'000).error().errnum == ENOENT);
  CHECK(code(f.undo(1)) == "E_NO_COMMIT");
}

TEST_CASE("an immutable target or folder is refused before anything changes") {
  Fixture f;
  writeFile(f.world.at("fixed"), "old\n");
  writeFile(f.world.at("other"), "old\n");
  const UniqueFd fd(::open(f.world.at("fixed").c_str(), O_RDONLY | O_CLOEXEC));
  int flags = 0;
  if (::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  int with = flags | FS_IMMUTABLE_FL;
  if (::ioctl(fd.get(), FS_IOC_SETFLAGS, &with) != 0) {
    MESSAGE("skipped: immutable files cannot be made here");
    return;
  }
  const TreeText before = treeText(f.world.base);
  const Outcome outcome = f.commit({Put{"other", unchanged(f.world, "other"), fileNode("new\n")},
                                    Put{"fixed", unchanged(f.world, "fixed"), fileNode("new\n")}});
  const Outcome removal = f.commit({Remove{"fixed", unchanged(f.world, "fixed")}});
  const bool same = difference(treeText(f.world.base), before).empty();
  REQUIRE(::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) == 0);
  CHECK(same);
  CHECK(code(outcome) == "E_READ_ONLY");
  CHECK(outcome.errorPath == "fixed");
  CHECK(code(removal) == "E_READ_ONLY");
}

TEST_CASE("a read-only file system, a full base, a full store") {
  if (!ownMounts()) {
    MESSAGE("skipped: no mounts of one's own without privileges");
    return;
  }
  const auto refusedWith = [](const std::string& base, const std::string& journal, const std::string& wanted) {
    World world(base, journal);
    const TreeText before = treeText(world.base);
    Transaction transaction;
    transaction.txn = 1;
    transaction.firstRoot = 1;
    transaction.items.emplace_back(Put{"file", unchanged(world, "file"), fileNode("small\n")});
    transaction.items.emplace_back(Put{"large", absent(), fileNode(std::string(3'000'000, 'x'))});
    CHECK(code(world.commits->commit(world.baseFd.get(), transaction)) == wanted);
    CHECK(difference(treeText(world.base), before) == "");
    CHECK(world.commits->recover(world.baseFd.get())->empty());
  };
  const TempFolder roomy;
  SUBCASE("a base without room") {
    const TempFileSystem small("size=1m");
    makeFolder(small.path() + "/base");
    writeFile(small.path() + "/base/file", "old\n");
    refusedWith(small.path() + "/base", roomy / "commit", "E_NO_SPACE");
  }
  SUBCASE("a store without room") {
    const TempFileSystem small("size=1m");
    makeFolder(roomy / "base");
    writeFile(roomy / "base/file", std::string(2'000'000, 'o'));  // its copy does not fit
    refusedWith(roomy / "base", small.path() + "/commit", "E_NO_SPACE");
  }
  SUBCASE("a base that is mounted read-only") {
    makeFolder(roomy / "real");
    writeFile(roomy / "real/file", "old\n");
    makeFolder(roomy / "base");
    REQUIRE(::mount((roomy / "real").c_str(), (roomy / "base").c_str(), nullptr, MS_BIND, nullptr) == 0);
    REQUIRE(::mount(nullptr, (roomy / "base").c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
    refusedWith(roomy / "base", roomy / "commit", "E_READ_ONLY");
    CHECK(::umount2((roomy / "base").c_str(), MNT_DETACH) == 0);
  }
}

TEST_CASE("a mount point and the store itself are not carried away") {
  Fixture f;
  makeFolder(f.world.at("outer"));
  makeFolder(f.world.at("outer/store"));
  World inside(f.world.base, f.world.at("outer/store/commit"));
  Transaction transaction;
  transaction.txn = 1;
  transaction.firstRoot = 1;
  transaction.items.emplace_back(Remove{"outer", unchanged(f.world, "outer")});
  CHECK(code(inside.commits->commit(inside.baseFd.get(), transaction)) == "E_READ_ONLY");
  if (!ownMounts()) return;
  makeFolder(f.world.at("mounted"));
  REQUIRE(::mount("tmpfs", f.world.at("mounted").c_str(), "tmpfs", 0, nullptr) == 0);
  const Outcome outcome = f.commit({Remove{"mounted", unchanged(f.world, "mounted")}});
  CHECK(::umount2(f.world.at("mounted").c_str(), MNT_DETACH) == 0);
  CHECK(code(outcome) == "E_READ_ONLY");
}

TEST_CASE("a base folder that is gone, and one that is another folder after a crash") {
  Fixture f;
  Transaction transaction = f.transaction({Put{"file", absent(), fileNode("new\n")}});
  REQUIRE(killedAt("commit.decided", "", [&] { (void)f.world.commits->commit(f.world.baseFd.get(), transaction); }));
  REQUIRE(::rename(f.world.base.c_str(), (f.folder / "moved").c_str()) == 0);
  makeFolder(f.world.base);
  f.world.reopen();
  CHECK(f.world.commits->recover(f.world.baseFd.get()).error().code == "E_BASE_GONE");
  CHECK_FALSE(exists(f.world.at("file")));
  REQUIRE(::rmdir(f.world.base.c_str()) == 0);
  CHECK(code(f.commit({Put{"file", absent(), fileNode("new\n")}})) == "E_BASE_GONE");
  REQUIRE(::rename((f.folder / "moved").c_str(), f.world.base.c_str()) == 0);
  f.world.reopen();
  auto recovered = f.world.commits->recover(f.world.baseFd.get());
  REQUIRE(recovered);
  REQUIRE(recovered->size() == 1);
  CHECK(code((*recovered)[0].outcome) == "committed");
  CHECK(readFile(f.world.at("file")) == "new\n");
}

TEST_CASE("a path changed in the last instant: taken back, the other one's file stays") {
  Fixture f;
  for (const char* name : {"a", "b", "c"}) writeFile(f.world.at(name), "old\n");
  Transaction transaction = f.transaction(
      {Put{"a", unchanged(f.world, "a"), fileNode("ours\n")}, Put{"b", unchanged(f.world, "b"), fileNode("ours\n")},
       Remove{"c", unchanged(f.world, "c")}, Put{"d", absent(), fileNode("ours\n")}});
  transaction.decided = [&] { writeFile(f.world.at("b"), "theirs, at the last instant\n"); };
  const Outcome outcome = f.world.commits->commit(f.world.baseFd.get(), transaction);
  CHECK(code(outcome) == "E_CONFLICT");
  CHECK(firstConflict(outcome) == "b changed");
  CHECK(readFile(f.world.at("a")) == "old\n");
  CHECK(readFile(f.world.at("b")) == "theirs, at the last instant\n");
  CHECK(readFile(f.world.at("c")) == "old\n");
  CHECK_FALSE(exists(f.world.at("d")));
  CHECK(f.world.commits->recover(f.world.baseFd.get())->empty());
}

TEST_CASE("what somebody saves into a new file while the commit is taken back stays") {
  Fixture f;
  for (const char* name : {"a", "c", "quiet"}) writeFile(f.world.at(name), "old\n");
  Transaction transaction =
      f.transaction({Put{"a", unchanged(f.world, "a"), fileNode("ours\n")}, Put{"b", absent(), fileNode("ours\n")},
                     Put{"quiet", unchanged(f.world, "quiet"), fileNode("ours\n")},
                     Put{"c", unchanged(f.world, "c"), fileNode("ours\n")}});
  transaction.decided = [&] { writeFile(f.world.at("c"), "theirs, at the last instant\n"); };
  REQUIRE(killedAt("commit.reverting", "", [&] { (void)f.world.commits->commit(f.world.baseFd.get(), transaction); }));
  REQUIRE(readFile(f.world.at("a")) == "ours\n");
  REQUIRE(readFile(f.world.at("b")) == "ours\n");
  writeFile(f.world.at("a"), "ours and theirs\n");
  writeFile(f.world.at("b"), "theirs\n");
  f.world.reopen();
  const auto recovered = f.world.commits->recover(f.world.baseFd.get());
  REQUIRE(recovered);
  REQUIRE(recovered->size() == 1);
  CHECK(code((*recovered)[0].outcome) == "E_ROLLED_BACK");
  CHECK(readFile(f.world.at("a")) == "ours and theirs\n");
  CHECK(readFile(f.world.at("b")) == "theirs\n");
  CHECK(readFile(f.world.at("quiet")) == "old\n");
  CHECK(readFile(f.world.at("c")) == "theirs, at the last instant\n");
}

TEST_CASE("an ordinary person: owners that may not be given are reported, set-id bits go with them") {
  if (::geteuid() != 0) return;
  const TempFolder folder("/tmp");
  constexpr unsigned kNobody = 65534;
  makeFolder(folder / "base");
  makeFolder(folder / "commit", 0700);
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chown((folder / "base").c_str(), kNobody, kNobody) == 0);
  REQUIRE(::chown((folder / "commit").c_str(), kNobody, kNobody) == 0);
  makeFolder(folder / "base/roots");
  const std::string result = inChild([&]() -> std::string {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return "setuid";
    World world(folder / "base", folder / "commit");
    NewNode program = fileNode("#!/bin/sh\n", 04755);
    program.uid = program.gid = 0;
    program.xattrs["trusted.mine"] = "1";
    NewNode device = fileNode("");
    device.kind = Kind::CharDevice;
    device.rdev = 0x103;
    Transaction transaction;
    transaction.txn = transaction.firstRoot = 1;
    transaction.items.emplace_back(Put{"program", absent(), program});
    transaction.items.emplace_back(Put{"device", absent(), device});
    const Outcome outcome = world.commits->commit(world.baseFd.get(), transaction);
    std::string text = code(outcome);
    for (const NotApplied& one : outcome.notApplied) text += " " + one.path + ":" + one.what;
    Transaction refused;
    refused.txn = refused.firstRoot = 2;
    refused.items.emplace_back(Put{"roots/file", absent(), fileNode("")});
    const Outcome second = world.commits->commit(world.baseFd.get(), refused);
    return text + " " + code(second) + " " + second.errorPath;
  });
  CHECK(result == "committed program:owner program:xattr trusted.mine program:mode device:node E_READ_ONLY roots");
  struct stat st = {};
  REQUIRE(::stat((folder / "base/program").c_str(), &st) == 0);
  CHECK((st.st_mode & 07777U) == 0755U);
  CHECK(st.st_uid == kNobody);
  CHECK_FALSE(exists(folder / "base/device"));
}

TEST_CASE("five thousand items, as one") {
  if (!ownMounts()) {
    MESSAGE("skipped: no mounts of one's own without privileges");
    return;
  }
  const TempFileSystem fast;
  Fixture f(fast.path());
  std::vector<Item> items;
  for (int i = 0; i < 2'500; ++i) {
    if (i % 50 == 0) makeFolder(f.world.at("old" + std::to_string(i / 50)));
    const std::string path = "old" + std::to_string(i / 50) + "/" + std::to_string(i);
    writeFile(f.world.at(path), "old " + std::to_string(i));
  }
  setTimesBelow(f.world.base, kOldTime);
  for (int i = 0; i < 2'500; ++i) {
    const std::string path = "old" + std::to_string(i / 50) + "/" + std::to_string(i);
    if (i % 2 == 0) items.emplace_back(Put{path, unchanged(f.world, path), fileNode("new " + std::to_string(i))});
    if (i % 2 == 1) items.emplace_back(Remove{path, unchanged(f.world, path)});
  }
  for (int i = 0; i < 2'500; ++i) items.emplace_back(Put{"new" + std::to_string(i), absent(), fileNode("")});
  const TreeText before = treeText(f.world.base);
  const Outcome outcome = f.commit(std::move(items));
  REQUIRE(code(outcome) == "committed");
  CHECK(outcome.items.size() == 5'000);
  const TreeText after = treeText(f.world.base);
  CHECK(after.size() == before.size() + 2'500 - 1'250);
  CHECK(readFile(f.world.at("old0/2")) == "new 2");
  CHECK(code(f.undo(1)) == "committed");
  CHECK(difference(treeText(f.world.base), before) == "");
}

TEST_CASE("a folder that stays tells what it was, and all names of a file are found") {
  Fixture f;
  makeFolder(f.world.at("folder"), 0711);
  writeFile(f.world.at("folder/one"), "");
  REQUIRE(::link(f.world.at("folder/one").c_str(), f.world.at("two").c_str()) == 0);
  Meta meta;
  meta.path = "folder";
  meta.expect = sameFolder(f.world, "folder");
  meta.becomes.mode = 0700;
  const Outcome outcome = f.commit({meta});
  REQUIRE(code(outcome) == "committed");
  CHECK(outcome.items[0].stays);
  CHECK(outcome.items[0].before.mode == 0711U);
  const std::uint64_t inode = unchanged(f.world, "two").identity.ino;
  auto names = findNames(f.world.baseFd.get(), {inode});
  REQUIRE(names);
  CHECK((*names)[inode] == std::vector<std::string>{"folder/one", "two"});
}

TEST_CASE("lists that break the rules are refused") {
  Fixture f;
  makeFolder(f.world.at("folder"));
  writeFile(f.world.at("folder/file"), "");
  const auto refused = [&](std::vector<Item> items) { return code(f.commit(std::move(items))) == "E_BAD_REQUEST"; };
  CHECK(refused({Put{"../escape", absent(), fileNode("")}}));
  CHECK(refused({Put{"/absolute", absent(), fileNode("")}}));
  CHECK(refused({Put{"", absent(), fileNode("")}}));
  CHECK(refused({Put{"twice", absent(), fileNode("")}, Put{"twice", absent(), fileNode("")}}));
  CHECK(refused(
      {Remove{"folder", unchanged(f.world, "folder")}, Remove{"folder/file", unchanged(f.world, "folder/file")}}));
  REQUIRE(::symlink("folder", f.world.at("link").c_str()) == 0);
  CHECK(firstConflict(f.commit({Put{"link/file2", absent(), fileNode("")}})) == "link/file2 vanished");
  CHECK_FALSE(exists(f.world.at("folder/file2")));
}

}  // namespace bough::commit_test
