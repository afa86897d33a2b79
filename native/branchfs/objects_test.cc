// Objects: files by number, copies with holes, leases and garbage, a full disk.
#include "native/branchfs/objects.h"

#include <sys/mount.h>

#include <set>

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

TEST_CASE("objects are made, found again and removed") {
  TempFolder temp;
  const std::string folder = (temp.path / "objects").string();
  std::set<ObjectId> all;
  {
    auto objects = Objects::open(folder, 8);
    REQUIRE(objects);
    for (ObjectId id : {ObjectId{1}, ObjectId{0x1ff}, ObjectId{0x123456789abcdef}, ObjectId{256}}) {
      auto fd = (*objects)->create(id);
      REQUIRE(fd);
      CHECK(::pwrite((*fd)->get(), &id, sizeof id, 0) == sizeof id);
      CHECK(errorOf((*objects)->create(id)) == EEXIST);
      all.insert(id);
    }
    for (ObjectId id = 1000; id < 1100; id++) {  // more than the cache holds
      REQUIRE((*objects)->create(id));
      all.insert(id);
    }
  }
  auto objects = Objects::open(folder, 8);
  REQUIRE(objects);
  std::set<ObjectId> found;
  CHECK((*objects)->forEach([&](ObjectId id) { found.insert(id); }));
  CHECK(found == all);
  for (ObjectId id : {ObjectId{1}, ObjectId{0x1ff}, ObjectId{0x123456789abcdef}}) {
    auto fd = (*objects)->get(id);
    REQUIRE(fd);
    ObjectId text = 0;
    CHECK(::pread((*fd)->get(), &text, sizeof text, 0) == sizeof text);
    CHECK(text == id);
    CHECK((*objects)->stat(id)->st_size == sizeof id);
    CHECK((*objects)->remove(id));
    CHECK((*objects)->remove(id));
    CHECK(::pread((*fd)->get(), &text, sizeof text, 0) == sizeof text);  // whoever has it open keeps it
    CHECK(errorOf((*objects)->get(id)) == EIO);
  }
  CHECK((*objects)->syncAll());
}

TEST_CASE("a copy keeps holes and takes only what is asked for") {
  TempFolder temp;
  auto objects = Objects::open((temp.path / "objects").string());
  REQUIRE(objects);
  UniqueFd from(::open((temp.path / "from").c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(::ftruncate(from.get(), 16 << 20) == 0);
  REQUIRE(::pwrite(from.get(), "start", 5, 0) == 5);
  REQUIRE(::pwrite(from.get(), "end", 3, 8 << 20) == 3);
  auto whole = (*objects)->createFrom(1, from.get(), 16 << 20);
  REQUIRE(whole);
  CHECK((*objects)->stat(1)->st_size == 16 << 20);
  CHECK(*(*objects)->bytesOnDisk(1) < 1 << 20);
  char text[5] = {};
  CHECK(::pread((*whole)->get(), text, 3, 8 << 20) == 3);
  CHECK(std::string(text) == "end");
  auto part = (*objects)->createFrom(2, from.get(), 3);
  REQUIRE(part);
  CHECK((*objects)->stat(2)->st_size == 3);
  auto longer = (*objects)->createFrom(3, from.get(), 32 << 20);
  REQUIRE(longer);
  CHECK((*objects)->stat(3)->st_size == 32 << 20);
  auto nothing = (*objects)->createFrom(4, from.get(), 0);
  REQUIRE(nothing);
  CHECK((*objects)->stat(4)->st_size == 0);
}

TEST_CASE("an object is garbage when its last lease has gone, and not before") {
  TempFolder temp;
  auto objects = Objects::open((temp.path / "objects").string());
  REQUIRE(objects);
  auto first = (*objects)->lease(7);
  auto second = (*objects)->lease(7);
  CHECK(first == second);
  first.reset();
  CHECK((*objects)->takeGarbage().empty());
  second.reset();
  CHECK((*objects)->takeGarbage() == std::vector<ObjectId>{7});
  CHECK((*objects)->takeGarbage().empty());
  auto outlives = (*objects)->lease(8);
  objects->reset();
  outlives.reset();
}

TEST_CASE("a full disk is an error, and nothing half-made stays") {
  TempFolder temp;
  fs::create_directories(temp.path / "small");
  if (::mount("bough-test", (temp.path / "small").c_str(), "tmpfs", 0, "size=1m") != 0) {
    MESSAGE("needs the right to mount a small file system");
    return;
  }
  struct Unmount {
    fs::path path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } unmount{temp.path / "small"};
  put(temp.path / "world/base/big", std::string(3 << 20, 'x'));
  put(temp.path / "world/base/little", "little");
  CountingLog log;
  auto base = Base::open((temp.path / "world/base").string());
  REQUIRE(base);
  auto objects = Objects::open((temp.path / "small/objects").string());
  REQUIRE(objects);
  auto branch = std::make_shared<Branch>();
  branch->tree.epoch = 1;
  branch->log = &log;
  Seen seen(branch, **base, **objects);
  CHECK(seen.overwrite("big", "X") == ENOSPC);
  CHECK(seen.cat("big") == std::string(3 << 20, 'x'));
  CHECK(seen.overwrite("little", "L") == 0);
  auto handle = seen.create("new");
  REQUIRE(handle);
  auto wrote = seen.write(*handle, std::string(2 << 20, 'y'));
  REQUIRE(wrote);  // what fits is written, and said
  CHECK(*wrote < 2 << 20);
  CHECK(seen.stat("new").size == *wrote);
  CHECK(errorOf(seen.write(*handle, "z", *wrote)) == ENOSPC);
  CHECK(seen.unlink("new") == 0);
  seen.view->release(*handle);
  for (int i = 0; i < 50; i++) seen.view->forget(kFirstNewNode, 1000);
  for (ObjectId id : (*objects)->takeGarbage()) CHECK((*objects)->remove(id));
  CHECK(seen.echo("again", "fits") == 0);
  CHECK(seen.cat("little") == "Little");
}
