// For the tests of Store: a base folder, a store on it, files written through the FileSystem face of a branch's view,
// and whole trees as text to compare.
#pragma once

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "native/branchfs/store.h"

namespace bough::test {

namespace fs = std::filesystem;

using Picture = std::map<std::string, std::string>;  // path → kind, mode, data or target

inline void putFile(const fs::path& path, const std::string& data) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << data;
  REQUIRE(fs::is_regular_file(path));
}
inline std::string getFile(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

inline std::string lineOf(char kind, unsigned mode, const std::string& what) {
  std::ostringstream out;
  out << kind << " " << std::oct << (kind == 'l' ? 0777 : mode) << " " << what;
  return out.str();
}

/// A folder on disk.
inline void paint(const fs::path& folder, const std::string& prefix, Picture& picture) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = prefix + entry.path().filename().string();
    struct stat status{};
    REQUIRE(::lstat(entry.path().c_str(), &status) == 0);
    const unsigned mode = status.st_mode & 07777;
    if (S_ISDIR(status.st_mode)) {
      picture[path] = lineOf('d', mode, "");
      paint(entry.path(), path + "/", picture);
    } else if (S_ISLNK(status.st_mode)) {
      picture[path] = lineOf('l', mode, fs::read_symlink(entry.path()).string());
    } else if (S_ISREG(status.st_mode)) {
      picture[path] = lineOf('f', mode, getFile(entry.path()));
    } else {
      picture[path] = lineOf('s', mode, "");
    }
  }
}
inline Picture pictureOf(const fs::path& folder) {
  Picture picture;
  paint(folder, "", picture);
  return picture;
}

inline void paint(View& view, const std::string& folder, Picture& picture) {
  const auto names = view.listFolder(folder);
  REQUIRE(names);
  for (const DirItem& item : *names) {
    if (item.name == "." || item.name == "..") continue;
    const std::string path = folder.empty() ? item.name : folder + "/" + item.name;
    const auto at = view.resolve(path);
    REQUIRE_MESSAGE(at, path);
    if (at->attr.kind == Kind::Directory) {
      picture[path] = lineOf('d', at->attr.mode, "");
      paint(view, path, picture);
    } else if (at->attr.kind == Kind::Symlink) {
      picture[path] = lineOf('l', at->attr.mode, at->target);
    } else if (at->attr.kind == Kind::File) {
      const auto data = view.readFile(path, std::uint64_t{64} << 20);
      REQUIRE_MESSAGE(data, path);
      picture[path] = lineOf('f', at->attr.mode, *data);
    } else {
      picture[path] = lineOf('s', at->attr.mode, "");
    }
  }
}
inline Picture pictureOf(View& view) {
  Picture picture;
  paint(view, "", picture);
  return picture;
}

/// System calls by path on a branch.
class Files {
 public:
  explicit Files(const std::shared_ptr<View>& view) : view_(view) {}

  NodeId id(const std::string& path) {
    NodeId at = kRootNode;
    std::string rest = path;
    while (!rest.empty()) {
      const std::size_t slash = rest.find('/');
      const auto found = held()->lookup(at, rest.substr(0, slash));
      if (!found || found->attr.id == 0) return kNoNode;
      at = found->attr.id;
      rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
    }
    return at;
  }
  bool has(const std::string& path) { return id(path) != kNoNode; }

