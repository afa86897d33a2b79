// The control protocol over a real socket: requests, refusals, names that are no text, events.
#include "native/branchfs/control/server.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "native/branchfs/control/shapes.h"
#include "native/branchfs/store_test_world.h"
#include "native/common/base64.h"

using namespace bough;
using namespace bough::test;

namespace {

class Client {
 public:
  explicit Client(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  void send(const std::string& bytes) { REQUIRE(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0); }
  /// The next line; empty when the connection is closed.
  std::string line() {
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      pollfd polled{fd_.get(), POLLIN, 0};
      REQUIRE(::poll(&polled, 1, 60000) == 1);
      char piece[4096];
      const ssize_t n = ::recv(fd_.get(), piece, sizeof piece, 0);
      if (n <= 0) return {};
      buffer_.append(piece, static_cast<std::size_t>(n));
    }
  }
  Json request(const std::string& method, const Json& params = Json::object()) {
    send(Json{{"id", ++id_}, {"method", method}, {"params", params}}.dump() + "\n");
    while (true) {
      Json answer = Json::parse(line());
      if (!answer.contains("id")) continue;  // an event
      CHECK(answer["id"] == id_);
      return answer;
    }
  }
  Json result(const std::string& method, const Json& params = Json::object()) {
    Json answer = request(method, params);
    REQUIRE_MESSAGE(answer.contains("result"), answer.dump());
    return answer["result"];
  }
  std::string code(const std::string& method, const Json& params = Json::object()) {
    Json answer = request(method, params);
    REQUIRE_MESSAGE(answer.contains("error"), answer.dump());
    CHECK(answer["error"]["message"].get<std::string>().size() > 10);
    return answer["error"]["code"];
  }

 private:
  UniqueFd fd_;
  std::string buffer_;
  int id_ = 0;
};

struct Served {
  Served() {
    putFile(world.base / "f", "base");
    world.open();
    socket = (world.root / "run" / "s").string();
    auto started = Server::start(*world.store, socket);
    REQUIRE(started);
    server = std::move(*started);
  }
  ~Served() { server.reset(); }
  World world;
  std::string socket;
  std::unique_ptr<Server> server;
};

}  // namespace

TEST_CASE("branches over the socket: made, changed, shown, committed, undone, discarded") {
  Served served;
  Client client(served.socket);
  const Json hello = client.result("hello");
  CHECK(hello["base"] == served.world.base.string());
  CHECK(hello["branches"] == 0);
  const Json made = client.result("branch.create", {{"parent", "base"}, {"count", 2}, {"names", {"one", "zwei ü"}}});
  REQUIRE(made["branches"].size() == 2);
  const std::string one = made["branches"][0]["id"];
  const std::string two = made["branches"][1]["id"];
  CHECK(made["branches"][1]["name"] == "zwei ü");
  CHECK(made["branches"][0]["exclusive"] == true);
  CHECK(made["branches"][0]["state"] == "live");

  served.world.files(one).write("f", "changed");
  served.world.files(one).write("bad\xff", "bytes");
  served.world.files(one).write("new\nline", "x");
  const Json diff = client.result("branch.diff", {{"branch", one}});
  CHECK(diff["total"] == 3);
  CHECK(diff["changes"][0]["path"] == Json{{"b64", toBase64("bad\xff")}});
  CHECK(diff["changes"][1]["path"] == "f");
  CHECK(diff["changes"][1]["kind"] == "modified");
  CHECK(diff["changes"][1]["what"] == Json::array({"content"}));
  CHECK(diff["changes"][2]["path"] == "new\nline");
  CHECK(diff["drift"]["changed"].empty());

  const Json read = client.result("branch.read", {{"branch", one}, {"path", {{"b64", toBase64("bad\xff")}}}});
  CHECK(read["data"] == toBase64("bytes"));
  CHECK(read["eof"] == true);
  CHECK(client.result("branch.read", {{"branch", one}, {"side", "parent"}, {"path", "f"}})["data"] == toBase64("base"));
  CHECK(client.result("branch.stat", {{"branch", one}, {"path", ""}})["type"] == "directory");
  CHECK(client.result("branch.readdir", {{"branch", one}, {"path", ""}})["entries"].size() == 3);

  const Json committed = client.result("branch.commit", {{"branch", one}});
  CHECK(committed["into"] == "base");
  CHECK(committed["paths"] == 3);
  CHECK(committed["superseded"] == Json::array({two}));
  CHECK(getFile(served.world.base / "bad\xff") == "bytes");
  CHECK(client.result("commit.list")["commits"][0]["commit"] == committed["commit"]);
  CHECK(client.result("commit.undo", {{"commit", committed["commit"]}})["paths"] == 3);
  CHECK(getFile(served.world.base / "f") == "base");
  CHECK(client.result("commit.list")["commits"].empty());
  CHECK(client.result("branch.info", {{"branch", two}})["state"] == "live");
  CHECK(client.result("branch.abort", {{"branch", one}})["branches"] == Json::array({one}));
  CHECK(client.result("store.check")["ok"] == true);
  CHECK(client.result("store.status")["branches"] == 1);
  client.result("store.sync");
}

