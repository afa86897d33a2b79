// View: modes, owners, xattrs, and listing folders.
#include <sys/xattr.h>

#include <set>

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

TEST_CASE("modes and owners are virtual: any owner, whoever serves") {
  World world;
  put(world.base / "file", "x");
  Seen& seen = world.start();
  SetAttr change;
  change.uid = 12345;
  change.gid = 54321;
  CHECK(seen.view->setattr(seen.caller, seen.id("file"), {}, change));
  CHECK(seen.chmod("file", 0751) == 0);
  Attr attr = seen.stat("file");
  CHECK(attr.uid == 12345);
  CHECK(attr.gid == 54321);
  CHECK(attr.mode == 0751);
  CHECK(seen.overwrite("file", "y") == 0);
  CHECK(seen.stat("file").mode == 0751);
  CHECK(seen.stat("file").uid == 12345);
  CHECK(seen.chmod("", 0700) == 0);
  CHECK(seen.stat("").mode == 0700);
  CHECK(seen.stat("").id == kRootNode);
  struct stat real{};
  REQUIRE(::stat((world.base / "file").c_str(), &real) == 0);
  CHECK(real.st_uid == ::geteuid());
}

TEST_CASE("a folder keeps its mode when something in it changes") {
  World world;
  put(world.base / "dir/file", "x");
  fs::permissions(world.base / "dir", fs::perms(0711));
  Seen& seen = world.start();
  CHECK(seen.overwrite("dir/file", "y") == 0);
  CHECK(seen.echo("dir/new", "y") == 0);
  CHECK(seen.stat("dir").mode == 0711);
}

TEST_CASE("suid and sgid go when the owner changes or somebody else truncates") {
  World world;
  Seen& seen = world.start();
  CHECK(seen.echo("file", "x") == 0);
  SetAttr owner;
  owner.uid = 5;
  CHECK(seen.chmod("file", 06755) == 0);
  CHECK(seen.view->setattr(seen.caller, seen.id("file"), {}, owner));
  CHECK(seen.stat("file").mode == 0755);
  CHECK(seen.chmod("file", 02644) == 0);
  CHECK(seen.view->setattr(seen.caller, seen.id("file"), {}, owner));
  CHECK(seen.stat("file").mode == 02644);
  CHECK(seen.chmod("file", 04755) == 0);
  SetAttr size;
  size.size = 0;
  CHECK(seen.view->setattr(Caller{1000, 1000, 1}, seen.id("file"), {}, size));
  CHECK(seen.stat("file").mode == 0755);
}

TEST_CASE("xattrs: set, read, list, remove, and their errors") {
  World world;
  put(world.base / "file", "x");
  const bool baseHasXattrs = ::setxattr((world.base / "file").c_str(), "user.base", "from the base", 13, 0) == 0;
  Seen& seen = world.start();
  NodeId id = seen.id("file");
  if (baseHasXattrs) {
    CHECK(*seen.view->getxattr(id, "user.base") == "from the base");
    CHECK(*seen.view->listxattr(id) == std::vector<std::string>{"user.base"});
  }
  CHECK(errorOf(seen.view->getxattr(id, "user.none")) == ENODATA);
  CHECK(errorOf(seen.view->setxattr(id, "user.a", "1", XATTR_REPLACE)) == ENODATA);
  CHECK(errorOf(seen.view->setxattr(id, "user.a", "1", XATTR_CREATE)) == 0);
  CHECK(errorOf(seen.view->setxattr(id, "user.a", "2", XATTR_CREATE)) == EEXIST);
  CHECK(errorOf(seen.view->setxattr(id, "user.a", std::string("\0\xff", 2), XATTR_REPLACE)) == 0);
  CHECK(*seen.view->getxattr(id, "user.a") == std::string("\0\xff", 2));
  CHECK(errorOf(seen.view->setxattr(id, "user.big", std::string(65537, 'x'), 0)) == E2BIG);
  CHECK(errorOf(seen.view->setxattr(id, "user.big", std::string(65536, 'x'), 0)) == 0);
  CHECK(errorOf(seen.view->setxattr(id, "user." + std::string(255, 'n'), "", 0)) == ERANGE);
  CHECK(errorOf(seen.view->setxattr(id, "", "", 0)) == ERANGE);
  CHECK(errorOf(seen.view->setxattr(id, "system.posix_acl_access", "", 0)) == EOPNOTSUPP);
  CHECK(errorOf(seen.view->setxattr(id, "nonsense", "", 0)) == EOPNOTSUPP);
  CHECK(errorOf(seen.view->setxattr(id, "trusted.t", "t", 0)) == 0);
  CHECK(errorOf(seen.view->setxattr(id, "security.capability", "cap", 0)) == 0);
  if (baseHasXattrs) {
    CHECK(*seen.view->getxattr(id, "user.base") == "from the base");
    CHECK(errorOf(seen.view->removexattr(id, "user.base")) == 0);
  }
  CHECK(*seen.view->listxattr(id) ==
        std::vector<std::string>{"security.capability", "trusted.t", "user.a", "user.big"});
  CHECK(errorOf(seen.view->removexattr(id, "user.a")) == 0);
  CHECK(errorOf(seen.view->removexattr(id, "user.a")) == ENODATA);
  CHECK(seen.symlink("x", "link") == 0);
  CHECK(errorOf(seen.view->setxattr(seen.id("link"), "user.a", "1", 0)) == EPERM);
  CHECK(errorOf(seen.view->setxattr(seen.id("link"), "trusted.a", "1", 0)) == 0);
  Seen& child = world.fork(seen);
  CHECK(*child.view->getxattr(id, "trusted.t") == "t");
  CHECK(errorOf(child.view->removexattr(id, "trusted.t")) == 0);
  CHECK(*seen.view->getxattr(id, "trusted.t") == "t");
  CHECK(seen.cat("file") == "x");
}

