// libFuzzer: a hostile guest before the socket device, with peers of the host that connect, send, read, half-close and
// go away. First byte: whether the driver starts as it should, and with how many buffers.
#include <vector>

#include "native/vmm/virtio/fuzz_guest.h"
#include "native/vmm/virtio/vsock.h"

using namespace bough;
using namespace bough::vmm;

namespace {

void peerActs(FuzzInput& in, std::vector<UniqueFd>& peers, std::uint8_t choice) {
  if (peers.empty()) return;
  const std::size_t which = in.byte() % peers.size();
  const int fd = peers[which].get();
  switch (choice % 5) {
    case 0:
      sendAll(fd, in.bytes(in.byte()));
      return;
    case 1:
      readNow(fd, 65'536);
      return;
    case 2:
      ::shutdown(fd, in.byte() % 3);
      return;
    case 3:
      sendAll(fd, std::string(10'000, 'p'));
      return;
    default:
      peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(which));
  }
}

/// A packet of a guest that knows its CID, mostly; ports from a few, so that they meet connections.
void packet(FuzzInput& in, FuzzGuest& guest, std::uint32_t lastHostPort) {
  const std::uint8_t choice = in.byte();
  const std::string_view data = in.bytes(in.byte());
  const std::uint32_t hostPort = (choice & 8) ? lastHostPort : choice % 4;
  vsock::Header header{3,
                       2,
                       in.byte() % 4U,
                       hostPort,
                       static_cast<std::uint32_t>(data.size()),
                       vsock::kStream,
                       static_cast<std::uint16_t>(in.byte() % 9),
                       in.byte(),
                       in.number<std::uint32_t>(),
                       in.number<std::uint32_t>()};
  if ((choice & 0xF0) == 0xF0) header.size = in.number<std::uint32_t>();
  guest.request(1, std::string(asText(header)) + std::string(data), 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput in(data, size);
  static const TestListener listener;
  std::vector<UniqueFd> peers;
  Vsock device(3, [&](std::uint32_t port) {
    if (port == 3) return UniqueFd();
    SocketPair pair;
    peers.push_back(std::move(pair.mine));
    return std::move(pair.theirs);
  });
  FuzzGuest guest(device);
  const auto ends = [] {
    HostEnds made;
    made.vsock = UniqueFd(::dup(listener.socket.get()));
    return made;
  };
  HostEnds first = ends();
  if (!device.attach(first, guest.loop())) return 0;
  const std::uint8_t start = in.byte();
  if (start & 1) guest.start(start & 2);
  for (int i = 0; i < (start >> 4); i++) guest.request(0, {}, 4140);
  std::uint32_t lastHostPort = 0;
  while (!in.empty()) {
    if (guest.step(in)) continue;
    const std::uint8_t choice = in.byte();
    switch (choice % 8) {
      case 0:
      case 1:
        packet(in, guest, lastHostPort);
        break;
      case 2:
        guest.request(0, {}, 44 + choice * 4U);
        // Where the device has put a packet, its ports are the ones to use.
        lastHostPort = FuzzGuest::memory().load<std::uint32_t>(GuestAddress{0xC000 + 16}).value();
        break;
      case 3:
        guest.request(2, {}, 8);
        break;
      case 4:
        if (peers.size() < 64) {
          peers.push_back(listener.connect());
          sendAll(peers.back().get(), (choice & 8) ? "CONNECT 1\n" : in.bytes(in.byte() % 32));
        }
        break;
      case 5:
      case 6:
        peerActs(in, peers, choice >> 3);
        break;
      default:
        guest.becomeChild(ends());
    }
    guest.serve();
  }
  guest.serve();
  // Clients that nobody has taken yet must not meet the next input.
  for (UniqueFd left(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK)); left;
       left.reset(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK))) {
  }
  return 0;
}
