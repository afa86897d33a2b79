// boughfs: serves one store (docs/boughfs-protocol.md). Started by the helper and by tests; stays in the foreground.
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "native/branchfs/control/server.h"
#include "native/branchfs/store.h"
#include "native/common/fail_point.h"
#include "native/common/log.h"
#include "native/common/version.h"

namespace {

constexpr const char* kUsage =
    "usage: boughfs --store DIR --base DIR --socket PATH [--hide GLOB]... [--never DIR]... [--test-fail-points]\n"
    "       boughfs --version\n";

enum Exit : int { kOk = 0, kFailed = 1, kUsageError = 2, kBusy = 3, kBaseGone = 4, kDamaged = 5 };

int exitCode(const bough::Error& error) {
  if (error.code == "E_STORE_BUSY") return kBusy;
  if (error.code == "E_BASE_GONE") return kBaseGone;
  if (error.code == "E_STORE_DAMAGED" || error.code == "E_STORE_VERSION") return kDamaged;
  return kFailed;
}

int fail(const bough::Error& error) {
  bough::logLine((error.code.empty() ? "E_IO" : error.code) + ": " + error.message);
  return exitCode(error);
}

struct Arguments {
  bough::StoreOptions store;
  std::string socket;
  bool failPoints = false;
  bool version = false;
};

bool parse(int argc, char** argv, Arguments& out) {
  enum { kStore = 1000, kBaseFolder, kSocket, kHide, kNever, kFailPoints, kVersionFlag };
  static const std::array<option, 8> kOptions = {
      option{"store", required_argument, nullptr, kStore},
      option{"base", required_argument, nullptr, kBaseFolder},
      option{"socket", required_argument, nullptr, kSocket},
      option{"hide", required_argument, nullptr, kHide},
      option{"never", required_argument, nullptr, kNever},
      option{"test-fail-points", no_argument, nullptr, kFailPoints},
      option{"version", no_argument, nullptr, kVersionFlag},
      option{nullptr, 0, nullptr, 0},
  };
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    switch (found) {
      case kStore:
        out.store.folder = optarg;
        break;
      case kBaseFolder:
        out.store.base = optarg;
        break;
      case kSocket:
        out.socket = optarg;
        break;
      case kHide:
        out.store.hide.emplace_back(optarg);
        break;
      case kNever:
        out.store.never.emplace_back(optarg);
        break;
      case kFailPoints:
        out.failPoints = true;
        break;
      case kVersionFlag:
        out.version = true;
        break;
      default:
        return false;
    }
  }
  if (out.version) return true;
  const auto absolute = [](const std::string& path) { return path.starts_with('/'); };
  return optind == argc && absolute(out.store.folder) && absolute(out.store.base) && absolute(out.socket);
}

/// A store with many branches holds many files open.
void raiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    ::fputs(kUsage, stderr);
    return kUsageError;
  }
  if (arguments.version) {
    ::printf("boughfs %s\n", bough::kVersion);
    return kOk;
  }
  if (arguments.failPoints) bough::armFailPoints();

  // Before any thread starts: all of them inherit this, and only sigwait below gets the signals.
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stops, number);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  raiseFileLimit();
  ::umask(0077);

  auto store = bough::Store::open(std::move(arguments.store));
  if (!store) return fail(store.error());
  (*store)->restoreMounts();
  {
    const auto server = bough::Server::start(**store, arguments.socket);
    if (!server) return fail(server.error());
    ::puts("ready");
    ::fflush(stdout);
    int number = 0;
    ::sigwait(&stops, &number);
  }
  if (auto done = (*store)->close(); !done) return fail(done.error());
  return kOk;
}
