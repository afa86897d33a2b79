// Saved machines: what is written comes back, what is not right is refused before it is used.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "native/vmm/saved/write.h"

using namespace bough;
using namespace bough::vmm;

namespace {

constexpr std::size_t kRam = std::size_t{8} << 20;

/// A folder of its own that goes with the test.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "bough-saved-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  UniqueFd file(const char* name, int flags = O_RDWR | O_CREAT) const {
    UniqueFd fd(::open((path / name).c_str(), flags | O_CLOEXEC, 0600));
    REQUIRE(fd);
    return fd;
  }
  std::filesystem::path path;
};

GuestMemory ram() {
  auto memory = GuestMemory::anonymous(kRam, false);
  REQUIRE(memory);
  return std::move(*memory);
}

void put(const GuestMemory& memory, std::size_t at, std::string_view text) {
  std::memcpy(memory.host().data() + at, text.data(), text.size());
}

std::string get(const GuestMemory& memory, std::size_t at, std::size_t size) {
  return {reinterpret_cast<const char*>(memory.host().data()) + at, size};
}

UniqueFd copy(const UniqueFd& fd) { return UniqueFd(::dup(fd.get())); }

Saved saveInto(const UniqueFd& file, const GuestMemory& memory, const SavedFile* base = nullptr) {
  const auto saved = writeSaved(file.get(), {memory, "the config", "the state", 42}, base);
  REQUIRE_MESSAGE(saved, saved.error().message);
  return *saved;
}

std::string codeOf(UniqueFd file) {
  const auto opened = SavedFile::open(std::move(file));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message.size() > 20);
  return opened.error().code;
}

void flip(const UniqueFd& file, std::uint64_t at) {
  char byte = 0;
  REQUIRE(::pread(file.get(), &byte, 1, static_cast<off_t>(at)) == 1);
  byte = static_cast<char>(byte ^ 0x10);
  REQUIRE(::pwrite(file.get(), &byte, 1, static_cast<off_t>(at)) == 1);
}

/// What a process of its own answers; its doings (limits, mounts) end with it.
int inChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace

TEST_CASE(
    "a full save comes back, with holes where the memory is zero, and the file is never written by who loads it") {
  const Folder folder;
  const GuestMemory memory = ram();
  put(memory, 5000, "hello");
  put(memory, kRam - 5, "there");
  const UniqueFd file = folder.file("full");
  const Saved saved = saveInto(file, memory);
  CHECK(saved.digest.size() == 40);
  CHECK(saved.pages == 2);
  struct stat status{};
  REQUIRE(::fstat(file.get(), &status) == 0);
  CHECK(static_cast<std::uint64_t>(status.st_size) == saved.bytes);
  CHECK(status.st_blocks * 512 < 256 * 1024);

  auto opened = SavedFile::open(copy(file));
  REQUIRE(opened);
  CHECK(opened->config() == "the config");
  CHECK(opened->state() == "the state");
  CHECK(opened->head().cpuDigest == 42);
  CHECK(toText(opened->head().digest()) == saved.digest);
  auto loaded = loadRam(*opened, nullptr, true);
  REQUIRE(loaded);
  CHECK(std::memcmp(loaded->host().data(), memory.host().data(), kRam) == 0);
  put(*loaded, 5000, "HELLO");
  CHECK(opened->checkRam());
}

TEST_CASE("a difference holds the changed pages only, and the base with it gives the memory back") {
  const Folder folder;
  const GuestMemory memory = ram();
  for (std::size_t at = 0; at < kRam; at += 4096) put(memory, at, "page");
  const UniqueFd fullFile = folder.file("full");
  saveInto(fullFile, memory);
  put(memory, 3 * 4096, "changed");
  put(memory, 4 * 4096, "changed, too");
  std::memset(memory.host().data() + 700 * 4096, 0, 4096);
  auto full = SavedFile::open(copy(fullFile));
  REQUIRE(full);
  const UniqueFd diffFile = folder.file("diff");
  const Saved saved = saveInto(diffFile, memory, &*full);
  CHECK(saved.pages == 3);
  CHECK(saved.bytes < 64 * 1024);

  auto diff = SavedFile::open(copy(diffFile));
  REQUIRE(diff);
  auto loaded = loadRam(*full, &*diff, true);
  REQUIRE(loaded);
  CHECK(std::memcmp(loaded->host().data(), memory.host().data(), kRam) == 0);
  CHECK(get(*loaded, 4 * 4096, 12) == "changed, too");

  SUBCASE("with another base it is refused") {
    put(memory, 0, "other");
    const UniqueFd otherFile = folder.file("other");
    saveInto(otherFile, memory);
    auto other = SavedFile::open(copy(otherFile));
    REQUIRE(other);
    const auto wrong = loadRam(*other, &*diff, false);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == "E_SAVED_BASE");
  }
  SUBCASE("it cannot be loaded alone, or be the base of another") {
    CHECK(loadRam(*diff, nullptr, false).error().code == "E_SAVED_BASE");
    CHECK(checkBase(*diff, kRam).error().code == "E_SAVED_BASE");
    CHECK(checkBase(*full, kRam + kSavedBlock).error().code == "E_SAVED_BASE");
    CHECK(checkBase(*full, kRam));
  }
  SUBCASE("a changed page of it is found without being asked") {
    flip(diffFile, diff->head().ramOffset() + 4096 + 9);
    const auto wrong = loadRam(*full, &*diff, false);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == "E_SAVED_DAMAGED");
  }
}

