// Saved machines: what was saved is what runs again, and a file that is not whole is refused before anything runs
// (docs/saved-format.md).
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "native/common/crc32c.h"
#include "test/vm/harness/guest_lines.h"
#include "test/vm/harness/host.h"
#include "test/vm/harness/vm.h"

using namespace bough::vmtest;
using bough::UniqueFd;

namespace {

// Places in the head.
constexpr off_t kCpuDigest = 16;
constexpr off_t kConfigBytes = 40;
constexpr off_t kStateBytes = 48;
constexpr off_t kHeadCrc = 112;
constexpr off_t kPage = 4096;
constexpr off_t kBlock = off_t{2} << 20;
/// Where the guest `commands` keeps its character.
constexpr off_t kCharacter = 0x2000000;

std::uint64_t numberAt(int fd, off_t place) {
  std::uint64_t value = 0;
  REQUIRE(::pread(fd, &value, sizeof value, place) == sizeof value);
  return value;
}

struct Layout {
  off_t state;
  off_t ram;
  off_t end;
};

Layout layoutOf(int fd) {
  Layout layout{};
  layout.state = kPage + static_cast<off_t>(numberAt(fd, kConfigBytes));
  const off_t after = layout.state + static_cast<off_t>(numberAt(fd, kStateBytes));
  layout.ram = (after + kBlock - 1) / kBlock * kBlock;
  struct stat status{};
  REQUIRE(::fstat(fd, &status) == 0);
  layout.end = status.st_size;
  return layout;
}

/// A bit that is not what it was, as long as this lives.
class Flipped {
 public:
  Flipped(int fd, off_t place) : fd_(fd), place_(place) { flip(); }
  Flipped(const Flipped&) = delete;
  Flipped& operator=(const Flipped&) = delete;
  ~Flipped() { flip(); }

 private:
  void flip() const {
    char byte = 0;
    if (::pread(fd_, &byte, 1, place_) != 1) throw std::runtime_error("pread");
    byte = static_cast<char>(byte ^ 4);
    if (::pwrite(fd_, &byte, 1, place_) != 1) throw std::runtime_error("pwrite");
  }
  int fd_;
  off_t place_;
};

void writeHeadCrc(int fd) {
  std::string head(kHeadCrc, '\0');
  REQUIRE(::pread(fd, head.data(), head.size(), 0) == kHeadCrc);
  const std::uint32_t crc = bough::crc32c(head);
  REQUIRE(::pwrite(fd, &crc, sizeof crc, kHeadCrc) == sizeof crc);
}

/// A machine that waits for commands, with `c` in memory.
Vm waiting(char c, Json params = Json::object()) {
  Vm vm("commands", std::move(params));
  vm.console().waitFor("ready\n");
  CHECK(vm.command(std::string("w") + c) == "written");
  return vm;
}

Json save(Vm& vm, const UniqueFd& to) { return vm.must("save", {{"fd", 0}}, {to.get()}); }

/// Loads into `vm`; its console works if that went well.
Answer load(Vm& vm, Json params, std::vector<int> fds) {
  params["console"] = fds.size();
  fds.push_back(vm.console().writeEnd());
  return vm.ask("load", std::move(params), fds);
}

}  // namespace

