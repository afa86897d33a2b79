// A folder of the host as a read-only file system for guests of boughvm, for its tests:
//   passthrough_server --root DIR --socket PATH
// Listens on PATH, prints "ready", and serves each connection as one guest's (docs/fs-socket.md) until it is ended.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "session.h"
#include "tree.h"

namespace {

int fail(const std::string& what) {
  std::fprintf(stderr, "passthrough_server: %s: %s\n", what.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string root, path;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--root") root = argv[i + 1];
    if (std::string_view(argv[i]) == "--socket") path = argv[i + 1];
  }
  if (root.empty() || path.empty()) {
    std::fprintf(stderr, "usage: passthrough_server --root DIR --socket PATH\n");
    return 2;
  }
  passthrough::UniqueFd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(root);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return fail(path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  passthrough::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::unlink(path.c_str());
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 128) != 0)
    return fail(path);
  std::printf("ready\n");
  std::fflush(stdout);

  passthrough::Tree tree(std::move(folder));
  for (;;) {
    passthrough::UniqueFd guest(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!guest) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return fail("accept");
    }
    // The tree outlives them: this thread never returns while others run.
    std::thread([&tree, socket = std::move(guest)]() mutable {
      passthrough::Session(tree, std::move(socket)).run();
    }).detach();
  }
}
