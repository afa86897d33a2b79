// What is not right is refused with a code that does not change, and leaves nothing behind.
#include <doctest/doctest.h>
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "test/vm/harness/fuse_server.h"
#include "test/vm/harness/guest_lines.h"
#include "test/vm/harness/host.h"
#include "test/vm/harness/rounds.h"
#include "test/vm/harness/vm.h"

using namespace bough::vmtest;
using bough::UniqueFd;

namespace {

/// The guest `hello` as bytes, to be damaged.
std::string hello() { return readAll(openFile(guestPath("hello")).get()); }

Elf64_Ehdr& header(std::string& elf) { return *reinterpret_cast<Elf64_Ehdr*>(elf.data()); }

/// Its program header of this type.
Elf64_Phdr& segment(std::string& elf, std::uint32_t type) {
  auto* headers = reinterpret_cast<Elf64_Phdr*>(elf.data() + header(elf).e_phoff);
  for (unsigned i = 0; i < header(elf).e_phnum; i++) {
    if (headers[i].p_type == type) return headers[i];
  }
  throw std::runtime_error("hello has no such segment");
}

/// Into namespaces in which this process may mount, as root or by a user namespace.
void enterNamespaces() {
  if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(120);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(121);
}

void hideKvm() {
  enterNamespaces();
  if (::mount("none", "/dev", "tmpfs", 0, nullptr) != 0) ::_exit(122);
}

void forbidKvm() {
  enterNamespaces();
  if (::mount("none", "/dev", "tmpfs", 0, "mode=755") != 0) ::_exit(122);
  if (::close(::open("/dev/kvm", O_CREAT | O_WRONLY, 0)) != 0) ::_exit(123);
  // Root may open what nobody may.
  if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(124);
}

void otherThingAsKvm() {
  enterNamespaces();
  if (::mount("/dev/null", "/dev/kvm", nullptr, MS_BIND, nullptr) != 0) ::_exit(122);
}

int exitOf(void (*before)(), std::string& log) {
  Vm vm(VmOptions{{}, before});
  const int status = vm.exitStatus();
  log = vm.log();
  return status;
}

}  // namespace