TEST_CASE("requests that make no sense are refused by name, and the connection lives on") {
  Served served;
  Client client(served.socket);
  client.send("this is no json\n");
  CHECK(Json::parse(client.line())["error"]["code"] == "E_BAD_REQUEST");
  client.send("[1,2]\n\n");
  CHECK(Json::parse(client.line())["error"]["code"] == "E_BAD_REQUEST");
  CHECK(client.code("no.such.method") == "E_BAD_REQUEST");
  CHECK(client.code("branch.info") == "E_BAD_REQUEST");
  CHECK(client.code("branch.info", {{"branch", 7}}) == "E_BAD_REQUEST");
  CHECK(client.code("branch.info", {{"branch", "bnone"}}) == "E_NO_BRANCH");
  CHECK(client.code("branch.create", {{"parent", "base"}, {"count", 0}}) == "E_BAD_REQUEST");
  CHECK(client.code("branch.create", {{"parent", "base"}, {"count", -1}}) == "E_BAD_REQUEST");
  CHECK(client.code("branch.create", {{"parent", "base"}, {"group", "odd"}}) == "E_BAD_REQUEST");
  const std::string id = client.result("branch.create", {{"parent", "base"}})["branches"][0]["id"];
  for (const Json& path : {Json("/etc/passwd"), Json("../x"), Json("a//b"), Json("./a"), Json(5), Json{{"b64", "?"}}}) {
    CHECK(client.code("branch.stat", {{"branch", id}, {"path", path}}) == "E_BAD_REQUEST");
  }
  CHECK(client.code("branch.stat", {{"branch", id}, {"path", "not/here"}}) == "E_NO_PATH");
  CHECK(client.code("branch.read", {{"branch", id}, {"path", "f"}, {"length", 9000000}}) == "E_TOO_BIG");
  CHECK(client.code("branch.mount", {{"branch", id}, {"at", "relative"}}) == "E_BAD_REQUEST");
  CHECK(client.code("commit.undo", {{"commit", "c999"}}) == "E_NO_COMMIT");
  CHECK(client.code("branch.resolve", {{"branch", id}, {"path", "f"}, {"take", "content"}, {"data", "%"}}) ==
        "E_BAD_REQUEST");
  CHECK(client.result("hello")["branches"] == 1);
}

TEST_CASE("a conflict comes with its paths and all three sides") {
  Served served;
  Client client(served.socket);
  const std::string id = client.result("branch.create", {{"parent", "base"}})["branches"][0]["id"];
  served.world.files(id).write("f", "branch");
  putFile(served.world.base / "f", "person was here");
  const Json answer = client.request("branch.commit", {{"branch", id}});
  REQUIRE(answer.contains("error"));
  CHECK(answer["error"]["code"] == "E_CONFLICT");
  REQUIRE(answer["error"]["data"]["conflicts"].size() == 1);
  const Json conflict = answer["error"]["data"]["conflicts"][0];
  CHECK(conflict["path"] == "f");
  CHECK(conflict["reason"] == "both-changed");
  CHECK(conflict["ours"]["size"] == 6);
  CHECK(conflict["theirs"]["size"] == 15);
  client.result("branch.resolve", {{"branch", id}, {"path", "f"}, {"take", "content"}, {"data", toBase64("both")}});
  CHECK(client.result("branch.conflicts", {{"branch", id}})["conflicts"].empty());
  client.result("branch.commit", {{"branch", id}});
  CHECK(getFile(served.world.base / "f") == "both");
}

TEST_CASE("a subscriber hears of branches, edits and ends; others do not") {
  Served served;
  Client quiet(served.socket);
  Client client(served.socket);
  client.result("subscribe");
  const std::string id = quiet.result("branch.create", {{"parent", "base"}})["branches"][0]["id"];
  Json event = Json::parse(client.line());
  CHECK(event["event"] == "branch");
  CHECK(event["branch"]["id"] == id);
  served.world.files(id).write("f", "x");
  event = Json::parse(client.line());
  CHECK(event["event"] == "edits");
  CHECK(event["branch"] == id);
  quiet.result("branch.abort", {{"branch", id}});
  do {
    event = Json::parse(client.line());
  } while (event["event"] == "edits" || event["event"] == "drift");
  CHECK(event == Json{{"event", "gone"}, {"branches", {id}}});
}

TEST_CASE("a socket that somebody answers on is not taken away; a dead one is") {
  Served served;
  const auto second = Server::start(*served.world.store, served.socket);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == "E_STORE_BUSY");
  Client client(served.socket);
  CHECK(client.result("hello")["branches"] == 0);
  served.server.reset();
  CHECK_FALSE(fs::exists(served.socket));
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, served.socket.c_str(), served.socket.size());
    REQUIRE(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  auto again = Server::start(*served.world.store, served.socket);
  REQUIRE(again);
  served.server = std::move(*again);
  Client fresh(served.socket);
  CHECK(fresh.result("hello")["branches"] == 0);
}

TEST_CASE("a line without end closes the connection, others go on") {
  Served served;
  Client client(served.socket);
  const std::string piece(std::size_t{1} << 20, 'x');
  // The server hangs up somewhere on the way.
  signal(SIGPIPE, SIG_IGN);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, served.socket.c_str(), served.socket.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  bool closed = false;
  for (int i = 0; i < 64 && !closed; i++) {
    std::size_t sent = 0;
    while (sent < piece.size()) {
      const ssize_t n = ::send(fd.get(), piece.data() + sent, piece.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) {
        closed = true;
        break;
      }
      sent += static_cast<std::size_t>(n);
    }
  }
  CHECK(closed);
  CHECK(client.result("hello")["branches"] == 0);
}
