// The file system device between a guest's driver and a FUSE server, both played by the test: requests arrive whole,
// answers go to who asked, and neither a slow, a wrong nor a dead server leaves the guest waiting.
#include "native/vmm/virtio/fs.h"

#include <doctest/doctest.h>

#include <deque>
#include <string>

#include "native/vmm/virtio/fs_wire.h"
#include "native/vmm/virtio/test_host.h"

using namespace bough;
using namespace bough::vmm;

namespace {

struct Request {
  fs::RequestHead head{};
  fuse_in_header header{};
  std::string body;
};

struct World {
  World() {
    HostEnds ends;
    ends.fileSystems.push_back(std::move(sockets.theirs));
    host.attach(std::move(ends));
    host.driver.start();
  }
  TestDriver& driver() { return host.driver; }
  int server() const { return sockets.mine.get(); }

  struct Asked {
    std::uint16_t head = 0;
    TestQueue::Part room;
  };
  /// The guest asks. `room`: for the answer, its header included.
  Asked ask(std::uint32_t opcode, std::uint64_t unique, std::string_view body, std::size_t room = 16,
            std::uint32_t queue = 1) {
    fuse_in_header header{};
    header.len = static_cast<std::uint32_t>(sizeof header + body.size());
    header.opcode = opcode;
    header.unique = unique;
    header.nodeid = 1;
    std::vector<TestQueue::Part> parts{driver().put(asText(header))};
    if (!body.empty()) parts.push_back(driver().put(body));
    Asked asked{0, {}};
    if (room > 0) {
      asked.room = driver().room(room);
      // As Linux does: header and data apart.
      if (room > 16) {
        parts.push_back({asked.room.address, 16, true});
        parts.push_back({GuestAddress{raw(asked.room.address) + 16}, static_cast<std::uint32_t>(room - 16), true});
      } else {
        parts.push_back(asked.room);
      }
    }
    asked.head = driver().queues[queue].add(parts, driver().allocate(16 * parts.size()));
    driver().kick(queue);
    return asked;
  }
  /// The answer to the guest: FUSE header and data. Empty if there is none after all that can happen has happened.
  std::optional<std::string> answer(const Asked& asked, std::uint32_t queue = 1) {
    const auto used = driver().queues[queue].next();
    if (!used) return std::nullopt;
    CHECK(used->head == asked.head);
    return driver().text(asked.room.address, used->written);
  }
  /// The next request as the server gets it.
  Request serve() {
    Request request;
    const std::string head = take(sizeof request.head);
    std::memcpy(&request.head, head.data(), sizeof request.head);
    CHECK(request.head.magic == fs::kRequestMagic);
    const std::string all = take(request.head.size);
    std::memcpy(&request.header, all.data(), sizeof request.header);
    CHECK(request.header.len == request.head.size);
    request.body = all.substr(sizeof request.header);
    return request;
  }
  std::string take(std::size_t size) {
    REQUIRE(host.until([&] {
      if (received.size() < size) received += readNow(server());
      return received.size() >= size;
    }));
    const std::string bytes = received.substr(0, size);
    received.erase(0, size);
    return bytes;
  }
  static std::string record(std::uint64_t unique, std::string_view body, int error = 0) {
    const auto size = static_cast<std::uint32_t>(sizeof(fuse_out_header) + body.size());
    return std::string(asText(fs::AnswerHead{fs::kAnswerMagic, size})) +
           std::string(asText(fuse_out_header{size, error, unique})) + std::string(body);
  }
  void reply(const Request& request, std::string_view body, int error = 0) {
    put(record(request.header.unique, body, error));
  }
  void put(std::string_view bytes) {
    std::size_t done = 0;
    REQUIRE(host.until([&] {
      const ssize_t sent = ::send(server(), bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) done += static_cast<std::size_t>(sent);
      return done == bytes.size();
    }));
    host.settle();
  }

  SocketPair sockets;
  Fs device{"workspace"};
  TestHost host{device};
  std::string received;
};

std::string outHeader(std::uint64_t unique, int error, std::size_t size = 16) {
  return std::string(asText(fuse_out_header{static_cast<std::uint32_t>(size), error, unique}));
}

constexpr int kNotConnected = -ENOTCONN;

}  // namespace

