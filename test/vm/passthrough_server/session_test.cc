// A guest's view of a folder over the socket, spoken byte for byte as docs/fs-socket.md says.
#include "session.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

using namespace passthrough;

namespace {

struct World {
  World() {
    std::string pattern = (std::filesystem::temp_directory_path() / "passthrough-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    std::filesystem::create_directories(folder / "src");
    std::ofstream(folder / "hello.txt") << "hello, guest\n";
    std::ofstream(folder / "src" / "main.c") << std::string(300'000, 'c');
    std::filesystem::create_symlink("hello.txt", folder / "link");
    tree = std::make_unique<Tree>(UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY)));
    socket = connect();
  }
  ~World() {
    socket.reset();
    for (auto& each : threads) each.join();
    std::filesystem::remove_all(folder);
  }
  UniqueFd connect() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    threads.emplace_back([this, fd = fds[1]] { Session(*tree, UniqueFd(fd)).run(); });
    return UniqueFd(fds[0]);
  }

  struct Answer {
    int error = 0;
    std::string data;
  };
  Answer ask(std::uint32_t opcode, NodeId node, std::string body, std::uint32_t room = 1 << 20) {
    fuse_in_header header{};
    header.len = static_cast<std::uint32_t>(sizeof header + body.size());
    header.opcode = opcode;
    header.unique = unique += 2;
    header.nodeid = node;
    const std::array<std::uint32_t, 4> head{0x31514642, header.len, room, 0};
    std::string record(reinterpret_cast<const char*>(head.data()), 16);
    record.append(reinterpret_cast<const char*>(&header), sizeof header);
    record += body;
    REQUIRE(::send(socket.get(), record.data(), record.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(record.size()));
    if (room == 0) return {};
    std::array<std::uint32_t, 2> answerHead{};
    fuse_out_header out{};
    REQUIRE(::recv(socket.get(), answerHead.data(), 8, MSG_WAITALL) == 8);
    CHECK(answerHead[0] == 0x31414642);
    REQUIRE(::recv(socket.get(), &out, 16, MSG_WAITALL) == 16);
    CHECK(out.len == answerHead[1]);
    CHECK(out.unique == header.unique);
    CHECK(out.len <= room);
    Answer answer{out.error, std::string(out.len - 16, '\0')};
    const auto size = static_cast<ssize_t>(answer.data.size());
    REQUIRE((size == 0 || ::recv(socket.get(), answer.data.data(), answer.data.size(), MSG_WAITALL) == size));
    return answer;
  }
  NodeId find(NodeId parent, const std::string& name) {
    const Answer answer = ask(FUSE_LOOKUP, parent, name + '\0');
    REQUIRE(answer.error == 0);
    fuse_entry_out entry{};
    REQUIRE(answer.data.size() == sizeof entry);
    std::memcpy(&entry, answer.data.data(), sizeof entry);
    return entry.nodeid;
  }
  static std::string reading(std::uint64_t offset, std::uint32_t size) {
    fuse_read_in in{};
    in.offset = offset;
    in.size = size;
    return {reinterpret_cast<const char*>(&in), sizeof in};
  }

  std::filesystem::path folder;
  std::unique_ptr<Tree> tree;
  std::vector<std::thread> threads;
  UniqueFd socket;
  std::uint64_t unique = 0;
};

}  // namespace

TEST_CASE("files, links and attributes are read") {
  World world;
  fuse_init_in init{};
  init.major = FUSE_KERNEL_VERSION;
  init.minor = FUSE_KERNEL_MINOR_VERSION;
  init.flags = ~0u;
  const auto agreed = world.ask(FUSE_INIT, 0, {reinterpret_cast<const char*>(&init), sizeof init});
  CHECK(agreed.data.size() == sizeof(fuse_init_out));
  const NodeId hello = world.find(1, "hello.txt");
  CHECK(world.ask(FUSE_READ, hello, World::reading(0, 100)).data == "hello, guest\n");
  CHECK(world.ask(FUSE_READ, hello, World::reading(7, 5)).data == "guest");
  CHECK(world.ask(FUSE_READLINK, world.find(1, "link"), "").data == "hello.txt");
  const NodeId source = world.find(world.find(1, "src"), "main.c");
  CHECK(world.ask(FUSE_READ, source, World::reading(0, 300'000)).data == std::string(300'000, 'c'));
  fuse_attr_out attributes{};
  const auto status = world.ask(FUSE_GETATTR, source, std::string(16, '\0'));
  REQUIRE(status.data.size() == sizeof attributes);
  std::memcpy(&attributes, status.data.data(), sizeof attributes);
  CHECK(attributes.attr.size == 300'000);
  CHECK(S_ISREG(attributes.attr.mode));
}

TEST_CASE("a folder is listed in parts, also by another connection that goes on in the middle") {
  World world;
  std::string names;
  std::uint64_t offset = 0;
  for (int part = 0; part < 20; part++) {
    // Room for one or two names at a time; a fork's connection takes over half way.
    if (part == 2) {
      UniqueFd own = world.connect();
      std::swap(own, world.socket);
    }
    const auto answer = world.ask(FUSE_READDIR, 1, World::reading(offset, 64));
    REQUIRE(answer.error == 0);
    if (answer.data.empty()) break;
    for (std::size_t at = 0; at < answer.data.size();) {
      fuse_dirent entry{};
      std::memcpy(&entry, answer.data.data() + at, FUSE_NAME_OFFSET);
      names += answer.data.substr(at + FUSE_NAME_OFFSET, entry.namelen) + " ";
      offset = entry.off;
      at += FUSE_REC_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
    }
  }
  CHECK(names == ". .. hello.txt link src ");
  CHECK(world.ask(FUSE_READDIRPLUS, 1, World::reading(0, 4096)).data.size() > 5 * sizeof(fuse_entry_out));
}

TEST_CASE("what is not there, what would write, and who would go outside") {
  World world;
  CHECK(world.ask(FUSE_LOOKUP, 1, std::string("nothing") + '\0').error == -ENOENT);
  CHECK(world.ask(FUSE_LOOKUP, 1, std::string("..") + '\0').error == -EINVAL);
  CHECK(world.ask(FUSE_LOOKUP, 1, std::string("src/main.c") + '\0').error == -EINVAL);
  CHECK(world.ask(FUSE_GETATTR, 999, "").error == -ESTALE);
  CHECK(world.ask(FUSE_MKDIR, 1, std::string(8, '\0') + "new" + '\0').error == -EROFS);
  CHECK(world.ask(FUSE_OPEN, 1, "").error == -ENOSYS);
  // Without an answer; what follows is answered in order.
  world.ask(FUSE_FORGET, 1, std::string(8, '\0'), 0);
  CHECK(world.ask(FUSE_GETATTR, 1, "").error == 0);
}

TEST_CASE("a wrong record ends the connection") {
  World world;
  REQUIRE(::send(world.socket.get(), std::string(16, '!').data(), 16, MSG_NOSIGNAL) == 16);
  char byte = 0;
  CHECK(::recv(world.socket.get(), &byte, 1, 0) == 0);
}
