// View: names. Making, removing, renaming and linking files and folders, of the base and of the branch.
#include <linux/fs.h>

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

TEST_CASE("a removed base file can be made again and is another file") {
  World world;
  put(world.base / "a.txt", "old");
  Seen& seen = world.start();
  NodeId before = seen.id("a.txt");
  CHECK(seen.unlink("a.txt") == 0);
  CHECK(errorOf(seen.lookup("a.txt")) == ENOENT);
  CHECK(seen.unlink("a.txt") == ENOENT);
  CHECK(seen.echo("a.txt", "new") == 0);
  CHECK(seen.cat("a.txt") == "new");
  CHECK(seen.id("a.txt") != before);
  CHECK(seen.ls() == std::vector<std::string>{"a.txt"});
  std::ifstream untouched(world.base / "a.txt");
  std::string text;
  untouched >> text;
  CHECK(text == "old");
}

TEST_CASE("a removed base folder made again does not show what was in it") {
  World world;
  put(world.base / "dir/sub/deep.txt", "deep");
  put(world.base / "dir/file.txt", "file");
  Seen& seen = world.start();
  CHECK(seen.rmdir("dir") == ENOTEMPTY);
  CHECK(seen.unlink("dir/file.txt") == 0);
  CHECK(seen.unlink("dir/sub/deep.txt") == 0);
  CHECK(seen.rmdir("dir/sub") == 0);
  CHECK(seen.rmdir("dir") == 0);
  CHECK(seen.mkdir("dir") == 0);
  CHECK(seen.ls("dir").empty());
  CHECK_FALSE(seen.exists("dir/file.txt"));
  CHECK(seen.mkdir("dir/sub") == 0);
  CHECK(seen.ls("dir/sub").empty());
}

TEST_CASE("kinds are told apart when names are removed") {
  World world;
  put(world.base / "dir/file", "x");
  Seen& seen = world.start();
  CHECK(seen.unlink("dir") == EISDIR);
  CHECK(seen.rmdir("dir/file") == ENOTDIR);
  CHECK(errorOf(seen.view->rmdir(kRootNode, ".")) == EINVAL);
  CHECK(errorOf(seen.view->lookup(seen.id("dir/file"), "x")) == ENOTDIR);
  CHECK(seen.mkdir("dir") == EEXIST);
  CHECK(errorOf(seen.create("dir")) == EEXIST);
}

TEST_CASE("names of any bytes, of 255 bytes, and such that look special") {
  World world;
  put(world.base / "node_modules/@types/node/index.d.ts", "declare");
  Seen& seen = world.start();
  CHECK(seen.cat("node_modules/@types/node/index.d.ts") == "declare");
  for (const std::string& name :
       {std::string("@main"), std::string(".bough"), std::string(".bough-stage-1-2"), std::string("\xff\xfe\x01 \n"),
        std::string("ü"), std::string(255, 'n'), std::string("-"), std::string("..."), std::string("a\\b")}) {
    CAPTURE(name);
    CHECK(seen.echo(name, name) == 0);
    CHECK(seen.cat(name) == name);
    CHECK(seen.rename(name, "moved") == 0);
    CHECK(seen.rename("moved", name) == 0);
    CHECK(seen.unlink(name) == 0);
  }
  std::string tooLong(256, 'n');
  CHECK(errorOf(seen.view->lookup(kRootNode, tooLong)) == ENAMETOOLONG);
  CHECK(errorOf(seen.create(tooLong)) == ENAMETOOLONG);
  CHECK(seen.mkdir(tooLong) == ENAMETOOLONG);
  CHECK(seen.symlink("x", tooLong) == ENAMETOOLONG);
  CHECK(errorOf(seen.create("")) == EINVAL);
}

TEST_CASE("base folders are renamed with all that is in them, also twice and back") {
  World world;
  put(world.base / "src/lib/a.txt", "a");
  put(world.base / "src/lib/b.txt", "b");
  put(world.base / "other/c.txt", "c");
  Seen& seen = world.start();
  NodeId file = seen.id("src/lib/a.txt");
  NodeId folder = seen.id("src/lib");
  CHECK(seen.rename("src/lib", "other/lib2") == 0);
  CHECK_FALSE(seen.exists("src/lib"));
  CHECK(seen.ls("src").empty());
  CHECK(seen.cat("other/lib2/a.txt") == "a");
  CHECK(seen.id("other/lib2/a.txt") == file);
  CHECK(seen.id("other/lib2") == folder);
  CHECK(seen.ls("other") == std::vector<std::string>{"c.txt", "lib2"});
  CHECK(seen.overwrite("other/lib2/a.txt", "A") == 0);
  CHECK(seen.rename("other", "third") == 0);
  CHECK(seen.cat("third/lib2/a.txt") == "A");
  CHECK(seen.cat("third/lib2/b.txt") == "b");
  CHECK(seen.cat("third/c.txt") == "c");
  CHECK(seen.rename("third/lib2", "src/lib") == 0);
  CHECK(seen.cat("src/lib/a.txt") == "A");
  CHECK(seen.rename("src/lib/b.txt", "src/b.txt") == 0);
  CHECK(seen.cat("src/b.txt") == "b");
  CHECK(seen.ls("src/lib") == std::vector<std::string>{"a.txt"});
}

