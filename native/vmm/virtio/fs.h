// The file system device (VIRTIO 1.2, section 5.11): passes the guest's FUSE requests to a server over a stream socket
// and its answers back (docs/fs-socket.md). It knows of FUSE only what it must: lengths, who gets which answer, and
// which requests have none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "native/vmm/virtio/device.h"
#include "native/vmm/virtio/fs_link.h"
#include "native/vmm/virtio/queue.h"

namespace bough::vmm {

class Fs : public VirtioDevice {
 public:
  static constexpr std::size_t kMostInFlight = 256;

  /// `tag`: the name that the guest mounts, at most 36 bytes.
  explicit Fs(std::string tag);
  ~Fs() override;

  std::uint32_t id() const override { return 26; }
  std::span<const std::uint16_t> queueSizes() const override { return kSizes; }
  void readConfig(std::uint64_t offset, std::span<std::byte> data) const override;
  void activate(std::span<Virtqueue> queues, std::uint64_t /*features*/) override { queues_ = queues; }
  void reset() override;
  bool notified(std::size_t index) override;

  /// Takes the first of the file systems' sockets that is left. Without one every request is answered with ENOTCONN.
  Result<Done> attach(HostEnds& ends, EventLoop& loop) override;
  void drain() override { drained_ = true; }
  bool quiet() const override { return free_.size() == slots_.size() && carried_.empty(); }
  void resume() override;
  void becomeChild() override;

  void save(Encoder& out) const override;
  Result<Done> load(Decoder& in) override;

 private:
  enum Queue : std::size_t { kHighPriority = 0, kRequests = 1 };
  static constexpr std::uint16_t kSizes[] = {128, 1024};

  /// A request that the server has or is to get.
  struct Slot {
    /// Empty once the driver has reset the device: the answer is thrown away.
    std::optional<DescriptorChain> chain;
    std::size_t queue = 0;
    std::uint64_t guestUnique = 0;
    /// What stands before the guest's own bytes: the record's head, the FUSE header, for INTERRUPT all of it.
    std::array<std::byte, 64> front{};
    std::size_t frontSize = 0;
    std::size_t bodySize = 0;
    bool inUse = false;
    bool sent = false;
    bool answered = false;
    /// Counts uses, so that an answer that comes twice is not taken for the next request's.
    std::uint32_t uses = 0;
  };

  // Requests (fs.cc).
  void takeAll();
  void request(std::size_t queue, DescriptorChain chain);
  std::optional<std::size_t> findGuestUnique(std::uint64_t unique) const;
  std::uint64_t serverUnique(std::size_t slot) const;
  void sendPending();
  void finish(std::size_t slot, std::size_t written);
  void finishWithError(const DescriptorChain& chain, std::size_t queue, std::uint64_t unique, int errnum);
  void watch();
  void serverGone();

  // Answers (fs_answers.cc).
  void receive();
  bool receiveOne();
  bool beginAnswer();

  std::string tag_;
  EventLoop* loop_ = nullptr;
  std::span<Virtqueue> queues_;
  bool drained_ = false;
  fs::Link link_;
  std::uint32_t watchedFor_ = 0;

  std::vector<Slot> slots_;
  std::vector<std::uint16_t> free_;
  /// Slots whose request is not yet wholly sent, in their order, and how much of the first one is.
  std::deque<std::uint16_t> sending_;
  std::size_t sentOfFirst_ = 0;
  /// The rest of a request that the driver's reset caught half sent.
  std::vector<std::byte> carried_;
  std::size_t sentOfCarried_ = 0;
  bool full_ = false;

  /// The answer that is coming in: whose, where its bytes go, how many of them are there.
  struct Incoming {
    std::optional<std::size_t> slot;
    std::size_t size = 0;
    std::size_t done = 0;
    bool fits = true;
  };
  std::optional<Incoming> incoming_;
};

}  // namespace bough::vmm
