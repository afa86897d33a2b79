// Many forks, deep forks, wide forks, and forks that go wrong: the source runs on and nothing is left behind.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "test/vm/harness/guest_lines.h"
#include "test/vm/harness/host.h"
#include "test/vm/harness/rounds.h"
#include "test/vm/harness/vm.h"

using namespace bough::vmtest;

namespace {

std::chrono::milliseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

/// The source of a fork that failed: it runs, has no child, and can be forked.
void unharmed(Vm& vm, std::size_t processes) {
  CHECK(vm.state() == "running");
  CHECK(vm.must("status").at("children").empty());
  CHECK(vm.command("p") == "pong");
  CHECK(processesBelow().size() == processes);
  Vm child = vm.forkOne();
  CHECK(child.command("p") == "pong");
}

/// A cgroup of this test alone, or none where this user may not make one.
class Cgroup {
 public:
  Cgroup() {
    path_ = "/sys/fs/cgroup/bough-vm-test-" + std::to_string(::getpid());
    std::ofstream("/sys/fs/cgroup/cgroup.subtree_control") << "+pids";
    if (::mkdir(path_.c_str(), 0700) != 0 || ::access((path_ + "/pids.max").c_str(), W_OK) != 0) {
      ::rmdir(path_.c_str());
      path_.clear();
    }
  }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::size_t tasks() const {
    std::size_t count = 0;
    std::ifstream(path_ + "/pids.current") >> count;
    return count;
  }
  void limit(const std::string& tasks) const { std::ofstream(path_ + "/pids.max") << tasks; }

 private:
  std::string path_;
};

}  // namespace

