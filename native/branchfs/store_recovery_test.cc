// What survives: a crash after anything, a log cut at any byte, a snapshot and a new start; and what is refused.
#include <sys/mount.h>
#include <sys/wait.h>

#include "native/branchfs/log_file.h"
#include "native/branchfs/records.h"
#include "native/branchfs/store_test_world.h"
#include "native/common/codec.h"

using namespace bough;
using namespace bough::test;

namespace {

void flip(const fs::path& file, std::size_t at) {
  std::string bytes = getFile(file);
  REQUIRE(at < bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

fs::path onlyLog(const fs::path& folder) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("log-")) {
      CHECK(found.empty());
      found = entry.path();
    }
  }
  REQUIRE_FALSE(found.empty());
  return found;
}

/// Everything that a person can see of a store.
std::map<std::string, Picture> allOf(World& world) {
  std::map<std::string, Picture> all;
  for (const BranchInfo& info : world.store->list()) {
    all[info.id] = world.files(info.id).picture();
    all[info.id]["?"] = info.parent + " " + info.name + " " + std::to_string(info.group) + " " +
                        std::to_string(static_cast<int>(info.state)) + " " + info.committedInto;
    std::string diff;
    for (const std::string& line : world.diff(info.id)) diff += line + "\n";
    all[info.id]["? diff"] = diff;
  }
  return all;
}

}  // namespace

TEST_CASE("a crash and a clean stop leave the same store") {
  World world;
  putFile(world.base / "f", "base");
  putFile(world.base / "d/e/f", "deep");
  world.open();
  const BranchId a = world.branch();
  world.files(a).write("f", "a");
  world.files(a).rename("d", "moved");
  world.files(a).symlink("s", "target");
  const auto rivals = world.branches(a, 3, true);
  world.files(rivals[0]).write("moved/e/f", "zero");
  world.files(rivals[1]).removeAll("moved");
  world.commit(rivals[0]);
  const BranchId last = world.branch(a);
  world.files(last).mkdir("x");
  REQUIRE(world.store->rename(last, "last one"));
  const auto before = allOf(world);
  CHECK(before.size() == 5);
  world.crash();
  CHECK(allOf(world) == before);
  world.restart();
  CHECK(allOf(world) == before);
  world.crash();
  CHECK(allOf(world) == before);
  // Numbers are never given out twice.
  const BranchId fresh = world.branch(a);
  world.files(fresh).write("new", "n");
  CHECK(world.files(fresh).read("f") == "a");
  CHECK(allOf(world).size() == 6);
  world.restart();
  world.restart();
  CHECK(world.files(fresh).read("new") == "n");
  world.sound();
}

TEST_CASE("a log cut anywhere in its last records opens as one of the states it had") {
  World world;
  putFile(world.base / "f", "base");
  world.open();
  const BranchId a = world.branch();
  std::vector<std::map<std::string, Picture>> states;
  std::vector<std::uint64_t> sizes;
  const auto note = [&] {
    states.push_back(allOf(world));
    sizes.push_back(world.store->status()->logBytes);
  };
  note();
  world.files(a).write("f", "changed");
  note();
  world.files(a).mkdir("d");
  note();
  const BranchId child = world.branch(a);
  note();
  world.files(child).write("d/x", "x");
  note();
  world.commit(child);
  note();
  world.store.reset();
  const fs::path log = onlyLog(world.folder);
  const fs::path saved = world.root / "saved";
  fs::copy(world.folder, saved, fs::copy_options::recursive);
  const std::size_t size = sizes.back();
  for (std::size_t cut = sizes.front(); cut <= size; cut++) {
    fs::remove_all(world.folder);
    fs::copy(saved, world.folder, fs::copy_options::recursive);
    fs::resize_file(log, cut);
    world.open();
    world.sound();
    const auto now = allOf(world);
    // Where a person's one step was several records, a state between is right too: but names and kinds always fit.
    std::size_t step = 0;
    while (step + 1 < sizes.size() && sizes[step + 1] <= cut) step++;
    if (cut == sizes[step]) CHECK(now == states[step]);
    CHECK(now.size() >= 1);
    world.store.reset();
  }
}

TEST_CASE("damage that had been durable is told, never cut away") {
  World world;
  world.open();
  const BranchId a = world.branch();
  world.files(a).mkdir("one");
  REQUIRE(world.store->sync());
  world.files(a).mkdir("two");
  REQUIRE(world.store->sync());
  world.store.reset();
  flip(onlyLog(world.folder), 40);
  const Error error = world.openFails();
  CHECK(error.code == "E_STORE_DAMAGED");
  CHECK(error.message.find("log-1") != std::string::npos);
}

TEST_CASE("a damaged snapshot, another version, another base, a second server") {
  World world;
  world.open();
  const BranchId a = world.branch();
  world.files(a).mkdir("d");
  {
    auto second = Store::open(StoreOptions{world.folder.string(), world.base.string(), {}, {}});
    REQUIRE_FALSE(second);
    CHECK(second.error().code == "E_STORE_BUSY");
  }
  REQUIRE(world.store->close());
  world.store.reset();
  const std::string format = getFile(world.folder / "format");
  std::ofstream(world.folder / "format", std::ios::trunc) << "boughfs store 9\n" << world.base.string() << "\n";
  CHECK(world.openFails().code == "E_STORE_VERSION");
  std::ofstream(world.folder / "format", std::ios::trunc) << format;
  fs::create_directories(world.root / "other");
  {
    auto moved = Store::open(StoreOptions{world.folder.string(), (world.root / "other").string(), {}, {}});
    REQUIRE_FALSE(moved);
    CHECK(moved.error().code == "E_BASE_GONE");
  }
  world.open();
  CHECK(world.files(a).has("d"));
  REQUIRE(world.store->close());
  world.store.reset();
  flip(world.folder / "snapshot", getFile(world.folder / "snapshot").size() / 2);
  CHECK(world.openFails().code == "E_STORE_DAMAGED");
}

