// The dispatcher as a client sees it: bytes in, bytes out. Real kernels are in mount_test.cc.
#include "native/branchfs/fuse/dispatcher.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "native/branchfs/fuse/memory_fs.h"

using namespace bough;
using namespace bough::fuse;

namespace {

struct Client {
  MemoryFs fs;
  Dispatcher dispatcher{fs};
  std::unique_ptr<std::byte[]> answer = std::make_unique<std::byte[]>(kAnswerBytes);
  std::size_t length = 0;
  std::uint64_t unique = 0;

  std::vector<std::byte> request(std::uint32_t opcode, NodeId node, const std::string& body) {
    fuse_in_header header{};
    header.len = static_cast<std::uint32_t>(sizeof(header) + body.size());
    header.opcode = opcode;
    header.unique = ++unique;
    header.nodeid = node;
    std::vector<std::byte> bytes(header.len);
    std::memcpy(bytes.data(), &header, sizeof(header));
    if (!body.empty()) std::memcpy(bytes.data() + sizeof(header), body.data(), body.size());
    return bytes;
  }
  int send(const std::vector<std::byte>& bytes) {
    length = dispatcher.handle(bytes, {answer.get(), kAnswerBytes});
    if (length == 0) return -1;
    fuse_out_header out;
    std::memcpy(&out, answer.get(), sizeof(out));
    CHECK(out.len == length);
    CHECK(out.unique == unique);
    return -out.error;
  }
  int call(std::uint32_t opcode, NodeId node, const std::string& body) { return send(request(opcode, node, body)); }
  template <typename T>
  T body() {
    T value{};
    REQUIRE(length >= sizeof(fuse_out_header) + sizeof(T));
    std::memcpy(&value, answer.get() + sizeof(fuse_out_header), sizeof(T));
    return value;
  }
  std::string text() {
    return {reinterpret_cast<const char*>(answer.get()) + sizeof(fuse_out_header), length - sizeof(fuse_out_header)};
  }
  int init() {
    fuse_init_in in{};
    in.major = kMajor;
    in.minor = kMinor;
    in.max_readahead = 131072;
    in.flags = ~0u;
    return call(FUSE_INIT, 0, raw(in));
  }

  template <typename T>
  static std::string raw(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }
  static std::string name(const std::string& text) { return text + '\0'; }

  std::pair<NodeId, Handle> create(const std::string& file) {
    fuse_create_in in{};
    in.mode = S_IFREG | 0644;
    REQUIRE(call(FUSE_CREATE, kRootNode, raw(in) + name(file)) == 0);
    struct Both {
      fuse_entry_out entry;
      fuse_open_out open;
    };
    auto both = body<Both>();
    return {both.entry.nodeid, both.open.fh};
  }
};

}  // namespace

TEST_CASE("INIT: what is agreed, what is refused") {
  Client client;
  CHECK(client.call(FUSE_GETATTR, kRootNode, Client::raw(fuse_getattr_in{})) == EIO);
  REQUIRE(client.init() == 0);
  auto out = client.body<fuse_init_out>();
  CHECK(out.major == kMajor);
  CHECK(out.minor == kMinor);
  CHECK(out.max_write == 1u << 20);
  CHECK(out.max_pages == 256);
  CHECK((out.flags & FUSE_WRITEBACK_CACHE) == 0);
  CHECK((out.flags & FUSE_POSIX_ACL) == 0);
  CHECK((out.flags & FUSE_EXPLICIT_INVAL_DATA) != 0);
  CHECK((out.flags & FUSE_PARALLEL_DIROPS) != 0);
  CHECK(client.init() == EIO);

  Client old;
  fuse_init_in in{};
  in.major = 7;
  in.minor = 12;
  in.flags = ~0u;
  CHECK(old.call(FUSE_INIT, 0, Client::raw(in)) == EPROTO);
  in.major = 8;
  CHECK(old.call(FUSE_INIT, 0, Client::raw(in)) == 0);
  CHECK(old.body<fuse_init_out>().major == 7);
  CHECK(!old.dispatcher.agreed());
}

