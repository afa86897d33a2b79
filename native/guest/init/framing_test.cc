// Lines out of pieces, and requests out of lines: what is right gets through, what is wrong gets an answer.
#include "native/guest/init/framing.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "native/guest/init/request.h"

using namespace bough;
using namespace bough::guest;

namespace {

std::vector<std::string> linesOf(LineReader& reader) {
  std::vector<std::string> lines;
  while (auto line = reader.next()) lines.push_back(*line);
  return lines;
}

std::string codeOf(const std::string& line) {
  const auto request = parseRequest(line);
  return request ? "" : request.error().code;
}

}  // namespace

TEST_CASE("lines come out whole, however they came in") {
  const std::string text = "one\n\ntwo\nthree\nrest";
  for (std::size_t piece = 1; piece <= text.size(); piece++) {
    LineReader reader;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      reader.feed(std::string_view(text).substr(at, piece));
      for (const std::string& line : linesOf(reader)) lines.push_back(line);
    }
    CHECK(lines == std::vector<std::string>{"one", "two", "three"});
    CHECK_FALSE(reader.tooLong());
    CHECK(reader.takeRest() == "rest");
  }
}

TEST_CASE("the longest line is 256 KiB with its newline") {
  LineReader reader;
  const std::string longest(kLineLimit - 1, 'x');
  reader.feed(longest + "\n");
  CHECK(linesOf(reader).size() == 1);
  CHECK_FALSE(reader.tooLong());

  SUBCASE("one byte more, with a newline") {
    reader.feed(longest + "x\n");
    CHECK(linesOf(reader).empty());
    CHECK(reader.tooLong());
  }
  SUBCASE("a line that does not end") {
    reader.feed(longest);
    CHECK(linesOf(reader).empty());
    CHECK_FALSE(reader.tooLong());
    reader.feed("x");
    CHECK(linesOf(reader).empty());
    CHECK(reader.tooLong());
  }
}

TEST_CASE("a request has a method, and perhaps an id and parameters") {
  const auto request = parseRequest(R"({"id":9007199254740991,"method":"exec","params":{"a":1}})");
  REQUIRE(request);
  CHECK(request->id == 9007199254740991U);
  CHECK(request->method == "exec");
  CHECK(request->params["a"] == 1);

  const auto silent = parseRequest(R"({"method":"ack"})");
  REQUIRE(silent);
  CHECK_FALSE(silent->id.has_value());
  CHECK(silent->params.is_object());
}

TEST_CASE("what is no request is E_BAD_REQUEST") {
  for (const char* line :
       {"", "x", "{", "[]", "1", "null", R"({"method":1})", R"({"id":1})", R"({"id":-1,"method":"a"})",
        R"({"id":1.5,"method":"a"})", R"({"id":"1","method":"a"})", R"({"id":9007199254740992,"method":"a"})",
        R"({"method":"a","params":[]})", R"({"method":"a","params":null})", "{\"method\":\"\xff\"}",
        R"({"method":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})"}) {
    CAPTURE(line);
    CHECK(codeOf(line) == "E_BAD_REQUEST");
  }
}

TEST_CASE("nesting is bounded before anything is made of it") {
  CHECK(codeOf(R"({"method":"a","params":{"x":[[[[[[1]]]]]]}})").empty());
  CHECK(codeOf(R"({"method":"a","params":{"x":[[[[[[[1]]]]]]]}})") == "E_BAD_REQUEST");
  CHECK(codeOf(R"({"method":"a","params":{"x":"[[[[[[[[[[[[[[\"[[[["}})").empty());
  CHECK(codeOf(std::string(kLineLimit, '[')) == "E_BAD_REQUEST");
}
