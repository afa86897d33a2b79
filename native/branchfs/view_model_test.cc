// View against the real thing: random file operations on a branch and on an ordinary folder, with branch points between
// them; after each round every branch must look like its folder, and like nothing has happened to the others'.
#include <random>
#include <sstream>

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

namespace {

/// The same operations on a folder of the disk.
struct Disk {
  fs::path root;
  std::string at(const std::string& path) const { return (root / path).string(); }
};

std::string describe(Seen& seen, const std::string& path = "") {
  std::ostringstream text;
  for (const std::string& name : seen.ls(path)) {
    std::string full = path.empty() ? name : path + "/" + name;
    Attr attr = seen.stat(full);
    text << full << " " << std::oct << attr.mode << std::dec << " " << attr.nlink;
    if (attr.kind == Kind::Directory) {
      text << " dir\n" << describe(seen, full);
    } else if (attr.kind == Kind::Symlink) {
      text << " -> " << *seen.view->readlink(attr.id) << "\n";
    } else {
      text << " " << attr.size << " [" << seen.cat(full) << "]\n";
    }
  }
  return text.str();
}

std::string describe(const Disk& disk, const std::string& path = "") {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(disk.at(path))) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::ostringstream text;
  for (const std::string& name : names) {
    std::string full = path.empty() ? name : path + "/" + name;
    struct stat status{};
    REQUIRE(::lstat(disk.at(full).c_str(), &status) == 0);
    text << full << " " << std::oct << (status.st_mode & 07777) << std::dec << " " << status.st_nlink;
    if (S_ISDIR(status.st_mode)) {
      text << " dir\n" << describe(disk, full);
    } else if (S_ISLNK(status.st_mode)) {
      text << " -> " << fs::read_symlink(disk.at(full)).string() << "\n";
    } else {
      std::ifstream in(disk.at(full), std::ios::binary);
      std::string data{std::istreambuf_iterator<char>(in), {}};
      text << " " << data.size() << " [" << data << "]\n";
    }
  }
  return text.str();
}

int result(int returned) { return returned == 0 ? 0 : errno; }

int writeOnDisk(const std::string& path, const std::string& data, int flags, off_t offset) {
  UniqueFd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return errno;
  return ::pwrite(fd.get(), data.data(), data.size(), offset) == static_cast<ssize_t>(data.size()) ? 0 : errno;
}

class Driver {
 public:
  explicit Driver(unsigned seed) : random_(seed) {}

  void step(Seen& seen, const Disk& disk) {
    std::string a = path();
    std::string b = path();
    if (throughSymlink(disk, a) || throughSymlink(disk, b)) return;  // the disk would follow it
    std::string data(random_() % 20, static_cast<char>('a' + random_() % 26));
    int ours = -1;
    int theirs = -1;
    unsigned what = random_() % 12;
    INFO("operation " << what << " on " << a << " and " << b);
    switch (what) {
      case 0:
      case 1:
        theirs = writeOnDisk(disk.at(a), data, O_WRONLY | O_CREAT | O_TRUNC, 0);
        ours = guarded(seen, a, [&] { return seen.echo(a, data); });
        break;
      case 2: {
        auto offset = static_cast<off_t>(random_() % 30);
        theirs = writeOnDisk(disk.at(a), data, O_WRONLY, offset);
        ours = guarded(seen, a, [&] {
          auto looked = seen.lookup(a);
          if (!looked) return looked.error().errnum;
          auto opened = seen.view->open(looked->attr.id, O_WRONLY);
          if (!opened) return opened.error().errnum;
          auto wrote = seen.write(opened->handle, data, static_cast<std::uint64_t>(offset));
          seen.view->release(opened->handle);
          return errorOf(wrote);
        });
        break;
      }
      case 3:
        theirs = result(::mkdir(disk.at(a).c_str(), 0750));
        ours = guarded(seen, a, [&] { return seen.mkdir(a, 0750); });
        break;
      case 4:
        theirs = result(::unlink(disk.at(a).c_str()));
        ours = guarded(seen, a, [&] { return seen.unlink(a); });
        break;
      case 5:
        theirs = result(::rmdir(disk.at(a).c_str()));
        ours = guarded(seen, a, [&] { return seen.rmdir(a); });
        break;
      case 6:
      case 7:
      case 8: {
        unsigned flags = random_() % 4 == 0 ? RENAME_EXCHANGE : random_() % 4 == 0 ? RENAME_NOREPLACE : 0;
        theirs = result(::renameat2(AT_FDCWD, disk.at(a).c_str(), AT_FDCWD, disk.at(b).c_str(), flags));
        ours = guarded(seen, a, [&] { return guarded(seen, b, [&] { return seen.rename(a, b, flags); }); });
        break;
      }
      case 9:
        theirs = result(::link(disk.at(a).c_str(), disk.at(b).c_str()));
        ours = guarded(seen, a, [&] {
          return guarded(seen, b, [&] {
            auto looked = seen.lookup(a);
            if (!looked) return looked.error().errnum;
            return seen.link(a, b);
          });
        });
        break;
      case 10:
        theirs = result(::symlink(a.c_str(), disk.at(b).c_str()));
        ours = guarded(seen, b, [&] { return seen.symlink(a, b); });
        break;
      default: {
        struct stat status{};
        if (::lstat(disk.at(a).c_str(), &status) != 0 || S_ISLNK(status.st_mode)) return;
        auto mode = static_cast<std::uint32_t>(0600 | (random_() % 64));
        theirs = result(::chmod(disk.at(a).c_str(), mode));
        ours = seen.chmod(a, mode);
        break;
      }
    }
    if ((ours == 0) != (theirs == 0))
      FAIL_CHECK("ours " << std::strerror(ours) << ", theirs " << std::strerror(theirs));
  }