TEST_CASE("a folder lists the base's names and its own, each once") {
  World world;
  put(world.base / "dir/a", "");
  put(world.base / "dir/b", "");
  put(world.base / "dir/c/x", "");
  Seen& seen = world.start();
  CHECK(seen.unlink("dir/a") == 0);
  CHECK(seen.overwrite("dir/b", "b") == 0);
  CHECK(seen.echo("dir/d", "d") == 0);
  CHECK(seen.ls("dir") == std::vector<std::string>{"b", "c", "d"});
  CHECK(seen.ls("dir", true) == std::vector<std::string>{"b", "c", "d"});
  auto opened = seen.view->opendir(seen.id("dir"));
  REQUIRE(opened);
  std::map<std::string, DirItem> items;
  CHECK(seen.view->readdir(opened->handle, 0, true, [&](DirItem& item) {
    items[item.name] = item;
    return true;
  }));
  CHECK(items.at(".").id == seen.id("dir"));
  CHECK(items.at("..").id == kRootNode);
  CHECK(items.at("c").kind == Kind::Directory);
  for (const char* name : {"b", "c", "d"}) {
    CHECK(items.at(name).id == seen.id(std::string("dir/") + name));
    REQUIRE(items.at(name).looked);
    CHECK(items.at(name).looked->attr.id == items.at(name).id);
  }
  seen.view->releasedir(opened->handle);
  CHECK(errorOf(seen.view->readdir(opened->handle, 0, false, [](DirItem&) { return true; })) == EBADF);
  CHECK(errorOf(seen.view->opendir(seen.id("dir/b"))) == ENOTDIR);
}

TEST_CASE("a listing in pieces stays whole while the folder changes") {
  World world;
  for (int i = 0; i < 300; i++) put(world.base / "dir" / ("base" + std::to_string(i)), "");
  Seen& seen = world.start();
  for (int i = 0; i < 300; i++) CHECK(seen.echo("dir/own" + std::to_string(i), "") == 0);
  auto opened = seen.view->opendir(seen.id("dir"));
  REQUIRE(opened);
  std::multiset<std::string> names;
  std::uint64_t cookie = 0;
  int round = 0;
  for (bool more = true; more;) {
    more = false;
    int taken = 0;
    CHECK(seen.view->readdir(opened->handle, cookie, false, [&](DirItem& item) {
      if (taken == 7) return false;
      taken++;
      names.insert(item.name);
      cookie = item.cookie;
      more = true;
      return true;
    }));
    if (round < 200) {
      CHECK(seen.unlink("dir/own" + std::to_string(round)) == 0);
      CHECK(seen.echo("dir/new" + std::to_string(round), "") == 0);
      round++;
    }
  }
  for (int i = 0; i < 300; i++) CHECK(names.count("base" + std::to_string(i)) == 1);
  for (int i = round; i < 300; i++) CHECK(names.count("own" + std::to_string(i)) == 1);
  std::set<std::string> once(names.begin(), names.end());
  CHECK(once.size() == names.size());
  names.clear();
  CHECK(seen.view->readdir(opened->handle, 0, false, [&](DirItem& item) {
    names.insert(item.name);
    return true;
  }));
  CHECK(names.size() == 602);  // rewound: as it is now
  CHECK(names.count("new0") == 1);
  CHECK(names.count("own0") == 0);
  seen.view->releasedir(opened->handle);
}

TEST_CASE("5,000 entries, then none") {
  World world;
  for (int i = 0; i < 2500; i++) put(world.base / "dir" / ("base" + std::to_string(i)), "");
  Seen& seen = world.start();
  NodeId dir = seen.id("dir");
  for (int i = 0; i < 2500; i++) {
    REQUIRE(seen.view->mknod(seen.caller, dir, "own" + std::to_string(i), Kind::File, 0644, 0));
  }
  CHECK(seen.ls("dir").size() == 5000);
  CHECK(seen.ls("dir", true).size() == 5000);
  Seen& child = world.fork(seen);
  for (const std::string& name : child.ls("dir")) REQUIRE(child.view->unlink(dir, name));
  CHECK(child.ls("dir").empty());
  CHECK(child.rmdir("dir") == 0);
  CHECK(seen.ls("dir").size() == 5000);
}

TEST_CASE("a folder that was removed while it was open lists nothing and takes nothing") {
  World world;
  put(world.base / "dir/x", "");
  Seen& seen = world.start();
  NodeId dir = seen.id("dir");
  auto opened = seen.view->opendir(dir);
  REQUIRE(opened);
  CHECK(seen.unlink("dir/x") == 0);
  CHECK(seen.rmdir("dir") == 0);
  int names = 0;
  CHECK(seen.view->readdir(opened->handle, 0, false, [&](DirItem&) {
    names++;
    return true;
  }));
  CHECK(names == 2);
  CHECK(errorOf(seen.view->mkdir(seen.caller, dir, "new", 0755)) == ENOENT);
  CHECK(errorOf(seen.view->create(seen.caller, dir, "new", 0644, O_RDWR)) == ENOENT);
  CHECK(seen.view->getattr(dir, {})->attr.nlink == 0);
  seen.view->releasedir(opened->handle);
}

TEST_CASE("statfs is that of the store's file system") {
  World world;
  Seen& seen = world.start();
  auto status = seen.view->statfs();
  REQUIRE(status);
  CHECK(status->f_blocks > 0);
  CHECK(status->f_namemax == 255);
}
