// View: a base that the person edits meanwhile, hidden names, a base that contains the store, and changes told to the
// kernel's cache.
#include <sys/wait.h>

#include <chrono>
#include <condition_variable>
#include <set>
#include <thread>

#include "native/branchfs/view_test_world.h"

using namespace bough;
using namespace bough::test;

namespace {

/// What a transport was told to forget.
class Heard final : public Invalidator {
 public:
  explicit Heard(Seen& seen) : branch_(seen.branch) {
    std::lock_guard guard(branch_->listenersLock);
    branch_->listeners.push_back(this);
  }
  ~Heard() override {
    std::lock_guard guard(branch_->listenersLock);
    std::erase(branch_->listeners, this);
  }
  void node(NodeId id) override {
    std::lock_guard guard(lock_);
    nodes_.insert(id);
    changed_.notify_all();
  }
  void entry(NodeId folder, const std::string& name) override {
    std::lock_guard guard(lock_);
    names_.emplace(folder, name);
    changed_.notify_all();
  }
  bool hearsNode(NodeId id) {
    return wait([&] { return nodes_.contains(id); });
  }
  bool hearsName(NodeId folder, const std::string& name) {
    return wait([&] { return names_.contains({folder, name}); });
  }

 private:
  template <typename Condition>
  bool wait(Condition&& condition) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, std::chrono::seconds(60), condition);
  }
  std::shared_ptr<Branch> branch_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::set<NodeId> nodes_;
  std::set<std::pair<NodeId, std::string>> names_;
};

}  // namespace

TEST_CASE("untouched base files are read live") {
  World world;
  put(world.base / "file", "one");
  put(world.base / "dir/x", "x");
  Seen& seen = world.start();
  CHECK(seen.cat("file") == "one");
  put(world.base / "file", "two, longer");
  CHECK(seen.cat("file") == "two, longer");
  CHECK(seen.stat("file").size == 11);
  put(world.base / "dir/later", "later");
  CHECK(seen.cat("dir/later") == "later");
  fs::remove(world.base / "dir/x");
  CHECK(errorOf(seen.lookup("dir/x")) == ENOENT);
  CHECK(seen.ls("dir") == std::vector<std::string>{"later"});
}

TEST_CASE("a base file replaced from outside: its handle goes on with the old one, its name means the new one") {
  World world;
  put(world.base / "file", "old");
  Seen& seen = world.start();
  NodeId before = seen.id("file");
  Handle handle = seen.open("file", O_RDWR);
  put(world.base / "file.tmp", "new");
  fs::rename(world.base / "file.tmp", world.base / "file");
  CHECK(seen.read(handle) == "old");
  CHECK(seen.id("file") != before);
  CHECK(seen.cat("file") == "new");
  CHECK(errorOf(seen.view->getattr(before, {})) == ESTALE);
  auto attr = seen.view->getattr(before, handle);
  REQUIRE(attr);
  CHECK(attr->attr.size == 3);
  CHECK(errorOf(seen.write(handle, "mine")) == 0);
  CHECK(seen.read(handle) == "mine");
  CHECK(seen.cat("file") == "new");
}

TEST_CASE("a changed file stays the branch's whatever the person does to the base's") {
  World world;
  put(world.base / "dir/file", "base");
  put(world.base / "dir/other", "other");
  Seen& seen = world.start();
  CHECK(seen.overwrite("dir/file", "OURS") == 0);
  SUBCASE("edited in place") { put(world.base / "dir/file", "theirs"); }
  SUBCASE("replaced") {
    put(world.base / "tmp", "theirs");
    fs::rename(world.base / "tmp", world.base / "dir/file");
  }
  SUBCASE("removed") { fs::remove(world.base / "dir/file"); }
  SUBCASE("its folder renamed") { fs::rename(world.base / "dir", world.base / "dir2"); }
  SUBCASE("its folder removed") { fs::remove_all(world.base / "dir"); }
  SUBCASE("its folder replaced by a symlink") {
    fs::remove_all(world.base / "dir");
    fs::create_directory_symlink("/etc", world.base / "dir");
    CHECK(errorOf(seen.lookup("dir/passwd")) == ENOENT);
  }
  CHECK(seen.cat("dir/file") == "OURS");
  CHECK(seen.echo("dir/more", "more") == 0);
  auto names = seen.ls("dir");
  CHECK(std::count(names.begin(), names.end(), "file") == 1);
  CHECK(std::count(names.begin(), names.end(), "more") == 1);
}

TEST_CASE("a base folder renamed from outside shows at its new place as well as, with changes, at its old one") {
  World world;
  put(world.base / "dir/sub/file", "base");
  Seen& seen = world.start();
  CHECK(seen.overwrite("dir/sub/file", "OURS") == 0);
  fs::rename(world.base / "dir", world.base / "moved");
  CHECK(seen.cat("dir/sub/file") == "OURS");
  CHECK(seen.cat("moved/sub/file") == "base");
  CHECK(seen.id("moved") != seen.id("dir"));
  CHECK(seen.id("moved/sub") != seen.id("dir/sub"));
  CHECK(seen.overwrite("moved/sub/file", "more") == 0);
  CHECK(seen.cat("moved/sub/file") == "more");
  CHECK(seen.cat("dir/sub/file") == "OURS");
}

