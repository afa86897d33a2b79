// The virtio console in both directions, and its output's behaviour where nobody reads: the guest never waits.
#include "native/vmm/virtio/console.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <string>

#include "native/vmm/virtio/test_host.h"

using namespace bough;
using namespace bough::vmm;

namespace {

struct World {
  explicit World(UniqueFd out = UniqueFd()) {
    HostEnds ends;
    ends.console = out ? std::move(out) : std::move(sockets.theirs);
    host.attach(std::move(ends));
    host.driver.start();
  }
  void print(std::string_view text) {
    host.driver.queues[1].add({host.driver.put(text)});
    host.driver.kick(1);
    CHECK(host.driver.queues[1].next());
  }
  SocketPair sockets;
  Console console;
  TestHost host{console};
};

}  // namespace

TEST_CASE("what the guest writes comes out, lines at once, the rest of a line soon") {
  World world;
  world.print("hello\n");
  CHECK(readNow(world.sockets.mine.get()) == "hello\n");
  world.print("login: ");
  world.host.settle();
  CHECK(readNow(world.sockets.mine.get()) == "login: ");
  world.print(std::string(100'000, 'x'));
  world.host.settle();
  // Of one chain 64 KiB are taken.
  CHECK(readNow(world.sockets.mine.get()).size() == 65'536);
}

TEST_CASE("a regular file gets everything at once") {
  UniqueFd file(::memfd_create("console", MFD_CLOEXEC));
  const UniqueFd copy(::dup(file.get()));
  World world(std::move(file));
  world.print("no end of line");
  std::array<char, 64> bytes{};
  CHECK(::pread(copy.get(), bytes.data(), bytes.size(), 0) == 14);
}

TEST_CASE("nobody reads: the guest goes on, and the reader learns later what was lost") {
  World world;
  const std::string line(4095, 'y');
  for (int i = 0; i < 200; i++) world.print(line + "\n");
  std::string all;
  REQUIRE(world.host.until([&] {
    all += readNow(world.sockets.mine.get());
    return all.ends_with(" bytes of console output were lost: nobody read them]\n");
  }));
  CHECK(all.size() < 200 * 4096);
  CHECK(all.starts_with(line + "\n"));
  const std::size_t note = all.rfind("\n[");
  const std::size_t lost = std::stoul(all.substr(note + 2));
  CHECK(note + lost == 200 * 4096);
  world.print("on we go\n");
  CHECK(readNow(world.sockets.mine.get()) == "on we go\n");
}

TEST_CASE("a reader that went away is no trouble") {
  World world;
  world.sockets.mine.reset();
  world.print("to nobody\n");
  world.host.settle();
  world.print("to nobody\n");
}

TEST_CASE("what is typed reaches the guest when it has buffers, in pieces if need be") {
  World world;
  CHECK(world.console.input(asBytes("ls -l")) == 5);
  const auto first = world.host.driver.room(2);
  const auto second = world.host.driver.room(64);
  world.host.driver.queues[0].add({first});
  world.host.driver.queues[0].add({second});
  world.host.driver.kick(0);
  CHECK(world.host.driver.queues[0].next()->written == 2);
  CHECK(world.host.driver.queues[0].next()->written == 3);
  CHECK(world.host.driver.text(first.address, 2) + world.host.driver.text(second.address, 3) == "ls -l");

  const std::string flood(Console::kMostInput + 100, 'z');
  CHECK(world.console.input(asBytes(flood)) == Console::kMostInput);
  CHECK(world.console.input(asBytes("x")) == 0);
}

TEST_CASE("drained, both directions wait; a child has neither the parent's typing nor its output") {
  World world;
  world.console.drain();
  world.host.driver.queues[1].add({world.host.driver.put("later\n")});
  world.host.driver.kick(1);
  CHECK_FALSE(world.host.driver.queues[1].next());
  world.host.driver.queues[0].add({world.host.driver.room(8)});
  CHECK(world.console.input(asBytes("typed")) == 5);
  CHECK_FALSE(world.host.driver.queues[0].next());

  REQUIRE(world.host.loop->restart());
  world.console.becomeChild();
  SocketPair own;
  HostEnds ends;
  ends.console = std::move(own.theirs);
  world.host.attach(std::move(ends));
  world.console.resume();
  CHECK(readNow(own.mine.get()) == "later\n");
  CHECK(readNow(world.sockets.mine.get()).empty());
  CHECK_FALSE(world.host.driver.queues[0].next());
}
