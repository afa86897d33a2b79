// The log: frames come back, a torn end is cut, damage before a mark is not.
#include "native/branchfs/log_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <vector>

using namespace bough;

namespace {

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "bough-log-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    path = pattern;
    fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
  UniqueFd fd;
};

struct Opened {
  std::vector<std::string> frames;
  Result<std::unique_ptr<LogFile>> file;
};
Opened open(Folder& folder) {
  Opened opened{{}, sys(0)};
  FrameReader reader;
  reader.take = [&](std::string_view payload) -> Result<> {
    opened.frames.emplace_back(payload);
    return Done{};
  };
  reader.durableBefore = [](std::string_view payload) -> std::uint64_t {
    return payload.starts_with("mark ") ? std::stoull(std::string(payload.substr(5))) : 0;
  };
  opened.file = LogFile::open(folder.fd.get(), "log", reader);
  return opened;
}
std::string mark(std::uint64_t offset) { return "mark " + std::to_string(offset); }

}  // namespace

TEST_CASE("frames come back in order; a torn end is cut and written over") {
  Folder folder;
  {
    Opened fresh = open(folder);
    REQUIRE(fresh.file);
    CHECK(fresh.frames.empty());
    for (const char* text : {"one", "", "three"}) REQUIRE((*fresh.file)->append(text, false));
  }
  const auto size = open(folder).file.value()->size();
  for (std::uint64_t cut = size - 1; cut > size - kFrameHeader - 5; cut--) {
    std::filesystem::resize_file(folder.path / "log", cut);
    Opened torn = open(folder);
    REQUIRE(torn.file);
    CHECK(torn.frames == std::vector<std::string>{"one", ""});
    REQUIRE((*torn.file)->append("three", false));
    CHECK(open(folder).frames == std::vector<std::string>{"one", "", "three"});
  }
}

TEST_CASE("damage before a mark is damage; after it, a torn end") {
  Folder folder;
  std::uint64_t durable = 0;
  {
    Opened fresh = open(folder);
    REQUIRE((*fresh.file)->append("first", false));
    REQUIRE((*fresh.file)->append("second", false));
    durable = (*fresh.file)->size();
    CHECK((*fresh.file)->dirty());
    REQUIRE((*fresh.file)->sync(mark));
    CHECK_FALSE((*fresh.file)->dirty());
    REQUIRE((*fresh.file)->append("third", false));
    CHECK((*fresh.file)->dirty());
  }
  const auto flip = [&](std::uint64_t at) {
    std::fstream file(folder.path / "log", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  };
  flip(kFrameHeader);
  CHECK(open(folder).file.error().code == "E_STORE_DAMAGED");
  flip(kFrameHeader);
  CHECK(open(folder).frames.size() == 4);
  flip(std::filesystem::file_size(folder.path / "log") - 1);
  Opened torn = open(folder);
  REQUIRE(torn.file);
  CHECK(torn.frames == std::vector<std::string>{"first", "second", mark(durable)});
}
