// The driver's side of a virtio device, for tests and fuzz targets: sets a device up through its registers and puts
// requests into its queues, as a guest's kernel would. Everything lies in guest memory.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "native/vmm/memory/guest_memory.h"
#include "native/vmm/virtio/mmio.h"
#include "native/vmm/virtio/mmio_registers.h"
#include "native/vmm/virtio/ring_layout.h"

namespace bough::vmm {

inline std::span<const std::byte> asBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

template <typename T>
std::string_view asText(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Counts edges.
class CountingLine : public InterruptLine {
 public:
  void pulse() override { pulses++; }
  int pulses = 0;
};

/// One queue, as the driver has it in memory.
class TestQueue {
 public:
  struct Part {
    GuestAddress address{};
    std::uint32_t size = 0;
    bool writable = false;
  };
  struct Used {
    std::uint16_t head = 0;
    std::uint32_t written = 0;
  };

  TestQueue(const GuestMemory& memory, std::uint16_t size, std::uint64_t base)
      : descriptors{base},
        available{base + ring::descriptorTableSize(size)},
        used{(raw(available) + ring::availableRingSize(size) + 3) / 4 * 4},
        memory_(&memory),
        size_(size) {
    for (std::uint16_t i = 0; i < size; i++) free_.push_back(i);
  }

  std::uint16_t size() const { return size_; }
  Virtqueue::Layout layout(bool eventIndex = false) const {
    return {size_, descriptors, available, used, false, eventIndex};
  }

  /// A chain of these parts; with `indirectTable` its descriptors are there and one descriptor names them.
  std::uint16_t add(const std::vector<Part>& parts, std::optional<GuestAddress> indirectTable = std::nullopt) {
    std::vector<std::uint16_t> mine;
    for (std::size_t i = 0; i < (indirectTable ? 1 : parts.size()); i++) {
      if (free_.empty()) throw std::logic_error("the test's queue is full");
      mine.push_back(free_.front());
      free_.pop_front();
    }
    for (std::size_t i = 0; i < parts.size(); i++) {
      const bool last = i + 1 == parts.size();
      const std::uint16_t flags =
          static_cast<std::uint16_t>((parts[i].writable ? ring::kWrite : 0) | (last ? 0 : ring::kNext));
      const std::uint16_t next = last            ? std::uint16_t{0}
                                 : indirectTable ? static_cast<std::uint16_t>(i + 1)
                                                 : mine[i + 1];
      const ring::Descriptor entry{raw(parts[i].address), parts[i].size, flags, next};
      if (indirectTable) {
        memory_->store(GuestAddress{raw(*indirectTable) + 16 * i}, entry);
      } else {
        setDescriptor(mine[i], entry);
      }
    }
    if (indirectTable)
      setDescriptor(mine[0], {raw(*indirectTable), static_cast<std::uint32_t>(16 * parts.size()), ring::kIndirect, 0});
    owned_.push_back(mine);
    offer(mine[0]);
    return mine[0];
  }

  void setDescriptor(std::uint16_t slot, const ring::Descriptor& entry) {
    memory_->store(GuestAddress{raw(descriptors) + std::uint64_t{16} * slot}, entry);
  }
  void offer(std::uint16_t head) {
    memory_->store(GuestAddress{raw(available) + ring::availableEntry(static_cast<std::uint16_t>(index_ % size_))},
                   head);
    setIndex(++index_);
  }
  void setIndex(std::uint16_t index) {
    memory_->storeRelease16(GuestAddress{raw(available) + ring::kIndex}, index);
    index_ = index;
  }
  void setFlags(std::uint16_t flags) { memory_->store(GuestAddress{raw(available) + ring::kFlags}, flags); }
  void setUsedEvent(std::uint16_t index) {
    memory_->store(GuestAddress{raw(available) + ring::usedEvent(size_)}, index);
  }
  std::uint16_t availableEvent() const {
    return memory_->load<std::uint16_t>(GuestAddress{raw(used) + ring::availableEvent(size_)}).value();
  }

  /// The next answer, if there is one.
  std::optional<Used> next() {
    const std::uint16_t now = memory_->loadAcquire16(GuestAddress{raw(used) + ring::kIndex}).value();
    if (now == seen_) return std::nullopt;
    const auto slot = static_cast<std::uint16_t>(seen_++ % size_);
    const auto element = memory_->load<ring::UsedElement>(GuestAddress{raw(used) + ring::usedEntry(slot)}).value();
    const Used answer{static_cast<std::uint16_t>(element.head), element.written};
    for (auto each = owned_.begin(); each != owned_.end(); ++each) {
      if (each->front() != answer.head) continue;
      free_.insert(free_.end(), each->begin(), each->end());
      owned_.erase(each);
      // Wants an interrupt for the next one.
      setUsedEvent(seen_);
      return answer;
    }
    throw std::logic_error("the device answered a chain that it did not have");
  }

  GuestAddress descriptors{};
  GuestAddress available{};
  GuestAddress used{};

 private:
  const GuestMemory* memory_;
  std::uint16_t size_;
  std::uint16_t index_ = 0;
  std::uint16_t seen_ = 0;
  std::deque<std::uint16_t> free_;
  std::vector<std::vector<std::uint16_t>> owned_;
};

/// A device behind its transport, in a small machine that has only it.
class TestDriver {
 public:
  explicit TestDriver(VirtioDevice& device, std::size_t ram = GuestMemory::kAlignment * 4)
      : memory(std::move(*GuestMemory::anonymous(ram, false))),
        mmio(device, memory, line, [this] { notified = true; }) {
    for (const std::uint16_t size : device.queueSizes()) queues.push_back(makeQueue(size));
  }

  std::uint32_t get(std::uint64_t offset) {
    std::uint32_t value = 0;
    mmio.read(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void set(std::uint64_t offset, std::uint32_t value) { mmio.write(offset, std::as_bytes(std::span(&value, 1))); }

  /// 3.1.1, driver requirements: device initialization. `refused`: features that it does not take.
  void start(std::uint64_t refused = 0) {
    set(mmio::kStatus, 0);
    set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver);
    for (std::uint32_t word = 0; word < 2; word++) {
      set(mmio::kDeviceFeaturesSel, word);
      set(mmio::kDriverFeaturesSel, word);
      set(mmio::kDriverFeatures, get(mmio::kDeviceFeatures) & ~static_cast<std::uint32_t>(refused >> (32 * word)));
    }
    set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kFeaturesOk);
    for (std::uint32_t i = 0; i < queues.size(); i++) makeReady(i);
    set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kFeaturesOk | mmio::kDriverOk);
    serve();
  }
  void makeReady(std::uint32_t index) {
    const TestQueue& queue = queues[index];
    set(mmio::kQueueSel, index);
    set(mmio::kQueueNum, queue.size());
    set(mmio::kQueueDescLow, static_cast<std::uint32_t>(raw(queue.descriptors)));
    set(mmio::kQueueDescHigh, static_cast<std::uint32_t>(raw(queue.descriptors) >> 32));
    set(mmio::kQueueDriverLow, static_cast<std::uint32_t>(raw(queue.available)));
    set(mmio::kQueueDriverHigh, static_cast<std::uint32_t>(raw(queue.available) >> 32));
    set(mmio::kQueueDeviceLow, static_cast<std::uint32_t>(raw(queue.used)));
    set(mmio::kQueueDeviceHigh, static_cast<std::uint32_t>(raw(queue.used) >> 32));
    set(mmio::kQueueReady, 1);
  }
  /// Fresh queues, as after a reset of the guest.
  void restart() {
    for (TestQueue& queue : queues) {
      const std::uint16_t size = queue.size();
      queue = makeQueue(size);
    }
    start();
  }

  void kick(std::uint32_t index) {
    set(mmio::kQueueNotify, index);
    serve();
  }
  /// What the machine does when it was notified.
  void serve() {
    while (std::exchange(notified, false)) mmio.serve();
  }

  GuestAddress allocate(std::size_t size, std::size_t alignment = 16) {
    next_ = (next_ + alignment - 1) / alignment * alignment;
    const GuestAddress address{next_};
    next_ += size;
    if (!memory.contains(address, size)) throw std::logic_error("the test's guest has no memory left");
    return address;
  }
  TestQueue::Part put(std::string_view bytes) {
    const GuestAddress address = allocate(bytes.size());
    memory.write(address, asBytes(bytes));
    return {address, static_cast<std::uint32_t>(bytes.size()), false};
  }
  TestQueue::Part room(std::size_t size) { return {allocate(size), static_cast<std::uint32_t>(size), true}; }
  std::string text(GuestAddress address, std::size_t size) const {
    std::string bytes(size, '\0');
    if (!memory.read(address, std::as_writable_bytes(std::span(bytes)))) throw std::logic_error("not in RAM");
    return bytes;
  }

  GuestMemory memory;
  CountingLine line;
  bool notified = false;
  VirtioMmio mmio;
  std::vector<TestQueue> queues;

 private:
  TestQueue makeQueue(std::uint16_t size) {
    return TestQueue(memory, size, raw(allocate(std::size_t{32} * size + 64)));
  }
  std::uint64_t next_ = 0x1000;
};

}  // namespace bough::vmm