TEST_CASE("rename into a new folder and over what is there") {
  World world;
  put(world.base / "a", "a");
  put(world.base / "b", "b");
  put(world.base / "full/x", "x");
  put(world.base / "dir/y", "y");
  fs::create_directories(world.base / "empty");
  Seen& seen = world.start();
  NodeId a = seen.id("a");
  CHECK(seen.rename("a", "b") == 0);
  CHECK(seen.cat("b") == "a");
  CHECK(seen.id("b") == a);
  CHECK_FALSE(seen.exists("a"));
  CHECK(seen.rename("dir", "full") == ENOTEMPTY);
  CHECK(seen.rename("dir", "b") == ENOTDIR);
  CHECK(seen.rename("b", "dir") == EISDIR);
  CHECK(seen.rename("dir", "dir/sub") == EINVAL);
  CHECK(seen.mkdir("dir/sub") == 0);
  CHECK(seen.rename("dir", "dir/sub/deeper") == EINVAL);
  CHECK(seen.rename("dir/sub", "dir") == ENOTEMPTY);
  CHECK(seen.rename("dir", "empty") == 0);
  CHECK(seen.cat("empty/y") == "y");
  CHECK_FALSE(seen.exists("dir"));
  CHECK(seen.rename("nobody", "b") == ENOENT);
  CHECK(seen.rename("b", "b") == 0);
  CHECK(seen.cat("b") == "a");
  CHECK(seen.mkdir("new") == 0);
  CHECK(seen.rename("full", "new/full") == 0);
  CHECK(seen.cat("new/full/x") == "x");
  CHECK(errorOf(seen.view->rename(kRootNode, "b", kRootNode, "w", RENAME_WHITEOUT)) == EINVAL);
}

TEST_CASE("RENAME_NOREPLACE and RENAME_EXCHANGE") {
  World world;
  put(world.base / "file", "file");
  put(world.base / "dir/inside", "inside");
  Seen& seen = world.start();
  CHECK(seen.echo("new", "new") == 0);
  CHECK(seen.rename("file", "new", RENAME_NOREPLACE) == EEXIST);
  CHECK(seen.rename("new", "file", RENAME_NOREPLACE) == EEXIST);
  CHECK(seen.rename("new", "newer", RENAME_NOREPLACE) == 0);
  CHECK(seen.rename("newer", "file", RENAME_EXCHANGE) == 0);
  CHECK(seen.cat("file") == "new");
  CHECK(seen.cat("newer") == "file");
  CHECK(seen.rename("file", "dir", RENAME_EXCHANGE) == 0);
  CHECK(seen.cat("file/inside") == "inside");
  CHECK(seen.cat("dir") == "new");
  CHECK(seen.rename("file", "nobody", RENAME_EXCHANGE) == ENOENT);
  CHECK(seen.mkdir("outer") == 0);
  CHECK(seen.rename("newer", "file/inside", RENAME_EXCHANGE) == 0);
  CHECK(seen.cat("newer") == "inside");
  CHECK(seen.cat("file/inside") == "file");
  std::uint32_t outer = seen.stat("outer").nlink;
  CHECK(seen.mkdir("outer/sub") == 0);
  CHECK(seen.stat("outer").nlink == outer + 1);
  CHECK(seen.rename("outer/sub", "dir", RENAME_EXCHANGE) == 0);
  CHECK(seen.stat("outer").nlink == outer);
  CHECK(seen.rename("file", "file/inside", RENAME_EXCHANGE) == EINVAL);
}

TEST_CASE("hard links among new files") {
  World world;
  Seen& seen = world.start();
  CHECK(seen.echo("a", "one") == 0);
  CHECK(seen.mkdir("d") == 0);
  CHECK(seen.link("a", "d/b") == 0);
  CHECK(seen.link("a", "d/b") == EEXIST);
  CHECK(seen.link("d", "dir") == EPERM);
  CHECK(seen.id("a") == seen.id("d/b"));
  CHECK(seen.stat("a").nlink == 2);
  CHECK(seen.overwrite("d/b", "two") == 0);
  CHECK(seen.cat("a") == "two");
  CHECK(seen.rename("a", "d/b") == 0);  // the same file: nothing happens
  CHECK(seen.exists("a"));
  CHECK(seen.unlink("a") == 0);
  CHECK(seen.stat("d/b").nlink == 1);
  CHECK(seen.cat("d/b") == "two");
}