TEST_SUITE("saved machines") {
  TEST_CASE("full: the source runs on, what is loaded has everything, runs, and can be forked and saved again") {
    Vm vm = waiting('a', {{"ramMiB", 192}});
    CHECK(vm.command("t") == "touched");
    const UniqueFd file = temporaryFile();
    const Json saved = save(vm, file);
    std::printf("saved %s bytes in %s ms\n", saved.at("bytes").dump().c_str(), saved.at("tookMs").dump().c_str());
    CHECK(vm.command("wb") == "written");
    for (const char* check : {"before", "behind", "none"}) {
      INFO(std::string(check));
      Vm loaded;
      const Answer answer = load(loaded, {{"saved", 0}, {"check", check}}, {file.get()});
      REQUIRE_MESSAGE(answer.ok(), answer.text());
      CHECK(loaded.command("r") == "a");
      CHECK(loaded.command("s") == "0000000000004000");
      CHECK(loaded.command("wz") == "written");
      CHECK(loaded.forkOne().command("r") == "z");
    }
    // What a loaded machine writes is not in the file.
    Vm again;
    REQUIRE(load(again, {{"saved", 0}}, {file.get()}).ok());
    CHECK(again.command("r") == "a");
    CHECK(again.command("wy") == "written");
    const UniqueFd second = temporaryFile();
    save(again, second);
    Vm copy;
    REQUIRE(load(copy, {{"saved", 0}}, {second.get()}).ok());
    CHECK(copy.command("r") == "y");
    CHECK(copy.command("s") == "0000000000004000");
  }

  TEST_CASE("a guest that stores and writes all the time goes on where it was saved") {
    Vm vm("stores");
    const Numbers numbers{0x2000, 0x2000};
    vm.console().waitForMore(100);
    for (unsigned i = 0; i < 3; i++) {
      const UniqueFd file = temporaryFile();
      save(vm, file);
      Vm loaded;
      REQUIRE(load(loaded, {{"saved", 0}, {"check", "none"}}, {file.get()}).ok());
      loaded.console().waitForMore(200);
      const std::string text = loaded.console().text();
      const auto start = numbers.startOf(text);
      REQUIRE_MESSAGE(start.has_value(), text);
      CHECK(numbers.differs(text, *start) == "");
      CHECK(*start <= vm.console().size());
    }
    CHECK(numbers.differs(vm.console().text(), 0) == "");
  }

  TEST_CASE("registers, timers and pending interrupts survive") {
    for (const char* guest : {"registers", "timers", "pending"}) {
      INFO(std::string(guest));
      Vm vm(guest);
      linesOn(vm, 2);
      const UniqueFd file = temporaryFile();
      save(vm, file);
      Vm loaded;
      REQUIRE(load(loaded, {{"saved", 0}, {"check", "none"}}, {file.get()}).ok());
      for (Vm* side : {&vm, &loaded}) {
        linesOn(*side, 3);
        CHECK(complaint(*side) == "");
      }
    }
  }

  TEST_CASE("diff: only what changed, over its own base and no other") {
    Vm vm = waiting('1');
    const UniqueFd base = temporaryFile();
    const Json full = save(vm, base);
    CHECK(vm.command("w2") == "written");
    const UniqueFd diff = temporaryFile();
    const Json saved = vm.must("save", {{"fd", 0}, {"kind", "diff"}, {"base", 1}}, {diff.get(), base.get()});
    CHECK(saved.at("bytes").get<std::size_t>() < full.at("bytes").get<std::size_t>());
    CHECK(saved.at("pages").get<std::size_t>() >= 1);
    CHECK(saved.at("pages").get<std::size_t>() < 1000);
    Vm loaded;
    const Answer answer = load(loaded, {{"saved", 0}, {"diff", 1}}, {base.get(), diff.get()});
    REQUIRE_MESSAGE(answer.ok(), answer.text());
    CHECK(loaded.command("r") == "2");
    Vm alone;
    REQUIRE(load(alone, {{"saved", 0}}, {base.get()}).ok());
    CHECK(alone.command("r") == "1");

    const UniqueFd other = temporaryFile();
    save(vm, other);
    Vm refusing;
    CHECK(load(refusing, {{"saved", 0}, {"diff", 1}}, {other.get(), diff.get()}).code == "E_SAVED_BASE");
    CHECK(load(refusing, {{"saved", 0}}, {diff.get()}).code.starts_with("E_SAVED_"));
    CHECK(load(refusing, {{"saved", 0}, {"diff", 1}}, {diff.get(), base.get()}).code.starts_with("E_SAVED_"));
    CHECK(vm.ask("save", {{"fd", 0}, {"kind", "diff"}, {"base", 1}}, {temporaryFile().get(), diff.get()})
              .code.starts_with("E_SAVED_"));
    const struct stat before = [&] {
      struct stat status{};
      ::fstat(diff.get(), &status);
      return status;
    }();
    const Flipped changed(diff.get(), before.st_size - 100);
    CHECK(load(refusing, {{"saved", 0}, {"diff", 1}}, {base.get(), diff.get()}).code == "E_SAVED_DAMAGED");
    CHECK(refusing.state() == "empty");
  }

  TEST_CASE("cut off, changed, of another CPU, no saved machine at all") {
    Vm vm = waiting('x');
    const UniqueFd file = temporaryFile();
    save(vm, file);
    const Layout layout = layoutOf(file.get());
    Vm refusing;
    const auto code = [&](const UniqueFd& from) { return load(refusing, {{"saved", 0}}, {from.get()}).code; };

    CHECK(code(fileOf("")) == "E_SAVED_FORMAT");
    CHECK(code(fileOf(std::string(100'000, 'x'))) == "E_SAVED_FORMAT");
    CHECK(code(openFile(guestPath("hello"))) == "E_SAVED_FORMAT");
    const std::string head = [&] {
      std::string bytes(static_cast<std::size_t>(layout.ram), '\0');
      REQUIRE(::pread(file.get(), bytes.data(), bytes.size(), 0) == layout.ram);
      return bytes;
    }();
    for (const std::size_t size : {std::size_t{100}, std::size_t{4095}}) {
      CHECK(code(fileOf(head.substr(0, size))) == "E_SAVED_FORMAT");
    }
    for (const std::size_t size : {std::size_t{4096}, std::size_t{5000}, head.size()}) {
      INFO(size << " bytes");
      CHECK(code(fileOf(head.substr(0, size))) == "E_SAVED_TRUNCATED");
    }
    for (const off_t place : {off_t{24}, off_t{60}, off_t{100}, kHeadCrc, kPage + 3, layout.state - 1, layout.state,
                              layout.state + 1000, layout.ram + kCharacter, layout.end - 1}) {
      INFO("byte " << place);
      const Flipped changed(file.get(), place);
      CHECK(code(file) == "E_SAVED_DAMAGED");
    }
    {
      const Flipped magic(file.get(), 0);
      CHECK(code(file) == "E_SAVED_FORMAT");
    }
    for (const auto& [place, expected] :
         {std::pair{off_t{8}, "E_SAVED_VERSION"}, std::pair{kCpuDigest, "E_SAVED_CPU"}}) {
      INFO("byte " << place);
      {
        const Flipped changed(file.get(), place);
        writeHeadCrc(file.get());
        CHECK(code(file) == expected);
      }
      writeHeadCrc(file.get());
    }
    char last = 0;
    REQUIRE(::pread(file.get(), &last, 1, layout.end - 1) == 1);
    REQUIRE(::ftruncate(file.get(), layout.end - 1) == 0);
    CHECK(code(file) == "E_SAVED_TRUNCATED");
    REQUIRE(::pwrite(file.get(), &last, 1, layout.end - 1) == 1);

    // The process that refused all of them takes the right one.
    CHECK(refusing.state() == "empty");
    const Answer answer = load(refusing, {{"saved", 0}}, {file.get()});
    REQUIRE_MESSAGE(answer.ok(), answer.text());
    CHECK(refusing.command("r") == "x");
  }

  TEST_CASE("damage that is found behind the start ends the machine") {
    Vm vm = waiting('x');
    const UniqueFd file = temporaryFile();
    save(vm, file);
    const Flipped changed(file.get(), layoutOf(file.get()).ram + kCharacter);
    Vm loaded;
    loaded.must("subscribe");
    const Answer answer = load(loaded, {{"saved", 0}, {"check", "behind"}}, {file.get()});
    REQUIRE_MESSAGE(answer.ok(), answer.text());
    CHECK(loaded.control().event("damaged").at("code") == "E_SAVED_DAMAGED");
    CHECK(loaded.exitStatus() == 7);
  }

  TEST_CASE("places that cannot be saved to: the machine runs on") {
    Vm vm = waiting('x');
    const auto code = [&](int fd) { return vm.ask("save", {{"fd", 0}}, {fd}).code; };
    CHECK(code(fileOf("not empty").get()) == "E_SAVE_TARGET");
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    CHECK(code(null.get()) == "E_SAVE_TARGET");
    const UniqueFd readOnly(::open(guestPath("hello").c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(code(readOnly.get()) == "E_SAVE_TARGET");
    char folder[] = "/tmp/bough-small-XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    if (::mount("none", folder, "tmpfs", 0, "size=64k") == 0) {
      {
        const UniqueFd small(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
        CHECK(code(small.get()) == "E_NO_SPACE");
        struct stat status{};
        REQUIRE(::fstat(small.get(), &status) == 0);
        CHECK(status.st_size == 0);
      }
      ::umount(folder);
    } else {
      std::printf("a full disk was not tried: this user may not mount\n");
    }
    ::rmdir(folder);
    CHECK(vm.command("p") == "pong");
    CHECK(vm.must("status").at("forksInFlight") == 0);
  }
}
