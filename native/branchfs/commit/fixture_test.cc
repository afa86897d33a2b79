// See fixture.h.
#include "native/branchfs/commit/fixture.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "native/branchfs/commit/place.h"
#include "native/common/fail_point.h"

namespace bough::commit_test {

namespace {

std::string tempRoot() {
  const char* set = std::getenv("TMPDIR");
  return set && *set ? set : "/tmp";
}

std::vector<std::string> listed(const std::string& folder) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(folder.c_str());
  REQUIRE(dir != nullptr);
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

/// Data and holes of a file, by what SEEK_DATA says.
std::string dataText(const std::string& path, off_t size) {
  std::ostringstream text;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  REQUIRE(fd);
  for (off_t at = 0; at < size;) {
    const off_t data = ::lseek(fd.get(), at, SEEK_DATA);
    if (data < 0) break;
    const off_t hole = ::lseek(fd.get(), data, SEEK_HOLE);
    std::string bytes(static_cast<std::size_t>(hole - data), '\0');
    REQUIRE(::pread(fd.get(), bytes.data(), bytes.size(), data) == hole - data);
    text << " data@" << data << "=" << bytes;
    at = hole;
  }
  return text.str();
}

std::string xattrText(const std::string& path) {
  std::array<char, 4096> list{};
  const ssize_t size = ::llistxattr(path.c_str(), list.data(), list.size());
  std::map<std::string, std::string> all;
  for (ssize_t at = 0; at < size;) {
    const std::string key = list.data() + at;
    std::array<char, 4096> value{};
    const ssize_t length = ::lgetxattr(path.c_str(), key.c_str(), value.data(), value.size());
    all[key] = std::string(value.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    at += static_cast<ssize_t>(key.size()) + 1;
  }
  std::string text;
  for (const auto& [key, value] : all) text.append(" ").append(key).append("=").append(value);
  return text;
}

void walk(const std::string& folder, const std::string& below, TreeText& text,
          std::map<ino_t, std::vector<std::string>>& sameFile) {
  const std::string path = below.empty() ? folder : folder + "/" + below;
  struct stat st = {};
  REQUIRE(::lstat(path.c_str(), &st) == 0);
  std::ostringstream line;
  line << std::oct << st.st_mode << std::dec << " " << st.st_uid << ":" << st.st_gid << " mtime " << st.st_mtim.tv_sec
       << "." << st.st_mtim.tv_nsec;
  if (S_ISREG(st.st_mode)) line << " size " << st.st_size << dataText(path, st.st_size);
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) line << " dev " << st.st_rdev;
  if (S_ISLNK(st.st_mode)) {
    std::array<char, 4096> target{};
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    line << " -> " << std::string(target.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
  line << xattrText(path);
  if (!S_ISDIR(st.st_mode)) sameFile[st.st_ino].push_back(below);
  text[below] = line.str();
  if (!S_ISDIR(st.st_mode)) return;
  for (const std::string& name : listed(path)) walk(folder, base_commit::joinPath(below, name), text, sameFile);
}

}  // namespace

TempFolder::TempFolder(const std::string& parent) {
  std::string name = (parent.empty() ? tempRoot() : parent) + "/bough-commit-XXXXXX";
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempFolder::~TempFolder() {
  const auto [parent, name] = base_commit::splitPath(path_);
  const UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool removed = base_commit::removeTree(fd.get(), name).ok();
  WARN(removed);
}

World::World(std::string baseFolder, std::string journalFolder)
    : base(std::move(baseFolder)), journal(std::move(journalFolder)) {
  ::mkdir(base.c_str(), 0755);
  ::mkdir(journal.c_str(), 0700);
  reopen();
}

void World::reopen() {
  commits.reset();
  baseFd.reset(::open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(baseFd);
  auto opened = BaseCommit::open(UniqueFd(::open(journal.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  REQUIRE(opened);
  commits = std::move(*opened);
}

void writeFile(const std::string& path, const std::string& data, unsigned mode) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << data;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

std::string readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void makeFolder(const std::string& path, unsigned mode) {
  REQUIRE(::mkdir(path.c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

void setTime(const std::string& path, std::int64_t seconds) {
  const struct timespec times[2] = {{seconds, 5}, {seconds, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

void setTimesBelow(const std::string& path, std::int64_t seconds) {
  struct stat st = {};
  REQUIRE(::lstat(path.c_str(), &st) == 0);
  if (S_ISDIR(st.st_mode)) {
    for (const std::string& name : listed(path)) setTimesBelow(base_commit::joinPath(path, name), seconds);
  }
  setTime(path, seconds);
}

void setXattr(const std::string& path, const std::string& key, const std::string& value) {
  REQUIRE(::lsetxattr(path.c_str(), key.c_str(), value.data(), value.size(), 0) == 0);
}

bool exists(const std::string& path) {
  struct stat st = {};
  return ::lstat(path.c_str(), &st) == 0;
}

TreeText treeText(const std::string& folder) {
  TreeText text;
  std::map<ino_t, std::vector<std::string>> sameFile;
  walk(folder, "", text, sameFile);
  for (const auto& [ino, paths] : sameFile) {
    for (const std::string& path : paths) {
      if (paths.size() > 1) text[path] += " same file as " + paths.front();
    }
  }
  return text;
}

std::string difference(const TreeText& is, const TreeText& wanted) {
  std::string text;
  for (const auto& [path, line] : wanted) {
    const auto found = is.find(path);
    if (found == is.end()) text += "missing: " + path + "\n";
    if (found != is.end() && found->second != line) {
      text += path + "\n  is     " + found->second.substr(0, 300) + "\n  wanted " + line.substr(0, 300) + "\n";
    }
  }
  for (const auto& [path, line] : is) {
    if (!wanted.contains(path)) text += "too much: " + path + " " + line.substr(0, 200) + "\n";
  }
  return text.substr(0, 2000);
}

Expect absent() { return {}; }

Expect unchanged(const World& world, const std::string& path) {
  const auto [folderPath, name] = base_commit::splitPath(path);
  auto folder = base_commit::openFolder(world.baseFd.get(), folderPath, O_RDONLY);
  REQUIRE(folder);
  auto found = base_commit::look(folder->get(), name);
  REQUIRE((found && found->exists));
  Expect expect;
  expect.how = Expect::How::Unchanged;
  expect.kind = found->kind;
  expect.identity = found->identity;
  return expect;
}

Expect sameFolder(const World& world, const std::string& path) {
  Expect expect;
  auto folder = base_commit::openFolder(world.baseFd.get(), path, O_RDONLY);
  REQUIRE(folder);
  expect.how = Expect::How::SameFile;
  expect.kind = Kind::Directory;
  expect.identity = base_commit::look(folder->get(), "")->identity;
  return expect;
}

NewNode fileNode(const std::string& data, unsigned mode) {
  NewNode node;
  node.mode = mode;
  node.uid = ::geteuid();
  node.gid = ::getegid();
  node.atime = node.mtime = {kNewTime, 42};
  node.fill = [data](int fd) -> Result<> {
    for (std::size_t at = 0; at < data.size();) {
      const ssize_t n = ::pwrite(fd, data.data() + at, data.size() - at, static_cast<off_t>(at));
      if (n < 0) return sys(errno);
      at += static_cast<std::size_t>(n);
    }
    return Done{};
  };
  return node;
}

NewNode folderNode(unsigned mode) {
  NewNode node;
  node.kind = Kind::Directory;
  node.mode = mode;
  node.uid = ::geteuid();
  node.gid = ::getegid();
  node.atime = node.mtime = {kNewTime, 43};
  return node;
}

std::string inChild(const std::function<std::string()>& body) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string result = body();
    const bool told = ::write(in.get(), result.data(), result.size()) == static_cast<ssize_t>(result.size());
    ::_exit(told ? 0 : 1);
  }
  in.reset();
  std::string result;
  std::array<char, 4096> buffer;
  for (ssize_t n = 0; (n = ::read(out.get(), buffer.data(), buffer.size())) > 0;) {
    result.append(buffer.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? result : "exit " + std::to_string(WEXITSTATUS(status));
}

bool killedAt(const std::string& failAt, const std::string& traceFile, const std::function<void()>& body) {
  const std::string result = inChild([&]() -> std::string {
    ::unsetenv("BOUGH_FAIL_AT");
    ::unsetenv("BOUGH_FAIL_TRACE");
    if (!failAt.empty()) ::setenv("BOUGH_FAIL_AT", failAt.c_str(), 1);
    if (!traceFile.empty()) ::setenv("BOUGH_FAIL_TRACE", traceFile.c_str(), 1);
    armFailPoints();
    body();
    return "done";
  });
  if (result == "done") return false;
  REQUIRE(result == "signal 9");
  return true;
}

std::vector<std::string> passings(const std::string& traceFile) {
  std::ifstream in(traceFile);
  std::map<std::string, int> counts;
  std::vector<std::string> all;
  for (std::string name; std::getline(in, name);) all.push_back(name + ":" + std::to_string(++counts[name]));
  return all;
}

bool ownMounts() {
  static const bool own =
      ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return own;
}

TempFileSystem::TempFileSystem(const std::string& options) {
  REQUIRE(ownMounts());
  REQUIRE(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options.c_str()) == 0);
}

TempFileSystem::~TempFileSystem() { WARN(::umount2(folder_.path().c_str(), MNT_DETACH) == 0); }

}  // namespace bough::commit_test
