// See console.h.
#include "native/vmm/virtio/console.h"

#include <algorithm>
#include <array>
#include <utility>

namespace bough::vmm {

namespace {

/// Bytes of output of one chain that are taken; a driver sends a line or a page at a time.
constexpr std::size_t kMostOutput = std::size_t{64} << 10;

}  // namespace

bool Console::notified(std::size_t index) {
  if (queues_.empty() || drained_) return false;
  return index == kTransmit ? transmit() : deliver();
}

bool Console::transmit() {
  Virtqueue& queue = queues_[kTransmit];
  for (int turn = 0; turn < kSizes[kTransmit]; turn++) {
    const auto chain = queue.take();
    if (!chain) return false;
    std::array<std::byte, 4096> part;
    for (std::size_t offset = 0; offset < kMostOutput;) {
      const std::size_t size = chain->read(offset, part);
      sink_.write(std::span(part).first(size));
      if (size < part.size()) break;
      offset += size;
    }
    queue.answer(*chain, 0);
  }
  return true;
}

bool Console::deliver() {
  if (queues_.empty() || drained_) return false;
  Virtqueue& queue = queues_[kReceive];
  std::size_t done = 0;
  bool more = true;
  for (int turn = 0; turn < kSizes[kReceive] && done < input_.size(); turn++) {
    const auto chain = queue.take();
    if (!chain) {
      more = false;
      break;
    }
    const std::size_t size = chain->write(0, std::as_bytes(std::span(input_).subspan(done)));
    queue.answer(*chain, size);
    done += size;
  }
  input_.erase(0, done);
  return more && !input_.empty();
}

std::size_t Console::input(std::span<const std::byte> bytes) {
  const std::size_t taken = std::min(bytes.size(), kMostInput - input_.size());
  input_.append(reinterpret_cast<const char*>(bytes.data()), taken);
  // A guest that gives empty buffers and no end of them does not keep the loop here.
  for (int round = 0; round < 16 && deliver(); round++) {
  }
  return taken;
}

Result<Done> Console::attach(HostEnds& ends, EventLoop& loop) { return sink_.attach(std::move(ends.console), loop); }

void Console::resume() {
  drained_ = false;
  while (notified(kReceive) || notified(kTransmit)) {
  }
}

void Console::becomeChild() {
  sink_.becomeChild();
  input_.clear();
}

}  // namespace bough::vmm
