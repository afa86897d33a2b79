// See queue.h.
#include "native/vmm/virtio/queue.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "native/vmm/virtio/ring_layout.h"

namespace bough::vmm {

namespace {

static_assert(std::endian::native == std::endian::little, "rings are little endian and are used as they are");

GuestAddress at(GuestAddress base, std::uint64_t offset) { return GuestAddress{raw(base) + offset}; }

/// Calls f(address, bytes, position) for each stretch of [offset, offset + size) of the buffers; answers how many
/// bytes.
template <typename F>
std::size_t forEachStretch(std::span<const DescriptorChain::Buffer> buffers, std::size_t offset, std::size_t size,
                           F f) {
  std::size_t done = 0;
  for (const DescriptorChain::Buffer& buffer : buffers) {
    if (done == size) break;
    if (offset >= buffer.size) {
      offset -= buffer.size;
      continue;
    }
    const std::size_t now = std::min(buffer.size - offset, size - done);
    f(at(buffer.address, offset), now, done);
    done += now;
    offset = 0;
  }
  return done;
}

}  // namespace

std::size_t DescriptorChain::read(std::size_t offset, std::span<std::byte> to) const {
  return forEachStretch(
      readableBuffers(), offset, to.size(),
      [&](GuestAddress from, std::size_t size, std::size_t done) { memory_->read(from, to.subspan(done, size)); });
}

std::size_t DescriptorChain::write(std::size_t offset, std::span<const std::byte> from) const {
  return forEachStretch(
      writableBuffers(), offset, from.size(),
      [&](GuestAddress to, std::size_t size, std::size_t done) { memory_->write(to, from.subspan(done, size)); });
}

void DescriptorChain::appendReadable(std::vector<iovec>& list, std::size_t offset, std::size_t size) const {
  forEachStretch(readableBuffers(), offset, size,
                 [&](GuestAddress from, std::size_t bytes, std::size_t) { memory_->appendTo(list, from, bytes); });
}

void DescriptorChain::appendWritable(std::vector<iovec>& list, std::size_t offset, std::size_t size) const {
  forEachStretch(writableBuffers(), offset, size,
                 [&](GuestAddress to, std::size_t bytes, std::size_t) { memory_->appendTo(list, to, bytes); });
}

std::vector<iovec> DescriptorChain::readable(std::size_t offset, std::size_t size) const {
  std::vector<iovec> list;
  appendReadable(list, offset, size);
  return list;
}

std::vector<iovec> DescriptorChain::writable(std::size_t offset, std::size_t size) const {
  std::vector<iovec> list;
  appendWritable(list, offset, size);
  return list;
}

Virtqueue::Virtqueue(const GuestMemory& memory, std::uint16_t largestSize)
    : memory_(&memory), largestSize_(largestSize) {}

bool Virtqueue::plausible(const Layout& layout) const {
  if (!std::has_single_bit(layout.size) || layout.size > largestSize_) return false;
  // VIRTIO 1.2, section 2.7: alignment of the three parts.
  if (raw(layout.descriptors) % 16 != 0 || raw(layout.available) % 2 != 0 || raw(layout.used) % 4 != 0) return false;
  return memory_->contains(layout.descriptors, ring::descriptorTableSize(layout.size)) &&
         memory_->contains(layout.available, ring::availableRingSize(layout.size)) &&
         memory_->contains(layout.used, ring::usedRingSize(layout.size));
}

bool Virtqueue::enable(const Layout& layout) {
  if (!plausible(layout)) return false;
  reset();
  layout_ = layout;
  layout_.ready = true;
  return true;
}

void Virtqueue::reset() {
  layout_ = {};
  nextAvailable_ = nextUsed_ = signalled_ = 0;
  broken_ = false;
}

std::optional<std::uint16_t> Virtqueue::availableIndex() const {
  return memory_->loadAcquire16(at(layout_.available, ring::kIndex));
}

std::optional<DescriptorChain> Virtqueue::take() {
  if (!ready()) return std::nullopt;
  std::optional<std::uint16_t> index = availableIndex();
  if (index == nextAvailable_) {
    if (!layout_.eventIndex) return std::nullopt;
    askForKick();
    // The driver may have added one before it could see that we want a kick for it.
    index = availableIndex();
    if (index == nextAvailable_) return std::nullopt;
  }
  // More than the queue holds cannot be waiting.
  if (!index || static_cast<std::uint16_t>(*index - nextAvailable_) > layout_.size) {
    broken_ = true;
    return std::nullopt;
  }
  const auto slot = static_cast<std::uint16_t>(nextAvailable_ % layout_.size);
  const auto head = memory_->load<std::uint16_t>(at(layout_.available, ring::availableEntry(slot)));
  DescriptorChain chain(*memory_, head.value_or(0));
  if (!head || !collect(*head, chain)) {
    broken_ = true;
    return std::nullopt;
  }
  nextAvailable_++;
  return chain;
}

void Virtqueue::untake() { nextAvailable_--; }

std::size_t Virtqueue::waiting() const {
  if (!ready()) return 0;
  return static_cast<std::uint16_t>(availableIndex().value_or(nextAvailable_) - nextAvailable_);
}

void Virtqueue::askForKick() {
  if (!ready() || !layout_.eventIndex) return;
  memory_->store(at(layout_.used, ring::availableEvent(layout_.size)), availableIndex().value_or(nextAvailable_));
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Virtqueue::addBuffer(DescriptorChain& chain, std::uint64_t address, std::uint32_t size, bool writable) const {
  if (!memory_->contains(GuestAddress{address}, size)) return false;
  // What the device reads comes before what it writes (2.7.4.2).
  if (!writable && chain.writableSize_ > 0) return false;
  (writable ? chain.writableSize_ : chain.readableSize_) += size;
  if (chain.readableSize_ + chain.writableSize_ > kLargestChain) return false;
  if (size == 0) return true;
  chain.buffers_.push_back({GuestAddress{address}, size});
  if (!writable) chain.readableCount_++;
  return true;
}

bool Virtqueue::collect(std::uint16_t head, DescriptorChain& chain) const {
  GuestAddress table = layout_.descriptors;
  std::uint32_t entries = layout_.size;
  bool indirect = false;
  std::uint32_t next = head;
  // A chain that is longer than its table has a circle.
  for (std::uint32_t left = entries; left > 0; left--) {
    if (next >= entries) return false;
    const auto entry = memory_->load<ring::Descriptor>(at(table, std::uint64_t{next} * sizeof(ring::Descriptor)));
    if (!entry) return false;
    if (entry->flags & ring::kIndirect) {
      // 2.7.5.3: a table of its own, neither followed by another descriptor nor within an indirect table.
      if (indirect || (entry->flags & ring::kNext) || entry->size % sizeof(ring::Descriptor) != 0) return false;
      indirect = true;
      table = GuestAddress{entry->address};
      entries = static_cast<std::uint32_t>(entry->size / sizeof(ring::Descriptor));
      if (entries > kLargestTable || !memory_->contains(table, entry->size)) return false;
      chain.buffers_.reserve(chain.buffers_.size() + entries);
      next = 0;
      left = entries + 1;
      continue;
    }
    if (!addBuffer(chain, entry->address, entry->size, entry->flags & ring::kWrite)) return false;
    if (!(entry->flags & ring::kNext)) return true;
    next = entry->next;
  }
  return false;
}

void Virtqueue::answer(const DescriptorChain& chain, std::size_t written) {
  answer(chain.head(), std::min(written, chain.writableSize()));
}

void Virtqueue::answer(std::uint16_t head, std::size_t written) {
  if (!ready()) return;
  const auto slot = static_cast<std::uint16_t>(nextUsed_ % layout_.size);
  memory_->store(at(layout_.used, ring::usedEntry(slot)),
                 ring::UsedElement{head, static_cast<std::uint32_t>(std::min(written, kLargestChain))});
  nextUsed_++;
  memory_->storeRelease16(at(layout_.used, ring::kIndex), nextUsed_);
}

bool Virtqueue::interruptWanted() {
  if (!ready() || nextUsed_ == signalled_) return false;
  // The driver says that it wants one and then looks at the used index; we changed that index and now look at what it
  // says.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint16_t before = signalled_;
  signalled_ = nextUsed_;
  if (layout_.eventIndex) {
    const auto event = memory_->load<std::uint16_t>(at(layout_.available, ring::usedEvent(layout_.size)));
    return event && ring::passed(*event, nextUsed_, before);
  }
  const auto flags = memory_->load<std::uint16_t>(at(layout_.available, ring::kFlags));
  return flags && !(*flags & ring::kNoInterrupt);
}

void Virtqueue::save(Encoder& out) const {
  out.flag(layout_.ready);
  out.flag(layout_.eventIndex);
  out.flag(broken_);
  out.number(layout_.size);
  out.number(raw(layout_.descriptors));
  out.number(raw(layout_.available));
  out.number(raw(layout_.used));
  out.number(nextAvailable_);
  out.number(nextUsed_);
  out.number(signalled_);
}

bool Virtqueue::load(Decoder& in) {
  reset();
  Layout layout;
  layout.ready = in.flag();
  layout.eventIndex = in.flag();
  const bool broken = in.flag();
  const std::uint64_t size = in.number();
  layout.descriptors = GuestAddress{in.number()};
  layout.available = GuestAddress{in.number()};
  layout.used = GuestAddress{in.number()};
  const std::uint64_t nextAvailable = in.number();
  const std::uint64_t nextUsed = in.number();
  const std::uint64_t signalled = in.number();
  if (!in.ok() || size > UINT16_MAX || nextAvailable > UINT16_MAX || nextUsed > UINT16_MAX || signalled > UINT16_MAX)
    return false;
  layout.size = static_cast<std::uint16_t>(size);
  if (!layout.ready) return true;
  if (!enable(layout)) return false;
  nextAvailable_ = static_cast<std::uint16_t>(nextAvailable);
  nextUsed_ = static_cast<std::uint16_t>(nextUsed);
  signalled_ = static_cast<std::uint16_t>(signalled);
  broken_ = broken;
  return true;
}

}  // namespace bough::vmm
