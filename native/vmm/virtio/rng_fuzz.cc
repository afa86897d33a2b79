// libFuzzer: a hostile guest before the entropy device. First byte: whether its driver starts as it should.
#include "native/vmm/virtio/fuzz_guest.h"
#include "native/vmm/virtio/rng.h"

using namespace bough::vmm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput in(data, size);
  Rng device;
  FuzzGuest guest(device);
  if (const std::uint8_t first = in.byte(); first & 1) guest.start(first & 2);
  while (!in.empty()) {
    if (guest.step(in)) continue;
    if (in.byte() & 1)
      guest.request(0, {}, in.number<std::uint16_t>());
    else
      guest.becomeChild({});
  }
  guest.serve();
  return 0;
}