TEST_CASE("create, write, read, stat") {
  Client client;
  REQUIRE(client.init() == 0);
  auto [node, handle] = client.create("file");
  fuse_write_in write{};
  write.fh = handle;
  write.size = 5;
  CHECK(client.call(FUSE_WRITE, node, Client::raw(write) + "hello") == 0);
  CHECK(client.body<fuse_write_out>().size == 5);
  fuse_read_in read{};
  read.fh = handle;
  read.size = 4096;
  read.offset = 1;
  CHECK(client.call(FUSE_READ, node, Client::raw(read)) == 0);
  CHECK(client.text() == "ello");
  CHECK(client.call(FUSE_GETATTR, node, Client::raw(fuse_getattr_in{})) == 0);
  CHECK(client.body<fuse_attr_out>().attr.size == 5);
  CHECK(client.call(kOpStatx, node, Client::raw(StatxIn{})) == 0);
  CHECK(client.body<StatxOut>().stat.btime.tv_sec > 0);
}

TEST_CASE("a write by somebody else takes suid and, with group execution, sgid") {
  Client client;
  REQUIRE(client.init() == 0);
  auto [node, handle] = client.create("file");
  fuse_setattr_in set{};
  set.valid = FATTR_MODE;
  set.mode = 06775;
  CHECK(client.call(FUSE_SETATTR, node, Client::raw(set)) == 0);
  CHECK((client.body<fuse_attr_out>().attr.mode & 07777) == 06775);
  fuse_write_in write{};
  write.fh = handle;
  write.size = 1;
  write.write_flags = FUSE_WRITE_KILL_SUIDGID;
  CHECK(client.call(FUSE_WRITE, node, Client::raw(write) + "x") == 0);
  CHECK(client.call(FUSE_GETATTR, node, Client::raw(fuse_getattr_in{})) == 0);
  CHECK((client.body<fuse_attr_out>().attr.mode & 07777) == 0775);

  set.mode = 06765;  // no group execution: sgid stays
  CHECK(client.call(FUSE_SETATTR, node, Client::raw(set)) == 0);
  set = {};
  set.valid = FATTR_UID;
  set.uid = 5;
  CHECK(client.call(FUSE_SETATTR, node, Client::raw(set)) == 0);
  auto attr = client.body<fuse_attr_out>().attr;
  CHECK((attr.mode & 07777) == 02765);
  CHECK(attr.uid == 5);
}

TEST_CASE("negative lookups are answered as such") {
  Client client;
  REQUIRE(client.init() == 0);
  CHECK(client.call(FUSE_LOOKUP, kRootNode, Client::name("none")) == 0);
  auto entry = client.body<fuse_entry_out>();
  CHECK(entry.nodeid == 0);
  CHECK(entry.entry_valid > 1000);
  CHECK(client.fs.lookups() == 0);
}

TEST_CASE("READDIRPLUS: what does not fit is not counted") {
  Client client;
  REQUIRE(client.init() == 0);
  for (int i = 0; i < 10; ++i) client.create("file" + std::to_string(i));
  REQUIRE(client.fs.lookups() == 10);
  REQUIRE(client.call(FUSE_OPENDIR, kRootNode, Client::raw(fuse_open_in{})) == 0);
  fuse_read_in read{};
  read.fh = client.body<fuse_open_out>().fh;
  read.size = 600;  // three entries of about 160 bytes
  int entries = 0;
  for (int round = 0; round < 20; ++round) {
    REQUIRE(client.call(FUSE_READDIRPLUS, kRootNode, Client::raw(read)) == 0);
    const std::string text = client.text();
    if (text.empty()) break;
    for (std::size_t at = 0; at < text.size();) {
      fuse_entry_out entry;
      std::memcpy(&entry, text.data() + at, sizeof(entry));
      std::uint64_t cookie = 0;
      std::uint32_t length = 0;
      std::memcpy(&cookie, text.data() + at + sizeof(entry) + 8, sizeof(cookie));
      std::memcpy(&length, text.data() + at + sizeof(entry) + 16, sizeof(length));
      read.offset = cookie;
      entries += entry.nodeid != 0;
      at += FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + length);
    }
  }
  CHECK(entries == 10);
  CHECK(client.fs.lookups() == 20);
  client.dispatcher.end();
  CHECK(client.fs.lookups() == 0);
  CHECK(client.fs.openHandles() == 0);
}