TEST_SUITE("forks") {
  TEST_CASE("ten thousand forks: no store is lost or done twice, no descriptor leaks") {
    constexpr unsigned kMost = 10'000;
    Vm vm("stores");
    const Numbers numbers{0x2000, 0x2000};
    vm.console().waitForMore(100);
    vm.forkOne();  // what is made once and kept is there now
    const auto before = descriptorsOf(vm.pid().value());
    const auto start = Clock::now();
    Rounds round(kMost, Seconds(30));
    while (round.next()) {
      INFO("fork " << round.index());
      const std::string wrong = forkOfStream(vm, numbers);
      REQUIRE(wrong == "");
    }
    std::printf("forks without a lost or doubled store: %u of %u in %.1f s\n", round.done(), kMost,
                static_cast<double>(since(start).count()) / 1000);
    CHECK(numbers.differs(vm.console().text(), 0) == "");
    if (before) CHECK(descriptorsOf(vm.pid().value())->size() == before->size());
    CHECK(vm.must("metrics").at("forks") == round.done() + 1);
  }

  TEST_CASE("generations, of which every second one ends before its child is asked") {
    constexpr unsigned kDepth = 50;
    std::vector<Vm> generations;
    generations.emplace_back("commands");
    generations.back().console().waitFor("ready\n");
    for (unsigned i = 0; i < kDepth; i++) {
      INFO("generation " << i);
      const char mark = static_cast<char>('A' + i % 26);
      CHECK(generations.back().command(std::string("w") + mark) == "written");
      generations.push_back(generations.back().forkOne());
      if (i % 2 == 0) generations[i].kill();
      CHECK(generations.back().command("r") == std::string(1, mark));
    }
    // All that live still have what they wrote last.
    for (unsigned i = 1; i < kDepth; i += 2) CHECK(generations[i].command("r") == std::string(1, char('A' + i % 26)));
  }

  TEST_CASE("a fan-out in one pause: all are of the same instant and all answer") {
    const unsigned count = emulated() ? 20 : 100;
    Vm vm("commands");
    vm.console().waitFor("ready\n");
    CHECK(vm.command("wx") == "written");
    const auto start = Clock::now();
    std::vector<Vm> children = vm.fork(count);
    const auto forked = since(start);
    CHECK(vm.command("wy") == "written");
    for (Vm& child : children) CHECK(child.command("r") == "x");
    std::printf("%u children: forked in %lld ms, all answered after %lld ms\n", count,
                static_cast<long long>(forked.count()), static_cast<long long>(since(start).count()));
    std::set<std::string> names;
    const Json status = vm.must("status");
    for (const Json& child : status.at("children")) names.insert(child.at("name").get<std::string>());
    CHECK(names.size() == count);
    children.clear();
    CHECK(vm.command("r") == "y");
  }

  TEST_CASE("a child outlives its parent, and the dead parent's memory comes back") {
    auto parent = std::make_optional<Vm>("commands", Json{{"ramMiB", 192}});
    parent->console().waitFor("ready\n");
    Vm child = parent->forkOne();
    Vm frozen = parent->forkOne(true);
    CHECK(parent->command("t") == "touched");
    const std::size_t before = availableKiB();
    parent.reset();
    // Freed by the kernel after the process has ended: wait for it, up to a bound.
    const auto end = Clock::now() + Seconds(20);
    std::size_t grown = 0;
    while (grown < std::size_t{48} << 10 && Clock::now() < end) {
      grown = availableKiB() - std::min(before, availableKiB());
    }
    CHECK(grown >= std::size_t{48} << 10);
    CHECK(child.command("p") == "pong");
    CHECK(child.command("s") == "0000000000000000");
    CHECK(frozen.forkOne().command("p") == "pong");
  }

  TEST_CASE("the parent is killed in the middle of a fork: each child runs or is gone") {
    for (Rounds round(40); round.next();) {
      INFO("kill " << round.index());
      Vm vm("commands");
      vm.console().waitFor("ready\n");
      const pid_t pid = vm.pid().value();
      constexpr unsigned kChildren = 6;
      std::vector<Listener> listeners(kChildren);
      std::vector<int> fds;
      Json children = Json::array();
      for (const Listener& listener : listeners) {
        children.push_back({{"control", fds.size()}});
        fds.push_back(listener.fd());
      }
      vm.control().send("fork", {{"children", children}}, fds);
      // At another moment each time, by the processes that are there: before, within and after the forks.
      const std::size_t alone = processesBelow().size();
      const auto end = Clock::now() + Seconds(5);
      while (processesBelow().size() < alone + round.index() % (kChildren + 1) && Clock::now() < end) {
      }
      ::kill(pid, SIGKILL);
      unsigned running = 0;
      for (Listener& listener : listeners) {
        listener.letGo();
        try {
          Control control(listener.connect());
          CHECK(control.ask("status").result.at("state") == "running");
          control.send("kill");
          running++;
        } catch (const std::runtime_error&) {
          // No such child.
        }
      }
      vm.kill();
      const std::vector<pid_t> left = waitForNoProcess();
      CHECK_MESSAGE(left.empty(), left.size() << " processes are left; " << running << " children ran");
    }
  }

  TEST_CASE("the client goes away in the middle of a fork: its children end, the source runs on") {
    Vm vm("commands");
    vm.console().waitFor("ready\n");
    const std::size_t processes = processesBelow().size();
    {
      Control other = vm.connect();
      const Listener listener;
      other.send("fork", {{"children", {{{"control", 0}}}}}, {listener.fd()});
    }
    // Its requests are carried out or dropped before the next of ours is.
    const auto end = Clock::now() + Seconds(20);
    while ((processesBelow().size() != processes || !vm.must("status").at("children").empty()) && Clock::now() < end) {
    }
    unharmed(vm, processes);
  }

  TEST_CASE("no more processes allowed: the fork is refused as a whole") {
    const Cgroup cgroup;
    if (cgroup.path().empty()) {
      std::printf("skipped: no cgroup v2 with pids that this user may use\n");
      return;
    }
    {
      Vm vm("commands", Json::object(), {{"--cgroup", cgroup.path()}});
      vm.console().waitFor("ready\n");
      const std::size_t processes = processesBelow().size();
      for (const std::size_t room : {0U, 1U, 3U, 4U}) {
        INFO("room for " << room << " tasks more");
        cgroup.limit(std::to_string(cgroup.tasks() + room));
        const Vm::Forked forked = vm.tryFork(8);
        CHECK_MESSAGE((forked.answer.code == "E_FORK" || forked.answer.code == "E_CHILD"), forked.answer.text());
        cgroup.limit("max");
        unharmed(vm, processes);
      }
    }
    CHECK(waitForNoProcess().empty());
  }

  TEST_CASE("no more descriptors allowed: refused, and the source runs on") {
    Vm vm("commands");
    vm.console().waitFor("ready\n");
    const auto open = descriptorsOf(vm.pid().value());
    if (!open) {
      std::printf("skipped: this user may not look at a locked-in process\n");
      return;
    }
    const std::size_t processes = processesBelow().size();
    rlimit old{};
    for (const std::size_t room : {1U, 5U, 9U}) {
      INFO("room for " << room << " descriptors");
      Control other = vm.connect();
      REQUIRE(other.ask("hello").ok());
      const rlimit few{open->size() + room, 4096};
      REQUIRE(::prlimit(vm.pid().value(), RLIMIT_NOFILE, &few, &old) == 0);
      std::vector<Listener> listeners(8);
      std::vector<int> fds;
      Json children = Json::array();
      for (const Listener& listener : listeners) {
        children.push_back({{"control", fds.size()}});
        fds.push_back(listener.fd());
      }
      const Answer answer = other.ask("fork", {{"children", children}}, fds);
      CHECK_MESSAGE((answer.code == "E_DESCRIPTORS" || answer.code == "E_FORK"), answer.text());
      REQUIRE(::prlimit(vm.pid().value(), RLIMIT_NOFILE, &old, nullptr) == 0);
      unharmed(vm, processes);
    }
  }

  TEST_CASE("limits and names") {
    Vm vm("commands", Json::object(), {{"--max-forks", "3", "--name", "source"}});
    vm.console().waitFor("ready\n");
    const std::size_t processes = processesBelow().size();
    const Vm::Forked tooMany = vm.tryFork(4);
    CHECK(tooMany.answer.code == "E_TOO_MANY_FORKS");
    CHECK(tooMany.answer.status == 503);
    const Listener one;
    const Listener two;
    const Answer own = vm.ask("fork", {{"children", {{{"name", "source"}, {"control", 0}}}}}, {one.fd()});
    CHECK(own.code == "E_NAME_TAKEN");
    CHECK(own.status == 409);
    const Answer twins =
        vm.ask("fork", {{"children", {{{"name", "a"}, {"control", 0}}, {{"name", "a"}, {"control", 1}}}}},
               {one.fd(), two.fd()});
    CHECK(twins.code == "E_NAME_TAKEN");
    unharmed(vm, processes);
  }
}
