// boughvm: one process, one machine that can fork (docs/boughvm-protocol.md). Started by the helper and by tests; stays
// in the foreground.
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "native/common/log.h"
#include "native/common/version.h"
#include "native/vmm/control/service.h"
#include "native/vmm/jail/privileges.h"

namespace {

using bough::vmm::ExitCode;

constexpr const char* kUsage =
    "usage: boughvm (--socket PATH | --control-fd N) [--name NAME] [--max-forks N] [--cgroup DIR] [--no-jail]\n"
    "       boughvm --version\n";

struct Arguments {
  std::string socket;
  int controlFd = -1;
  bough::vmm::ServiceOptions service;
  bough::vmm::JailOptions jail;
  bool locked = true;
  bool version = false;
};

template <typename T>
bool number(const char* text, T least, T most, T& value) {
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  return error == std::errc() && stopped == end && value >= least && value <= most;
}

bool parse(int argc, char** argv, Arguments& out) {
  enum { kSocket = 1000, kControlFd, kName, kMaxForks, kCgroup, kNoJail, kVersionFlag };
  static const std::array<option, 8> kOptions = {
      option{"socket", required_argument, nullptr, kSocket},
      option{"control-fd", required_argument, nullptr, kControlFd},
      option{"name", required_argument, nullptr, kName},
      option{"max-forks", required_argument, nullptr, kMaxForks},
      option{"cgroup", required_argument, nullptr, kCgroup},
      option{"no-jail", no_argument, nullptr, kNoJail},
      option{"version", no_argument, nullptr, kVersionFlag},
      option{nullptr, 0, nullptr, 0},
  };
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    switch (found) {
      case kSocket:
        out.socket = optarg;
        break;
      case kControlFd:
        if (!number(optarg, 3, 65535, out.controlFd)) return false;
        break;
      case kName:
        out.service.name = optarg;
        if (!bough::vmm::validName(out.service.name)) return false;
        break;
      case kMaxForks:
        if (!number(optarg, 1U, 100'000U, out.service.maxForks)) return false;
        break;
      case kCgroup:
        out.jail.cgroup = optarg;
        break;
      case kNoJail:
        out.locked = false;
        break;
      case kVersionFlag:
        out.version = true;
        break;
      default:
        return false;
    }
  }
  if (out.version) return true;
  return optind == argc && out.socket.empty() != (out.controlFd < 0) && (out.socket.empty() || out.socket[0] == '/');
}

ExitCode exitCode(const bough::Error& error) {
  if (error.code == "E_NAME_TAKEN") return ExitCode::kNameTaken;
  if (error.code == "E_KVM_MISSING") return ExitCode::kKvmMissing;
  if (error.code == "E_KVM_DENIED") return ExitCode::kKvmDenied;
  if (error.code == "E_KVM_UNUSABLE") return ExitCode::kKvmUnusable;
  if (error.code == "E_JAIL") return ExitCode::kJail;
  return ExitCode::kFailed;
}

[[noreturn]] void end(ExitCode code) {
  // At once: the kernel takes the machine's memory and threads together.
  ::_exit(static_cast<int>(code));
}

[[noreturn]] void fail(const bough::Error& error) {
  bough::logLine((error.code.empty() ? "E_IO" : error.code) + ": " + error.message);
  end(exitCode(error));
}

bough::Result<bough::UniqueFd> controlSocket(const Arguments& arguments) {
  if (arguments.controlFd < 0) return bough::vmm::listenAt(arguments.socket);
  BOUGH_TRY(bough::vmm::checkListener(arguments.controlFd));
  ::fcntl(arguments.controlFd, F_SETFD, FD_CLOEXEC);
  return bough::UniqueFd(arguments.controlFd);
}

/// Says that the socket listens, and lets stdout go: machines that outlive this one would hold it.
void sayReady() {
  ::puts("ready");
  ::fflush(stdout);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    ::fputs(kUsage, stderr);
    return static_cast<int>(ExitCode::kUsage);
  }
  if (arguments.version) {
    ::printf("boughvm %s\n", bough::kVersion);
    return 0;
  }
  // Before any thread starts: all of them inherit this.
  bough::vmm::Signals::block();
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0077);
  bough::vmm::nameLog(arguments.service.name);
  bough::vmm::forgetEnvironment();
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) ::dup2(null, STDIN_FILENO);

  auto kvm = bough::vmm::Kvm::open();
  if (!kvm) fail(kvm.error());
  auto listener = controlSocket(arguments);
  if (!listener) fail(listener.error());
  const auto removeSocket = [&arguments] {
    if (!arguments.socket.empty()) ::unlink(arguments.socket.c_str());
  };
  if (arguments.locked) {
    auto jail = bough::vmm::enterJail(arguments.jail, removeSocket);
    if (!jail) fail(jail.error());
    arguments.service.jail = std::move(*jail);
  } else {
    arguments.service.jail.missing.emplace_back("all of it: started with --no-jail");
  }
  auto loop = bough::vmm::EventLoop::make();
  if (!loop) fail(loop.error());
  const auto service =
      bough::vmm::Service::start(**loop, std::move(*listener), std::move(*kvm), std::move(arguments.service));
  if (!service) fail(service.error());
  sayReady();
  const ExitCode code = (*service)->run();
  if (!arguments.locked && !(*service)->forked()) removeSocket();
  end(code);
}