TEST_CASE("an inode number that the base uses again is another node") {
  World world;
  put(world.base / "file", "first");
  Seen& seen = world.start();
  struct stat status{};
  REQUIRE(::stat((world.base / "file").c_str(), &status) == 0);
  const ino_t inode = status.st_ino;
  CHECK(seen.overwrite("file", "OURS!") == 0);
  // Most file systems give a freed inode out again at once; where none does, there is nothing to see.
  fs::remove(world.base / "file");
  for (int i = 0; i < 200; i++) {
    fs::path path = world.base / ("again" + std::to_string(i));
    put(path, "second");
    REQUIRE(::stat(path.c_str(), &status) == 0);
    if (status.st_ino != inode) continue;
    std::string name = path.filename().string();
    CHECK(seen.cat(name) == "second");
    CHECK(seen.id(name) != seen.id("file"));
    CHECK(seen.id(name) == seen.id(name));
    CHECK(seen.overwrite(name, "third!") == 0);
    CHECK(seen.cat(name) == "third!");
    break;
  }
  CHECK(seen.cat("file") == "OURS!");
}

TEST_CASE("what the person changes is told to the kernel's cache") {
  World world;
  put(world.base / "dir/file", "one");
  put(world.base / "dir/gone", "x");
  Seen& seen = world.start();
  auto looked = seen.lookup("dir/file");
  REQUIRE(looked);
  NodeId dir = seen.id("dir");
  NodeId file = looked->attr.id;
  if (looked->keep != Keep::Forever) {
    MESSAGE("no watch can be had on this file system: the kernel asks again after a second");
    CHECK(looked->keep == Keep::Second);
    return;
  }
  Heard heard(seen);
  put(world.base / "dir/file", "two");
  CHECK(heard.hearsNode(file));
  put(world.base / "dir/new", "new");
  CHECK(heard.hearsName(dir, "new"));
  CHECK(heard.hearsNode(dir));
  fs::remove(world.base / "dir/gone");
  CHECK(heard.hearsName(dir, "gone"));
  fs::rename(world.base / "dir/new", world.base / "top");
  CHECK(heard.hearsName(kRootNode, "top"));
  CHECK(seen.lookup("top")->keep == Keep::Forever);
  CHECK(seen.echo("mine", "mine") == 0);
  CHECK(seen.lookup("mine")->keep == Keep::Forever);
  // A settled file with the base's data is asked for again: another name of it may change it.
  CHECK(seen.chmod("top", 0600) == 0);
  CHECK(seen.lookup("top")->keep == Keep::Second);
  seen.view->forget(dir, 1000);
  CHECK_FALSE(world.baseFolder->watch().watches(dir));
}

TEST_CASE("a base folder that is replaced under a folder of the branch is watched again") {
  World world;
  put(world.base / "dir/file", "one");
  put(world.base / "dir/mine", "x");
  Seen& seen = world.start();
  CHECK(seen.overwrite("dir/mine", "y") == 0);
  NodeId dir = seen.id("dir");
  if (seen.lookup("dir/file")->keep != Keep::Forever) return;  // no watches here
  Heard heard(seen);
  fs::rename(world.base / "dir", world.base / "old");
  put(world.base / "dir/file", "two");
  CHECK(heard.hearsName(dir, "file"));
  CHECK(seen.cat("dir/file") == "two");
  NodeId file = seen.id("dir/file");
  // Whether the watch was there before the new folder was or not: what the kernel may keep, it is told to drop.
  if (seen.lookup("dir/file")->keep == Keep::Forever) {
    put(world.base / "dir/file", "three");
    CHECK(heard.hearsNode(file));
  }
}

TEST_CASE("page caches are kept only while the base's file is the same") {
  World world;
  put(world.base / "file", "one");
  Seen& seen = world.start();
  auto open = [&] {
    auto opened = seen.view->open(seen.id("file"), O_RDONLY);
    REQUIRE(opened);
    seen.view->release(opened->handle);
    return opened->keepCache;
  };
  open();
  CHECK(open());
  put(world.base / "file", "two!");
  CHECK_FALSE(open());
  CHECK(open());
  CHECK(seen.overwrite("file", "ours") == 0);
  CHECK(open());
}

