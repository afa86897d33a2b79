// The control socket without a machine: lines and descriptors in and out, what is wrong with them, who is let in.
#include "native/vmm/control/server.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "native/vmm/control/memory_use.h"
#include "native/vmm/control/requests.h"

using namespace bough;
using namespace bough::vmm;

namespace {

std::size_t openDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count++;
  return count;
}

class Client {
 public:
  explicit Client(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  /// Bytes with `count` descriptors of /dev/null, as one message.
  bool send(std::string_view bytes, std::size_t count = 0) {
    std::vector<UniqueFd> fds;
    for (std::size_t i = 0; i < count; i++) fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    iovec from{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &from;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(253 * sizeof(int))> control{};
    if (count > 0) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(count * sizeof(int));
      for (std::size_t i = 0; i < count; i++) {
        const int fd = fds[i].get();
        std::memcpy(CMSG_DATA(head) + i * sizeof(int), &fd, sizeof fd);
      }
    }
    return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// The next line; discarded when the connection is closed.
  Json line() {
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        const std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Json::parse(text);
      }
      if (!more()) return Json(Json::value_t::discarded);
    }
  }
  Json error(std::string_view bytes, std::size_t count = 0) {
    REQUIRE(send(bytes, count));
    Json answer = line();
    REQUIRE_MESSAGE(answer.contains("error"), answer.dump());
    CHECK(answer["error"]["message"].get<std::string>().size() > 10);
    return answer["error"];
  }
  /// How many descriptors came since the last call.
  std::size_t descriptors() { return std::exchange(came_, {}).size(); }
  bool closed() {
    while (more()) {
    }
    return true;
  }

 private:
  bool more() {
    pollfd polled{fd_.get(), POLLIN, 0};
    REQUIRE(::poll(&polled, 1, 60000) == 1);
    std::array<char, 4096> piece{};
    iovec into{piece.data(), piece.size()};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(253 * sizeof(int))> control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
    // Reset: nothing came, and the control buffer is not filled in.
    if (n < 0) return false;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      for (std::size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
        came_.emplace_back(fd);
      }
    }
    if (n == 0) return false;
    buffer_.append(piece.data(), static_cast<std::size_t>(n));
    return true;
  }
  UniqueFd fd_;
  std::string buffer_;
  std::vector<UniqueFd> came_;
};

/// A server whose methods are: echo (how many descriptors came), give (sends `n` descriptors), read (what readFork
/// says).
struct Served {
  Served() {
    signal(SIGPIPE, SIG_IGN);
    std::string pattern = (std::filesystem::temp_directory_path() / "bough-control-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    socket = (folder / "run" / "s").string();
    auto made = EventLoop::make();
    REQUIRE(made);
    loop = std::move(*made);
    auto listener = listenAt(socket);
    REQUIRE(listener);
    auto started = Server::start(*loop, std::move(*listener),
                                 [this](ConnectionId from, Request request) { handle(from, std::move(request)); });
    REQUIRE(started);
    server = std::move(*started);
    thread = std::thread([this] {
      while (!stop) loop->runOnce(-1);
    });
  }
  ~Served() {
    stop = true;
    loop->wake();
    thread.join();
    std::filesystem::remove_all(folder);
  }
  void handle(ConnectionId from, Request request) {
    if (request.method == "echo") {
      server->answer(from, request.id, {{"fds", request.fds.size()}});
    } else if (request.method == "give") {
      std::vector<UniqueFd> fds;
      for (std::size_t i = 0; i < request.params["n"]; i++) fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      server->answer(from, request.id, Json::object(), std::move(fds));
    } else if (request.method == "big") {
      server->answer(from, request.id, std::string(request.params["n"].get<std::size_t>(), 'x'));
    } else if (request.method == "boot") {
      const auto boot = readBoot(request);
      if (boot)
        server->answer(from, request.id, {{"ram", boot->ramBytes}, {"systems", boot->fileSystemTags}});
      else
        server->fail(from, request.id, boot.error());
    } else if (request.method == "subscribe") {
      server->answer(from, request.id, Json::object());
      server->subscribe(from);
    } else if (request.method == "tell") {
      server->event({{"event", "told"}});
      UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      const bool first = server->eventToFirst({{"event", "first"}}, std::move(fd));
      server->answer(from, request.id, first);
    }
  }
  std::filesystem::path folder;
  std::string socket;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Server> server;
  std::atomic<bool> stop = false;
  std::thread thread;
};

std::string request(const char* method, const Json& params = Json::object(), std::size_t fds = 0) {
  return Json{{"id", 1}, {"method", method}, {"params", params}, {"fds", fds}}.dump() + "\n";
}

}  // namespace