TEST_CASE("a file that is cut, changed, of another version or none at all is refused with its code") {
  const Folder folder;
  const GuestMemory memory = ram();
  put(memory, 0, "first");
  put(memory, 6 << 20, "last");
  const UniqueFd file = folder.file("full");
  const Saved saved = saveInto(file, memory);
  std::uint64_t state = 0;
  std::uint64_t ramAt = 0;
  std::uint64_t table = 0;
  {
    auto opened = SavedFile::open(copy(file));
    REQUIRE(opened);
    state = opened->head().stateOffset();
    ramAt = opened->head().ramOffset();
    table = opened->head().tableOffset();
  }
  SUBCASE("cut anywhere") {
    for (const std::uint64_t size : {saved.bytes - 1, ramAt + 5, state + 1, std::uint64_t{4096}}) {
      REQUIRE(::ftruncate(file.get(), static_cast<off_t>(size)) == 0);
      CHECK(codeOf(copy(file)) == "E_SAVED_TRUNCATED");
    }
    REQUIRE(::ftruncate(file.get(), 100) == 0);
    CHECK(codeOf(copy(file)) == "E_SAVED_FORMAT");
    REQUIRE(::ftruncate(file.get(), 0) == 0);
    CHECK(codeOf(copy(file)) == "E_SAVED_FORMAT");
  }
  SUBCASE("longer than it was") {
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(saved.bytes + 1)) == 0);
    CHECK(codeOf(copy(file)) == "E_SAVED_TRUNCATED");
  }
  SUBCASE("a byte of what is always checked") {
    for (const std::uint64_t at : {std::uint64_t{20}, std::uint64_t{30}, std::uint64_t{100}, std::uint64_t{4000},
                                   std::uint64_t{4096}, state, table}) {
      flip(file, at);
      CHECK(codeOf(copy(file)) == "E_SAVED_DAMAGED");
      flip(file, at);
    }
    CHECK(SavedFile::open(copy(file)));
  }
  SUBCASE("a byte of the memory") {
    flip(file, ramAt + 2);
    auto opened = SavedFile::open(copy(file));
    REQUIRE(opened);
    CHECK(loadRam(*opened, nullptr, false));  // was not asked to look
    const auto wrong = loadRam(*opened, nullptr, true);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == "E_SAVED_DAMAGED");
    CHECK_FALSE(checkRamOf(file.get()));
  }
  SUBCASE("a byte in a hole of the memory") {
    REQUIRE(::pwrite(file.get(), "x", 1, static_cast<off_t>(ramAt + (3 << 20))) == 1);
    CHECK_FALSE(checkRamOf(file.get()));
  }
  SUBCASE("another version, and no saved machine") {
    REQUIRE(::pwrite(file.get(), "\x02", 1, 8) == 1);
    CHECK(codeOf(copy(file)) == "E_SAVED_VERSION");
    REQUIRE(::pwrite(file.get(), "X", 1, 0) == 1);
    CHECK(codeOf(copy(file)) == "E_SAVED_FORMAT");
    CHECK(codeOf(UniqueFd(::open("/dev/zero", O_RDONLY))) == "E_SAVED_FORMAT");
  }
}

TEST_CASE("what a machine may be saved into") {
  const Folder folder;
  CHECK(checkTarget(folder.file("empty").get()));
  const UniqueFd used = folder.file("used");
  REQUIRE(::write(used.get(), "x", 1) == 1);
  for (const int fd : {used.get(), folder.file("append", O_RDWR | O_CREAT | O_APPEND).get(), 1000}) {
    const auto refused = checkTarget(fd);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == "E_SAVE_TARGET");
  }
  folder.file("readonly");
  CHECK_FALSE(checkTarget(folder.file("readonly", O_RDONLY).get()));
  CHECK_FALSE(checkTarget(UniqueFd(::open("/dev/null", O_RDWR)).get()));
}

TEST_CASE("no room for it: a clear error, and the file is empty again") {
  const Folder folder;
  const GuestMemory memory = ram();
  std::memset(memory.host().data(), 7, kRam);
  const auto attempt = [&](int fd) {
    const auto saved = writeSaved(fd, {memory, "config", "state", 1}, nullptr);
    struct stat status{};
    if (saved) return 10;
    if (saved.error().code != "E_NO_SPACE") return 11;
    return ::fstat(fd, &status) == 0 && status.st_size == 0 ? 0 : 12;
  };
  SUBCASE("the file may not grow so large") {
    CHECK(inChild([&] {
            const rlimit small{4 << 20, 4 << 20};
            ::signal(SIGXFSZ, SIG_IGN);
            if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return 20;
            return attempt(folder.file("small").get());
          }) == 0);
  }
  SUBCASE("the disk is full") {
    constexpr int kNotAllowed = 99;
    const int answer = inChild([&] {
      if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kNotAllowed;
      if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("none", folder.path.c_str(), "tmpfs", 0, "size=2m") != 0) {
        return kNotAllowed;
      }
      return attempt(folder.file("small").get());
    });
    if (answer == kNotAllowed)
      MESSAGE("this host allows no mount: not tried");
    else
      CHECK(answer == 0);
  }
}
