// See fs_link.h.
#include "native/vmm/virtio/fs_link.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "native/vmm/virtio/fs_wire.h"

namespace bough::vmm::fs {

namespace {

Link::Progress failed() { return errno == EAGAIN || errno == EINTR ? Link::Progress::kLater : Link::Progress::kGone; }

int partCount(const std::vector<iovec>& parts) {
  return static_cast<int>(std::min<std::size_t>(parts.size(), IOV_MAX));
}

}  // namespace

Link::Link() : buffer_(std::make_unique<std::array<std::byte, kStaged>>()) {}

void Link::open(UniqueFd socket) {
  begin_ = end_ = 0;
  socket_ = std::move(socket);
  const int flags = ::fcntl(fd(), F_GETFL);
  // Without it one slow server would stop the machine's loop: then rather none.
  if (flags < 0 || ::fcntl(fd(), F_SETFL, flags | O_NONBLOCK) < 0) close();
}

void Link::close() { socket_.reset(); }

Link::Progress Link::send(std::span<const std::byte> front, const Body& body, std::size_t& done) {
  const std::size_t total = front.size() + body.size;
  while (done < total) {
    scratch_.clear();
    if (done < front.size()) {
      // sendmsg(2) does not change what it is given.
      scratch_.push_back({const_cast<std::byte*>(front.data()) + done, front.size() - done});
    }
    const std::size_t before = done < front.size() ? 0 : done - front.size();
    if (body.size > before) body.chain->appendReadable(scratch_, body.offset + before, body.size - before);
    msghdr message{};
    message.msg_iov = scratch_.data();
    message.msg_iovlen = static_cast<std::size_t>(partCount(scratch_));
    const ssize_t sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (sent < 0) return failed();
    done += static_cast<std::size_t>(sent);
  }
  return Progress::kDone;
}

Link::Progress Link::stage() {
  std::memmove(buffer_->data(), buffer_->data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  const ssize_t got = ::recv(fd(), buffer_->data() + end_, buffer_->size() - end_, 0);
  if (got < 0) return failed();
  if (got == 0) return Progress::kGone;
  end_ += static_cast<std::size_t>(got);
  return Progress::kDone;
}

Link::Progress Link::nextAnswer(Answer& answer) {
  constexpr std::size_t kBoth = sizeof(AnswerHead) + sizeof(fuse_out_header);
  while (staged().size() < kBoth) {
    if (const Progress progress = stage(); progress != Progress::kDone) return progress;
  }
  AnswerHead head{};
  std::memcpy(&head, staged().data(), sizeof head);
  std::memcpy(&answer.header, staged().data() + sizeof head, sizeof answer.header);
  if (head.magic != kAnswerMagic || head.size < sizeof answer.header || answer.header.len != head.size)
    return Progress::kGone;
  begin_ += kBoth;
  answer.left = head.size - sizeof answer.header;
  return Progress::kDone;
}

Link::Progress Link::receiveInto(const DescriptorChain& chain, std::size_t offset, std::size_t size,
                                 std::size_t& done) {
  const std::size_t ready = std::min(staged().size(), size - done);
  chain.write(offset + done, staged().first(ready));
  begin_ += ready;
  done += ready;
  while (done < size) {
    scratch_.clear();
    chain.appendWritable(scratch_, offset + done, size - done);
    const ssize_t got = ::readv(fd(), scratch_.data(), partCount(scratch_));
    if (got < 0) return failed();
    if (got == 0) return Progress::kGone;
    done += static_cast<std::size_t>(got);
  }
  return Progress::kDone;
}

Link::Progress Link::skip(std::size_t size, std::size_t& done) {
  for (;;) {
    const std::size_t ready = std::min(staged().size(), size - done);
    begin_ += ready;
    done += ready;
    if (done == size) return Progress::kDone;
    if (const Progress progress = stage(); progress != Progress::kDone) return progress;
  }
}

}  // namespace bough::vmm::fs