TEST_CASE("the guest reads tag and number of queues") {
  World world;
  std::array<std::byte, 40> config{};
  world.driver().mmio.read(mmio::kConfig, config);
  CHECK(std::string(reinterpret_cast<const char*>(config.data())) == "workspace");
  CHECK(config[36] == std::byte{1});
}

TEST_CASE("a request goes to the server under the device's number, the answer back under the guest's") {
  World world;
  const auto asked = world.ask(FUSE_LOOKUP, 4242, "README.md", 16 + 128);
  const Request request = world.serve();
  CHECK(request.head.room == 144);
  CHECK(request.header.opcode == FUSE_LOOKUP);
  CHECK(request.header.nodeid == 1);
  CHECK(request.header.unique % 2 == 0);
  CHECK(request.header.unique != 0);
  CHECK(request.body == "README.md");
  CHECK_FALSE(world.device.quiet());
  world.reply(request, "an entry");
  CHECK(world.answer(asked) == outHeader(4242, 0, 24) + "an entry");
  CHECK(world.device.quiet());
}

TEST_CASE("answers come in any order and each goes to who asked; errors too") {
  World world;
  const auto first = world.ask(FUSE_GETATTR, 10, "", 64);
  const auto second = world.ask(FUSE_GETATTR, 12, "", 64);
  const Request one = world.serve();
  const Request two = world.serve();
  world.reply(two, "second");
  CHECK(world.answer(second) == outHeader(12, 0, 22) + "second");
  world.reply(one, "", -ENOENT);
  CHECK(world.answer(first) == outHeader(10, -ENOENT));
}

TEST_CASE("a megabyte in, a megabyte out, byte for byte, while the server is slow") {
  World world;
  std::string data(1'000'000, '\0');
  for (std::size_t i = 0; i < data.size(); i++) data[i] = static_cast<char>(i * 7 >> 3);
  const auto write = world.ask(FUSE_WRITE, 2, data, 24);
  const auto small = world.ask(FUSE_GETATTR, 4, "", 24);
  Request request = world.serve();
  CHECK(request.body == data);
  world.reply(request, "12345678");
  CHECK(world.answer(write) == outHeader(2, 0, 24) + "12345678");
  world.reply(world.serve(), "x");
  CHECK(world.answer(small));

  const auto read = world.ask(FUSE_READ, 6, "what", 16 + data.size());
  world.reply(world.serve(), data);
  CHECK(world.answer(read) == outHeader(6, 0, 16 + data.size()) + data);
}

TEST_CASE("an answer may come byte by byte, and many at once") {
  World world;
  const auto asked = world.ask(FUSE_READ, 8, "", 116);
  const std::string record = World::record(world.serve().header.unique, "slowly");
  for (const char each : record) {
    CHECK_FALSE(world.driver().queues[1].next());
    world.put(std::string_view(&each, 1));
  }
  CHECK(world.answer(asked) == outHeader(8, 0, 22) + "slowly");

  std::vector<World::Asked> many;
  std::string records;
  for (std::uint64_t i = 0; i < 200; i++) {
    many.push_back(world.ask(FUSE_READ, 1000 + 2 * i, "", 200));
    records += World::record(world.serve().header.unique, std::string(i % 150, 'r'));
  }
  world.put(records);
  for (std::uint64_t i = 0; i < 200; i++)
    CHECK(world.answer(many[i]) == outHeader(1000 + 2 * i, 0, 16 + i % 150) + std::string(i % 150, 'r'));
}

TEST_CASE("FORGET and BATCH_FORGET are given back as soon as they are on their way") {
  World world;
  for (const std::uint32_t opcode : {FUSE_FORGET, FUSE_BATCH_FORGET}) {
    const auto asked = world.ask(opcode, 0, "12345678", 0, 0);
    CHECK(world.answer(asked, 0) == "");
    const Request request = world.serve();
    CHECK(request.header.opcode == opcode);
    CHECK(request.head.room == 0);
    CHECK(world.device.quiet());
  }
}

