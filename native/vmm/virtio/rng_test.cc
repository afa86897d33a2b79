// Random bytes reach the guest, whole and fresh; two machines that were one get different ones.
#include "native/vmm/virtio/rng.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>

#include "native/vmm/virtio/test_driver.h"

using namespace bough;
using namespace bough::vmm;

namespace {

std::string ask(TestDriver& driver, std::size_t size) {
  const auto room = driver.room(size);
  driver.queues[0].add({room});
  driver.kick(0);
  const auto used = driver.queues[0].next();
  REQUIRE(used);
  return driver.text(room.address, used->written);
}

}  // namespace

TEST_CASE("requests of any size get random bytes, large ones a part") {
  Rng rng;
  TestDriver driver(rng);
  driver.start();
  CHECK(ask(driver, 64).size() == 64);
  CHECK(ask(driver, 1).size() == 1);
  CHECK(ask(driver, 100'000).size() == Rng::kMostBytes);
  const std::string bytes = ask(driver, 4096);
  // 256 values in 4,096 draws: fewer than 200 of them does not happen.
  CHECK(std::set<char>(bytes.begin(), bytes.end()).size() > 200);
  CHECK(ask(driver, 64) != ask(driver, 64));
}

TEST_CASE("a buffer that the device may not write is answered with nothing") {
  Rng rng;
  TestDriver driver(rng);
  driver.start();
  driver.queues[0].add({driver.put("keep")});
  driver.kick(0);
  CHECK(driver.queues[0].next()->written == 0);
}

TEST_CASE("while drained nothing is given, afterwards what was asked for") {
  Rng rng;
  TestDriver driver(rng);
  driver.start();
  rng.drain();
  CHECK(rng.quiet());
  driver.queues[0].add({driver.room(32)});
  driver.kick(0);
  CHECK_FALSE(driver.queues[0].next());
  rng.resume();
  CHECK(driver.queues[0].next()->written == 32);
}

TEST_CASE("parent and child of a fork get different bytes for the same request") {
  Rng rng;
  TestDriver driver(rng);
  driver.start();
  const auto room = driver.room(32);
  rng.drain();
  driver.queues[0].add({room});
  driver.kick(0);

  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  UniqueFd in(fds[0]), out(fds[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    rng.becomeChild();
    rng.resume();
    const std::string bytes = driver.text(room.address, 32);
    ::_exit(driver.queues[0].next() && ::write(out.get(), bytes.data(), 32) == 32 ? 0 : 1);
  }
  rng.resume();
  CHECK(driver.queues[0].next());
  std::string childs(32, '\0');
  REQUIRE(::read(in.get(), childs.data(), 32) == 32);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  const std::string mine = driver.text(room.address, 32);
  CHECK(mine != childs);
  CHECK(mine != std::string(32, '\0'));
  CHECK(childs != std::string(32, '\0'));
}
