// View: data. Copy-up, open handles of all sorts, holes, and branch points in the middle of writing.
#include <linux/falloc.h>

#include <thread>

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

namespace {

std::uint64_t blocksOf(const fs::path& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_blocks);
}

std::string baseText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the first write to a base file copies it and leaves the base alone") {
  World world;
  put(world.base / "dir/file", "0123456789");
  fs::permissions(world.base / "dir/file", fs::perms(0640));
  Seen& seen = world.start();
  Attr before = seen.stat("dir/file");
  CHECK(seen.overwrite("dir/file", "XX", 4) == 0);
  CHECK(seen.cat("dir/file") == "0123XX6789");
  CHECK(baseText(world.base / "dir/file") == "0123456789");
  Attr after = seen.stat("dir/file");
  CHECK(after.id == before.id);
  CHECK(after.mode == 0640);
  CHECK(after.nlink == 1);
  CHECK(after.btime == before.btime);
  CHECK(after.mtime >= before.mtime);
  CHECK(after.ctime >= before.ctime);
}

TEST_CASE("handles opened before a copy-up see it") {
  World world;
  put(world.base / "file", "old data");
  Seen& seen = world.start();
  Handle reader = seen.open("file");
  Handle writer = seen.open("file", O_RDWR);
  CHECK(seen.read(reader) == "old data");
  CHECK(errorOf(seen.write(writer, "new")) == 0);
  CHECK(seen.read(reader) == "new data");
  CHECK(seen.read(writer) == "new data");
  CHECK(errorOf(seen.write(reader, "x")) == EBADF);
  seen.view->release(reader);
  seen.view->release(writer);
  CHECK(seen.read(reader) == "error: Bad file descriptor");
}

TEST_CASE("an unlinked file lives as long as somebody has it open") {
  World world;
  put(world.base / "base", "of the base");
  Seen& seen = world.start();
  CHECK(seen.echo("mine", "mine") == 0);
  for (const std::string& name : {std::string("base"), std::string("mine")}) {
    CAPTURE(name);
    NodeId id = seen.id(name);
    std::string text = seen.cat(name);
    Handle handle = seen.open(name, O_RDWR);
    CHECK(seen.unlink(name) == 0);
    CHECK_FALSE(seen.exists(name));
    CHECK(seen.read(handle) == text);
    CHECK(errorOf(seen.write(handle, "changed", 0)) == 0);
    CHECK(seen.read(handle).substr(0, 7) == "changed");
    auto attr = seen.view->getattr(id, handle);
    REQUIRE(attr);
    CHECK(attr->attr.nlink == 0);
    SetAttr mode;
    mode.mode = 0600;
    CHECK(seen.view->setattr(seen.caller, id, handle, mode));
    CHECK(seen.view->getattr(id, handle)->attr.mode == 0600);
    CHECK(errorOf(seen.view->link(id, kRootNode, "back")) == ENOENT);
    CHECK(seen.view->setxattr(id, "user.x", "1", 0));
    seen.view->release(handle);
    seen.view->forget(id, 1000);
    CHECK(errorOf(seen.view->getattr(id, {})) == ESTALE);
  }
  CHECK(seen.branch->orphans.empty());
  world.collect();
  CHECK(world.objectFiles() == 0);
}

TEST_CASE("O_TMPFILE: nameless until it is linked") {
  World world;
  Seen& seen = world.start();
  auto made = seen.view->tmpfile(seen.caller, kRootNode, 0640, O_RDWR);
  REQUIRE(made);
  NodeId id = made->first.attr.id;
  CHECK(made->first.attr.nlink == 0);
  CHECK(errorOf(seen.write(made->second.handle, "draft")) == 0);
  CHECK(seen.ls().empty());
  CHECK(seen.view->link(id, kRootNode, "done"));
  CHECK(seen.cat("done") == "draft");
  CHECK(seen.stat("done").nlink == 1);
  CHECK(seen.stat("done").mode == 0640);
  CHECK(errorOf(seen.write(made->second.handle, "final")) == 0);
  CHECK(seen.cat("done") == "final");
  auto exclusive = seen.view->tmpfile(seen.caller, kRootNode, 0640, O_RDWR | O_EXCL);
  REQUIRE(exclusive);
  CHECK(errorOf(seen.view->link(exclusive->first.attr.id, kRootNode, "never")) == ENOENT);
  seen.view->release(exclusive->second.handle);
  seen.view->forget(exclusive->first.attr.id, 1);
  world.collect();
  CHECK(world.objectFiles() == 1);
}

