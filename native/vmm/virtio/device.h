// What a virtio device is to the transport and to the machine. Implemented by rng.h, console.h, vsock.h and fs.h;
// called by mmio.h (registers, on vCPU threads) and by the machine (queues, forks, on the I/O thread).
//
// The machine's device lock (EventLoop::deviceLock) is held during every call here and around the handlers that a
// device gives to EventLoop::watchDevice, so a device needs none of its own, and none may block. "VIRTIO 1.2" in
// comments is the OASIS specification "Virtual I/O Device (VIRTIO) Version 1.2".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "native/common/codec.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm {

class Virtqueue;

/// The host's ends of a machine's devices. What a machine was not given stays empty, and its device does without. A
/// forked child gets ends of its own: none is ever shared by two machines.
struct HostEnds {
  /// A log file or pipe that takes what the guest writes to its serial port and its virtio console (devices/sink.h).
  UniqueFd console;
  /// A listening unix stream socket: the host's way to the guest's vsock ports ("CONNECT <port>\n").
  UniqueFd vsock;
  /// One connected unix stream socket to a FUSE server for each file system, in the order of the machine's file
  /// systems.
  std::vector<UniqueFd> fileSystems;
};

class VirtioDevice {
 public:
  VirtioDevice() = default;
  VirtioDevice(const VirtioDevice&) = delete;
  VirtioDevice& operator=(const VirtioDevice&) = delete;
  virtual ~VirtioDevice() = default;

  /// VIRTIO 1.2, section 5: 3 console, 4 entropy, 19 socket, 26 file system.
  virtual std::uint32_t id() const = 0;
  /// Feature bits that it offers besides VIRTIO_F_VERSION_1, which the transport adds.
  virtual std::uint64_t features() const { return 0; }
  /// The largest size of each queue: powers of two, at most 1024.
  virtual std::span<const std::uint16_t> queueSizes() const = 0;
  /// Device configuration space. `data` comes zeroed; what lies outside reads as zero and is not written.
  virtual void readConfig(std::uint64_t offset, std::span<std::byte> data) const = 0;
  virtual void writeConfig(std::uint64_t /*offset*/, std::span<const std::byte> /*data*/) {}

  /// The driver is ready (DRIVER_OK): `queues` belong to the transport and stay where they are until reset(). Called
  /// again after load(), where the driver was ready when the state was saved.
  virtual void activate(std::span<Virtqueue> queues, std::uint64_t features) = 0;
  /// The driver reset the device: nothing in flight may be answered any more, connections end.
  virtual void reset() = 0;
  /// Buffers came into queue `index`. On the I/O thread. True: it has done enough for one turn, there is more, and it
  /// wants this call again.
  virtual bool notified(std::size_t index) = 0;

  /// Takes host ends (and watches them on the loop). Called once before the machine runs, and in a forked child before
  /// it runs; each device moves out what is its own.
  virtual Result<Done> attach(HostEnds& ends, EventLoop& loop) = 0;

  /// Stops taking new requests from its queues until resume(): the machine is about to fork or to be saved. vCPUs are
  /// parked. A request whose answer is outside this process (FUSE) is waited for: the machine runs the loop until
  /// quiet().
  virtual void drain() {}
  virtual bool quiet() const { return true; }
  virtual void resume() {}

  /// In a forked child, after the loop was restarted and before attach(): closes the parent's ends (without a word to
  /// their other side) and forgets what belongs to them. What the guest must be told (vsock: transport reset) is put
  /// into its queues at the next resume().
  virtual void becomeChild() = 0;

  /// The device's own state, without its queues and without host ends. Only while drained and quiet.
  virtual void save(Encoder& out) const = 0;
  /// Errors: E_SAVED_DAMAGED. The bytes may come from anybody.
  virtual Result<Done> load(Decoder& in) = 0;
};

}  // namespace bough::vmm