TEST_SUITE("bad input") {
  TEST_CASE("no KVM, no permission, something else in its place") {
    std::string log;
    CHECK(exitOf(hideKvm, log) == 4);
    CHECK_MESSAGE(log.find("E_KVM_MISSING") != std::string::npos, log);
    CHECK(exitOf(forbidKvm, log) == 5);
    CHECK_MESSAGE(log.find("E_KVM_DENIED") != std::string::npos, log);
    CHECK(exitOf(otherThingAsKvm, log) == 6);
    CHECK_MESSAGE(log.find("E_KVM_UNUSABLE") != std::string::npos, log);
    CHECK(waitForNoProcess().empty());
  }

  TEST_CASE("kernels that are none") {
    struct Case {
      const char* what;
      std::string bytes;
    };
    std::vector<Case> cases{{"empty", ""}, {"text", "#!/bin/sh\necho no kernel\n"}};
    const auto damaged = [&cases](const char* what, auto&& damage) {
      std::string elf = hello();
      damage(elf);
      cases.push_back({what, elf});
    };
    damaged("32-bit", [](std::string& elf) { header(elf).e_ident[EI_CLASS] = ELFCLASS32; });
    damaged("another CPU", [](std::string& elf) { header(elf).e_machine = EM_AARCH64; });
    damaged("no note", [](std::string& elf) { segment(elf, PT_NOTE).p_type = PT_NULL; });
    damaged("a note of another kind", [](std::string& elf) { elf[segment(elf, PT_NOTE).p_offset + 8] = 1; });
    damaged("a note that is cut off", [](std::string& elf) { segment(elf, PT_NOTE).p_filesz = 14; });
    damaged("a note whose name has 4 GiB",
            [](std::string& elf) { std::memset(elf.data() + segment(elf, PT_NOTE).p_offset, 0xff, 8); });
    damaged("a note behind the end", [](std::string& elf) { segment(elf, PT_NOTE).p_offset = UINT64_MAX - 4; });
    damaged("cut off in its header", [](std::string& elf) { elf.resize(40); });
    damaged("cut off in its program headers", [](std::string& elf) { elf.resize(80); });
    damaged("cut off in its code", [](std::string& elf) { elf.resize(5000); });
    damaged("below 1 MiB", [](std::string& elf) { segment(elf, PT_LOAD).p_paddr = 0x1000; });
    damaged("behind RAM", [](std::string& elf) { segment(elf, PT_LOAD).p_paddr = std::uint64_t{64} << 20; });
    damaged("at the end of the address space",
            [](std::string& elf) { segment(elf, PT_LOAD).p_paddr = UINT64_MAX - 0xfff; });
    damaged("more than RAM", [](std::string& elf) { segment(elf, PT_LOAD).p_memsz = std::uint64_t{1} << 40; });
    damaged("more in the file than in memory", [](std::string& elf) { segment(elf, PT_LOAD).p_memsz = 16; });
    damaged("an endless size", [](std::string& elf) {
      segment(elf, PT_LOAD).p_memsz = UINT64_MAX;
      segment(elf, PT_LOAD).p_filesz = UINT64_MAX;
    });
    damaged("no program headers", [](std::string& elf) { header(elf).e_phnum = 0; });
    damaged("65,535 program headers", [](std::string& elf) { header(elf).e_phnum = 65535; });
    damaged("program headers nowhere", [](std::string& elf) { header(elf).e_phoff = UINT64_MAX - 8; });
    // One process is asked for all of them: a boot that failed leaves it as it was.
    Vm vm;
    for (const Case& each : cases) {
      INFO(std::string(each.what));
      const UniqueFd file = fileOf(each.bytes);
      const Answer answer = vm.boot(file.get());
      CHECK_MESSAGE(answer.code == "E_KERNEL", answer.text());
      CHECK(answer.status == 400);
      CHECK(vm.state() == "empty");
    }
    const UniqueFd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(vm.boot(folder.get()).code == "E_KERNEL");
    const UniqueFd good = openFile(guestPath("hello"));
    CHECK(vm.boot(good.get()).ok());
    vm.console().waitFor("hello\n");
    CHECK(vm.ask("boot", {{"kernel", 0}}, {good.get()}).code == "E_MACHINE_EXISTS");
  }

  TEST_CASE("RAM, CPUs and other numbers that no machine can have") {
    const UniqueFd kernel = openFile(guestPath("hello"));
    Vm vm;
    const auto codeOf = [&](const char* what, const Json& value) {
      return vm.boot(kernel.get(), {{what, value}}).code;
    };
    for (const Json& size : {Json(0), Json(1 << 30), Json(3'000'000'000U)}) {
      INFO("ramMiB " << size.dump());
      const std::string code = codeOf("ramMiB", size);
      CHECK_MESSAGE((code == "E_RAM_SIZE" || code == "E_BAD_REQUEST" || code == "E_NO_MEMORY"), code);
    }
    for (const Json& size : {Json(-1), Json("many"), Json(1.5), Json(nullptr)})
      CHECK(codeOf("ramMiB", size) == "E_BAD_REQUEST");
    for (const Json& count : {Json(0), Json(1000)}) CHECK(codeOf("vcpus", count) == "E_VCPUS");
    CHECK(codeOf("cpu", "another") == "E_BAD_REQUEST");
    CHECK(codeOf("commandLine", std::string(100'000, 'x')) == "E_COMMAND_LINE");
    CHECK(vm.state() == "empty");
  }

  TEST_CASE("a triple fault and a reset end the guest, not the process; it is told") {
    struct Case {
      const char* guest;
      const char* reason;
    };
    for (const Case& each : {Case{"triple_fault", "triple fault"}, Case{"reset", "reset"}}) {
      INFO(std::string(each.guest));
      Vm vm;
      vm.must("subscribe");
      const UniqueFd kernel = openFile(guestPath(each.guest));
      REQUIRE(vm.boot(kernel.get()).ok());
      const std::string reason = vm.control().event("stopped").at("reason");
      CHECK_MESSAGE(reason.find(each.reason) != std::string::npos, reason);
      CHECK(vm.console().text().find("now\n") != std::string::npos);
      CHECK(vm.state() == "stopped");
      const Vm::Forked forked = vm.tryFork(1);
      CHECK(forked.answer.code == "E_STATE");
      CHECK(vm.ask("pause").code == "E_STATE");
      vm.end();
    }
    CHECK(waitForNoProcess().empty());
  }

  TEST_CASE("a guest that writes rubbish at all devices: the host is unharmed, and its forks are, too") {
    std::uint64_t turns = 0;
    for (Rounds round(60); round.next();) {
      const std::string text = "s" + std::to_string(100 + round.index());
      INFO("seed " << text);
      FuseServer files;
      const Listener vsock;
      Vm vm;
      const UniqueFd kernel = openFile(guestPath("rubbish"));
      const Answer booted = vm.boot(kernel.get(), {{"vsock", 2}, {"fileSystems", {{{"tag", "work"}, {"fd", 3}}}}},
                                    {vsock.fd(), files.clientEnd()});
      REQUIRE_MESSAGE(booted.ok(), booted.text());
      files.letGo();
      vm.type(text);
      vm.console().waitForMore(emulated() ? 5 : 50);
      FuseServer childFiles;
      Vm::Forked forked = vm.tryFork(1, false, Json::object(), {{childFiles.clientEnd()}});
      // It may have a request at the file server that is never answered, which is no harm done.
      CHECK_MESSAGE((forked.answer.ok() || forked.answer.code == "E_DRAIN"), forked.answer.text());
      childFiles.letGo();
      if (forked.answer.ok()) {
        forked.children[0].console().waitForMore(3);
        CHECK(forked.children[0].state() == "running");
      }
      vm.console().waitForMore(vm.console().size() + 3);
      CHECK(vm.state() == "running");
      turns += vm.console().size();
      CHECK(complaint(vm) == "");
    }
    std::printf("rubbish: %llu turns, each of 300 random accesses\n", static_cast<unsigned long long>(turns));
    CHECK(waitForNoProcess().empty());
  }

  TEST_CASE("requests that are none") {
    Vm vm("commands");
    vm.console().waitFor("ready\n");
    for (const char* line : {"{\n", "[]\n", "\"boot\"\n", "{\"id\":1}\n", "{\"id\":[],\"method\":\"status\"}\n",
                             "{\"id\":1,\"method\":\"status\",\"params\":7}\n", "\xff\xfe\n",
                             "{\"id\":1,\"method\":\"status\",\"fds\":-1}\n"}) {
      INFO(std::string(line));
      Control control = vm.connect();
      control.sendRaw(line);
      const Json answer = control.readLine();
      REQUIRE(answer.contains("error"));
      CHECK(answer["error"]["status"] == 400);
    }
    CHECK(vm.ask("no.such.method").code == "E_NO_METHOD");
    CHECK(vm.ask("no.such.method").status == 404);
    Control big = vm.connect();
    try {
      big.sendRaw(std::string(std::size_t{2} << 20, 'x'));
    } catch (const std::runtime_error&) {
      // It was closed while we sent.
    }
    CHECK(big.closes());
    CHECK(vm.command("p") == "pong");
  }

  TEST_CASE("descriptors: too few, too many, twice, of the wrong kind") {
    Vm vm("commands");
    vm.console().waitFor("ready\n");
    const auto before = descriptorsOf(vm.pid().value());
    const Listener listener;
    const auto forkWith = [&](Json child, const std::vector<int>& fds) {
      return vm.ask("fork", {{"children", {std::move(child)}}}, fds).code;
    };
    CHECK(forkWith({{"control", 0}}, {}) == "E_DESCRIPTORS");
    CHECK(forkWith({{"control", 1}}, {listener.fd()}) == "E_DESCRIPTORS");
    CHECK(forkWith({{"control", 0}}, {listener.fd(), listener.fd()}) == "E_DESCRIPTORS");
    CHECK(forkWith({{"control", 0}, {"console", 0}}, {listener.fd()}) == "E_DESCRIPTORS");
    CHECK(forkWith({{"control", -1}}, {listener.fd()}) != "");
    CHECK(forkWith({{"name", "a"}}, {}) != "");
    CHECK(vm.ask("status", Json::object(), {listener.fd()}).code == "E_DESCRIPTORS");
    Control control = vm.connect();
    control.sendRaw("{\"id\":1,\"method\":\"status\",\"fds\":2}\n", {listener.fd()});
    CHECK(control.readLine().at("error").at("code") == "E_DESCRIPTORS");
    // A control socket that is no listening socket cannot serve; the child must not stay without one.
    Console notASocket;
    const std::string code = forkWith({{"control", 0}}, {notASocket.writeEnd()});
    CHECK(code != "");
    CHECK(vm.command("p") == "pong");
    CHECK(vm.must("status").at("children").empty());
    if (before) CHECK(descriptorsOf(vm.pid().value())->size() <= before->size() + 1);
  }

  TEST_CASE("the connection ends in the middle of a line, with descriptors already sent") {
    Vm vm("commands");
    vm.console().waitFor("ready\n");
    const auto before = descriptorsOf(vm.pid().value());
    for (unsigned i = 0; i < 50; i++) {
      const Listener listener;
      Control control = vm.connect();
      control.sendRaw("{\"id\":1,\"method\":\"fork\",\"par", {listener.fd(), listener.fd()});
    }
    CHECK(vm.command("p") == "pong");
    CHECK(vm.must("status").at("children").empty());
    const auto end = Clock::now() + Seconds(20);
    while (before && descriptorsOf(vm.pid().value())->size() > before->size() && Clock::now() < end) {
    }
    if (before) CHECK(descriptorsOf(vm.pid().value())->size() <= before->size());
  }

  TEST_CASE("nothing was booted") {
    Vm vm;
    for (const char* method : {"pause", "resume", "metrics"}) {
      INFO(std::string(method));
      const Answer answer = vm.ask(method);
      CHECK(answer.code == "E_NO_MACHINE");
      CHECK(answer.status == 404);
    }
    CHECK(vm.tryFork(1).answer.code == "E_NO_MACHINE");
    CHECK(vm.state() == "empty");
    vm.end();
    CHECK(waitForNoProcess().empty());
  }
}
