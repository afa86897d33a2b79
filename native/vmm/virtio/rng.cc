// See rng.h.
#include "native/vmm/virtio/rng.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace bough::vmm {

bool Rng::notified(std::size_t /*index*/) {
  if (queues_.empty() || drained_) return false;
  Virtqueue& queue = queues_[0];
  for (int turn = 0; turn < kSizes[0]; turn++) {
    const auto chain = queue.take();
    if (!chain) return false;
    std::array<std::byte, kMostBytes> bytes;
    const std::size_t wanted = std::min(bytes.size(), chain->writableSize());
    // Up to 256 bytes come whole; with more, a signal may cut it short (getrandom(2)). The first bytes are what counts.
    const ssize_t got = ::getrandom(bytes.data(), wanted, 0);
    const std::size_t given = got > 0 ? static_cast<std::size_t>(got) : 0;
    queue.answer(*chain, chain->write(0, std::span(bytes).first(given)));
    ::explicit_bzero(bytes.data(), given);
  }
  return true;
}

void Rng::resume() {
  drained_ = false;
  while (notified(0)) {
  }
}

}  // namespace bough::vmm
