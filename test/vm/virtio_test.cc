// Requests that are in flight when a machine forks are answered exactly once on each side; connections belong to one
// side.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <set>

#include "test/vm/harness/fuse_server.h"
#include "test/vm/harness/guest_lines.h"
#include "test/vm/harness/host.h"
#include "test/vm/harness/rounds.h"
#include "test/vm/harness/vm.h"

using namespace bough::vmtest;
using bough::UniqueFd;

namespace {

/// A connection to a port of the guest, through its machine's vsock socket.
class GuestConnection {
 public:
  explicit GuestConnection(const Listener& vsock) : socket_(vsock.connect()) {
    send("CONNECT 1234\n");
    said_ = receiveLine();
  }
  /// "OK <port>", or what else it said.
  const std::string& said() const { return said_; }

  /// Sends a line, and answers what came back up to the next newline; empty if the connection ended.
  std::string echo(const std::string& line) {
    send(line + "\n");
    return receiveLine();
  }
  bool ended() {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, 0) <= 0;
  }

 private:
  void send(const std::string& text) const { ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  std::string receiveLine() const {
    timeval longest{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    std::string line;
    for (char byte = 0; ::recv(socket_.get(), &byte, 1, 0) == 1 && byte != '\n';) line += byte;
    return line;
  }
  UniqueFd socket_;
  std::string said_;
};

}  // namespace

TEST_SUITE("virtio") {
  TEST_CASE("entropy requests in flight: answered once on each side, with different bytes") {
    Vm vm("rng");
    std::set<std::uint64_t> seen;
    vm.console().waitForMore(100);
    for (Rounds round(200); round.next();) {
      INFO("fork " << round.index());
      Vm child = vm.forkOne();
      for (Vm* side : {&vm, &child}) {
        const std::string line = linesOn(*side, 2);
        CHECK(complaint(*side) == "");
        CHECK(seen.insert(field(line, 1)).second);
      }
    }
  }

  TEST_CASE("console output in flight: no line is lost or written twice") {
    Vm vm("console");
    vm.console().waitForMore(100);
    for (Rounds round(300); round.next();) {
      INFO("fork " << round.index());
      CHECK(forkOfStream(vm, {}) == "");
      vm.console().waitForMore(vm.console().size() + 100);
    }
    CHECK(Numbers{}.differs(vm.console().text(), 0) == "");
  }

  TEST_CASE("file system requests in flight: each is answered once, by the side's own server") {
    FuseServer server;
    Vm vm;
    const UniqueFd kernel = openFile(guestPath("files"));
    const Answer booted =
        vm.boot(kernel.get(), {{"fileSystems", {{{"tag", "work"}, {"fd", 2}}}}}, {server.clientEnd()});
    REQUIRE_MESSAGE(booted.ok(), booted.text());
    server.letGo();
    vm.console().waitForMore(100);
    for (Rounds round(100); round.next();) {
      INFO("fork " << round.index());
      FuseServer own;
      Vm::Forked forked = vm.tryFork(1, false, Json::object(), {{own.clientEnd()}});
      REQUIRE_MESSAGE(forked.answer.ok(), forked.answer.text());
      own.letGo();
      for (Vm* side : {&vm, &forked.children.front()}) {
        linesOn(*side, 2);
        CHECK(complaint(*side) == "");
      }
      CHECK(own.requests() > 0);
      CHECK(own.repeated() == 0);
    }
    CHECK(server.repeated() == 0);
  }

  TEST_CASE("a file server that does not answer: the fork is refused in time, and the machine runs on") {
    FuseServer server;
    Vm vm;
    const UniqueFd kernel = openFile(guestPath("files"));
    REQUIRE(vm.boot(kernel.get(), {{"fileSystems", {{{"tag", "work"}, {"fd", 2}}}}}, {server.clientEnd()}).ok());
    server.letGo();
    vm.console().waitForMore(50);
    server.hold(true);
    const Answer refused = vm.ask("pause", {{"timeoutMs", 500}});
    CHECK(refused.code == "E_DRAIN");
    CHECK(refused.status == 503);
    CHECK(vm.state() == "running");
    server.hold(false);
    linesOn(vm, 2);
    CHECK(complaint(vm) == "");
    CHECK(vm.ask("pause").ok());
  }

  TEST_CASE("connections live on in the parent, end in the child, and both take new ones") {
    const Listener vsock;
    Vm vm;
    const UniqueFd kernel = openFile(guestPath("vsock"));
    const Answer booted = vm.boot(kernel.get(), {{"vsock", 2}}, {vsock.fd()});
    REQUIRE_MESSAGE(booted.ok(), booted.text());
    vm.console().waitFor("listening\n");
    GuestConnection old(vsock);
    CHECK(old.said().starts_with("OK"));
    CHECK(old.echo("one") == "one");
    for (Rounds round(100); round.next();) {
      INFO("fork " << round.index());
      const Listener control;
      const Listener childVsock;
      Console console;
      const Answer forked = vm.ask("fork", {{"children", {{{"control", 0}, {"console", 1}, {"vsock", 2}}}}},
                                   {control.fd(), console.writeEnd(), childVsock.fd()});
      REQUIRE_MESSAGE(forked.ok(), forked.text());
      // The child is told, once; the parent is not.
      console.waitFor("reset\n");
      CHECK(vm.console().text().find("reset") == std::string::npos);
      CHECK(old.echo("line " + std::to_string(round.index())) == "line " + std::to_string(round.index()));
      GuestConnection fresh(childVsock);
      CHECK(fresh.said().starts_with("OK"));
      CHECK(fresh.echo("child") == "child");
      const std::string text = console.text();
      CHECK(text.find("reset", text.find("reset") + 1) == std::string::npos);
      CHECK(text.find("FAIL") == std::string::npos);
      Control(control.connect()).send("kill");
      CHECK(fresh.ended());
    }
    CHECK(old.echo("last") == "last");
    CHECK(complaint(vm) == "");
  }
}