  std::string read(const std::string& path) {
    const auto data = held()->readFile(path, std::uint64_t{64} << 20);
    REQUIRE_MESSAGE(data, path);
    return *data;
  }
  /// Creates or truncates, then writes, as a shell does.
  void write(const std::string& path, const std::string& data, std::uint32_t mode = 0644) {
    const auto [folder, name] = split(path);
    Handle handle = 0;
    if (const NodeId there = id(path)) {
      auto opened = held()->open(there, O_WRONLY);
      REQUIRE(opened);
      handle = opened->handle;
      SetAttr cut;
      cut.size = 0;
      REQUIRE(held()->setattr(kCaller, there, handle, cut));
    } else {
      auto made = held()->create(kCaller, folder, name, mode, O_WRONLY | O_CREAT);
      REQUIRE_MESSAGE(made, path);
      handle = made->second.handle;
    }
    const auto written = held()->write(handle, 0, std::as_bytes(std::span(data.data(), data.size())), false);
    REQUIRE(written);
    REQUIRE(*written == data.size());
    held()->release(handle);
  }
  int tryWrite(const std::string& path) {
    const auto [folder, name] = split(path);
    if (const NodeId there = id(path)) {
      SetAttr cut;
      cut.size = 0;
      const auto done = held()->setattr(kCaller, there, std::nullopt, cut);
      return done ? 0 : done.error().errnum;
    }
    auto made = held()->create(kCaller, folder, name, 0644, O_WRONLY | O_CREAT);
    if (!made) return made.error().errnum;
    held()->release(made->second.handle);
    return 0;
  }
  void mkdir(const std::string& path, std::uint32_t mode = 0755) {
    const auto [folder, name] = split(path);
    REQUIRE(held()->mkdir(kCaller, folder, name, mode));
  }
  void symlink(const std::string& path, const std::string& target) {
    const auto [folder, name] = split(path);
    REQUIRE(held()->symlink(kCaller, folder, name, target));
  }
  void link(const std::string& from, const std::string& to) {
    const auto [folder, name] = split(to);
    REQUIRE(held()->link(id(from), folder, name));
  }
  void unlink(const std::string& path) {
    const auto [folder, name] = split(path);
    REQUIRE(held()->unlink(folder, name));
  }
  void rmdir(const std::string& path) {
    const auto [folder, name] = split(path);
    REQUIRE(held()->rmdir(folder, name));
  }
  /// rm -rf
  void removeAll(const std::string& path) {
    const auto names = held()->listFolder(path);
    if (!names) return unlink(path);
    for (const DirItem& item : *names) {
      if (item.name != "." && item.name != "..") removeAll(path + "/" + item.name);
    }
    rmdir(path);
  }
  void rename(const std::string& from, const std::string& to, std::uint32_t flags = 0) {
    const auto [folder, name] = split(from);
    const auto [newFolder, newName] = split(to);
    REQUIRE(held()->rename(folder, name, newFolder, newName, flags));
  }
  void chmod(const std::string& path, std::uint32_t mode) {
    SetAttr set;
    set.mode = mode;
    REQUIRE(held()->setattr(kCaller, id(path), std::nullopt, set));
  }
  Picture picture() { return pictureOf(*held()); }
  View& view() { return *held(); }

  static constexpr Caller kCaller{0, 0, 1};

 private:
  std::pair<NodeId, std::string> split(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {kRootNode, path};
    const NodeId folder = id(path.substr(0, slash));
    REQUIRE_MESSAGE(folder != kNoNode, path);
    return {folder, path.substr(slash + 1)};
  }

  /// Only the store keeps its views: they must not outlive it, and a test may let it go.
  std::shared_ptr<View> held() const {
    auto view = view_.lock();
    REQUIRE_MESSAGE(view, "the store was closed; ask the world for its files again");
    return view;
  }
  std::weak_ptr<View> view_;
};