TEST_CASE("INTERRUPT names the request as the server knows it; for one that is over it goes nowhere") {
  World world;
  const auto asked = world.ask(FUSE_READ, 20, "", 64);
  const Request request = world.serve();
  const std::uint64_t guestUnique = 20;
  const auto interrupt = world.ask(FUSE_INTERRUPT, 21, asText(guestUnique), 0, 0);
  CHECK(world.answer(interrupt, 0) == "");
  const Request interrupted = world.serve();
  CHECK(interrupted.header.opcode == FUSE_INTERRUPT);
  CHECK(interrupted.body == asText(request.header.unique));
  world.reply(request, "", -EINTR);
  CHECK(world.answer(asked) == outHeader(20, -EINTR));

  const auto late = world.ask(FUSE_INTERRUPT, 21, asText(guestUnique), 0, 0);
  CHECK(world.answer(late, 0) == "");
  world.host.settle();
  CHECK(readNow(world.server()).empty());
}

TEST_CASE("an answer that is larger than the guest's room is an error of that request alone") {
  World world;
  const auto asked = world.ask(FUSE_READ, 30, "", 20);
  const auto other = world.ask(FUSE_READ, 32, "", 20);
  const Request request = world.serve();
  const Request next = world.serve();
  world.reply(request, std::string(100'000, 'L'));
  CHECK(world.answer(asked) == outHeader(30, -EIO));
  world.reply(next, "fits");
  CHECK(world.answer(other) == outHeader(32, 0, 20) + "fits");
}

TEST_CASE("requests that are none are answered at once and do not reach the server") {
  World world;
  TestDriver& driver = world.driver();
  SUBCASE("shorter than a header") {
    driver.queues[1].add({driver.put("tiny"), driver.room(16)});
    driver.kick(1);
    CHECK(driver.queues[1].next()->written == 0);
  }
  SUBCASE("a length that is not its own") {
    fuse_in_header header{};
    header.len = 41;
    header.unique = 6;
    const auto room = driver.room(16);
    driver.queues[1].add({driver.put(asText(header)), room});
    driver.kick(1);
    CHECK(driver.queues[1].next()->written == 16);
    CHECK(driver.text(room.address, 16) == outHeader(6, -EIO));
  }
  SUBCASE("no room for an answer") {
    world.ask(FUSE_LOOKUP, 2, "x", 8);
    CHECK(driver.queues[1].next()->written == 0);
  }
  world.host.settle();
  CHECK(readNow(world.server()).empty());
  CHECK(world.device.quiet());
}

TEST_CASE("a server that goes away or breaks the format: everything is answered, at once and later") {
  World world;
  const auto first = world.ask(FUSE_READ, 40, "", 64);
  const auto second = world.ask(FUSE_WRITE, 42, std::string(800'000, 'w'), 24);
  const Request request = world.serve();
  const std::uint64_t unique = request.header.unique;
  SUBCASE("it closes") { world.sockets.mine.reset(); }
  SUBCASE("a wrong magic") { world.put(std::string(24, '!')); }
  SUBCASE("an answer to nothing") { world.put(World::record(unique + 4, "")); }
  SUBCASE("an answer to a request that it has not wholly got") { world.put(World::record(unique + 2, "")); }
  SUBCASE("two lengths") {
    std::string record = World::record(unique, "x");
    record[4]++;
    world.put(record);
  }
  SUBCASE("shorter than a header") {
    std::string record = World::record(unique, "x");
    record[4] = record[8] = 15;
    world.put(record);
  }
  SUBCASE("the same answer twice") {
    world.put(World::record(unique, ""));
    CHECK(world.answer(first) == outHeader(40, 0));
    world.put(World::record(unique, ""));
    CHECK(world.answer(second) == outHeader(42, kNotConnected));
    return;
  }
  SUBCASE("it closes in the middle of an answer") {
    world.put(World::record(unique, "cut off here").substr(0, 30));
    world.sockets.mine.reset();
  }
  world.host.settle();
  CHECK(world.answer(first) == outHeader(40, kNotConnected));
  CHECK(world.answer(second) == outHeader(42, kNotConnected));
  CHECK(world.device.quiet());
  const auto later = world.ask(FUSE_GETATTR, 44, "", 64);
  CHECK(world.answer(later) == outHeader(44, kNotConnected));
  CHECK(world.answer(world.ask(FUSE_FORGET, 0, "12345678", 0, 0), 0) == "");
}

TEST_CASE("without a server every request is answered with ENOTCONN") {
  Fs device("nobody");
  TestHost host(device);
  host.attach({});
  host.driver.start();
  fuse_in_header header{};
  header.len = sizeof header;
  header.opcode = FUSE_INIT;
  header.unique = 2;
  const auto room = host.driver.room(80);
  host.driver.queues[1].add({host.driver.put(asText(header)), room});
  host.driver.kick(1);
  CHECK(host.driver.queues[1].next()->written == 16);
  CHECK(host.driver.text(room.address, 16) == outHeader(2, kNotConnected));
}

TEST_CASE("notifications of the server are passed over") {
  World world;
  const auto asked = world.ask(FUSE_GETATTR, 50, "", 64);
  const Request request = world.serve();
  world.put(World::record(0, std::string(50'000, 'n')));
  world.reply(request, "attr");
  CHECK(world.answer(asked) == outHeader(50, 0, 20) + "attr");
}

TEST_CASE("more requests than may be in flight wait in the queue and none is lost") {
  World world;
  constexpr std::size_t kAll = Fs::kMostInFlight + 100;
  std::vector<World::Asked> asked;
  for (std::uint64_t i = 0; i < kAll; i++) asked.push_back(world.ask(FUSE_GETATTR, 2 * i + 2, "", 16));
  for (std::size_t i = 0; i < kAll; i++) {
    const Request request = world.serve();
    world.reply(request, "", -2);
    CHECK(world.answer(asked[i]) == outHeader(2 * i + 2, -2));
  }
}

TEST_CASE("drain waits for what the server has and takes nothing new; resume takes it") {
  World world;
  const auto before = world.ask(FUSE_READ, 60, "", 64);
  world.device.drain();
  const auto during = world.ask(FUSE_READ, 62, "", 64);
  CHECK_FALSE(world.device.quiet());
  world.reply(world.serve(), "before");
  CHECK(world.device.quiet());
  CHECK(world.answer(before));
  world.host.settle();
  CHECK(readNow(world.server()).empty());

  SUBCASE("the parent goes on with its server") {
    world.device.resume();
    world.reply(world.serve(), "during");
    CHECK(world.answer(during) == outHeader(62, 0, 22) + "during");
  }
  SUBCASE("a child has a server of its own, and the parent's hears nothing") {
    REQUIRE(world.host.loop->restart());
    world.device.becomeChild();
    SocketPair own;
    HostEnds ends;
    ends.fileSystems.push_back(std::move(own.theirs));
    world.host.attach(std::move(ends));
    std::swap(world.sockets.mine, own.mine);
    world.device.resume();
    world.reply(world.serve(), "child");
    CHECK(world.answer(during) == outHeader(62, 0, 21) + "child");
    CHECK(readNow(own.mine.get()).empty());
  }
  SUBCASE("a child without a server answers") {
    REQUIRE(world.host.loop->restart());
    world.device.becomeChild();
    world.host.attach({});
    world.device.resume();
    CHECK(world.answer(during) == outHeader(62, kNotConnected));
  }
}

TEST_CASE("a reset of the driver: old answers go nowhere, and the server still understands what comes next") {
  World world;
  world.ask(FUSE_READ, 70, "", 64);
  world.ask(FUSE_WRITE, 72, std::string(900'000, 'w'), 24);  // more than the socket takes at once
  world.ask(FUSE_READ, 74, "", 64);                          // not sent at all
  const Request read = world.serve();
  world.driver().restart();
  const auto fresh = world.ask(FUSE_INIT, 2, "init", 80);
  const Request write = world.serve();
  CHECK(write.header.opcode == FUSE_WRITE);
  CHECK(write.body == std::string(900'000, 'w'));
  const Request init = world.serve();
  CHECK(init.header.opcode == FUSE_INIT);
  world.reply(read, "old");
  world.reply(write, "old");
  CHECK_FALSE(world.driver().queues[1].next());
  world.reply(init, "new");
  CHECK(world.answer(fresh) == outHeader(2, 0, 19) + "new");
  CHECK(world.device.quiet());
}

TEST_CASE("saved and loaded it is the same file system") {
  World world;
  Encoder out;
  world.device.save(out);
  Fs same("workspace");
  Decoder in(out.str());
  CHECK(same.load(in));
  Fs other("root");
  Decoder again(out.str());
  REQUIRE_FALSE(other.load(again));
}