TEST_CASE("a line gets the descriptors that came with its bytes, whatever is before and after it") {
  Served served;
  Client client(served.socket);
  // Sent before anything is read, so that one read of the server may see several.
  REQUIRE(client.send(request("echo")));
  REQUIRE(client.send(request("echo", {}, 2), 2));
  REQUIRE(client.send(request("echo")));
  REQUIRE(client.send(request("echo", {}, 1), 1));
  for (const int fds : {0, 2, 0, 1}) CHECK(client.line()["result"]["fds"] == fds);
  SUBCASE("in pieces") {
    const std::string line = request("echo", {}, 300);
    REQUIRE(client.send(line.substr(0, 10), 253));
    REQUIRE(client.send(line.substr(10, 5), 47));
    REQUIRE(client.send(line.substr(15)));
    CHECK(client.line()["result"]["fds"] == 300);
  }
  SUBCASE("many back") {
    REQUIRE(client.send(request("give", {{"n", 300}})));
    CHECK(client.line()["fds"] == 300);
    CHECK(client.descriptors() == 300);
    REQUIRE(client.send(request("give", {{"n", 0}})));
    CHECK_FALSE(client.line().contains("fds"));
  }
}

TEST_CASE("lines that are no request are answered by what is wrong, and the connection lives on") {
  Served served;
  Client client(served.socket);
  CHECK(client.error("this is no json\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("[1,2]\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("{\"method\":\"echo\"}\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("{\"id\":{},\"method\":\"echo\"}\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("{\"id\":1,\"method\":7}\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("{\"id\":1,\"method\":\"echo\",\"params\":[]}\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("{\"id\":1,\"method\":\"echo\",\"fds\":-1}\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error("{\"id\":1,\"method\":\"\xff\"\n")["code"] == "E_BAD_REQUEST");
  CHECK(client.error(std::string(100'000, '[') + "\n")["status"] == 400);
  CHECK(client.error(request("echo", {}, 1))["code"] == "E_DESCRIPTORS");
  CHECK(client.error(request("echo", {}, 1), 2)["code"] == "E_DESCRIPTORS");
  CHECK(client.error("\n", 1)["code"] == "E_BAD_REQUEST");
  REQUIRE(client.send("\n\n" + request("echo")));
  CHECK(client.line()["result"]["fds"] == 0);
}

TEST_CASE("no descriptor is kept of what was refused, left half, or sent by who has gone") {
  Served served;
  Client control(served.socket);
  REQUIRE(control.send(request("echo")));
  control.line();
  const std::size_t before = openDescriptors();
  for (int round = 0; round < 20; round++) {
    Client client(served.socket);
    client.error(request("echo", {}, 5), 3);
    client.error("nonsense\n", 3);
    client.error(request("boot", {{"kernel", 0}, {"vcpus", "many"}}, 2), 2);
    REQUIRE(client.send("{\"id\":1,\"met", 4));
  }
  // Until the server has seen the last of them go.
  while (openDescriptors() > before) {
    REQUIRE(control.send(request("echo")));
    control.line();
  }
  CHECK(openDescriptors() == before);
}

TEST_CASE("a line without end is answered and the connection closed; who does not read loses it, too; others go on") {
  Served served;
  Client client(served.socket);
  const std::string piece(64 * 1024, 'x');
  for (int i = 0; i < 64 && client.send(piece); i++) {
  }
  CHECK(client.line()["error"]["code"] == "E_TOO_BIG");
  CHECK(client.closed());

  Client deaf(served.socket);
  for (int i = 0; i < 64 && deaf.send(request("big", {{"n", 500'000}})); i++) {
  }
  CHECK(deaf.closed());
  Client other(served.socket);
  REQUIRE(other.send(request("big", {{"n", 5'000'000}})));
  CHECK(other.line()["result"].get<std::string>().size() == 5'000'000);
}

TEST_CASE("events go to subscribers, a descriptor to the first of them that lives") {
  Served served;
  Client quiet(served.socket);
  auto first = std::make_unique<Client>(served.socket);
  Client second(served.socket);
  for (Client* client : {first.get(), &second}) {
    REQUIRE(client->send(request("subscribe")));
    client->line();
  }
  REQUIRE(quiet.send(request("tell")));
  CHECK(quiet.line()["result"] == true);
  CHECK(first->line()["event"] == "told");
  CHECK(first->line()["fds"] == 1);
  CHECK(first->descriptors() == 1);
  CHECK(second.line()["event"] == "told");
  first.reset();
  REQUIRE(quiet.send(request("tell")));
  CHECK(quiet.line()["result"] == true);
  CHECK(second.line()["event"] == "told");
  CHECK(second.line()["event"] == "first");
  CHECK(second.descriptors() == 1);
}

TEST_CASE("a socket that somebody answers on is not taken away; a dead one is; its folder is closed to others") {
  std::string dead;
  {
    Served served;
    const auto taken = listenAt(served.socket);
    REQUIRE_FALSE(taken);
    CHECK(taken.error().code == "E_NAME_TAKEN");
    struct stat status{};
    REQUIRE(::stat((served.folder / "run").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    CHECK(listenAt("/tmp/" + std::string(200, 'x')).error().code == "E_BAD_REQUEST");

    const std::string path = (served.folder / "run" / "dead").string();
    listenAt(path).value().reset();
    CHECK(std::filesystem::exists(path));
    CHECK(listenAt(path));
  }
}

TEST_CASE("what boot asks for is checked in one place") {
  Served served;
  Client client(served.socket);
  const Json good = {{"kernel", 0}, {"fileSystems", {{{"tag", "root"}, {"fd", 1}}}}, {"ramMiB", 512}};
  REQUIRE(client.send(request("boot", good, 2), 2));
  CHECK(client.line()["result"] == Json{{"ram", std::size_t{512} << 20}, {"systems", {"root"}}});
  const auto code = [&](const Json& changes, std::size_t fds) {
    Json params = good;
    params.merge_patch(changes);
    return client.error(request("boot", params, fds), fds)["code"].get<std::string>();
  };
  CHECK(code({{"kernel", nullptr}}, 2) == "E_DESCRIPTORS");
  CHECK(code({{"kernel", 1}}, 2) == "E_DESCRIPTORS");
  CHECK(code({{"kernel", 9}}, 2) == "E_DESCRIPTORS");
  CHECK(code({{"kernel", "0"}}, 2) == "E_BAD_REQUEST");
  CHECK(code(Json::object(), 3) == "E_DESCRIPTORS");
  CHECK(code({{"vsock", 2}}, 3) == "E_DESCRIPTORS");  // /dev/null does not listen
  CHECK(code({{"ramMiB", 1}}, 2) == "E_BAD_REQUEST");
  CHECK(code({{"ramMiB", 1.5}}, 2) == "E_BAD_REQUEST");
  CHECK(code({{"vcpus", -1}}, 2) == "E_BAD_REQUEST");
  CHECK(code({{"cpu", "fast"}}, 2) == "E_BAD_REQUEST");
  CHECK(code({{"commandLine", "a\nb"}}, 2) == "E_BAD_REQUEST");
  CHECK(code({{"fileSystems", {{{"tag", ""}, {"fd", 1}}}}}, 2) == "E_BAD_REQUEST");
  CHECK(code({{"fileSystems", {7}}}, 2) == "E_BAD_REQUEST");
}

TEST_CASE("fork, load and save: names, places, kinds") {
  const auto read = [](const char* method, const Json& params, std::size_t fds) {
    std::vector<UniqueFd> came;
    for (std::size_t i = 0; i < fds; i++) {
      came.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;  // an address of the kernel's choice
      REQUIRE(::bind(came.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) == 0);
      REQUIRE(::listen(came.back().get(), 1) == 0);
    }
    // As it comes over the socket: numbers that are not negative are unsigned.
    return Request{1, method, Json::parse(params.dump()), std::move(came)};
  };
  const auto forkCode = [&](const Json& params, std::size_t fds) {
    Request asked = read("fork", params, fds);
    const auto fork = readFork(asked);
    return fork ? std::to_string(fork->children.size()) : fork.error().code;
  };
  CHECK(forkCode({{"children", {{{"control", 0}}, {{"control", 1}, {"vsock", 2}}}}}, 3) == "2");
  CHECK(forkCode({{"children", {{{"control", 0}}, {{"control", 0}}}}}, 1) == "E_DESCRIPTORS");
  CHECK(forkCode({{"children", {{{"name", "x"}}}}}, 0) == "E_DESCRIPTORS");
  CHECK(forkCode({{"children", Json::array()}}, 0) == "E_BAD_REQUEST");
  CHECK(forkCode({{"children", {7}}}, 0) == "E_BAD_REQUEST");
  CHECK(forkCode({{"children", {{{"control", 0}, {"name", "a/b"}}}}}, 1) == "E_BAD_REQUEST");
  CHECK(forkCode({{"children", {{{"control", 0}, {"frozen", true}, {"console", 1}}}}}, 2) == "1");
  CHECK(forkCode({{"children", {{{"control", 0}, {"frozen", "yes"}}}}}, 1) == "E_BAD_REQUEST");

  Request save = read("save", {{"fd", 0}, {"kind", "diff"}}, 1);
  CHECK(readSave(save).error().code == "E_DESCRIPTORS");
  Request saveBoth = read("save", {{"fd", 1}, {"kind", "diff"}, {"base", 0}}, 2);
  CHECK(readSave(saveBoth));
  Request load = read("load", {{"saved", 0}, {"check", "never"}}, 1);
  CHECK(readLoad(load).error().code == "E_BAD_REQUEST");
  Request loadBoth = read("load", {{"saved", 0}, {"diff", 1}, {"check", "behind"}, {"fileSystems", {2}}}, 3);
  const auto asked = readLoad(loadBoth);
  REQUIRE(asked);
  CHECK(asked->check == CheckRam::kBehind);
  CHECK(asked->devices.fileSystems.size() == 1);
}

TEST_CASE("codes keep the field's meaning") {
  CHECK(statusOf("E_NO_MACHINE") == 404);
  CHECK(statusOf("E_NAME_TAKEN") == 409);
  CHECK(statusOf("E_STATE") == 400);
  CHECK(statusOf("E_TOO_MANY_FORKS") == 503);
  CHECK(statusOf("E_SAVED_CPU") == 400);
  CHECK(statusOf("E_KVM_DENIED") == 403);
  CHECK(statusOf("E_ANYTHING") == 500);
}

TEST_CASE("this process's memory, from the kernel's own words") {
  const auto parsed =
      parseMemoryUse("00400000-7ffe [rollup]\nRss:     1024 kB\nPss:      512 kB\nPrivate_Dirty:   7 kB\n");
  REQUIRE(parsed);
  CHECK(parsed->rssKiB == 1024);
  CHECK(parsed->pssKiB == 512);
  CHECK(parsed->ownKiB == 7);
  CHECK_FALSE(parseMemoryUse("Rss: 1 kB\n"));
  const auto own = memoryUse(-1);
  REQUIRE(own);
  CHECK(own->rssKiB >= own->pssKiB);
  CHECK(own->pssKiB > 0);
}
