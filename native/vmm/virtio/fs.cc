// The file system device's life and the way of its requests; the way of the answers is in fs_answers.cc. See fs.h.
#include "native/vmm/virtio/fs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "native/vmm/virtio/fs_wire.h"

namespace bough::vmm {

namespace {

/// VIRTIO 1.2, section 5.11.4.
struct Config {
  std::array<char, 36> tag;
  std::uint32_t requestQueues;
};
static_assert(sizeof(Config) == 40);

/// Chains of one queue for one turn of the loop.
constexpr int kMostPerTurn = 128;
constexpr int kMostRounds = 16;

bool hasNoAnswer(std::uint32_t opcode) {
  return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT;
}

}  // namespace

Fs::Fs(std::string tag) : tag_(std::move(tag)), slots_(kMostInFlight) {
  for (std::size_t i = kMostInFlight; i > 0; i--) free_.push_back(static_cast<std::uint16_t>(i - 1));
}

Fs::~Fs() {
  if (link_.up()) loop_->unwatch(link_.fd());
}

void Fs::readConfig(std::uint64_t offset, std::span<std::byte> data) const {
  Config config{};
  std::copy_n(tag_.begin(), std::min(tag_.size(), config.tag.size()), config.tag.begin());
  config.requestQueues = 1;
  if (offset >= sizeof config) return;
  std::memcpy(data.data(), reinterpret_cast<const std::byte*>(&config) + offset,
              std::min<std::size_t>(data.size(), sizeof config - offset));
}

Result<Done> Fs::attach(HostEnds& ends, EventLoop& loop) {
  loop_ = &loop;
  if (ends.fileSystems.empty()) return Done{};
  UniqueFd socket = std::move(ends.fileSystems.front());
  ends.fileSystems.erase(ends.fileSystems.begin());
  if (!socket) return Done{};
  link_.open(std::move(socket));
  if (!link_.up()) return Done{};
  watchedFor_ = EPOLLIN;
  return loop.watch(link_.fd(), watchedFor_, [this](std::uint32_t events) {
    if (events & EPOLLOUT) sendPending();
    if (link_.up() && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive();
    if (full_ && !free_.empty()) takeAll();
    if (link_.up()) watch();
  });
}

void Fs::becomeChild() {
  // Nothing is in flight, and the loop has no watches any more.
  link_.close();
  incoming_.reset();
}

void Fs::save(Encoder& out) const { out.bytes(tag_); }

Result<Done> Fs::load(Decoder& in) {
  if (in.bytes() == tag_ && in.ok()) return Done{};
  return Error{EINVAL, "E_SAVED_DAMAGED",
               "the saved state of a file system cannot be right: save the machine again, or load another file"};
}

void Fs::reset() {
  queues_ = {};
  full_ = false;
  // The server gets the rest of a request of which it has a part, or it would take what comes next for that rest.
  if (sentOfFirst_ > 0) {
    Slot& first = slots_[sending_.front()];
    const std::size_t total = first.frontSize + first.bodySize;
    carried_.resize(total - sentOfFirst_);
    std::size_t filled = 0;
    for (std::size_t at = sentOfFirst_; at < first.frontSize; at++) carried_[filled++] = first.front[at];
    const std::size_t bodyDone = sentOfFirst_ > first.frontSize ? sentOfFirst_ - first.frontSize : 0;
    first.chain->read(sizeof(fuse_in_header) + bodyDone, std::span(carried_).subspan(filled));
    first.sent = true;
    if (!first.answered) finish(sending_.front(), 0);
    sending_.pop_front();
    sentOfFirst_ = 0;
    sentOfCarried_ = 0;
  }
  for (const std::uint16_t unsent : std::exchange(sending_, {})) finish(unsent, 0);
  for (Slot& slot : slots_) slot.chain.reset();
}

void Fs::resume() {
  drained_ = false;
  takeAll();
}

bool Fs::notified(std::size_t index) {
  if (queues_.empty() || drained_) return false;
  bool more = true;
  for (int turn = 0; turn < kMostPerTurn; turn++) {
    if (free_.empty()) {
      // Goes on when an answer makes room.
      full_ = true;
      more = false;
      break;
    }
    auto chain = queues_[index].take();
    if (!chain) {
      more = false;
      break;
    }
    request(index, std::move(*chain));
  }
  sendPending();
  if (link_.up()) watch();
  return more;
}

void Fs::takeAll() {
  full_ = false;
  for (std::size_t index = 0; index < queues_.size(); index++) {
    // At least all that was there; a guest that adds and adds does not keep the loop here.
    for (int round = 0; round < kMostRounds && notified(index); round++) {
    }
  }
}

void Fs::request(std::size_t queue, DescriptorChain chain) {
  fuse_in_header header{};
  if (chain.read(0, std::as_writable_bytes(std::span(&header, 1))) < sizeof header)
    return queues_[queue].answer(chain, 0);
  const bool answered = !hasNoAnswer(header.opcode);
  if (answered && chain.writableSize() < sizeof(fuse_out_header)) return queues_[queue].answer(chain, 0);
  if (header.len != chain.readableSize()) return finishWithError(chain, queue, header.unique, EIO);
  if (!link_.up()) return finishWithError(chain, queue, header.unique, ENOTCONN);

  const std::size_t index = free_.back();
  Slot& slot = slots_[index];
  fuse_interrupt_in interrupted{};
  if (header.opcode == FUSE_INTERRUPT) {
    const bool whole =
        chain.read(sizeof header, std::as_writable_bytes(std::span(&interrupted, 1))) == sizeof interrupted &&
        header.len == sizeof header + sizeof interrupted;
    const auto other = whole ? findGuestUnique(interrupted.unique) : std::nullopt;
    // Answered already: nothing to interrupt.
    if (!other) return queues_[queue].answer(chain, 0);
    interrupted.unique = serverUnique(*other);
  }
  free_.pop_back();
  slot.uses++;
  slot.inUse = true;
  slot.sent = false;
  slot.answered = answered;
  slot.queue = queue;
  slot.guestUnique = header.unique;
  header.unique = serverUnique(index);
  const fs::RequestHead head{fs::kRequestMagic, header.len,
                             answered ? static_cast<std::uint32_t>(chain.writableSize()) : 0, 0};
  std::memcpy(slot.front.data(), &head, sizeof head);
  std::memcpy(slot.front.data() + sizeof head, &header, sizeof header);
  slot.frontSize = sizeof head + sizeof header;
  slot.bodySize = header.len - sizeof header;
  if (header.opcode == FUSE_INTERRUPT) {
    std::memcpy(slot.front.data() + slot.frontSize, &interrupted, sizeof interrupted);
    slot.frontSize += sizeof interrupted;
    slot.bodySize = 0;
  }
  slot.chain = std::move(chain);
  sending_.push_back(static_cast<std::uint16_t>(index));
}

std::optional<std::size_t> Fs::findGuestUnique(std::uint64_t unique) const {
  for (std::size_t i = 0; i < slots_.size(); i++) {
    const Slot& slot = slots_[i];
    if (slot.inUse && slot.answered && slot.chain && slot.guestUnique == unique) return i;
  }
  return std::nullopt;
}

std::uint64_t Fs::serverUnique(std::size_t slot) const {
  // Even, as the kernel's are (FUSE_INT_REQ_BIT is 1), and never 0, which is a notification's.
  return (std::uint64_t{slots_[slot].uses} << 16) | ((slot + 1) << 1);
}

void Fs::sendPending() {
  if (!link_.up()) return;
  if (!carried_.empty()) {
    const fs::Link::Progress progress = link_.send(carried_, {}, sentOfCarried_);
    if (progress == fs::Link::Progress::kLater) return;
    if (progress == fs::Link::Progress::kGone) return serverGone();
    carried_.clear();
  }
  while (!sending_.empty()) {
    const std::uint16_t index = sending_.front();
    Slot& slot = slots_[index];
    const fs::Link::Body body{&*slot.chain, sizeof(fuse_in_header), slot.bodySize};
    switch (link_.send(std::span(slot.front).first(slot.frontSize), body, sentOfFirst_)) {
      case fs::Link::Progress::kLater:
        return;
      case fs::Link::Progress::kGone:
        return serverGone();
      case fs::Link::Progress::kDone:
        break;
    }
    sentOfFirst_ = 0;
    sending_.pop_front();
    slot.sent = true;
    if (!slot.answered) finish(index, 0);
  }
}

void Fs::watch() {
  const std::uint32_t wanted = EPOLLIN | (sending_.empty() && carried_.empty() ? 0 : std::uint32_t{EPOLLOUT});
  if (wanted == watchedFor_) return;
  watchedFor_ = wanted;
  loop_->change(link_.fd(), wanted);
}

void Fs::finish(std::size_t index, std::size_t written) {
  Slot& slot = slots_[index];
  if (slot.chain && !queues_.empty()) queues_[slot.queue].answer(*slot.chain, written);
  slot.chain.reset();
  slot.inUse = false;
  free_.push_back(static_cast<std::uint16_t>(index));
}

void Fs::finishWithError(const DescriptorChain& chain, std::size_t queue, std::uint64_t unique, int errnum) {
  const fuse_out_header header{sizeof(fuse_out_header), -errnum, unique};
  const bool fits = chain.writableSize() >= sizeof header;
  queues_[queue].answer(chain, fits ? chain.write(0, std::as_bytes(std::span(&header, 1))) : 0);
}

void Fs::serverGone() {
  loop_->unwatch(link_.fd());
  link_.close();
  sending_.clear();
  sentOfFirst_ = sentOfCarried_ = 0;
  carried_.clear();
  incoming_.reset();
  for (std::size_t i = 0; i < slots_.size(); i++) {
    Slot& slot = slots_[i];
    if (!slot.inUse) continue;
    if (slot.chain && !queues_.empty()) {
      finishWithError(*slot.chain, slot.queue, slot.guestUnique, ENOTCONN);
      slot.chain.reset();
    }
    finish(i, 0);
  }
}

}  // namespace bough::vmm
