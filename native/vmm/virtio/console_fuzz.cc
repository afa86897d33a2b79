// libFuzzer: a hostile guest before the console device, whose output is read now and then, and whose input comes when
// it likes. First byte: whether the driver starts as it should.
#include "native/vmm/virtio/console.h"
#include "native/vmm/virtio/fuzz_guest.h"

using namespace bough;
using namespace bough::vmm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput in(data, size);
  SocketPair sockets;
  Console device;
  FuzzGuest guest(device);
  HostEnds ends;
  ends.console = std::move(sockets.theirs);
  if (!device.attach(ends, guest.loop())) return 0;
  if (const std::uint8_t first = in.byte(); first & 1) guest.start(first & 2);
  while (!in.empty()) {
    if (guest.step(in)) continue;
    const std::uint8_t choice = in.byte();
    switch (choice % 5) {
      case 0:
        guest.request(1, in.bytes(choice), 0);
        break;
      case 1:
        guest.request(0, {}, choice);
        break;
      case 2:
        device.input(asBytes(in.bytes(choice)));
        break;
      case 3:
        readNow(sockets.mine.get(), 65'536);
        break;
      default: {
        SocketPair own;
        HostEnds next;
        next.console = std::move(own.theirs);
        sockets.mine = std::move(own.mine);
        guest.becomeChild(std::move(next));
      }
    }
  }
  guest.serve();
  return 0;
}