TEST_CASE("hard links of the base stay one file") {
  World world;
  put(world.base / "x/a", "one");
  fs::create_directories(world.base / "y");
  fs::create_hard_link(world.base / "x/a", world.base / "y/b");
  Seen& seen = world.start();
  SUBCASE("a change by one name shows under the other, which nobody had looked at") {
    CHECK(seen.stat("x/a").nlink == 2);
    CHECK(seen.overwrite("x/a", "two") == 0);
    CHECK(seen.cat("y/b") == "two");
    CHECK(seen.id("x/a") == seen.id("y/b"));
    CHECK(seen.overwrite("y/b", "six") == 0);
    CHECK(seen.cat("x/a") == "six");
  }
  SUBCASE("removing one name leaves the other, with its changes") {
    CHECK(seen.overwrite("x/a", "two") == 0);
    CHECK(seen.unlink("x/a") == 0);
    CHECK(seen.cat("y/b") == "two");
    CHECK(seen.stat("y/b").nlink == 1);
    CHECK(seen.unlink("y/b") == 0);
    CHECK_FALSE(seen.exists("y/b"));
  }
  SUBCASE("a third name") {
    CHECK(seen.link("y/b", "c") == 0);
    CHECK(seen.stat("x/a").nlink == 3);
    CHECK(seen.overwrite("c", "two") == 0);
    CHECK(seen.cat("x/a") == "two");
    CHECK(seen.cat("y/b") == "two");
  }
  SUBCASE("both names known, then changed: both are in the tree") {
    NodeId file = seen.id("x/a");
    CHECK(seen.id("y/b") == file);
    CHECK(seen.chmod("x/a", 0600) == 0);
    CHECK(seen.stat("y/b").mode == 0600);
    const NodePtr* folder = seen.branch->tree.nodes.find(seen.id("y"));
    REQUIRE(folder);
    CHECK((*folder)->entries.contains(std::string("b")));
  }
}

TEST_CASE("folders count their subfolders") {
  World world;
  put(world.base / "dir/one/x", "");
  put(world.base / "dir/two/x", "");
  Seen& seen = world.start();
  CHECK(seen.stat("dir").nlink == 4);
  CHECK(seen.mkdir("dir/three") == 0);
  CHECK(seen.stat("dir").nlink == 5);
  CHECK(seen.stat("dir/three").nlink == 2);
  CHECK(seen.echo("dir/file", "x") == 0);
  CHECK(seen.stat("dir").nlink == 5);
  std::uint32_t root = seen.stat("").nlink;
  CHECK(seen.rename("dir/three", "three") == 0);
  CHECK(seen.stat("dir").nlink == 4);
  CHECK(seen.stat("").nlink == root + 1);
  CHECK(seen.rmdir("three") == 0);
  CHECK(seen.stat("").nlink == root);
}

TEST_CASE("a folder's times move with its names") {
  World world;
  put(world.base / "a/x", "x");
  put(world.base / "b/y", "y");
  Seen& seen = world.start();
  SetAttr old;
  old.mtime = Time{1000, 0};
  auto age = [&] {
    for (const char* name : {"a", "b"}) CHECK(seen.view->setattr(seen.caller, seen.id(name), {}, old));
  };
  auto changed = [&](const char* name) { return seen.stat(name).mtime.sec != 1000; };
  age();
  CHECK(seen.stat("a").mtime == Time{1000, 0});
  CHECK(seen.overwrite("a/x", "z") == 0);
  CHECK_FALSE(changed("a"));
  CHECK(seen.echo("a/new", "z") == 0);
  CHECK(changed("a"));
  age();
  CHECK(seen.rename("a/new", "b/new") == 0);
  CHECK(changed("a"));
  CHECK(changed("b"));
  age();
  CHECK(seen.link("b/new", "a/link") == 0);
  CHECK(changed("a"));
  CHECK_FALSE(changed("b"));
  age();
  CHECK(seen.unlink("b/y") == 0);
  CHECK(changed("b"));
  age();
  CHECK(seen.mkdir("b/d") == 0);
  CHECK(changed("b"));
  age();
  CHECK(seen.rmdir("b/d") == 0);
  CHECK(changed("b"));
}

