// Memory is copied when it is written, by whom writes it, and by nobody else; checkpoints keep an instant; KVM's
// descriptors of the parent do not live on in the child.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "test/vm/harness/host.h"
#include "test/vm/harness/rounds.h"
#include "test/vm/harness/vm.h"

using namespace bough::vmtest;

namespace {

constexpr std::size_t kMiB = 1024;  // in KiB

Vm waiting(Json params = Json::object()) {
  Vm vm("commands", std::move(params));
  vm.console().waitFor("ready\n");
  return vm;
}

std::size_t metric(Vm& vm, const char* name) { return vm.must("metrics").at("memory").at(name); }

/// How many descriptors of a process are of this kind ("anon_inode:kvm-vm").
std::size_t countOf(const std::vector<std::string>& descriptors, const std::string& kind) {
  return static_cast<std::size_t>(std::count_if(descriptors.begin(), descriptors.end(),
                                                [&](const std::string& each) { return each.starts_with(kind); }));
}

}  // namespace

TEST_SUITE("memory") {
  TEST_CASE("a page that is rewritten between forks: each child has what was there at its own instant") {
    Vm vm = waiting();
    CHECK(vm.command("w1") == "written");
    Vm first = vm.forkOne();
    CHECK(vm.command("w2") == "written");
    Vm second = vm.forkOne();
    CHECK(vm.command("w3") == "written");
    CHECK(first.command("r") == "1");
    CHECK(second.command("r") == "2");
    CHECK(vm.command("r") == "3");
    // Nor does a write in a child reach anybody else: not its parent, not its sibling, not its own earlier child.
    Vm grandchild = first.forkOne();
    CHECK(first.command("w9") == "written");
    CHECK(grandchild.command("r") == "1");
    CHECK(second.command("r") == "2");
    CHECK(vm.command("r") == "3");
    first.kill();
    CHECK(grandchild.command("w5") == "written");
    CHECK(grandchild.command("r") == "5");
    CHECK(vm.command("r") == "3");
  }

  TEST_CASE("64 MiB that a child writes are the child's alone") {
    Vm vm = waiting({{"ramMiB", 192}});
    Vm child = vm.forkOne();
    const std::size_t childBefore = metric(child, "ownKiB");
    const std::size_t parentBefore = metric(vm, "ownKiB");
    CHECK(child.command("t") == "touched");
    const std::size_t childAfter = metric(child, "ownKiB");
    const std::size_t parentAfter = metric(vm, "ownKiB");
    std::printf("64 MiB written in a child: its own memory %zu -> %zu KiB, the parent's %zu -> %zu KiB\n", childBefore,
                childAfter, parentBefore, parentAfter);
    CHECK(childAfter >= childBefore + 60 * kMiB);
    CHECK(parentAfter <= parentBefore + 4 * kMiB);
    CHECK(child.command("s") == "0000000000004000");
    CHECK(vm.command("s") == "0000000000000000");
  }

  TEST_CASE("what the parent has written costs a child nothing until somebody writes it again") {
    Vm vm = waiting({{"ramMiB", 256}});
    CHECK(vm.command("t") == "touched");
    Vm child = vm.forkOne();
    CHECK(child.command("s") == "0000000000004000");
    const std::size_t own = metric(child, "ownKiB");
    std::printf("an idle child of a machine that has written 64 MiB: %zu KiB of its own, PSS %zu KiB\n", own,
                metric(child, "pssKiB"));
    if (!sanitized()) CHECK(own <= 2 * kMiB);
    // Rewritten by the parent: the child keeps the old pages, and both have their own.
    CHECK(vm.command("t") == "touched");
    CHECK(child.command("s") == "0000000000004000");
  }

  TEST_CASE("an idle child adds at most 2 MiB to what the machines use together") {
    Vm vm = waiting({{"ramMiB", 256}});
    const std::size_t alone = metric(vm, "pssKiB");
    constexpr unsigned kChildren = 8;
    std::vector<Vm> children = vm.fork(kChildren);
    std::size_t together = metric(vm, "pssKiB");
    for (Vm& child : children) {
      CHECK(child.command("p") == "pong");
      together += metric(child, "pssKiB");
    }
    const std::size_t each = (together - std::min(alone, together)) / kChildren;
    std::printf("PSS that an idle child adds: %zu KiB\n", each);
    if (!sanitized()) CHECK(each <= 2 * kMiB);
  }

  TEST_CASE("a checkpoint keeps its instant, and any number of machines start from it") {
    Vm vm = waiting();
    CHECK(vm.command("wc") == "written");
    Vm checkpoint = vm.forkOne(true);
    CHECK(checkpoint.state() == "frozen");
    CHECK(vm.command("wd") == "written");
    CHECK(checkpoint.ask("resume").code == "E_STATE");
    CHECK(checkpoint.ask("console.input", {{"data", "cA=="}}).code == "E_STATE");
    for (Rounds round(50); round.next();) {
      INFO("start " << round.index());
      Vm again = checkpoint.forkOne();
      CHECK(again.command("r") == "c");
      CHECK(again.command("wz") == "written");
    }
    // Rollback: the machine goes, its checkpoint becomes it. A checkpoint of a checkpoint is one, too.
    vm.kill();
    Vm copy = checkpoint.forkOne(true);
    checkpoint.kill();
    CHECK(copy.state() == "frozen");
    std::vector<Vm> both = copy.fork(2);
    for (Vm& each : both) CHECK(each.command("r") == "c");
  }

  TEST_CASE("a paused machine is forked without running, and its children run") {
    Vm vm = waiting();
    vm.must("pause");
    CHECK(vm.state() == "paused");
    CHECK(vm.ask("pause").code == "E_STATE");
    Vm child = vm.forkOne();
    CHECK(vm.state() == "paused");
    CHECK(child.state() == "running");
    CHECK(child.command("p") == "pong");
    vm.must("resume");
    CHECK(vm.ask("resume").code == "E_STATE");
    CHECK(vm.command("p") == "pong");
  }

  TEST_CASE("a child has KVM descriptors of its own only, a checkpoint has none") {
    constexpr unsigned kCpus = 2;
    Vm vm = waiting({{"vcpus", kCpus}});
    const auto before = descriptorsOf(vm.pid().value());
    if (!before) {
      std::printf("skipped: this user may not look at a locked-in process\n");
      return;
    }
    Vm child = vm.forkOne();
    Vm frozen = vm.forkOne(true);
    const auto ofChild = descriptorsOf(child.pid().value()).value();
    const auto ofFrozen = descriptorsOf(frozen.pid().value()).value();
    CHECK(countOf(*before, "anon_inode:kvm-vm") == 1);
    CHECK(countOf(*before, "anon_inode:kvm-vcpu") == kCpus);
    CHECK(countOf(ofChild, "anon_inode:kvm-vm") == 1);
    CHECK(countOf(ofChild, "anon_inode:kvm-vcpu") == kCpus);
    CHECK(countOf(ofFrozen, "anon_inode:kvm-vm") == 0);
    CHECK(countOf(ofFrozen, "anon_inode:kvm-vcpu") == 0);
    // A child does not hold more than its parent did: nothing of the parent's is left open in it.
    CHECK(ofChild.size() <= before->size());
  }
}