TEST_CASE("hidden names are not there and cannot be made") {
  World world({"*.key", "conf/secret", "/top", "logs/**/old"});
  put(world.base / "a.key", "k");
  put(world.base / "sub/b.key", "k");
  put(world.base / "conf/secret/inner", "s");
  put(world.base / "conf/open", "o");
  put(world.base / "top", "t");
  put(world.base / "sub/top", "t");
  put(world.base / "logs/a/b/old", "l");
  put(world.base / "logs/old", "l");
  Seen& seen = world.start();
  for (const char* path : {"a.key", "sub/b.key", "conf/secret", "top", "logs/old", "logs/a/b/old"}) {
    CAPTURE(path);
    CHECK(errorOf(seen.lookup(path)) == ENOENT);
    CHECK(errorOf(seen.create(path)) == EACCES);
    CHECK(errorOf(seen.view->resolve(path)) == ENOENT);
  }
  CHECK(seen.exists("sub/top"));
  CHECK(seen.ls() == std::vector<std::string>{"conf", "logs", "sub"});
  CHECK(seen.ls("sub") == std::vector<std::string>{"top"});
  CHECK(seen.mkdir("conf/secret") == EACCES);
  CHECK(seen.rename("conf/open", "conf/secret") == EACCES);
  CHECK(seen.rename("conf", "renamed") == 0);
  CHECK(errorOf(seen.lookup("renamed/secret")) == ENOENT);
  CHECK(seen.mkdir("fresh") == 0);
  CHECK(errorOf(seen.create("fresh/c.key")) == EACCES);
  // What looks empty but is not, stays: a commit of its removal would take the hidden files along.
  CHECK(seen.unlink("renamed/open") == 0);
  CHECK(seen.ls("renamed").empty());
  CHECK(seen.rmdir("renamed") == ENOTEMPTY);
}

TEST_CASE("the store and mount points inside the base are never shown") {
  TempFolder temp;
  fs::path base = temp.path / "base";
  put(base / "project/file", "x");
  fs::create_directories(base / "project/.store");
  fs::create_directories(base / "mnt/one");
  fs::create_directories(base / "mnt/other");
  CountingLog log;
  auto folder = Base::open(base.string(), {}, {(base / "project/.store").string()});
  REQUIRE(folder);
  (*folder)->addNever((base / "mnt/one").string());
  (*folder)->addNever("/somewhere/else");
  auto objects = Objects::open((base / "project/.store/objects").string());
  REQUIRE(objects);
  auto branch = std::make_shared<Branch>();
  branch->tree.epoch = 1;
  branch->log = &log;
  Seen seen(branch, **folder, **objects);
  CHECK(seen.ls("project") == std::vector<std::string>{"file"});
  CHECK(seen.ls("mnt") == std::vector<std::string>{"other"});
  CHECK(errorOf(seen.lookup("project/.store")) == ENOENT);
  CHECK(errorOf(seen.lookup("mnt/one")) == ENOENT);
  CHECK(seen.mkdir("mnt/one") == EACCES);
  CHECK(seen.overwrite("project/file", "y") == 0);
  CHECK(seen.rename("project", "moved") == 0);
  CHECK(seen.ls("moved") == std::vector<std::string>{"file"});
  CHECK(errorOf((*folder)->stat(BaseRef{0, "project/.store/objects"})) == ENOENT);
  // The same folder shown at a second place by a bind mount has the same inode.
  CHECK(errorOf((*folder)->list(BaseRef{0, "mnt/one"})) == ENOENT);
}

TEST_CASE("an ordinary user's server holds what belongs to others, and reads only what the user may") {
  if (::geteuid() != 0) {
    MESSAGE("needs root to become another user");
    return;
  }
  TempFolder temp("/tmp");  // TMPDIR may be closed to other users
  REQUIRE(::chmod(temp.path.c_str(), 0755) == 0);
  fs::path base = temp.path / "base";
  put(base / "public", "public");
  put(base / "private", "private");
  fs::permissions(base / "private", fs::perms(0600));
  fs::create_directories(temp.path / "store");
  REQUIRE(::chown((temp.path / "store").c_str(), 65534, 65534) == 0);
  // In a child process: the user changes for the whole of it.
  pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto run = [&]() -> int {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
      CountingLog log;
      auto folder = Base::open(base.string());
      auto objects = Objects::open((temp.path / "store/objects").string());
      if (!folder || !objects) return 2;
      auto branch = std::make_shared<Branch>();
      branch->tree.epoch = 1;
      branch->log = &log;
      View view(branch, **folder, **objects);
      Caller root{0, 0, 1};
      auto looked = view.lookup(kRootNode, "public");
      if (!looked || looked->attr.uid != 0) return 3;
      SetAttr owner;
      owner.uid = 0;
      owner.mode = 04755;
      if (!view.setattr(root, looked->attr.id, {}, owner)) return 4;
      auto opened = view.open(looked->attr.id, O_RDWR);
      if (!opened) return 5;
      std::string text = "changed";
      if (!view.write(opened->handle, 0, std::as_bytes(std::span(text)), false)) return 6;
      auto hidden = view.lookup(kRootNode, "private");
      if (!hidden) return 7;
      if (errorOf(view.open(hidden->attr.id, O_RDONLY)) != EACCES) return 8;
      SetAttr cut;  // what cannot be read cannot be copied, so not be cut either
      cut.size = 1;
      if (errorOf(view.setattr(root, hidden->attr.id, {}, cut)) != EACCES) return 12;
      if (!view.mknod(root, kRootNode, "null", Kind::CharDevice, 0666, 0x103)) return 9;
      if (!view.setxattr(looked->attr.id, "trusted.t", "t", 0)) return 10;
      if (view.getattr(looked->attr.id, {})->attr.uid != 0) return 11;
      return 0;
    };
    ::_exit(run());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