TEST_CASE("symlinks, fifos, sockets and devices") {
  World world;
  fs::create_directories(world.base);
  fs::create_symlink("/etc/passwd", world.base / "abs");
  fs::create_directory_symlink("/etc", world.base / "etc");
  Seen& seen = world.start();
  CHECK(*seen.view->readlink(seen.id("abs")) == "/etc/passwd");
  CHECK(seen.stat("etc").kind == Kind::Symlink);
  CHECK(errorOf(seen.view->lookup(seen.id("etc"), "passwd")) == ENOTDIR);
  CHECK(errorOf(seen.view->resolve("etc/passwd")) == ELOOP);
  CHECK(errorOf(seen.view->open(seen.id("abs"), O_RDONLY)) == ELOOP);
  CHECK(seen.symlink("../somewhere/else", "link") == 0);
  CHECK(*seen.view->readlink(seen.id("link")) == "../somewhere/else");
  CHECK(seen.stat("link").size == 17);
  CHECK(seen.rename("abs", "moved") == 0);
  CHECK(*seen.view->readlink(seen.id("moved")) == "/etc/passwd");
  CHECK(errorOf(seen.view->readlink(kRootNode)) == EINVAL);
  CHECK(errorOf(seen.view->mknod(seen.caller, kRootNode, "fifo", Kind::Fifo, 0600, 0)) == 0);
  CHECK(errorOf(seen.view->mknod(seen.caller, kRootNode, "sock", Kind::Socket, 0600, 0)) == 0);
  CHECK(errorOf(seen.view->mknod(seen.caller, kRootNode, "dev", Kind::CharDevice, 0600, 0x103)) == 0);
  CHECK(errorOf(seen.view->mknod(seen.caller, kRootNode, "plain", Kind::File, 0600, 0)) == 0);
  CHECK(seen.stat("fifo").kind == Kind::Fifo);
  CHECK(seen.stat("sock").kind == Kind::Socket);
  CHECK(seen.stat("dev").rdev == 0x103);
  CHECK(seen.cat("plain").empty());
  CHECK(seen.overwrite("plain", "now with data") == 0);
  CHECK(seen.cat("plain") == "now with data");
  CHECK(errorOf(seen.view->open(seen.id("fifo"), O_RDONLY)) == ENXIO);
}

TEST_CASE("new files inherit what a setgid folder says") {
  World world;
  Seen& seen = world.start();
  seen.caller = Caller{1000, 1000, 1};
  CHECK(seen.mkdir("shared", 0755) == 0);
  SetAttr change;
  change.gid = 77;
  change.mode = 02775;
  CHECK(seen.view->setattr(seen.caller, seen.id("shared"), {}, change));
  CHECK(seen.echo("shared/file", "x") == 0);
  CHECK(seen.mkdir("shared/dir") == 0);
  CHECK(seen.stat("shared/file").gid == 77);
  CHECK(seen.stat("shared/file").uid == 1000);
  CHECK(seen.stat("shared/file").mode == 0644);
  CHECK(seen.stat("shared/dir").gid == 77);
  CHECK(seen.stat("shared/dir").mode == 02755);
  auto temporary = seen.view->tmpfile(seen.caller, seen.id("shared"), 0600, O_RDWR);
  REQUIRE(temporary);
  CHECK(temporary->first.attr.gid == 77);
}

TEST_CASE("a log that cannot be written changes nothing") {
  World world;
  put(world.base / "file", "base");
  Seen& seen = world.start();
  CHECK(seen.echo("mine", "mine") == 0);
  world.log.failWith = ENOSPC;
  CHECK(errorOf(seen.create("new")) == ENOSPC);
  CHECK(seen.unlink("file") == ENOSPC);
  CHECK(seen.unlink("mine") == ENOSPC);
  CHECK(seen.rename("mine", "theirs") == ENOSPC);
  CHECK(seen.overwrite("file", "x") == ENOSPC);
  CHECK(seen.chmod("file", 0600) == ENOSPC);
  world.log.failWith = 0;
  CHECK(seen.ls() == std::vector<std::string>{"file", "mine"});
  CHECK(seen.cat("file") == "base");
  CHECK(seen.cat("mine") == "mine");
  world.collect();
  CHECK(world.objectFiles() == 1);
}

TEST_CASE("a branch that is not live takes no changes") {
  World world;
  put(world.base / "file", "base");
  Seen& seen = world.start();
  Handle handle = seen.open("file", O_RDWR);
  seen.branch->state = BranchState::Superseded;
  CHECK(errorOf(seen.create("new")) == EROFS);
  CHECK(seen.unlink("file") == EROFS);
  CHECK(errorOf(seen.write(handle, "x")) == EROFS);
  CHECK(errorOf(seen.view->open(seen.id("file"), O_WRONLY)) == EROFS);
  CHECK(seen.cat("file") == "base");
  seen.branch->state = BranchState::Live;
  CHECK(errorOf(seen.write(handle, "x")) == 0);
}
