// A split virtqueue (VIRTIO 1.2, section 2.7), the device's side. Used by every virtio device; set up by the transport.
//
// The guest is the enemy: descriptors may point outside RAM, form circles, or be too many. Such a queue is broken: it
// gives no more chains, and the transport tells the driver with DEVICE_NEEDS_RESET.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "native/common/codec.h"
#include "native/vmm/memory/guest_memory.h"

namespace bough::vmm {

/// One request: a chain of buffers, first those that the device reads, then those that it writes. Copied out of the
/// descriptor table and checked to be RAM when it was taken; it stays valid whatever the guest does to the table.
class DescriptorChain {
 public:
  struct Buffer {
    GuestAddress address{};
    std::uint32_t size = 0;
  };

  DescriptorChain(const GuestMemory& memory, std::uint16_t head) : memory_(&memory), head_(head) {}

  std::uint16_t head() const { return head_; }
  std::size_t readableSize() const { return readableSize_; }
  std::size_t writableSize() const { return writableSize_; }

  /// Copies up to `to.size()` bytes of the readable part, from byte `offset` of it; answers how many.
  std::size_t read(std::size_t offset, std::span<std::byte> to) const;
  /// Copies up to `from.size()` bytes into the writable part, from byte `offset` of it; answers how many.
  std::size_t write(std::size_t offset, std::span<const std::byte> from) const;
  /// The readable (writable) part from `offset` on, at most `size` bytes of it, for writev(2) (readv(2)).
  std::vector<iovec> readable(std::size_t offset, std::size_t size) const;
  std::vector<iovec> writable(std::size_t offset, std::size_t size) const;
  /// The same, appended to a list that already has something or that is used again and again.
  void appendReadable(std::vector<iovec>& list, std::size_t offset, std::size_t size) const;
  void appendWritable(std::vector<iovec>& list, std::size_t offset, std::size_t size) const;

 private:
  friend class Virtqueue;
  std::span<const Buffer> readableBuffers() const { return std::span(buffers_).first(readableCount_); }
  std::span<const Buffer> writableBuffers() const { return std::span(buffers_).subspan(readableCount_); }

  const GuestMemory* memory_;
  std::uint16_t head_;
  // The readable ones first.
  std::vector<Buffer> buffers_;
  std::size_t readableCount_ = 0;
  std::size_t readableSize_ = 0;
  std::size_t writableSize_ = 0;
};

class Virtqueue {
 public:
  /// Bytes of one chain's buffers, both parts together; a chain with more breaks the queue.
  static constexpr std::size_t kLargestChain = std::size_t{16} << 20;
  /// Entries of an indirect table.
  static constexpr std::uint32_t kLargestTable = 1024;

  explicit Virtqueue(const GuestMemory& memory, std::uint16_t largestSize);

  // What the driver sets through the transport's registers, before it makes the queue ready.
  struct Layout {
    std::uint16_t size = 0;
    GuestAddress descriptors{};
    GuestAddress available{};
    GuestAddress used{};
    bool ready = false;
    /// VIRTIO_F_EVENT_IDX was agreed on.
    bool eventIndex = false;
  };
  std::uint16_t largestSize() const { return largestSize_; }
  const Layout& layout() const { return layout_; }
  /// False, and the queue stays as it was, if size or an address cannot be right.
  bool enable(const Layout& layout);
  void reset();

  bool ready() const { return layout_.ready && !broken_; }
  bool broken() const { return broken_; }

  /// The next request, if there is one and the queue is ready. Where there is none, the driver kicks for the next one.
  std::optional<DescriptorChain> take();
  /// Puts the last taken chain back, as if it had not been taken: it was not answered and nothing of it was done.
  void untake();
  /// How many requests wait to be taken.
  std::size_t waiting() const;
  /// Asks the driver to kick when it adds one more chain, however many are there. A driver need not kick without this
  /// before take() has come to the end.
  void askForKick();
  /// Answers a request: `written` bytes of its writable part are filled.
  void answer(const DescriptorChain& chain, std::size_t written);
  /// The same for a chain of which only the head is still known.
  void answer(std::uint16_t head, std::size_t written);
  /// Whether the driver wants an interrupt for what was answered since the last call (VIRTIO 1.2, 2.7.7).
  bool interruptWanted();

  void save(Encoder& out) const;
  /// False if the bytes cannot be right.
  bool load(Decoder& in);

 private:
  bool plausible(const Layout& layout) const;
  std::optional<std::uint16_t> availableIndex() const;
  bool collect(std::uint16_t head, DescriptorChain& chain) const;
  bool addBuffer(DescriptorChain& chain, std::uint64_t address, std::uint32_t size, bool writable) const;

  const GuestMemory* memory_;
  std::uint16_t largestSize_;
  Layout layout_;
  std::uint16_t nextAvailable_ = 0;
  std::uint16_t nextUsed_ = 0;
  std::uint16_t signalled_ = 0;
  bool broken_ = false;
};

}  // namespace bough::vmm
