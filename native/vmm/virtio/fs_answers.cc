// The way of the file system device's answers: from the server's socket into the guest's buffers. See fs.h.
#include <cerrno>

#include "native/vmm/virtio/fs.h"

namespace bough::vmm {

namespace {

using Progress = fs::Link::Progress;

/// Answers for one turn of the loop; the socket stays ready if there are more.
constexpr int kMostPerTurn = 128;

}  // namespace

void Fs::receive() {
  for (int turn = 0; turn < kMostPerTurn && link_.up(); turn++) {
    if (!receiveOne()) return;
  }
}

/// False: the rest of it, or of what comes next, is not there yet.
bool Fs::receiveOne() {
  if (!incoming_ && !beginAnswer()) return false;
  Incoming& incoming = *incoming_;
  const std::optional<std::size_t> index = incoming.slot;
  const bool wanted = index && incoming.fits && slots_[*index].chain;
  const Progress progress =
      wanted ? link_.receiveInto(*slots_[*index].chain, sizeof(fuse_out_header), incoming.size, incoming.done)
             : link_.skip(incoming.size, incoming.done);
  if (progress == Progress::kLater) return false;
  if (progress == Progress::kGone) {
    serverGone();
    return false;
  }
  const std::size_t written = sizeof(fuse_out_header) + incoming.size;
  const bool fits = incoming.fits;
  incoming_.reset();
  if (!index) return true;
  Slot& slot = slots_[*index];
  if (slot.chain && !fits) {
    finishWithError(*slot.chain, slot.queue, slot.guestUnique, EIO);
    slot.chain.reset();
  }
  finish(*index, written);
  return true;
}

bool Fs::beginAnswer() {
  fs::Link::Answer answer;
  const Progress progress = link_.nextAnswer(answer);
  if (progress == Progress::kLater) return false;
  if (progress == Progress::kGone) {
    serverGone();
    return false;
  }
  Incoming incoming;
  incoming.size = answer.left;
  // A notification (fuse(4), unique 0): virtio-fs has no queue for it.
  if (answer.header.unique != 0) {
    const std::uint64_t number = (answer.header.unique & 0xFFFF) >> 1;
    const std::size_t index = static_cast<std::size_t>(number) - 1;
    const bool ours = number >= 1 && index < slots_.size() && slots_[index].inUse && slots_[index].sent &&
                      slots_[index].answered && serverUnique(index) == answer.header.unique;
    if (!ours) {
      // An answer to nothing: what else it says cannot be trusted either.
      serverGone();
      return false;
    }
    Slot& slot = slots_[index];
    incoming.slot = index;
    if (slot.chain) {
      incoming.fits = answer.header.len <= slot.chain->writableSize();
      answer.header.unique = slot.guestUnique;
      if (incoming.fits) slot.chain->write(0, std::as_bytes(std::span(&answer.header, 1)));
    }
  }
  incoming_ = incoming;
  return true;
}

}  // namespace bough::vmm