TEST_CASE("append goes to the end whatever the offset") {
  World world;
  put(world.base / "log", "1\n");
  Seen& seen = world.start();
  Handle handle = seen.open("log", O_WRONLY | O_APPEND);
  CHECK(errorOf(seen.write(handle, "2\n", 0, true)) == 0);
  CHECK(errorOf(seen.write(handle, "3\n", 0, true)) == 0);
  CHECK(seen.cat("log") == "1\n2\n3\n");
}

TEST_CASE("truncate, up and down, of base files and own ones") {
  World world;
  put(world.base / "a", "0123456789");
  put(world.base / "b", "0123456789");
  put(world.base / "c", "0123456789");
  Seen& seen = world.start();
  CHECK(seen.truncate("a", 4) == 0);
  CHECK(seen.cat("a") == "0123");
  CHECK(seen.truncate("a", 6) == 0);
  CHECK(seen.cat("a") == std::string("0123\0\0", 6));
  CHECK(seen.truncate("b", 12) == 0);
  CHECK(seen.cat("b") == std::string("0123456789\0\0", 12));
  CHECK(seen.echo("c", "") == 0);
  CHECK(seen.stat("c").size == 0);
  CHECK(seen.truncate("", 0) == EISDIR);
  CHECK(baseText(world.base / "a") == "0123456789");
}

TEST_CASE("sparse files stay sparse through copy-up and branch points") {
  World world;
  fs::create_directories(world.base);
  put(world.base / "sparse", "start");
  fs::resize_file(world.base / "sparse", 64 << 20);
  {
    UniqueFd fd(::open((world.base / "sparse").c_str(), O_WRONLY));
    REQUIRE(::pwrite(fd.get(), "middle", 6, 32 << 20) == 6);
  }
  std::uint64_t before = blocksOf(world.base / "sparse");
  Seen& seen = world.start();
  Handle handle = seen.open("sparse", O_RDWR);
  CHECK(errorOf(seen.write(handle, "X", 5)) == 0);
  CHECK(seen.stat("sparse").size == 64 << 20);
  CHECK(seen.stat("sparse").blocks <= before + 16);
  CHECK(seen.read(handle, 6, 32 << 20) == "middle");
  CHECK(seen.read(handle, 6, 0) == "startX");
  auto hole = seen.view->lseek(handle, 1 << 20, SEEK_HOLE);
  REQUIRE(hole);
  CHECK(*hole == 1 << 20);
  auto data = seen.view->lseek(handle, 1 << 20, SEEK_DATA);
  REQUIRE(data);
  CHECK(*data <= 32 << 20);
  CHECK(*data > 1 << 20);
  CHECK(errorOf(seen.view->lseek(handle, 64 << 20, SEEK_DATA)) == ENXIO);
  world.fork(seen);
  CHECK(errorOf(seen.write(handle, "Y", 6)) == 0);
  CHECK(seen.stat("sparse").blocks <= before + 32);
  CHECK(errorOf(seen.view->fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 32 << 20, 4096)) == 0);
  CHECK(seen.read(handle, 6, 32 << 20) == std::string(6, '\0'));
  CHECK(errorOf(seen.view->fallocate(handle, 0, 64 << 20, 4096)) == 0);
  CHECK(seen.stat("sparse").size == (64 << 20) + 4096);
}

TEST_CASE("copy_file_range between files of the branch and the base") {
  World world;
  put(world.base / "from", "0123456789");
  Seen& seen = world.start();
  Handle from = seen.open("from");
  auto to = seen.create("to");
  REQUIRE(to);
  auto copied = seen.view->copyRange(from, 2, *to, 0, 100);
  REQUIRE(copied);
  CHECK(*copied == 8);
  CHECK(seen.cat("to") == "23456789");
  auto again = seen.view->copyRange(*to, 0, *to, 8, 4);
  REQUIRE(again);
  CHECK(seen.cat("to") == "234567892345");
}

