// libFuzzer: a hostile guest before the file system device, and behind it a hostile server, that answers what it was
// asked, or anything, in pieces, or goes away. First byte: whether the driver starts as it should.
#include <vector>

#include "native/vmm/virtio/fs.h"
#include "native/vmm/virtio/fs_wire.h"
#include "native/vmm/virtio/fuzz_guest.h"

using namespace bough;
using namespace bough::vmm;

namespace {

/// Takes what the device has sent apart, as far as it is there, and keeps the numbers that want an answer.
class Server {
 public:
  explicit Server(UniqueFd socket) : socket_(std::move(socket)) {}

  void hear() {
    received_ += readNow(socket_.get(), 65'536);
    for (;;) {
      fs::RequestHead head{};
      if (received_.size() < sizeof head) return;
      std::memcpy(&head, received_.data(), sizeof head);
      fuse_in_header header{};
      // Whatever the guest does, what leaves the device keeps to the format.
      if (head.magic != fs::kRequestMagic || head.size < sizeof header || head.size > Virtqueue::kLargestChain)
        __builtin_trap();
      if (received_.size() < sizeof head + head.size) return;
      std::memcpy(&header, received_.data() + sizeof head, sizeof header);
      if (header.len != head.size || header.unique == 0) __builtin_trap();
      if (head.room > 0) asked_.push_back(header.unique);
      received_.erase(0, sizeof head + head.size);
    }
  }
  void answer(FuzzInput& in) {
    if (asked_.empty()) return;
    const std::uint8_t choice = in.byte();
    const std::size_t which = choice % asked_.size();
    const std::string data((choice & 1) ? in.byte() : in.number<std::uint16_t>(), 'a');
    const auto size = static_cast<std::uint32_t>(sizeof(fuse_out_header) + data.size());
    const fuse_out_header header{size, -static_cast<std::int32_t>(in.byte()), asked_[which]};
    if (choice < 250) asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(which));
    sendAll(socket_.get(),
            std::string(asText(fs::AnswerHead{fs::kAnswerMagic, size})) + std::string(asText(header)) + data);
  }
  void say(std::string_view bytes) { sendAll(socket_.get(), bytes); }
  void leave() { socket_.reset(); }

 private:
  UniqueFd socket_;
  std::string received_;
  std::vector<std::uint64_t> asked_;
};

void guestAsks(FuzzInput& in, FuzzGuest& guest, std::uint8_t choice) {
  const std::string_view body = in.bytes(in.byte());
  fuse_in_header header{};
  header.len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.opcode = (choice & 8) ? in.byte() % 64 : FUSE_READ;
  header.unique = in.byte();
  guest.request((choice & 16) ? 0 : 1, std::string(asText(header)) + std::string(body),
                in.number<std::uint16_t>() % 0x3000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput in(data, size);
  SocketPair sockets;
  Server server(std::move(sockets.mine));
  Fs device("fuzz");
  FuzzGuest guest(device);
  HostEnds ends;
  ends.fileSystems.push_back(std::move(sockets.theirs));
  if (!device.attach(ends, guest.loop())) return 0;
  if (const std::uint8_t first = in.byte(); first & 1) guest.start(first & 2);
  while (!in.empty()) {
    if (guest.step(in)) continue;
    const std::uint8_t choice = in.byte();
    switch (choice % 8) {
      case 0:
      case 1:
      case 2:
        guestAsks(in, guest, choice);
        break;
      case 3:
      case 4:
        server.hear();
        server.answer(in);
        break;
      case 5:
        server.say(in.bytes(choice));
        break;
      case 6:
        if (choice & 8) server.leave();
        break;
      default: {
        SocketPair own;
        HostEnds next;
        next.fileSystems.push_back(std::move(own.theirs));
        device.drain();
        if (device.quiet()) server = Server(std::move(own.mine));
        guest.becomeChild(std::move(next));
      }
    }
    guest.serve();
  }
  server.hear();
  // Nothing is left without an answer once the server has gone.
  server.leave();
  device.resume();
  for (int i = 0; i < 4; i++) guest.serve();
  if (!device.quiet()) __builtin_trap();
  return 0;
}