TEST_CASE("forgets: never more than were given") {
  Client client;
  REQUIRE(client.init() == 0);
  auto [node, handle] = client.create("file");
  CHECK(client.call(FUSE_LOOKUP, kRootNode, Client::name("file")) == 0);
  CHECK(client.fs.lookups() == 2);
  struct {
    fuse_batch_forget_in in{3, 0};
    fuse_forget_one one[2];
  } batch;
  batch.one[0] = {node, 1};
  batch.one[1] = {node + 77, 1000};
  CHECK(client.call(FUSE_BATCH_FORGET, 0, Client::raw(batch)) == -1);  // claims three, brings two
  CHECK(client.fs.lookups() == 1);
  CHECK(client.call(FUSE_FORGET, node, Client::raw(fuse_forget_in{1u << 30})) == -1);
  CHECK(client.fs.lookups() == 0);
}

TEST_CASE("hostile requests get an errno") {
  Client client;
  REQUIRE(client.init() == 0);
  auto [node, handle] = client.create("file");
  // Handles that were never given, or of the other sort.
  fuse_read_in read{};
  read.fh = handle + 1000;
  read.size = 10;
  CHECK(client.call(FUSE_READ, node, Client::raw(read)) == EBADF);
  read.fh = handle;
  CHECK(client.call(FUSE_READDIR, kRootNode, Client::raw(read)) == EBADF);
  CHECK(client.call(FUSE_RELEASEDIR, node, Client::raw(fuse_release_in{handle, 0, 0, 0})) == EBADF);
  // A size beyond the buffer is cut, a write that claims more than it brings is refused.
  read.size = ~0u;
  CHECK(client.call(FUSE_READ, node, Client::raw(read)) == 0);
  fuse_write_in write{};
  write.fh = handle;
  write.size = 100;
  CHECK(client.call(FUSE_WRITE, node, Client::raw(write) + "short") == EINVAL);
  // Names.
  CHECK(client.call(FUSE_UNLINK, kRootNode, "no end") == EINVAL);
  CHECK(client.call(FUSE_UNLINK, kRootNode, Client::name("a/b")) == EINVAL);
  CHECK(client.call(FUSE_UNLINK, kRootNode, Client::name("..")) == EINVAL);
  CHECK(client.call(FUSE_UNLINK, kRootNode, Client::name("")) == EINVAL);
  CHECK(client.call(FUSE_MKDIR, kRootNode, "xx") == EINVAL);
  CHECK(client.call(FUSE_RENAME2, kRootNode, Client::raw(fuse_rename2_in{kRootNode, 0, 0}) + Client::name("a")) ==
        EINVAL);
  // Framing.
  auto bytes = client.request(FUSE_GETATTR, kRootNode, Client::raw(fuse_getattr_in{}));
  bytes.resize(bytes.size() - 4);
  CHECK(client.send(bytes) == EINVAL);
  bytes.resize(10);
  CHECK(client.dispatcher.handle(bytes, {client.answer.get(), kAnswerBytes}) == 0);
  // Operations.
  CHECK(client.call(FUSE_IOCTL, node, std::string(64, '\0')) == ENOTTY);
  CHECK(client.call(FUSE_FLUSH, node, std::string(64, '\0')) == ENOSYS);
  CHECK(client.call(9999, node, "") == ENOSYS);
  CHECK(client.call(0, node, "") == ENOSYS);
  // Extended attributes.
  fuse_setxattr_in set{};
  set.size = 3;
  CHECK(client.call(FUSE_SETXATTR, node, Client::raw(set) + Client::name("user.x") + "ab") == EINVAL);
  CHECK(client.call(FUSE_SETXATTR, node, Client::raw(set) + Client::name("system.posix_acl_access") + "abc") ==
        EOPNOTSUPP);
  CHECK(client.call(FUSE_SETXATTR, node, Client::raw(set) + Client::name("user.x") + "abc") == 0);
  CHECK(client.call(FUSE_GETXATTR, node, Client::raw(fuse_getxattr_in{2, 0}) + Client::name("user.x")) == ERANGE);
  CHECK(client.call(FUSE_GETXATTR, node, Client::raw(fuse_getxattr_in{3, 0}) + Client::name("user.x")) == 0);
  CHECK(client.text() == "abc");
}