 private:
  std::string path() {
    static const char* const kNames[] = {"a", "b", "c", "dir", "sub", "x"};
    std::string path = kNames[random_() % 6];
    for (unsigned depth = random_() % 3; depth > 0; depth--) path += std::string("/") + kNames[random_() % 6];
    return path;
  }
  static bool throughSymlink(const Disk& disk, const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      if (fs::is_symlink(fs::symlink_status(disk.at(path.substr(0, slash))))) return true;
    }
    return false;
  }
  /// The folder of a path must be there, before the operation itself can be asked for.
  template <typename Operation>
  int guarded(Seen& seen, const std::string& path, Operation&& operation) {
    std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return operation();
    auto folder = seen.lookup(path.substr(0, slash));
    if (!folder) return folder.error().errnum;
    if (folder->attr.kind != Kind::Directory) return ENOTDIR;
    return operation();
  }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("random operations do to a branch what they do to a folder") {
  for (unsigned seed = 1; seed <= 4; seed++) {
    CAPTURE(seed);
    World world;
    std::mt19937 random(seed * 7919);
    for (const char* path : {"a", "dir/a", "dir/b", "dir/sub/c", "sub/x/a", "sub/b"}) put(world.base / path, path);
    fs::create_hard_link(world.base / "a", world.base / "sub/c");
    std::vector<std::pair<Seen*, Disk>> branches;
    Disk first{world.temp.path / "disk0"};
    auto copy = [](const fs::path& from, const fs::path& to) {
      // cp keeps what std::filesystem does not: modes and hard links.
      REQUIRE(std::system(("cp -a '" + from.string() + "' '" + to.string() + "'").c_str()) == 0);
    };
    copy(world.base, first.root);
    std::string baseBefore = describe(Disk{world.base});
    branches.emplace_back(&world.start(), first);
    Driver driver(seed);
    for (int round = 0; round < 9; round++) {
      CAPTURE(round);
      auto& [seen, disk] = branches[random() % branches.size()];
      for (int i = 0; i < 40; i++) driver.step(*seen, disk);
      for (auto& [other, otherDisk] : branches) REQUIRE(describe(*other) == describe(otherDisk));
      if (branches.size() < 5) {
        auto [parent, parentDisk] = branches[random() % branches.size()];
        Disk child{world.temp.path / ("disk" + std::to_string(branches.size()))};
        copy(parentDisk.root, child.root);
        branches.emplace_back(&world.fork(*parent), child);
      }
    }
    CHECK(describe(Disk{world.base}) == baseBefore);
  }
}
