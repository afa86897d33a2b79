// The socket device across a fork: the parent's connections live on without a byte lost, the child's guest hears of a
// transport reset before anybody talks to it, and the parent's peers notice nothing of the child.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "native/vmm/virtio/test_host.h"
#include "native/vmm/virtio/vsock.h"

using namespace bough;
using namespace bough::vmm;
using vsock::Header;

namespace {

struct World {
  explicit World(int eventBuffers) {
    HostEnds ends;
    ends.vsock = UniqueFd(::dup(listener.socket.get()));
    host.attach(std::move(ends));
    host.driver.start();
    for (int i = 0; i < 16; i++) offer(host.driver.room(sizeof(Header) + 4096));
    host.driver.memory.fill(eventRoom.address, 8, std::byte{0xFF});
    for (int i = 0; i < eventBuffers; i++) offerEvent();
    host.settle();
  }
  void offer(const TestQueue::Part& room) {
    receiving[host.driver.queues[0].add({room})] = room;
    host.driver.kick(0);
  }
  void offerEvent() {
    host.driver.queues[2].add({eventRoom});
    host.driver.kick(2);
  }
  void send(const vsock::Ports& ports, vsock::Operation operation, std::string_view data = {}) {
    const Header header{3,         2, ports.guest, ports.host, static_cast<std::uint32_t>(data.size()), vsock::kStream,
                        operation, 0, 65'536,      0};
    host.driver.queues[1].add({host.driver.put(std::string(asText(header)) + std::string(data))});
    host.driver.kick(1);
  }
  /// The operation and the bytes of the next packet; 0 if there is none.
  std::pair<int, std::string> receive() {
    host.turn();
    const auto used = host.driver.queues[0].next();
    if (!used) return {0, ""};
    const TestQueue::Part room = receiving.extract(used->head).mapped();
    const std::string bytes = host.driver.text(room.address, used->written);
    std::memcpy(&last, bytes.data(), sizeof last);
    offer(room);
    return {last.operation, bytes.substr(sizeof last)};
  }
  std::pair<UniqueFd, vsock::Ports> connected() {
    UniqueFd client = listener.connect();
    if (!sendAll(client.get(), "CONNECT 1024\n")) throw std::runtime_error("send");
    if (!host.until([&] { return receive().first == vsock::kRequest; })) throw std::runtime_error("no request");
    const vsock::Ports ports{last.sourcePort, 1024};
    send(ports, vsock::kResponse);
    if (!readNow(client.get()).starts_with("OK ")) throw std::runtime_error("not accepted");
    return {std::move(client), ports};
  }
  bool becomeChild(const TestListener& own) {
    if (!host.loop->restart()) return false;
    device.becomeChild();
    HostEnds ends;
    ends.vsock = UniqueFd(::dup(own.socket.get()));
    host.attach(std::move(ends));
    return device.connections() == 0;
  }

  Vsock device{3, {}};
  TestListener listener;
  TestHost host{device};
  std::map<std::uint16_t, TestQueue::Part> receiving;
  TestQueue::Part eventRoom = host.driver.room(8);
  Header last{};
};

// In the child; the number says what was wrong.
int childsLife(World& world, const TestListener& own, const vsock::Ports& old) {
  if (!world.becomeChild(own)) return 1;
  world.device.resume();
  world.host.turn();
  // One event, of one kind.
  const auto event = world.host.driver.queues[2].next();
  if (!event || event->written != 4) return 2;
  if (world.host.driver.memory.load<std::uint32_t>(world.eventRoom.address) != vsock::kTransportReset) return 3;
  // A client that comes before the guest has dealt with it waits; so does what the guest sends on the old connection.
  UniqueFd client = own.connect();
  if (!sendAll(client.get(), "CONNECT 2048\n")) return 4;
  world.send(old, vsock::kData, "from a dead connection");
  world.host.settle();
  if (world.receive().first != 0) return 5;
  // The driver has dealt with the event and gives the buffer back.
  world.offerEvent();
  bool refused = false;
  std::uint32_t requested = 0;
  for (int i = 0; i < 10 && !(refused && requested != 0); i++) {
    const auto [operation, bytes] = world.receive();
    if (operation == vsock::kReset && world.last.destinationPort == old.guest) refused = true;
    if (operation == vsock::kRequest && world.last.destinationPort == 2048) requested = world.last.sourcePort;
  }
  if (!refused) return 6;
  if (requested == 0) return 7;
  world.send({requested, 2048}, vsock::kResponse);
  if (!world.host.until([&] { return readNow(client.get()).starts_with("OK "); })) return 8;
  return 0;
}

int waitFor(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

}  // namespace

TEST_CASE("a fork: the parent's connection goes on, the child's is gone") {
  World world(1);
  auto [client, ports] = world.connected();
  const TestListener own;
  world.device.drain();
  CHECK(world.device.quiet());
  // On their way while the machine is being forked.
  REQUIRE(sendAll(client.get(), "sent during the fork"));
  UniqueFd waiting = world.listener.connect();
  REQUIRE(sendAll(waiting.get(), "CONNECT 7\n"));
  world.send(ports, vsock::kData, "from the guest");
  world.host.settle();
  CHECK(readNow(client.get()).empty());
  CHECK_FALSE(world.host.driver.queues[0].next());

  const pid_t child = ::fork();
  if (child == 0) {
    // The packet that is in the queue is the dead connection's, too.
    client.reset();
    waiting.reset();
    int result = 99;
    try {
      result = childsLife(world, own, ports);
    } catch (const std::exception&) {
    }
    ::_exit(result);
  }
  CHECK(waitFor(child) == 0);

  world.device.resume();
  CHECK(readNow(client.get()) == "from the guest");
  std::string got;
  bool requested = false;
  REQUIRE(world.host.until([&] {
    const auto [operation, bytes] = world.receive();
    CHECK(operation != vsock::kReset);
    if (operation == vsock::kRequest) requested = true;
    got += bytes;
    return requested && got == "sent during the fork";
  }));
  CHECK_FALSE(atEnd(client.get()));
  CHECK_FALSE(world.host.driver.queues[2].next());
  REQUIRE(sendAll(client.get(), "and on"));
  CHECK(world.host.until([&] { return world.receive().second == "and on"; }));
}

TEST_CASE("the event waits for a buffer of the guest") {
  World world(0);
  const TestListener own;
  world.device.drain();
  REQUIRE(world.becomeChild(own));
  world.device.resume();
  world.host.settle();
  CHECK_FALSE(world.host.driver.queues[2].next());
  UniqueFd client = own.connect();
  REQUIRE(sendAll(client.get(), "CONNECT 1\n"));
  world.host.settle();
  CHECK(world.receive().first == 0);
  world.offerEvent();
  CHECK(world.host.driver.queues[2].next()->written == 4);
  CHECK(world.receive().first == 0);
  world.offerEvent();
  CHECK(world.receive().first == vsock::kRequest);
}

TEST_CASE("frozen and forked again, and again: the last one's guest is told once") {
  World world(2);
  const TestListener first, second;
  world.connected();
  world.device.drain();
  REQUIRE(world.becomeChild(first));
  REQUIRE(world.becomeChild(second));
  world.device.resume();
  CHECK(world.host.driver.queues[2].next());
  CHECK_FALSE(world.host.driver.queues[2].next());
}

TEST_CASE("loaded from a file, the guest is told as well") {
  World world(1);
  world.connected();
  world.device.drain();
  Encoder out;
  world.host.driver.mmio.save(out);
  world.host.driver.mmio.write(mmio::kStatus, std::array<std::byte, 4>{});  // the first one is no more
  Decoder in(out.str());
  REQUIRE(world.host.driver.mmio.load(in));
  CHECK(in.atEnd());
  world.device.resume();
  world.host.settle();
  CHECK(world.host.driver.queues[2].next()->written == 4);

  Encoder wrong;
  wrong.number(2);
  Decoder bad(wrong.str());
  CHECK_FALSE(world.device.load(bad));
}
