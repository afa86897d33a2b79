// A VM's state as bytes and back. See vm.h.
#include "native/vmm/kvm/state_codec.h"
#include "native/vmm/kvm/vm.h"

namespace bough::vmm {

void VmState::encode(Encoder& out) const {
  encodeStruct(out, pit);
  encodeStruct(out, clock);
  out.number(takenAtNs);
  for (const kvm_irqchip& chip : chips) encodeStruct(out, chip);
}

bool VmState::decode(Decoder& in, VmState& state) {
  if (!decodeStruct(in, state.pit) || !decodeStruct(in, state.clock)) return false;
  state.takenAtNs = in.number();
  for (kvm_irqchip& chip : state.chips) {
    if (!decodeStruct(in, chip)) return false;
  }
  return in.ok();
}

}  // namespace bough::vmm
