// See scenario.h.
#include "native/branchfs/commit/scenario.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bough::commit_test {

namespace {

constexpr const char* kOddName = "\xff\xfe odd\n'\"@";

void makeSparse(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::pwrite(fd.get(), "begin", 5, 0) == 5);
  REQUIRE(::pwrite(fd.get(), "end", 3, 1'048'576) == 3);
  REQUIRE(::ftruncate(fd.get(), 3'000'000) == 0);
}

Put put(const World& world, const std::string& path, NewNode node) {
  return {path, exists(world.at(path)) ? unchanged(world, path) : absent(), std::move(node)};
}

Meta meta(const World& world, const std::string& path, std::int64_t mtime) {
  Meta item;
  item.path = path;
  item.expect = sameFolder(world, path);
  item.becomes.mtime = Time{mtime, 7};
  return item;
}

}  // namespace

void buildBase(const World& world) {
  writeFile(world.at("a.txt"), "alpha\n", 0640);
  setXattr(world.at("a.txt"), "user.note", "old");
  writeFile(world.at("untouched.txt"), "stays\n", 0444);
  makeFolder(world.at("dir"), 02755);
  makeFolder(world.at("dir/sub"), 0700);
  writeFile(world.at("dir/sub/x"), "x of old\n");
  writeFile(world.at("dir/sub/y"), "linked twice\n");
  REQUIRE(::link(world.at("dir/sub/y").c_str(), world.at("dir/y2").c_str()) == 0);
  makeFolder(world.at("dir/empty"), 01777);
  makeFolder(world.at("gone"));
  makeFolder(world.at("gone/deep"), 0711);
  writeFile(world.at("gone/deep/one"), "one\n", 0600);
  REQUIRE(::link(world.at("gone/deep/one").c_str(), world.at("gone/two").c_str()) == 0);
  makeSparse(world.at("gone/sparse"));
  REQUIRE(::symlink("/nowhere", world.at("gone/dangling").c_str()) == 0);
  makeSparse(world.at("sparse"));
  REQUIRE(::symlink("a.txt", world.at("link").c_str()) == 0);
  writeFile(world.at("file-to-folder"), "was a file\n");
  makeFolder(world.at("folder-to-file"), 0750);
  writeFile(world.at("folder-to-file/inside"), "was inside\n");
  setXattr(world.at("folder-to-file"), "user.kind", "folder");
  REQUIRE(::mkfifo(world.at("fifo").c_str(), 0622) == 0);
  writeFile(world.at(kOddName), "odd\n");
  setTimesBelow(world.base, kOldTime);
}

Transaction changeEverything(const World& world, Txn txn, std::uint32_t firstRoot) {
  Transaction transaction;
  transaction.txn = txn;
  transaction.firstRoot = firstRoot;
  transaction.note = std::string("note \0 of bytes", 15);
  std::vector<Item>& items = transaction.items;

  Meta root = meta(world, "", kNewTime);
  items.emplace_back(root);
  NewNode a = fileNode("ALPHA, longer than before\n", 0604);
  a.xattrs["user.note"] = "new";
  a.xattrs["user.more"] = std::string("\0bytes", 6);
  items.emplace_back(put(world, "a.txt", a));

  Meta dir = meta(world, "dir", kNewTime + 1);
  dir.was.mode = 02755;
  dir.becomes.mode = 03775;
  dir.becomes.xattrs = Xattrs{{"user.dir", "yes"}};
  items.emplace_back(dir);
  items.emplace_back(meta(world, "dir/sub", kNewTime + 2));
  NewNode renamed;
  renamed.linkTo = BaseRef{0, "dir/sub/x"};
  items.emplace_back(put(world, "dir/renamed", renamed));
  items.emplace_back(Remove{"dir/sub/x", unchanged(world, "dir/sub/x")});
  NewNode shared = fileNode("one file, two names\n");
  shared.linkKey = 77;
  items.emplace_back(put(world, "dir/sub/y", shared));
  items.emplace_back(put(world, "dir/y3", shared));
  items.emplace_back(Remove{"dir/empty", unchanged(world, "dir/empty")});

  items.emplace_back(Remove{"gone", unchanged(world, "gone")});
  NewNode sparse = fileNode("");
  sparse.fill = [](int fd) -> Result<> {
    if (::pwrite(fd, "middle", 6, 8192) != 6 || ::ftruncate(fd, 2'000'000) != 0) return sys(errno);
    return Done{};
  };
  items.emplace_back(put(world, "sparse", sparse));
  NewNode link;
  link.kind = Kind::Symlink;
  link.uid = ::geteuid();
  link.gid = ::getegid();
  link.target = "somewhere/else";
  link.atime = link.mtime = {kNewTime, 9};
  items.emplace_back(put(world, "link", link));

  NewNode folder = folderNode(0710);
  folder.xattrs["user.fresh"] = "1";
  folder.children.emplace_back("child", fileNode("child\n", 0400));
  folder.children.emplace_back("empty", folderNode(0555));
  folder.children.emplace_back("shared", shared);
  NewNode fifo = fileNode("", 0606);
  fifo.kind = Kind::Fifo;
  fifo.fill = nullptr;
  folder.children.emplace_back("pipe", fifo);
  items.emplace_back(put(world, "file-to-folder", folder));
  items.emplace_back(put(world, "folder-to-file", fileNode("now a file\n", 0751)));
  items.emplace_back(put(world, "new-folder", folderNode(0705)));
  items.emplace_back(put(world, "empty-file", fileNode("")));
  items.emplace_back(Remove{"fifo", unchanged(world, "fifo")});
  items.emplace_back(put(world, kOddName, fileNode("odder\n")));
  items.emplace_back(put(world, std::string(255, 'n'), fileNode("a long name\n")));
  return transaction;
}

}  // namespace bough::commit_test
