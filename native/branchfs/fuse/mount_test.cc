// The transport with the real kernel: a file system in memory, mounted.
#include "native/branchfs/fuse/mount.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "native/branchfs/fuse/kernel_mount.h"
#include "native/branchfs/fuse/memory_fs.h"

using namespace bough;
using namespace bough::fuse;

namespace {

bool canMount() { return ::geteuid() == 0 && ::access("/dev/fuse", R_OK | W_OK) == 0; }

struct Folder {
  std::string path;
  Folder() {
    char text[] = "/tmp/bough-fuse-test-XXXXXX";
    REQUIRE(::mkdtemp(text) != nullptr);
    path = text;
  }
  ~Folder() {
    detachStaleMount(path);
    ::rmdir(path.c_str());
  }
};

struct Mounted {
  Folder folder;
  MemoryFs fs;
  std::unique_ptr<Mount> mount;
  explicit Mounted(const std::string& source = "btest") {
    MountOptions options;
    options.source = source;
    auto started = Mount::start(fs, folder.path, options);
    const std::string why = started.ok() ? "" : started.error().message;
    INFO(why);
    REQUIRE(started.ok());
    mount = std::move(*started);
  }
  std::string file(const std::string& name) const { return folder.path + "/" + name; }
};

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string get(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Waits for a condition that another thread brings about.
template <typename Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("a mount: files, folders, links, names") {
  if (!canMount()) return;
  Mounted m("b0123456789");
  auto entry = ourMountAt(m.mount->path());
  REQUIRE(entry.ok());
  CHECK(entry->type == "fuse.bough");
  CHECK(entry->source == "b0123456789");

  put(m.file("a"), "hello");
  CHECK(get(m.file("a")) == "hello");
  CHECK(::mkdir(m.file("dir").c_str(), 0750) == 0);
  CHECK(::rename(m.file("a").c_str(), m.file("dir/b").c_str()) == 0);
  CHECK(::access(m.file("a").c_str(), F_OK) != 0);
  CHECK(::symlink("dir/b", m.file("link").c_str()) == 0);
  CHECK(get(m.file("link")) == "hello");
  CHECK(::link(m.file("dir/b").c_str(), m.file("hard").c_str()) == 0);
  struct stat st{};
  CHECK(::stat(m.file("hard").c_str(), &st) == 0);
  CHECK(st.st_nlink == 2);
  CHECK(::mkfifo(m.file("fifo").c_str(), 0600) == 0);
  CHECK(::lstat(m.file("fifo").c_str(), &st) == 0);
  CHECK(S_ISFIFO(st.st_mode));
  CHECK(::mknod(m.file("null").c_str(), S_IFCHR | 0666, makedev(1, 300)) == 0);
  CHECK(::lstat(m.file("null").c_str(), &st) == 0);
  CHECK(st.st_rdev == makedev(1, 300));
  const int null = ::open(m.file("null").c_str(), O_RDWR);
  CHECK(null < 0);  // nodev
  const int tmp = ::open(m.folder.path.c_str(), O_TMPFILE | O_RDWR, 0600);
  CHECK(tmp >= 0);
  CHECK(::write(tmp, "x", 1) == 1);
  ::close(tmp);

  std::string names;
  DIR* dir = ::opendir(m.folder.path.c_str());
  REQUIRE(dir != nullptr);
  while (dirent* each = ::readdir(dir)) names += std::string(each->d_name) + " ";
  ::closedir(dir);
  CHECK(names == ". .. dir fifo hard link null ");
  CHECK(::unlink(m.file("hard").c_str()) == 0);
  CHECK(::rmdir(m.file("dir").c_str()) != 0);
}

TEST_CASE("big transfers and a shared mapping, flushed") {
  if (!canMount()) return;
  Mounted m;
  std::string data(9 * 1024 * 1024 + 123, 'x');
  for (std::size_t i = 0; i < data.size(); i += 511) data[i] = static_cast<char>(i % 251);
  put(m.file("big"), data);
  CHECK(get(m.file("big")) == data);

  const int fd = ::open(m.file("big").c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  void* map = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(map != MAP_FAILED);
  std::memcpy(map, "mapped", 6);
  CHECK(m.mount->flush().ok());
  // Read past the page cache: what the file system itself has.
  void* buffer = nullptr;
  REQUIRE(::posix_memalign(&buffer, 4096, 4096) == 0);
  const int direct = ::open(m.file("big").c_str(), O_RDONLY | O_DIRECT);
  CHECK(::pread(direct, buffer, 4096, 0) == 4096);
  CHECK(std::string(static_cast<char*>(buffer), 6) == "mapped");
  std::free(buffer);
  ::close(direct);
  ::munmap(map, 8192);
  ::close(fd);
}

TEST_CASE("the kernel keeps what it was told until the invalidator says otherwise") {
  if (!canMount()) return;
  Mounted m;
  m.fs.setContent("file", "old");
  CHECK(get(m.file("file")) == "old");
  struct stat st{};
  CHECK(::stat(m.file("file").c_str(), &st) == 0);  // a read makes the kernel ask for atime once
  m.fs.setContent("file", "new!");
  CHECK(::stat(m.file("file").c_str(), &st) == 0);
  CHECK(st.st_size == 3);  // kept
  m.mount->invalidator().node(st.st_ino);
  m.mount->drainInvalidations();
  CHECK(::stat(m.file("file").c_str(), &st) == 0);
  CHECK(st.st_size == 4);
  CHECK(get(m.file("file")) == "new!");

  CHECK(::access(m.file("later").c_str(), F_OK) != 0);
  m.fs.setContent("later", "x");
  CHECK(::access(m.file("later").c_str(), F_OK) != 0);  // kept as not there
  m.mount->invalidator().entry(kRootNode, "later");
  m.mount->drainInvalidations();
  CHECK(::access(m.file("later").c_str(), F_OK) == 0);
  m.fs.removeFromOutside("later");
  m.mount->invalidator().entry(kRootNode, "later");
  m.mount->drainInvalidations();
  CHECK(::access(m.file("later").c_str(), F_OK) != 0);
  // For ids and names that the kernel does not know.
  m.mount->invalidator().node(987654);
  m.mount->invalidator().entry(987654, "x");
  m.mount->drainInvalidations();

  CHECK(::stat(m.file("file").c_str(), &st) == 0);
  const int before = m.fs.getattrs;
  for (int i = 0; i < 100; ++i) CHECK(::stat(m.file("file").c_str(), &st) == 0);
  CHECK(m.fs.getattrs == before);
}

TEST_CASE("a slow request does not stall others, and stop waits for none that is stuck in a program") {
  if (!canMount()) return;
  Mounted m;
  m.fs.setContent("slow", std::string(1000, 's'));
  m.fs.setContent("fast", "f");
  m.fs.holdReads(true);
  std::thread reader([&] { get(m.file("slow")); });
  REQUIRE(soon([&] { return m.fs.readsWaiting > 0; }));
  struct stat st{};
  CHECK(::stat(m.file("fast").c_str(), &st) == 0);
  CHECK(::mkdir(m.file("dir").c_str(), 0755) == 0);
  m.fs.holdReads(false);
  reader.join();
}

TEST_CASE("stop: nothing stays, everything is given back, also while programs hold files") {
  if (!canMount()) return;
  Mounted m;
  put(m.file("file"), "text");
  const int fd = ::open(m.file("file").c_str(), O_RDWR);
  const int dir = ::open(m.folder.path.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(fd >= 0);
  REQUIRE(dir >= 0);
  CHECK(m.mount->alive());
  m.mount->stop();
  m.mount->stop();
  CHECK(!m.mount->alive());
  CHECK(!ourMountAt(m.folder.path).ok());
  char byte;
  CHECK(::pread(fd, &byte, 1, 4096) < 0);
  CHECK(m.fs.openHandles() == 0);
  CHECK(m.fs.lookups() == 0);
  m.mount->invalidator().node(5);
  m.mount->drainInvalidations();
  ::close(fd);
  ::close(dir);
  CHECK(::access(m.file("file").c_str(), F_OK) != 0);
}

TEST_CASE("unmounted by somebody else: the mount knows") {
  if (!canMount()) return;
  Mounted m;
  unmountAllAt(m.folder.path);
  CHECK(soon([&] { return !m.mount->alive(); }));
  m.mount->stop();
}

TEST_CASE("a server that was killed: its dead mount is replaced") {
  if (!canMount()) return;
  Folder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    static MemoryFs fs;
    auto started = Mount::start(fs, folder.path, {});
    const char result = started.ok() ? 'y' : 'n';
    (void)!::write(ready[1], &result, 1);
    while (true) ::pause();
  }
  char result = 0;
  CHECK(::read(ready[0], &result, 1) == 1);
  CHECK(result == 'y');
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  struct stat st{};
  REQUIRE(soon([&] { return ::stat(folder.path.c_str(), &st) != 0 && errno == ENOTCONN; }));

  MemoryFs fs;
  auto started = Mount::start(fs, folder.path, {});
  REQUIRE(started.ok());
  CHECK(::stat(folder.path.c_str(), &st) == 0);
  int count = 0;
  for (const auto& entry : readMounts()) count += entry.point == folder.path;
  CHECK(count == 1);
  (*started)->stop();
  CHECK(!detachStaleMount(folder.path));
}

TEST_CASE("a mount that cannot be says why") {
  if (!canMount()) return;
  MemoryFs fs;
  auto missing = Mount::start(fs, "/tmp/bough-no-such-folder", {});
  REQUIRE(!missing.ok());
  CHECK(missing.error().code == "E_MOUNT");
  CHECK(missing.error().errnum == ENOENT);
  auto file = Mount::start(fs, "/etc/passwd", {});
  REQUIRE(!file.ok());
  CHECK(file.error().errnum == ENOTDIR);
}
