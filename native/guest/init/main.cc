// bough-init: pid 1 of a branch's machine (docs/guest-protocol.md). The kernel starts it as /init of the initramfs;
// tests start it in a PID namespace with --unix.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/reboot.h>
#include <signal.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "native/common/log.h"
#include "native/common/version.h"
#include "native/guest/init/machine.h"
#include "native/guest/init/server.h"

namespace {

using namespace bough;
using namespace bough::guest;

constexpr const char* kUsage =
    "usage: bough-init [--unix PATH] [--cmdline TEXT]\n"
    "       bough-init --version\n"
    "It is the first process of a machine; it can be started only as process 1.\n";

struct Arguments {
  std::optional<std::string> unixSocket;
  std::optional<std::string> commandLine;
  bool version = false;
};

/// As /init it gets whatever words the kernel did not know: those are no error.
bool parse(int argc, char** argv, Arguments& out) {
  enum { kUnix = 1000, kCommandLine, kVersionFlag };
  static const std::array<option, 4> kOptions = {
      option{"unix", required_argument, nullptr, kUnix},
      option{"cmdline", required_argument, nullptr, kCommandLine},
      option{"version", no_argument, nullptr, kVersionFlag},
      option{nullptr, 0, nullptr, 0},
  };
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (found == kUnix) {
      out.unixSocket = optarg;
    } else if (found == kCommandLine) {
      out.commandLine = optarg;
    } else if (found == kVersionFlag) {
      out.version = true;
    } else {
      return false;
    }
  }
  return true;
}

/// Descriptors 0 to 2 are there, whatever the kernel found in the initramfs: what is opened later must not get them.
void openStandardStreams() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd > 2) ::close(fd);
    if (fd < 0 || fd > 2) return;
  }
}

/// Before any child is made: they are read from a descriptor.
UniqueFd takeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

Result<std::unique_ptr<Listener>> listen(const Arguments& arguments) {
  return arguments.unixSocket ? UnixListener::listen(*arguments.unixSocket) : VsockListener::listen(kVsockPort);
}

Boot bootUp(const Arguments& arguments) {
  constexpr std::size_t kMaxCommandLine = 64 * 1024;
  Boot boot;
  boot.mountBasics();
  const Settings settings =
      parseCommandLine(arguments.commandLine ? *arguments.commandLine : readWhole("/proc/cmdline", kMaxCommandLine));
  for (const std::string& word : settings.problems) {
    boot.problem("E_BAD_REQUEST", "The kernel's command line has a word that means nothing here: " + word);
  }
  if (auto named = setHostname(settings.hostname); !named) boot.problem("E_IDENTITY", named.error().message);
  boot.bringLoopbackUp();
  boot.raiseLimits();
  boot.switchRoot(settings.rootTag);
  boot.mountWorkspaces(settings.workspaces);
  return boot;
}

/// The machine's end: boughvm takes the reset as that. There is no power to switch off without ACPI.
[[noreturn]] void reset() {
  ::sync();
  ::reboot(LINUX_REBOOT_CMD_RESTART);
  // Not reached in a machine. Pid 1 must not return, the kernel would panic.
  while (true) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    ::fputs(kUsage, stderr);
    return 2;
  }
  if (arguments.version) {
    ::printf("bough-init %s\n", kVersion);
    return 0;
  }
  if (::getpid() != 1) {
    ::fputs(kUsage, stderr);
    return 2;
  }
  // The kernel starts it as /init; on the console it says who it is.
  static std::array<char, 11> name{"bough-init"};
  program_invocation_short_name = name.data();
  openStandardStreams();
  ::umask(022);
  ::setenv("PATH", kPath, 1);
  UniqueFd signals = takeSignals();

  // The test's socket is made before the mounts hide its folder.
  std::optional<Result<std::unique_ptr<Listener>>> early;
  if (arguments.unixSocket) early = listen(arguments);
  Machine machine(bootUp(arguments), std::move(signals));
  auto listener = early ? std::move(*early) : listen(arguments);
  std::optional<Server> server;
  if (listener) {
    server.emplace(machine, std::move(*listener));
    logLine(std::string("ready, version ") + kVersion);
  } else {
    // Nobody can reach it now; the console is all that there is.
    logLine("E_IO: " + listener.error().message + ". The host cannot reach this machine.");
  }
  machine.run();
  reset();
}
