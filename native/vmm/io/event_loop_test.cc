// The loop calls who asked, and a forked child starts with nothing.
#include "native/vmm/io/event_loop.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

using namespace bough;
using namespace bough::vmm;

namespace {

struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
    a.reset(fds[0]);
    b.reset(fds[1]);
  }
  UniqueFd a, b;
};

}  // namespace

TEST_CASE("a handler is called when its descriptor is ready, and not after it is unwatched") {
  auto loop = std::move(*EventLoop::make());
  Pair pair;
  int calls = 0;
  REQUIRE(loop->watch(pair.a.get(), EPOLLIN, [&](std::uint32_t events) {
    CHECK((events & EPOLLIN) != 0);
    calls++;
  }));
  loop->runOnce(0);
  CHECK(calls == 0);
  REQUIRE(::write(pair.b.get(), "x", 1) == 1);
  loop->runOnce(1000);
  loop->runOnce(1000);
  CHECK(calls == 2);
  loop->change(pair.a.get(), 0);
  loop->runOnce(0);
  CHECK(calls == 2);
  loop->change(pair.a.get(), EPOLLIN);
  loop->unwatch(pair.a.get());
  loop->runOnce(0);
  CHECK(calls == 2);
}

TEST_CASE("a handler may take its own watch away, and another's that is ready in the same turn") {
  auto loop = std::move(*EventLoop::make());
  Pair first, second;
  int calls = 0;
  auto handler = [&](std::uint32_t) {
    calls++;
    loop->unwatch(first.a.get());
    loop->unwatch(second.a.get());
  };
  REQUIRE(loop->watch(first.a.get(), EPOLLIN, handler));
  REQUIRE(loop->watch(second.a.get(), EPOLLIN, handler));
  REQUIRE(::write(first.b.get(), "x", 1) == 1);
  REQUIRE(::write(second.b.get(), "x", 1) == 1);
  loop->runOnce(1000);
  loop->runOnce(0);
  CHECK(calls == 1);
}

TEST_CASE("one loop watches another") {
  auto outer = std::move(*EventLoop::make());
  auto inner = std::move(*EventLoop::make());
  Pair pair;
  int calls = 0;
  REQUIRE(inner->watch(pair.a.get(), EPOLLIN, [&](std::uint32_t) { calls++; }));
  REQUIRE(outer->watch(inner->fd(), EPOLLIN, [&](std::uint32_t) { inner->runOnce(0); }));
  outer->runOnce(0);
  CHECK(calls == 0);
  REQUIRE(::write(pair.b.get(), "x", 1) == 1);
  outer->runOnce(1000);
  CHECK(calls == 1);
  inner->unwatch(pair.a.get());
  inner->wake();
  outer->runOnce(1000);
  outer->runOnce(0);
  CHECK(calls == 1);
}

TEST_CASE("wake comes from any thread, once for many calls") {
  auto loop = std::move(*EventLoop::make());
  int woken = 0;
  loop->onWake([&] { woken++; });
  std::thread other([&] {
    for (int i = 0; i < 10; i++) loop->wake();
  });
  other.join();
  loop->runOnce(1000);
  loop->runOnce(0);
  CHECK(woken == 1);
}

TEST_CASE("in a forked child the loop is its own: the parent's watches and wakes stay with the parent") {
  auto loop = std::move(*EventLoop::make());
  Pair pair;
  int calls = 0;
  int woken = 0;
  loop->onWake([&] { woken++; });
  REQUIRE(loop->watch(pair.a.get(), EPOLLIN, [&](std::uint32_t) { calls++; }));
  loop->wake();
  const pid_t child = ::fork();
  if (child == 0) {
    if (!loop->restart()) ::_exit(10);
    if (::write(pair.b.get(), "x", 1) != 1) ::_exit(11);
    loop->runOnce(0);
    if (calls != 0 || woken != 0) ::_exit(12);
    loop->wake();
    loop->runOnce(1000);
    ::_exit(woken == 1 ? 0 : 13);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  loop->runOnce(1000);
  CHECK(woken == 1);
  CHECK(calls == 1);
}