TEST_CASE("a branch point freezes both sides, also for handles that are open") {
  World world;
  put(world.base / "file", "base");
  Seen& parent = world.start();
  CHECK(parent.echo("own", "before") == 0);
  Handle own = parent.open("own", O_RDWR);
  Handle file = parent.open("file", O_RDWR);
  Seen& child = world.fork(parent);
  CHECK(errorOf(parent.write(own, "parent")) == 0);
  CHECK(errorOf(parent.write(file, "PPPP")) == 0);
  CHECK(child.cat("own") == "before");
  CHECK(child.cat("file") == "base");
  CHECK(child.overwrite("own", "child!") == 0);
  CHECK(child.overwrite("file", "CCCC") == 0);
  CHECK(parent.cat("own") == "parent");
  CHECK(parent.cat("file") == "PPPP");
  Seen& grandchild = world.fork(child);
  CHECK(child.overwrite("own", "twice!") == 0);
  CHECK(grandchild.cat("own") == "child!");
  CHECK(parent.id("own") == grandchild.id("own"));
  CHECK(parent.unlink("own") == 0);
  CHECK(parent.echo("later", "x") == 0);
  CHECK(child.exists("own"));
  CHECK_FALSE(child.exists("later"));
}

TEST_CASE("two threads write while branches are made: each child is one instant of both files") {
  World world;
  Seen& parent = world.start();
  constexpr int kRecords = 4000;
  auto a = parent.create("a");
  auto b = parent.create("b");
  REQUIRE(a);
  REQUIRE(b);
  std::atomic<bool> failed{false};
  // Each record goes to `a` first and then to `b`: at any instant a is as long as b, or one record longer.
  std::atomic<bool> done{false};
  auto record = [](int i) {
    std::string text = std::to_string(i);
    return std::string(7 - text.size(), '0') + text + "\n";
  };
  std::thread ab([&] {
    for (int i = 0; i < kRecords; i++) {
      auto offset = static_cast<std::uint64_t>(i) * 8;
      if (!parent.write(*a, record(i), offset) || !parent.write(*b, record(i), offset)) failed = true;
    }
    done = true;
  });
  auto c = parent.create("c");
  REQUIRE(c);
  std::thread appender([&] {
    while (!done) {
      if (!parent.write(*c, "0123456\n", 0, true)) failed = true;
    }
  });
  int children = 0;
  do {
    Seen& child = world.fork(parent);
    children++;
    std::string inA = child.cat("a");
    std::string inB = child.cat("b");
    std::string inC = child.cat("c");
    CHECK(inA.size() % 8 == 0);
    CHECK((inA.size() == inB.size() || inA.size() == inB.size() + 8));
    CHECK(inA.starts_with(inB));
    CHECK(inC.size() % 8 == 0);
    bool whole = true;
    for (std::size_t at = 0; at < inA.size(); at += 8) {
      whole = whole && inA.compare(at, 8, record(static_cast<int>(at / 8))) == 0;
    }
    CHECK(whole);
    // It stays that instant.
    CHECK(child.cat("a") == inA);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (!done);
  ab.join();
  appender.join();
  CHECK_FALSE(failed);
  CHECK(children > 0);
  CHECK(parent.stat("a").size == kRecords * 8);
  CHECK(parent.cat("a") == parent.cat("b"));
}

TEST_CASE("times: writing moves mtime, setting them holds, also on frozen data") {
  World world;
  put(world.base / "file", "data");
  Seen& seen = world.start();
  SetAttr times;
  times.atime = Time{1111, 5};
  times.mtime = Time{2222, 7};
  auto set = [&](Seen& on, const std::string& path) { CHECK(on.view->setattr(on.caller, on.id(path), {}, times)); };
  auto held = [&](Seen& on, const std::string& path) {
    Attr attr = on.stat(path);
    return attr.mtime == Time{2222, 7} && attr.atime == Time{1111, 5};
  };
  set(seen, "file");
  CHECK(held(seen, "file"));
  CHECK(seen.cat("file") == "data");
  CHECK(seen.overwrite("file", "D") == 0);
  CHECK(seen.stat("file").mtime.sec > 3000);
  set(seen, "file");
  CHECK(held(seen, "file"));
  CHECK(seen.chmod("file", 0600) == 0);
  CHECK(held(seen, "file"));
  Seen& child = world.fork(seen);
  CHECK(held(child, "file"));
  SetAttr other;
  other.mtime = Time{3333, 0};
  CHECK(child.view->setattr(child.caller, child.id("file"), {}, other));
  CHECK(child.stat("file").mtime == Time{3333, 0});
  CHECK(child.stat("file").atime == Time{1111, 5});
  CHECK(held(seen, "file"));
  CHECK(child.overwrite("file", "E") == 0);
  CHECK(child.stat("file").mtime.sec > 4000);
  CHECK(child.cat("file") == "Eata");
  CHECK(held(seen, "file"));
  SetAttr now;
  now.mtimeNow = true;
  CHECK(seen.view->setattr(seen.caller, seen.id("file"), {}, now));
  CHECK(seen.stat("file").mtime.sec > 4000);
  Attr before = seen.stat("file");
  CHECK(seen.rename("file", "renamed") == 0);
  CHECK(seen.stat("renamed").mtime == before.mtime);
  CHECK(seen.stat("renamed").ctime >= before.ctime);
}

TEST_CASE("the point keeps what small base files were before the first change") {
  World world;
  put(world.base / "small", "as it was");
  put(world.base / "gone", "gone soon");
  put(world.base / "saved", "before the save");
  put(world.base / "chmodded", "before the save");
  Seen& seen = world.start();
  auto point = View::ofPoint(seen.branch, *world.baseFolder, *world.objects);
  Time before = seen.stat("small").mtime;
  CHECK(seen.overwrite("small", "ours") == 0);
  CHECK(seen.unlink("gone") == 0);
  CHECK(seen.chmod("chmodded", 0600) == 0);
  for (const char* name : {"saved", "chmodded"}) {  // as editors do it
    CHECK(seen.echo("tmp", "after the save") == 0);
    CHECK(seen.rename("tmp", name) == 0);
    put(world.base / name, "the person's new text");
    CHECK(*point->readFile(name, 1000) == "before the save");
    CHECK(seen.cat(name) == "after the save");
  }
  put(world.base / "small", "the person's new text");
  CHECK(*point->readFile("small", 1000) == "as it was");
  CHECK(point->resolve("small")->attr.mtime == before);
  CHECK(point->resolve("small")->identity.known);
  CHECK(point->resolve("gone")->identity.known);
  CHECK(*point->readFile("gone", 1000) == "gone soon");
  CHECK(seen.cat("small") == "ourst was");
  CHECK(errorOf(point->writeFile(seen.caller, "small", "x")) == EROFS);
  CHECK(seen.chmod("small", 0600) == 0);
  CHECK(point->resolve("small")->attr.mode != 0600);
}

TEST_CASE("the point remembers what base files were when the branch removed, replaced or moved them") {
  World world;
  for (const char* name : {"d/removed", "d/replaced", "d/moved", "d/over", "folder/in"}) put(world.base / name, "base");
  Seen& seen = world.start();
  CHECK(seen.unlink("d/removed") == 0);
  CHECK(seen.echo("d/tmp", "ours") == 0);
  CHECK(seen.rename("d/tmp", "d/replaced") == 0);
  CHECK(seen.rename("d/moved", "d/elsewhere") == 0);
  CHECK(seen.rename("folder/in", "d/over") == 0);
  CHECK(seen.rmdir("folder") == 0);
  std::map<std::string, Identity> before;
  auto point = View::ofPoint(seen.branch, *world.baseFolder, *world.objects);
  for (const char* name : {"d/removed", "d/replaced", "d/moved", "d/over", "folder/in", "folder"}) {
    CAPTURE(name);
    auto at = point->resolve(name);
    REQUIRE(at);
    CHECK(at->node);  // in the point, not read from the base as it is now
    before[name] = at->identity;
    if (fs::is_regular_file(world.base / name)) put(world.base / name, "theirs, and longer");
    auto after = point->resolve(name);
    REQUIRE(after);
    CHECK(after->identity == before[name]);
  }
}

TEST_CASE("by path: reading, writing, settling") {
  World world;
  put(world.base / "dir/file", "text");
  Seen& seen = world.start();
  CHECK(*seen.view->readFile("dir/file", 4) == "text");
  CHECK(errorOf(seen.view->readFile("dir/file", 3)) == EFBIG);
  CHECK(errorOf(seen.view->readFile("dir", 3)) == EINVAL);
  CHECK(errorOf(seen.view->readFile("dir/no", 3)) == ENOENT);
  CHECK(errorOf(seen.view->resolve("dir/../dir")) == EINVAL);
  CHECK(errorOf(seen.view->resolve("dir/file/x")) == ENOTDIR);
  CHECK(seen.view->settle("dir/file"));
  CHECK(seen.branch->edits == 0);
  auto settled = seen.view->resolve("dir/file");
  REQUIRE(settled);
  CHECK(settled->node);
  CHECK(seen.view->settle("dir/later"));
  put(world.base / "dir/later", "came later");
  CHECK_FALSE(seen.exists("dir/later"));
  CHECK(seen.view->settle("dir/file/below"));
  CHECK(seen.view->settle("no/such/folder"));
  CHECK(seen.view->writeFile(seen.caller, "dir/file", "other text"));
  CHECK(seen.cat("dir/file") == "other text");
  CHECK(seen.view->writeFile(seen.caller, "dir/new", "new"));
  CHECK(seen.cat("dir/new") == "new");
  CHECK(errorOf(seen.view->writeFile(seen.caller, "nodir/new", "new")) == ENOENT);
  CHECK(errorOf(seen.view->writeFile(seen.caller, "dir", "new")) == EISDIR);
  auto listed = seen.view->listFolder("dir");
  REQUIRE(listed);
  CHECK(listed->size() == 2);
}

TEST_CASE("fsync reaches the object and the log") {
  World world;
  Seen& seen = world.start();
  auto handle = seen.create("file");
  REQUIRE(handle);
  CHECK(errorOf(seen.write(*handle, "x")) == 0);
  CHECK(seen.view->fsync(*handle, false));
  CHECK(seen.view->fsync(*handle, true));
  CHECK(seen.view->fsyncdir(kRootNode));
  CHECK(world.log.syncs == 3);
}

TEST_CASE("what a commit into the branch takes away stays with those who have it open") {
  World world;
  Seen& parent = world.start();
  CHECK(parent.echo("file", "old") == 0);
  CHECK(parent.echo("other", "kept") == 0);
  Handle handle = parent.open("file", O_RDWR);
  Handle other = parent.open("other", O_RDWR);
  NodeId id = parent.id("file");
  Seen& child = world.fork(parent);
  CHECK(child.unlink("file") == 0);
  CHECK(child.overwrite("other", "news") == 0);
  Nodes before;
  {
    std::unique_lock lock(parent.branch->lock);
    before = parent.branch->tree.nodes;
    parent.branch->tree.nodes = child.branch->tree.nodes;
    parent.branch->tree.epoch = ++world.epoch;
    child.branch->tree.epoch = ++world.epoch;
    parent.view->treeReplaced(before);
  }
  struct Heard final : Invalidator {
    void node(NodeId one) override { nodes.push_back(one); }
    void entry(NodeId folder, const std::string& name) override { names.emplace_back(folder, name); }
    std::vector<NodeId> nodes;
    std::vector<std::pair<NodeId, std::string>> names;
  } heard;
  parent.branch->listeners.push_back(&heard);
  parent.view->invalidateSince(before);
  CHECK(std::count(heard.nodes.begin(), heard.nodes.end(), id) == 1);
  CHECK(std::count(heard.nodes.begin(), heard.nodes.end(), parent.id("other")) == 1);
  CHECK(heard.names == std::vector<std::pair<NodeId, std::string>>{{kRootNode, "file"}});
  CHECK_FALSE(parent.exists("file"));
  CHECK(parent.read(handle) == "old");
  CHECK(errorOf(parent.write(handle, "new")) == 0);
  CHECK(parent.read(handle) == "new");
  CHECK(parent.view->getattr(id, handle)->attr.nlink == 0);
  CHECK(parent.read(other) == "news");
  CHECK(errorOf(parent.write(other, "x")) == 0);
  CHECK(child.cat("other") == "news");
  parent.branch->listeners.clear();
}
