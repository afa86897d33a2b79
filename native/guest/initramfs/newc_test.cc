// The archive: what the kernel would read out of it is what went in, and the bytes are the same every time.
#include "native/guest/initramfs/newc.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

using namespace bough::guest;

namespace {

NewcArchive sample() {
  NewcArchive archive;
  archive.addFile("init", "#!program", 0755);
  archive.addCharacterDevice("dev/console", 0600, 5, 1);
  archive.addFolder("tmp", 01777);
  return archive;
}

struct Header {
  std::string name;
  unsigned long mode, size, major, minor;
};

/// Reads headers as the kernel's init/initramfs.c does.
std::vector<Header> headersOf(const std::string& bytes) {
  std::vector<Header> out;
  std::size_t at = 0;
  const auto field = [&](std::size_t index) { return std::stoul(bytes.substr(at + 6 + index * 8, 8), nullptr, 16); };
  const auto up = [](std::size_t n) { return (n + 3) / 4 * 4; };
  while (at < bytes.size()) {
    REQUIRE(bytes.compare(at, 6, "070701") == 0);
    const std::size_t nameSize = field(11);
    Header header{.name = bytes.substr(at + 110, nameSize - 1),
                  .mode = field(1),
                  .size = field(6),
                  .major = field(9),
                  .minor = field(10)};
    at = up(up(at + 110 + nameSize) + header.size);
    out.push_back(header);
  }
  CHECK(at == bytes.size());
  return out;
}

}  // namespace

TEST_CASE("an archive holds what was added, folders before what lies in them, and ends with the trailer") {
  const auto headers = headersOf(sample().bytes());
  std::vector<std::string> names;
  for (const Header& each : headers) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"dev", "dev/console", "init", "tmp", "TRAILER!!!"});
  CHECK(headers[0].mode == (S_IFDIR | 0755));
  CHECK(headers[1].mode == (S_IFCHR | 0600));
  CHECK(headers[1].major == 5);
  CHECK(headers[1].minor == 1);
  CHECK(headers[2].mode == (S_IFREG | 0755));
  CHECK(headers[2].size == 9);
  CHECK(headers[3].mode == (S_IFDIR | 01777));
}

TEST_CASE("the order in which entries are added does not show") {
  NewcArchive other;
  other.addFolder("tmp", 01777);
  other.addCharacterDevice("dev/console", 0600, 5, 1);
  other.addFile("init", "something else", 0600);
  other.addFile("init", "#!program", 0755);
  CHECK(other.bytes() == sample().bytes());
}
