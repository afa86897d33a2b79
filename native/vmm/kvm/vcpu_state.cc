// A vCPU's state as bytes and back. See vcpu.h.
#include "native/vmm/kvm/state_codec.h"
#include "native/vmm/kvm/vcpu.h"

namespace bough::vmm {

namespace {
constexpr std::size_t kMostMsrs = 1024;
/// AMX has 8 KiB of tiles beside 2.6 KiB of AVX-512; the architecture's limit is far from a page count like this.
constexpr std::size_t kLargestXsave = std::size_t{64} << 10;
}  // namespace

void VcpuState::encode(Encoder& out) const {
  encodeStruct(out, run);
  encodeStruct(out, registers);
  encodeStruct(out, special);
  out.bytes({reinterpret_cast<const char*>(xsave.data()), xsave.size()});
  encodeStruct(out, xcrs);
  encodeStruct(out, debug);
  encodeStruct(out, lapic);
  out.number(tscKhz);
  out.flag(tscOffset.has_value());
  out.number(tscOffset.value_or(0));
  encodeList(out, msrs);
  encodeStruct(out, events);
}

bool VcpuState::decode(Decoder& in, VcpuState& state) {
  if (!decodeStruct(in, state.run) || !decodeStruct(in, state.registers) || !decodeStruct(in, state.special))
    return false;
  const std::string_view xsave = in.view();
  if (!in.ok() || xsave.size() < kXsaveSize || xsave.size() > kLargestXsave) return false;
  state.xsave.assign(xsave.begin(), xsave.end());
  if (!decodeStruct(in, state.xcrs) || !decodeStruct(in, state.debug) || !decodeStruct(in, state.lapic)) return false;
  state.tscKhz = in.number32();
  const bool hasOffset = in.flag();
  const std::uint64_t offset = in.number();
  state.tscOffset = hasOffset ? std::optional(offset) : std::nullopt;
  return decodeList(in, state.msrs, kMostMsrs) && decodeStruct(in, state.events) && in.ok();
}

}  // namespace bough::vmm