TEST_CASE("a store of version 1 opens, and is of the present version from then on") {
  World world;
  putFile(world.base / "f", "base");
  fs::create_directories(world.folder);
  std::ofstream(world.folder / "format") << "boughfs store 1\n" << world.base.string() << "\n";
  // A snapshot as version 1 wrote it: a header, one branch with nothing in it, the counters, the end.
  Encoder out;
  out.byte(1);
  out.number(1);
  out.number(1);
  out.byte(5);
  out.bytes("baaaaaaaaaa");
  out.bytes("base");
  out.number(3);
  out.flag(false);
  out.bytes("old");
  out.signedNumber(1000);
  out.byte(0);
  for (int i = 0; i < 6; i++) out.number(i == 3 ? 1 : 0);  // edits, order, tree, its epoch, point, origin
  out.bytes("/nowhere");
  out.bytes("");
  out.bytes("");
  out.byte(7);
  encodeCounters(out, Counters());
  out.byte(8);
  out.number(3);
  std::ofstream(world.folder / "snapshot", std::ios::binary) << frameOf(out.str());
  out.clear();
  out.byte(10);  // Renamed
  out.bytes("baaaaaaaaaa");
  out.bytes("renamed");
  std::ofstream(world.folder / "log-1", std::ios::binary) << frameOf(out.str());
  world.open();
  const auto info = world.store->info("baaaaaaaaaa");
  REQUIRE(info);
  CHECK(info->name == "renamed");
  CHECK(info->group == 3);
  world.files(info->id).write("f", "branch");
  CHECK(getFile(world.folder / "format").starts_with("boughfs store 2\n"));
  world.restart();
  CHECK(world.files(info->id).read("f") == "branch");
  world.sound();
}

TEST_CASE("objects that nobody names are swept at the start") {
  World world;
  world.open();
  const BranchId a = world.branch();
  world.files(a).write("f", "x");
  REQUIRE(world.store->close());
  world.store.reset();
  const std::size_t before = world.objectFiles();
  {
    const auto objects = Objects::open((world.folder / "objects").string());
    REQUIRE(objects);
    REQUIRE((*objects)->create(999999));
  }
  CHECK(world.objectFiles() == before + 1);
  world.open();
  bool swept = false;
  for (int i = 0; i < 600 && !swept; i++) {
    swept = world.objectFiles() == before;
    if (!swept) ::usleep(100000);
  }
  CHECK(swept);
  CHECK(world.files(a).read("f") == "x");
}

TEST_CASE("a full disk: changes are refused whole, and an abort gives room again") {
  const fs::path at = fs::temp_directory_path() / ("bough-full-" + std::to_string(::getpid()));
  fs::create_directories(at);
  if (::mount("tmpfs", at.c_str(), "tmpfs", 0, "size=6m,mode=700") != 0) {
    MESSAGE("skipped: no tmpfs can be mounted here");
    fs::remove_all(at);
    return;
  }
  struct Unmount {
    fs::path path;
    ~Unmount() {
      ::umount2(path.c_str(), MNT_DETACH);
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } unmount{at};
  World world((at / "store").string());
  putFile(world.base / "f", "base");
  world.open();
  const BranchId keep = world.branch();
  world.files(keep).write("f", "kept");
  const BranchId big = world.branch();
  int refused = 0;
  Files files = world.files(big);
  const std::string block(64 * 1024, 'x');
  for (int i = 0; i < 2000 && refused == 0; i++) {
    auto made = files.view().create(Files::kCaller, kRootNode, "n" + std::to_string(i), 0644, O_WRONLY | O_CREAT);
    if (!made) {
      refused = made.error().errnum;
      break;
    }
    const auto written =
        files.view().write(made->second.handle, 0, std::as_bytes(std::span(block.data(), block.size())), false);
    if (!written) refused = written.error().errnum;
    files.view().release(made->second.handle);
  }
  CHECK(refused == ENOSPC);
  for (int i = 0; i < 20000; i++) {  // names alone need room too
    auto made = files.view().mkdir(Files::kCaller, kRootNode, "m" + std::to_string(i), 0755);
    if (!made) {
      CHECK(made.error().errnum == ENOSPC);
      break;
    }
  }
  world.sound();
  CHECK(world.files(keep).read("f") == "kept");
  const Picture before = world.files(big).picture();
  world.crash();
  CHECK(world.files(big).picture() == before);
  REQUIRE(world.store->abort(big, true));
  bool roomy = false;
  for (int i = 0; i < 600 && !roomy; i++) {
    roomy = world.objectFiles() <= 2;
    if (!roomy) ::usleep(100000);
  }
  CHECK(roomy);
  world.files(keep).write("after", "works again");
  world.crash();
  CHECK(world.files(keep).read("after") == "works again");
  CHECK(world.files(keep).read("f") == "kept");
  world.sound();
  world.store.reset();
}
