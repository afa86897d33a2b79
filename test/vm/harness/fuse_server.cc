// See fuse_server.h.
#include "test/vm/harness/fuse_server.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace bough::vmtest {

namespace {

struct RequestHead {
  std::uint32_t magic;
  std::uint32_t size;
  std::uint32_t room;
  std::uint32_t reserved;
};

struct AnswerFrame {
  std::uint32_t magic;
  std::uint32_t size;
  fuse_out_header header;
};

constexpr std::uint32_t kRequestMagic = 0x31514642;
constexpr std::uint32_t kAnswerMagic = 0x31414642;

}  // namespace

FuseServer::FuseServer() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::runtime_error("socketpair");
  client_.reset(ends[0]);
  socket_.reset(ends[1]);
  thread_ = std::thread([this] { serve(); });
}

FuseServer::~FuseServer() {
  ending_ = true;
  hold(held_);
  ::shutdown(socket_.get(), SHUT_RDWR);
  thread_.join();
}

void FuseServer::hold(bool held) {
  held_ = held;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void FuseServer::answer(std::uint64_t number) const {
  const AnswerFrame frame{kAnswerMagic, sizeof(fuse_out_header), {sizeof(fuse_out_header), -ENOSYS, number}};
  ::send(socket_.get(), &frame, sizeof frame, MSG_NOSIGNAL);
}

void FuseServer::serve() {
  std::string received;
  std::set<std::uint64_t> numbers;
  std::vector<std::uint64_t> kept;
  while (!ending_) {
    std::array<pollfd, 2> waiting{pollfd{socket_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
    ::poll(waiting.data(), waiting.size(), -1);
    std::uint64_t woken = 0;
    [[maybe_unused]] const ssize_t count = ::read(wake_.get(), &woken, sizeof woken);
    if (!held_) {
      for (const std::uint64_t number : kept) answer(number);
      kept.clear();
    }
    if (waiting[0].revents == 0) continue;
    std::array<char, 65536> bytes{};
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    received.append(bytes.data(), static_cast<std::size_t>(got));
    RequestHead head{};
    while (received.size() >= sizeof head) {
      std::memcpy(&head, received.data(), sizeof head);
      if (head.magic != kRequestMagic || head.size < sizeof(fuse_in_header)) return;
      if (received.size() < sizeof head + head.size) break;
      fuse_in_header header{};
      std::memcpy(&header, received.data() + sizeof head, sizeof header);
      received.erase(0, sizeof head + head.size);
      if (head.room == 0) continue;  // a request without an answer
      requests_++;
      if (!numbers.insert(header.unique).second) repeated_++;
      if (held_)
        kept.push_back(header.unique);
      else
        answer(header.unique);
    }
  }
}

}  // namespace bough::vmtest
