// A hostile guest for the fuzz targets of the virtio devices: its input chooses between register accesses, writes into
// the rings and buffers, well-formed requests, and the machine's own steps (serve, drain, fork, save and load). Each
// target adds what the host's side does.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "native/vmm/virtio/test_host.h"

namespace bough::vmm {

/// The fuzzer's bytes, taken from the front; zeroes after their end.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  template <typename T>
  T number() {
    T value{};
    const std::size_t size = std::min(left_, sizeof value);
    std::memcpy(&value, data_, size);
    data_ += size;
    left_ -= size;
    return value;
  }
  std::string_view bytes(std::size_t most) {
    const std::size_t size = std::min(left_, most);
    const std::string_view taken(reinterpret_cast<const char*>(data_), size);
    data_ += size;
    left_ -= size;
    return taken;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

class FuzzGuest {
 public:
  /// Everything the guest has is in its first 64 KiB, so that addresses that the fuzzer makes up meet it.
  static constexpr std::uint64_t kUsed = 0x10000;
  static constexpr std::uint16_t kQueueSize = 8;

  explicit FuzzGuest(VirtioDevice& device)
      : device_(device), mmio(device, memory(), line_, [this] { notified_ = true; }) {
    ::madvise(memory().host().data(), kUsed, MADV_DONTNEED);
  }

  FuzzGuest(const FuzzGuest&) = delete;
  FuzzGuest& operator=(const FuzzGuest&) = delete;
  /// The device outlives its loop here, unlike in a machine: it lets go of its ends first.
  ~FuzzGuest() {
    if (loop_->restart()) device_.becomeChild();
  }

  static const GuestMemory& memory() {
    static const GuestMemory ram = std::move(*GuestMemory::anonymous(GuestMemory::kAlignment, false));
    return ram;
  }
  EventLoop& loop() { return *loop_; }

  /// A driver as it should be: without it hardly any input would come as far as a queue.
  void start(bool eventIndex) {
    set(mmio::kStatus, 0);
    set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver);
    set(mmio::kDriverFeaturesSel, 1);
    set(mmio::kDriverFeatures, 1);
    set(mmio::kDriverFeaturesSel, 0);
    set(mmio::kDriverFeatures, eventIndex ? static_cast<std::uint32_t>(ring::kFeatureEventIndex) : 0);
    set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kFeaturesOk);
    for (std::uint32_t i = 0; i < device_.queueSizes().size(); i++) {
      set(mmio::kQueueSel, i);
      set(mmio::kQueueNum, kQueueSize);
      set(mmio::kQueueDescLow, descriptors(i));
      set(mmio::kQueueDriverLow, available(i));
      set(mmio::kQueueDeviceLow, used(i));
      set(mmio::kQueueReady, 1);
      available_[i % available_.size()] = 0;
    }
    set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kFeaturesOk | mmio::kDriverOk);
    serve();
  }

  /// One step that the input chooses; false where the target has a step of its own to take.
  bool step(FuzzInput& in) {
    const std::uint8_t choice = in.byte();
    switch (choice % 16) {
      case 0: {
        std::array<std::byte, 8> data{};
        mmio.read(in.number<std::uint16_t>() % 0x200, std::span(data).first(std::size_t{1} << (choice >> 4) % 4));
        return true;
      }
      case 1:
        set(in.byte() * 4U, in.number<std::uint32_t>());
        return true;
      case 2:
        mmio.write(in.number<std::uint16_t>() % 0x200, asBytes(std::string(in.bytes(1 + choice / 64))));
        return true;
      case 3: {
        const std::uint64_t address = in.number<std::uint16_t>();
        const std::string_view bytes = in.bytes(in.byte());
        memory().write(GuestAddress{address}, asBytes(bytes));
        return true;
      }
      case 4:
        setDescriptor(choice >> 4, in.byte() % kQueueSize,
                      {in.number<std::uint64_t>(), in.number<std::uint32_t>(), in.number<std::uint16_t>(),
                       in.number<std::uint16_t>()});
        return true;
      case 5:
        offer(choice >> 4, in.number<std::uint16_t>());
        return true;
      case 6:
        set(mmio::kQueueNotify, choice >> 4);
        return true;
      case 7:
        serve();
        return true;
      case 8:
        start(choice & 16);
        return true;
      case 9:
        device_.drain();
        return true;
      case 10:
        device_.resume();
        return true;
      case 11:
        saveAndLoad(in, choice & 16);
        return true;
      default:
        return false;
    }
  }

  /// A request whose chain is as it should be: `out`, then room for `in` bytes.
  void request(std::uint32_t queue, std::string_view out, std::uint32_t in) {
    const std::uint16_t slot = static_cast<std::uint16_t>(2 * (requests_++ % (kQueueSize / 2)));
    const std::uint64_t outAt = 0x8000 + 0x800 * std::uint64_t{slot};
    const std::string_view some = out.substr(0, 0x800);
    memory().write(GuestAddress{outAt}, asBytes(some));
    const bool both = !some.empty() && in > 0;
    if (!some.empty())
      setDescriptor(queue, slot,
                    {outAt, static_cast<std::uint32_t>(some.size()), static_cast<std::uint16_t>(both ? ring::kNext : 0),
                     static_cast<std::uint16_t>(slot + 1)});
    if (in > 0) setDescriptor(queue, static_cast<std::uint16_t>(both ? slot + 1 : slot), {0xC000, in, ring::kWrite, 0});
    offer(queue, slot);
    set(mmio::kQueueNotify, queue);
    serve();
  }

  void serve() {
    loop_->runOnce(0);
    for (int i = 0; i < 4 && std::exchange(notified_, false); i++) mmio.serve();
    mmio.signal();
  }
  /// As the machine forks, if it could now.
  void becomeChild(HostEnds ends) {
    device_.drain();
    if (!device_.quiet()) return device_.resume();
    if (!loop_->restart()) __builtin_trap();
    device_.becomeChild();
    if (!device_.attach(ends, *loop_)) __builtin_trap();
    device_.resume();
  }

 private:
  void set(std::uint64_t offset, std::uint32_t value) { mmio.write(offset, std::as_bytes(std::span(&value, 1))); }
  static std::uint32_t descriptors(std::uint32_t queue) { return 0x1000 + 0x400 * (queue % 4); }
  static std::uint32_t available(std::uint32_t queue) { return descriptors(queue) + 0x100; }
  static std::uint32_t used(std::uint32_t queue) { return descriptors(queue) + 0x200; }
  void setDescriptor(std::uint32_t queue, std::uint32_t slot, const ring::Descriptor& entry) {
    memory().store(GuestAddress{descriptors(queue) + 16 * std::uint64_t{slot}}, entry);
  }
  void offer(std::uint32_t queue, std::uint16_t head) {
    std::uint16_t& index = available_[queue % available_.size()];
    memory().store(GuestAddress{available(queue) + ring::availableEntry(index % kQueueSize)}, head);
    memory().storeRelease16(GuestAddress{available(queue) + ring::kIndex}, ++index);
  }
  void saveAndLoad(FuzzInput& in, bool damaged) {
    device_.drain();
    if (device_.quiet()) {
      Encoder out;
      mmio.save(out);
      std::string bytes = out.take();
      if (damaged && !bytes.empty()) bytes[in.number<std::uint16_t>() % bytes.size()] = static_cast<char>(in.byte());
      Decoder saved(bytes);
      const bool loaded = mmio.load(saved).ok();
      if (!damaged && !loaded) __builtin_trap();
    }
    device_.resume();
  }

  VirtioDevice& device_;
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::make());
  CountingLine line_;
  bool notified_ = false;
  std::array<std::uint16_t, 4> available_{};
  unsigned requests_ = 0;

 public:
  VirtioMmio mmio;
};

}  // namespace bough::vmm