/// A base, a store on it, and both gone at the end. The store may lie elsewhere than the base.
class World {
 public:
  explicit World(const std::string& storeAt = "") {
    std::string pattern = (fs::temp_directory_path() / "bough-store-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    root = pattern;
    base = root / "base";
    folder = storeAt.empty() ? root / "store" : fs::path(storeAt);
    fs::create_directories(base);
  }
  ~World() {
    store.reset();
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Store& open() {
    auto opened = Store::open(StoreOptions{folder.string(), base.string(), {}, {}});
    REQUIRE_MESSAGE(opened, opened.error().code, " ", opened.error().message);
    store = std::move(*opened);
    return *store;
  }
  Error openFails() {
    store.reset();
    auto opened = Store::open(StoreOptions{folder.string(), base.string(), {}, {}});
    REQUIRE_FALSE(opened);
    return opened.error();
  }
  /// As after SIGKILL: nothing is folded.
  Store& crash() {
    store.reset();
    return open();
  }
  /// A clean stop and a new start.
  Store& restart() {
    REQUIRE(store->close());
    store.reset();
    return open();
  }

  BranchId branch(const BranchId& parent = kBase) { return branches(parent, 1, false).front(); }
  std::vector<BranchId> branches(const BranchId& parent, std::uint32_t count, bool exclusive) {
    BranchPlan plan;
    plan.parent = parent;
    plan.count = count;
    plan.exclusive = exclusive;
    const auto made = store->create(plan);
    REQUIRE_MESSAGE(made, made.error().message);
    std::vector<BranchId> ids;
    for (const BranchInfo& info : made->branches) ids.push_back(info.id);
    return ids;
  }
  Files files(const BranchId& id) {
    const auto view = store->view(id);
    REQUIRE(view);
    return Files(*view);
  }
  std::string commit(const BranchId& id, const std::vector<std::string>& paths = {}) {
    refusal = Refusal();
    const auto done = store->commit(id, paths, refusal);
    REQUIRE_MESSAGE(done, done.error().code, " ", done.error().message, " ",
                    refusal.conflicts.empty() ? std::string() : refusal.conflicts.front().path);
    return done->commit;
  }
  /// The code of the refusal, and in `refusal` what it says.
  std::string commitFails(const BranchId& id, const std::vector<std::string>& paths = {}) {
    refusal = Refusal();
    const auto done = store->commit(id, paths, refusal);
    REQUIRE_FALSE(done);
    return done.error().code;
  }
  void undo(const std::string& commit) {
    Refusal told;
    const auto done = store->undo(commit, told);
    REQUIRE_MESSAGE(done, done.error().code, " ", done.error().message, " ",
                    told.paths.empty() ? std::string() : told.paths.front());
  }
  void rebase(const BranchId& id) {
    Refusal told;
    const auto done = store->rebase(id, told);
    REQUIRE_MESSAGE(done, done.error().code, " ", told.conflicts.empty() ? std::string() : told.conflicts.front().path);
  }
  BranchState state(const BranchId& id) {
    const auto info = store->info(id);
    REQUIRE(info);
    return info->state;
  }
  /// "A path", "M path (content)", "R from → path", sorted by path.
  std::vector<std::string> diff(const BranchId& id, const BranchId& against = "") {
    const auto page = store->diff(id, against, 0, 100000);
    REQUIRE_MESSAGE(page, page.error().message);
    CHECK(page->total == page->changes.size());
    std::vector<std::string> lines;
    for (const FileChange& change : page->changes) {
      std::string line;
      switch (change.kind) {
        case ChangeKind::Added:
          line = "A " + change.path;
          break;
        case ChangeKind::Deleted:
          line = "D " + change.path;
          break;
        case ChangeKind::Renamed:
          line = "R " + change.from + " > " + change.path;
          break;
        case ChangeKind::Modified:
          line = "M " + change.path;
          break;
      }
      if (change.kind == ChangeKind::Modified || change.kind == ChangeKind::Renamed) {
        if (change.content) line += " content";
        if (change.mode) line += " mode";
        if (change.owner) line += " owner";
        if (change.xattr) line += " xattr";
        if (change.target) line += " target";
        if (change.typeChanged) line += " type";
      }
      if (change.type == Kind::Directory) line += " /";
      lines.push_back(line);
    }
    return lines;
  }
  std::size_t objectFiles() const {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "objects"))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  void sound() {
    const auto problems = store->check();
    const std::string first = problems.empty() ? std::string() : problems.front();
    CHECK(first == "");
  }

  fs::path root, base, folder;
  std::unique_ptr<Store> store;
  Refusal refusal;
};

using Lines = std::vector<std::string>;

}  // namespace bough::test
