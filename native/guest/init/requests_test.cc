// The parameters of each method: defaults, bounds, and names that are no text.
#include "native/guest/init/requests.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <string>

using namespace bough;
using namespace bough::guest;

namespace {

/// As it comes over the wire: numbers that are not negative are unsigned there.
Json wire(const Json& json) { return Json::parse(json.dump()); }

Json execJson() { return Json{{"argv", {"ls", "-l"}}, {"env", {{"A", "b"}}}, {"cwd", "/"}}; }

Json with(Json json, const char* key, Json value) {
  json[key] = std::move(value);
  return json;
}

std::string execCode(const Json& json) {
  const auto request = parseExec(wire(json));
  return request ? "" : request.error().code;
}

const std::string kEntropy = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=";  // 32 times "A"

}  // namespace

TEST_CASE("exec: what is left out has its usual value") {
  const auto request = parseExec(wire(execJson()));
  REQUIRE(request);
  CHECK(request->argv == std::vector<std::string>{"ls", "-l"});
  CHECK(request->environment == std::vector<std::string>{"A=b"});
  CHECK(request->uid == 0);
  CHECK_FALSE(request->input);
  CHECK_FALSE(request->terminal.has_value());
  CHECK_FALSE(request->window.has_value());
  CHECK(request->whenFull == WhenFull::Wait);
  CHECK(request->ring == 256 * 1024);
}

TEST_CASE("exec: everything that can be said") {
  Json json = execJson();
  json.update(Json{{"uid", 1000},
                   {"groups", {4, 20}},
                   {"stdin", "pipe"},
                   {"key", "agent"},
                   {"ring", 4096},
                   {"whenFull", "drop"},
                   {"window", 4096},
                   {"argv", {Json{{"b64", "/w=="}}}}});
  const auto request = parseExec(wire(json));
  REQUIRE(request);
  CHECK(request->argv.front() == "\xff");
  CHECK(request->uid == 1000);
  CHECK(request->gid == 1000);  // the user's own, as useradd(8) makes it
  CHECK(request->groups == std::vector<gid_t>{4, 20});
  CHECK(request->input);
  CHECK(request->key == "agent");
  CHECK(request->whenFull == WhenFull::Drop);
  CHECK(request->window == 4096);
}

TEST_CASE("exec: what is wrong is refused") {
  CHECK(execCode(execJson()).empty());
  CHECK(execCode(Json::object()) == "E_BAD_REQUEST");
  for (const Json& argv :
       {Json::array(), Json("ls"), Json{1}, Json{""}, Json{std::string("a\0b", 3)}, Json{Json{{"b64", "?"}}},
        Json{Json{{"b64", 1}}}, Json(std::vector<std::string>(4097, "a"))}) {
    CAPTURE(argv.dump());
    CHECK(execCode(with(execJson(), "argv", argv)) == "E_BAD_REQUEST");
  }
  for (const Json& env : {Json::array(), Json{{"", "x"}}, Json{{"A=B", "x"}}, Json{{"A", 1}}, Json{{"A", nullptr}}}) {
    CAPTURE(env.dump());
    CHECK(execCode(with(execJson(), "env", env)) == "E_BAD_REQUEST");
  }
  for (const Json& cwd : {Json(""), Json("home"), Json(1), Json(std::string(5000, '/'))}) {
    CHECK(execCode(with(execJson(), "cwd", cwd)) == "E_BAD_REQUEST");
  }
  for (const Json& uid : {Json(-1), Json(1.5), Json("0"), Json(4294967295U), Json(true)}) {
    CHECK(execCode(with(execJson(), "uid", uid)) == "E_BAD_REQUEST");
  }
  CHECK(execCode(with(execJson(), "ring", 4095)) == "E_BAD_REQUEST");
  CHECK(execCode(with(execJson(), "window", 1U << 30)) == "E_BAD_REQUEST");
  CHECK(execCode(with(execJson(), "stdin", "inherit")) == "E_BAD_REQUEST");
  CHECK(execCode(with(execJson(), "key", std::string(101, 'k'))) == "E_BAD_REQUEST");
}

TEST_CASE("pty: has a size, drops what nobody reads") {
  CHECK_FALSE(parsePty(wire(execJson())));
  const auto request = parsePty(wire(with(with(execJson(), "rows", 24), "columns", 80)));
  REQUIRE(request);
  CHECK(request->terminal->columns == 80);
  CHECK(request->whenFull == WhenFull::Drop);
  CHECK_FALSE(parsePty(wire(with(with(execJson(), "rows", 0), "columns", 80))));
  CHECK_FALSE(parsePty(wire(with(with(execJson(), "rows", 24), "columns", 10001))));
}

TEST_CASE("input, signals, entropy and identity") {
  const auto input = parseInput(wire(Json{{"process", 1}, {"at", 3}, {"data", "aGk="}, {"end", true}}));
  REQUIRE(input);
  CHECK(input->data == "hi");
  CHECK(input->end);
  CHECK_FALSE(parseInput(wire(Json{{"process", 1}, {"at", 3}, {"data", "a"}})));
  CHECK_FALSE(parseInput(wire(Json{{"process", 0}, {"at", 3}, {"data", ""}})));

  const auto signal = parseSignal(wire(Json{{"process", 1}, {"signal", "SIGKILL"}}));
  REQUIRE(signal);
  CHECK(signal->signal == SIGKILL);
  CHECK(signal->group);
  CHECK_FALSE(parseSignal(wire(Json{{"process", 1}, {"signal", "KILL"}})));
  CHECK_FALSE(parseSignal(wire(Json{{"process", 1}, {"signal", 9}})));
  CHECK(signalName(SIGTERM) == "SIGTERM");

  CHECK(parseReseed(wire(Json{{"entropy", kEntropy}})));
  CHECK_FALSE(parseReseed(wire(Json{{"entropy", "QUFB"}})));
  const Json identity{{"branch", "b1"}, {"name", "try two"}, {"index", 2}};
  const auto child = parseForkChild(wire(Json{{"entropy", kEntropy}, {"identity", identity}, {"realtimeUs", 5}}));
  REQUIRE(child);
  CHECK(child->identity.index == 2);
  CHECK(child->realtimeUs == 5);
  CHECK_FALSE(parseForkChild(wire(Json{{"entropy", kEntropy}})));
  CHECK_FALSE(parseForkChild(wire(Json{{"entropy", kEntropy}, {"identity", {{"branch", "b1"}}}})));
  CHECK_FALSE(parsePort(wire(Json{{"port", 65536}})));
}
