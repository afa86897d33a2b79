// The ring of a process's output: numbers, streams, what is kept and what may go; and against a plain model.
#include "native/guest/init/ring.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace bough::guest;

namespace {

std::string readAll(const OutputRing& ring, std::uint64_t from) {
  std::string all;
  for (Piece piece = ring.read(from, 7); !piece.bytes.empty(); piece = ring.read(piece.at + piece.bytes.size(), 7)) {
    all += piece.bytes;
  }
  return all;
}

}  // namespace

TEST_CASE("bytes are numbered through both streams, and a piece is of one") {
  OutputRing ring(4096, WhenFull::Wait);
  ring.append(Stream::Out, "one");
  ring.append(Stream::Err, "two");
  ring.append(Stream::Out, "three");
  const Piece second = ring.read(3, 100);
  CHECK(second.stream == Stream::Err);
  CHECK(second.at == 3);
  CHECK(second.bytes == "two");
  CHECK(ring.read(4, 1).bytes == "w");
  CHECK(ring.read(11, 100).bytes.empty());
  CHECK(ring.read(500, 100).bytes.empty());
  CHECK(readAll(ring, 0) == "onetwothree");
}

TEST_CASE("Wait: there is room as bytes are released, and what was released stays while there is room") {
  OutputRing ring(4096, WhenFull::Wait);
  ring.append(Stream::Out, std::string(4096, 'a'));
  CHECK(ring.room() == 0);
  ring.release(1000);
  CHECK(ring.room() == 1000);
  CHECK(ring.from() == 0);
  ring.append(Stream::Out, std::string(10, 'b'));
  CHECK(ring.from() == 10);
  CHECK(ring.to() == 4106);
  CHECK(ring.room() == 990);
}

TEST_CASE("Wait: last words are taken beyond the room, and nothing is lost") {
  OutputRing ring(4096, WhenFull::Wait);
  ring.append(Stream::Out, std::string(4096, 'a'));
  ring.append(Stream::Err, std::string(70000, 'b'));
  CHECK(ring.from() == 0);
  CHECK(readAll(ring, 0) == std::string(4096, 'a') + std::string(70000, 'b'));
  CHECK(ring.room() == 0);
}

TEST_CASE("Drop: the oldest bytes go") {
  OutputRing ring(4096, WhenFull::Drop);
  ring.append(Stream::Terminal, std::string(4096, 'a') + "end");
  CHECK(ring.from() == 3);
  CHECK(ring.read(0, 10).at == 3);
  ring.append(Stream::Terminal, std::string(10000, 'b') + "last");
  CHECK(ring.to() == 14103);
  CHECK(ring.from() == 14103 - 4096);
  CHECK(readAll(ring, 0).ends_with("blast"));
}

TEST_CASE("single bytes of two streams in turn do not take much more than their bytes") {
  OutputRing drop(4096, WhenFull::Drop);
  OutputRing wait(4096, WhenFull::Wait);
  int taken = 0;
  for (int i = 0; i < 10000; i++) {
    const Stream stream = i % 2 == 0 ? Stream::Out : Stream::Err;
    drop.append(stream, "x");
    if (wait.room() > 0) {
      wait.append(stream, "x");
      taken++;
    }
  }
  CHECK(drop.to() - drop.from() == 256);
  CHECK(taken == 256);
  wait.release(1);
  CHECK(wait.room() > 0);
}

TEST_CASE("random appends, releases and reads agree with a string") {
  constexpr unsigned kSeed = 20261;
  MESSAGE("seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto upTo = [&random](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  for (const WhenFull whenFull : {WhenFull::Wait, WhenFull::Drop}) {
    OutputRing ring(5000, whenFull);
    std::string all;
    std::uint64_t released = 0;
    for (int step = 0; step < 20000; step++) {
      const std::string bytes(std::min(upTo(3000), ring.room()), static_cast<char>('a' + upTo(25)));
      ring.append(upTo(1) == 0 ? Stream::Out : Stream::Err, bytes);
      all += bytes;
      REQUIRE(ring.to() == all.size());
      if (whenFull == WhenFull::Wait) REQUIRE(ring.from() <= released);
      REQUIRE(ring.to() - ring.from() <= 5000);
      const std::uint64_t from = ring.from() + upTo(ring.to() - ring.from());
      const Piece piece = ring.read(from, 1 + upTo(4000));
      REQUIRE(piece.bytes == all.substr(piece.at, piece.bytes.size()));
      REQUIRE((piece.bytes.empty() || piece.at == from));
      released += upTo(all.size() - released);
      ring.release(released);
    }
  }
}
