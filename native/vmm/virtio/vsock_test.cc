// The socket device, with the test as the guest's driver on one side and the host's programs on the other: connections
// both ways, flow control, half closes, hostile packets, and a fork.
#include "native/vmm/virtio/vsock.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "native/vmm/virtio/test_host.h"

using namespace bough;
using namespace bough::vmm;
using vsock::Header;

namespace {

constexpr std::uint32_t kBuffer = 64 << 10;

struct Packet {
  Header header{};
  std::string data;
};

struct World {
  explicit World(int buffers = 32, int eventBuffers = 2) {
    HostEnds ends;
    ends.vsock = UniqueFd(::dup(listener.socket.get()));
    host.attach(std::move(ends));
    host.driver.start();
    for (int i = 0; i < 64; i++) sendRoom.push_back(driver().allocate(sizeof(Header) + 65'536));
    for (int i = 0; i < buffers; i++) offer(driver().room(sizeof(Header) + 4096));
    for (int i = 0; i < eventBuffers; i++) offerEvent(driver().room(8));
    host.settle();
  }
  TestDriver& driver() { return host.driver; }

  void offer(const TestQueue::Part& room) {
    receiving[driver().queues[0].add({room})] = room;
    driver().kick(0);
  }
  void offerEvent(const TestQueue::Part& room) {
    events[driver().queues[2].add({room})] = room;
    driver().kick(2);
  }
  /// What the device has for the guest; without it nothing after one more turn. The buffer goes back at once.
  std::optional<Packet> receive(bool giveBack = true) {
    auto used = driver().queues[0].next();
    if (!used) {
      host.turn();
      used = driver().queues[0].next();
    }
    if (!used) return std::nullopt;
    const TestQueue::Part room = receiving.extract(used->head).mapped();
    Packet packet;
    const std::string bytes = driver().text(room.address, used->written);
    REQUIRE(bytes.size() >= sizeof(Header));
    std::memcpy(&packet.header, bytes.data(), sizeof(Header));
    packet.data = bytes.substr(sizeof(Header));
    CHECK(packet.data.size() == packet.header.size);
    CHECK(packet.header.sourceCid == 2);
    CHECK(packet.header.destinationCid == 3);
    if (giveBack) offer(room);
    return packet;
  }
  Packet expect(vsock::Operation operation) {
    std::optional<Packet> packet;
    REQUIRE(host.until([&] { return (packet = receive()).has_value(); }));
    CHECK(packet->header.operation == operation);
    return *packet;
  }
  void send(const vsock::Ports& ports, vsock::Operation operation, std::string_view data = {}, std::uint32_t flags = 0,
            std::uint32_t forwarded = 0) {
    Header header{3,         2,     ports.guest, ports.host, static_cast<std::uint32_t>(data.size()), vsock::kStream,
                  operation, flags, kBuffer,     forwarded};
    sendRaw(header, data);
  }
  void sendRaw(const Header& header, std::string_view data) {
    const std::string bytes = std::string(asText(header)) + std::string(data);
    const GuestAddress room = sendRoom[sends++ % sendRoom.size()];
    driver().memory.write(room, asBytes(bytes));
    driver().queues[1].add(
        {{room, sizeof(Header), false},
         {GuestAddress{raw(room) + sizeof(Header)}, static_cast<std::uint32_t>(data.size()), false}});
    driver().kick(1);
    driver().mmio.signal();
    while (driver().queues[1].next()) {
    }
  }

  /// A client of the host that the guest has accepted, and its ports.
  std::pair<UniqueFd, vsock::Ports> connected(std::uint32_t port = 1024) {
    UniqueFd client = listener.connect();
    REQUIRE(sendAll(client.get(), "CONNECT " + std::to_string(port) + "\n"));
    const Packet request = expect(vsock::kRequest);
    CHECK(request.header.destinationPort == port);
    const vsock::Ports ports{request.header.sourcePort, port};
    send(ports, vsock::kResponse);
    CHECK(readNow(client.get()) == "OK " + std::to_string(ports.host) + "\n");
    return {std::move(client), ports};
  }
  /// A connection that the guest began to a program of the host.
  std::pair<UniqueFd, vsock::Ports> accepted(std::uint32_t hostPort = 9000) {
    SocketPair pair;
    offers[hostPort] = std::move(pair.theirs);
    const vsock::Ports ports{hostPort, nextGuestPort++};
    send(ports, vsock::kRequest);
    CHECK(expect(vsock::kResponse).header.destinationPort == ports.guest);
    return {std::move(pair.mine), ports};
  }

  std::map<std::uint32_t, UniqueFd> offers;
  Vsock device{3, [this](std::uint32_t port) {
                 const auto found = offers.find(port);
                 if (found == offers.end()) return UniqueFd();
                 return std::move(offers.extract(found).mapped());
               }};
  TestListener listener;
  TestHost host{device};
  std::map<std::uint16_t, TestQueue::Part> receiving, events;
  std::vector<GuestAddress> sendRoom;
  std::size_t sends = 0;
  std::uint32_t nextGuestPort = 50'000;
};

}  // namespace

TEST_CASE("the guest reads its CID") {
  World world;
  std::array<std::byte, 8> cid{};
  world.driver().mmio.read(mmio::kConfig, cid);
  CHECK(cid[0] == std::byte{3});
}

TEST_CASE("a client connects, both sides talk, the guest closes") {
  World world;
  auto [client, ports] = world.connected();
  REQUIRE(sendAll(client.get(), "to the guest"));
  const Packet packet = world.expect(vsock::kData);
  CHECK(packet.data == "to the guest");
  CHECK(packet.header.bufferSize == vsock::Connection::kWindow);
  world.send(ports, vsock::kData, "to the host");
  CHECK(readNow(client.get()) == "to the host");
  world.send(ports, vsock::kShutdown, {}, vsock::kNeither);
  CHECK(world.expect(vsock::kReset).header.destinationPort == ports.guest);
  CHECK(atEnd(client.get()));
  CHECK(world.device.connections() == 0);
}

TEST_CASE("what a client sends behind its line reaches the guest; a line may come in pieces") {
  World world;
  UniqueFd client = world.listener.connect();
  REQUIRE(sendAll(client.get(), "CONN"));
  world.host.settle();
  REQUIRE(sendAll(client.get(), "ECT 77\nearly bytes"));
  const vsock::Ports ports{world.expect(vsock::kRequest).header.sourcePort, 77};
  world.send(ports, vsock::kResponse);
  CHECK(world.expect(vsock::kData).data == "early bytes");
}

TEST_CASE("what is no CONNECT line is closed") {
  World world;
  for (const char* line : {"CONNECT\n", "CONNECT x\n", "CONNECT 4294967296\n", "CONNECT 1 \n", "GET / HTTP/1.1\r\n",
                           "connect 1\n", "CONNECT 000000000000000000000000000000001\n", "\n"}) {
    UniqueFd client = world.listener.connect();
    REQUIRE(sendAll(client.get(), line));
    CHECK(world.host.until([&] { return atEnd(client.get()); }));
  }
  CHECK(world.device.connections() == 0);
}

TEST_CASE("a client is closed when the guest refuses, and when there is no driver") {
  World world;
  UniqueFd client = world.listener.connect();
  REQUIRE(sendAll(client.get(), "CONNECT 5\n"));
  const vsock::Ports ports{world.expect(vsock::kRequest).header.sourcePort, 5};
  world.send(ports, vsock::kReset);
  CHECK(atEnd(client.get()));

  auto [open, openPorts] = world.connected();
  world.driver().set(mmio::kStatus, 0);
  CHECK(atEnd(open.get()));
  UniqueFd early = world.listener.connect();
  REQUIRE(sendAll(early.get(), "CONNECT 5\n"));
  CHECK(world.host.until([&] { return atEnd(early.get()); }));
}

TEST_CASE("a client that does not wait for the guest's answer is taken back") {
  World world;
  UniqueFd client = world.listener.connect();
  REQUIRE(sendAll(client.get(), "CONNECT 5\n"));
  world.expect(vsock::kRequest);
  client.reset();
  world.expect(vsock::kReset);
  CHECK(world.device.connections() == 0);
}

TEST_CASE("clients that say nothing do not keep others out") {
  World world;
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < vsock::Clients::kMostSilent + 10; i++) silent.push_back(world.listener.connect());
  world.host.settle();
  CHECK(atEnd(silent.front().get()));
  CHECK_FALSE(atEnd(silent.back().get()));
  world.connected();
}

TEST_CASE("the guest connects to a port of the host that is offered, not to others") {
  World world;
  auto [program, ports] = world.accepted(9000);
  world.send(ports, vsock::kData, "GET /");
  CHECK(readNow(program.get()) == "GET /");
  REQUIRE(sendAll(program.get(), "200"));
  CHECK(world.expect(vsock::kData).data == "200");
  world.send({9001, 50'001}, vsock::kRequest);
  CHECK(world.expect(vsock::kReset).header.sourcePort == 9001);
}

TEST_CASE("half closes go through in both directions") {
  World world;
  auto [program, ports] = world.accepted();
  SUBCASE("the guest sends no more, and still gets the answer") {
    world.send(ports, vsock::kData, "question");
    world.send(ports, vsock::kShutdown, {}, vsock::kNoSend);
    CHECK(readNow(program.get()) == "question");
    CHECK(atEnd(program.get()));
    REQUIRE(sendAll(program.get(), "answer"));
    CHECK(world.expect(vsock::kData).data == "answer");
    program.reset();
    CHECK(world.expect(vsock::kShutdown).header.flags == vsock::kNeither);
  }
  SUBCASE("the host sends no more, and still gets the answer") {
    REQUIRE(sendAll(program.get(), "question"));
    ::shutdown(program.get(), SHUT_WR);
    CHECK(world.expect(vsock::kData).data == "question");
    CHECK(world.expect(vsock::kShutdown).header.flags == vsock::kNoSend);
    world.send(ports, vsock::kData, "answer");
    CHECK(readNow(program.get()) == "answer");
  }
  SUBCASE("the host closes with its last words on the way") {
    REQUIRE(sendAll(program.get(), "last words"));
    program.reset();
    CHECK(world.expect(vsock::kData).data == "last words");
    CHECK(world.expect(vsock::kShutdown).header.flags == vsock::kNeither);
    world.send(ports, vsock::kReset);
    CHECK(world.device.connections() == 0);
  }
  SUBCASE("the host reads no more: the guest is told and its bytes go nowhere") {
    ::shutdown(program.get(), SHUT_RD);
    world.send(ports, vsock::kData, "unheard");
    CHECK(world.expect(vsock::kShutdown).header.flags == vsock::kNoReceive);
    REQUIRE(sendAll(program.get(), "but listen"));
    CHECK(world.expect(vsock::kData).data == "but listen");
  }
  CHECK(world.device.connections() <= 1);
  world.host.settle();
}

TEST_CASE("the guest gets no more than it has room for, and all of it in the end") {
  World world;
  auto [client, ports] = world.connected();
  std::mt19937 random(7);
  std::string all(1'000'000, '\0');
  for (char& each : all) each = static_cast<char>(random());
  std::size_t sent = 0;
  std::string got;
  std::uint32_t outstanding = 0;
  const auto push = [&] {
    const ssize_t now = ::send(client.get(), all.data() + sent, all.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now > 0) sent += static_cast<std::size_t>(now);
  };
  bool asked = false;
  REQUIRE(world.host.until([&] {
    push();
    const auto packet = world.receive();
    if (!packet) {
      // The device has stopped: exactly at the end of the room, and it has asked for more once.
      if (got.size() < all.size() && outstanding == kBuffer) {
        CHECK(asked);
        asked = false;
        outstanding = 0;
        world.send(ports, vsock::kCreditUpdate, {}, 0, static_cast<std::uint32_t>(got.size()));
      }
      return got.size() == all.size();
    }
    if (packet->header.operation == vsock::kCreditRequest) {
      CHECK_FALSE(std::exchange(asked, true));
      // An answer without room brings no further question.
      world.send(ports, vsock::kCreditUpdate, {}, 0, static_cast<std::uint32_t>(got.size()) - outstanding);
      return false;
    }
    got += packet->data;
    outstanding += packet->header.size;
    CHECK(outstanding <= kBuffer);
    return false;
  }));
  CHECK(got == all);
}

TEST_CASE("a peer that does not read bounds the guest, not the others") {
  World world;
  auto [slow, slowPorts] = world.connected(1);
  auto [quick, quickPorts] = world.connected(2);
  const std::string block(16'384, 'b');
  std::uint32_t sent = 0;
  std::uint32_t forwarded = 0;
  // As a guest that keeps to its credit.
  while (sent - forwarded + block.size() <= vsock::Connection::kWindow) {
    world.send(slowPorts, vsock::kData, block);
    sent += static_cast<std::uint32_t>(block.size());
    while (const auto packet = world.receive()) forwarded = packet->header.forwarded;
  }
  CHECK(world.device.connections() == 2);
  world.send(quickPorts, vsock::kData, "quick");
  CHECK(readNow(quick.get()) == "quick");
  REQUIRE(sendAll(quick.get(), "answer"));
  CHECK(world.expect(vsock::kData).data == "answer");

  SUBCASE("what it reads later is all there, and the guest gets its credit back") {
    std::size_t got = 0;
    REQUIRE(world.host.until([&] {
      got += readNow(slow.get()).size();
      while (const auto packet = world.receive()) {
        CHECK(packet->header.operation == vsock::kCreditUpdate);
        forwarded = packet->header.forwarded;
      }
      return got == sent;
    }));
    CHECK(sent - forwarded <= vsock::Connection::kWindow / 2);
  }
  SUBCASE("what was sent before the guest closed still reaches it") {
    world.send(slowPorts, vsock::kShutdown, {}, vsock::kNeither);
    world.expect(vsock::kReset);
    CHECK(world.device.connections() == 2);
    std::size_t got = 0;
    REQUIRE(world.host.until([&] {
      got += readNow(slow.get()).size();
      return atEnd(slow.get());
    }));
    CHECK(got == sent);
    CHECK(world.device.connections() == 1);
  }
  SUBCASE("a guest that sends more than its credit is cut off") {
    for (int i = 0; i < 9; i++) world.send(slowPorts, vsock::kData, block);
    world.expect(vsock::kReset);
    CHECK(world.device.connections() == 1);
  }
  SUBCASE("it goes away") {
    slow.reset();
    CHECK(world.expect(vsock::kShutdown).header.flags == vsock::kNeither);
    world.host.settle();
  }
}

TEST_CASE("a guest without buffers bounds the host: nothing is lost, nothing spins") {
  World world(0);
  SocketPair pair;
  world.offers[9] = std::move(pair.theirs);
  world.send({9, 50}, vsock::kRequest);
  REQUIRE(sendAll(pair.mine.get(), "patience"));
  world.host.settle();
  pair.mine.reset();
  world.host.settle();
  for (int i = 0; i < 3; i++) world.offer(world.driver().room(sizeof(Header) + 4096));
  CHECK(world.receive(false)->header.operation == vsock::kResponse);
  CHECK(world.receive(false)->data == "patience");
  CHECK(world.receive(false)->header.operation == vsock::kShutdown);
}

TEST_CASE("more packets to nobody than there are buffers for their refusals wait in the queue") {
  World world(0);
  for (std::uint32_t i = 0; i < 300; i++) world.send({1, i}, vsock::kData, "?");
  std::uint32_t refused = 0;
  const auto room = world.driver().room(sizeof(Header) + 64);
  REQUIRE(world.host.until([&] {
    world.offer(room);
    if (const auto packet = world.receive(false)) {
      CHECK(packet->header.operation == vsock::kReset);
      CHECK(packet->header.destinationPort == refused++);
    }
    return refused == 300;
  }));
}

TEST_CASE("1,024 connections, no more") {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  World world;
  std::vector<UniqueFd> programs;
  for (std::uint32_t i = 0; i < Vsock::kMostConnections; i++) {
    SocketPair pair;
    programs.push_back(std::move(pair.mine));
    world.offers[9] = std::move(pair.theirs);
    world.send({9, i}, vsock::kRequest);
    CHECK(world.expect(vsock::kResponse).header.destinationPort == i);
  }
  CHECK(world.device.connections() == Vsock::kMostConnections);
  world.offers[9] = UniqueFd(::dup(programs[0].get()));
  world.send({9, 5000}, vsock::kRequest);
  world.expect(vsock::kReset);
  UniqueFd client = world.listener.connect();
  REQUIRE(sendAll(client.get(), "CONNECT 5\n"));
  CHECK(world.host.until([&] { return atEnd(client.get()); }));
  REQUIRE(sendAll(programs[700].get(), "hi"));
  CHECK(world.expect(vsock::kData).header.destinationPort == 700);
}

TEST_CASE("packets that are none, or that fit no connection") {
  World world;
  auto [client, ports] = world.connected();
  const auto raw = [&](auto change, std::string_view data = {}) {
    Header header{
        3,       2, ports.guest, ports.host, static_cast<std::uint32_t>(data.size()), vsock::kStream, vsock::kData, 0,
        kBuffer, 0};
    change(header);
    world.sendRaw(header, data);
  };
  SUBCASE("from another CID, to another CID, longer than it is: ignored") {
    raw([](Header& h) { h.sourceCid = 4; }, "x");
    raw([](Header& h) { h.destinationCid = 3; }, "x");
    raw([](Header& h) { h.size = 2; }, "x");
    CHECK_FALSE(world.receive());
    CHECK(readNow(client.get()).empty());
    CHECK(world.device.connections() == 1);
  }
  SUBCASE("another type of socket is refused as that type") {
    raw([](Header& h) { h.type = 2; });
    CHECK(world.expect(vsock::kReset).header.type == 2);
    CHECK(world.device.connections() == 1);
  }
  SUBCASE("a second request, an unknown operation, a second answer: reset") {
    std::uint16_t operation = 0;
    SUBCASE("request") { operation = vsock::kRequest; }
    SUBCASE("unknown") { operation = 99; }
    SUBCASE("response") { operation = vsock::kResponse; }
    raw([&](Header& h) { h.operation = operation; });
    world.expect(vsock::kReset);
    CHECK(atEnd(client.get()));
  }
  SUBCASE("a reset to nobody is not answered") {
    raw([](Header& h) { h.sourcePort = 1, h.operation = vsock::kReset; });
    CHECK_FALSE(world.receive());
  }
  SUBCASE("a credit question is answered") {
    raw([](Header& h) { h.operation = vsock::kCreditRequest; });
    CHECK(world.expect(vsock::kCreditUpdate).header.bufferSize == vsock::Connection::kWindow);
  }
  SUBCASE("less than a header") {
    world.driver().queues[1].add({world.driver().put("short")});
    world.driver().kick(1);
    CHECK(world.driver().queues[1].next());
  }
}
