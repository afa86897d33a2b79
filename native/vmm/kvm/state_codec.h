// The kernel's state structures as bytes: each with its length, so that a file of another kernel ABI is refused instead
// of misread. Used by vcpu_state.cc and vm_state.cc.
#pragma once

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "native/common/codec.h"

namespace bough::vmm {

template <typename T>
void encodeStruct(Encoder& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.bytes({reinterpret_cast<const char*>(&value), sizeof value});
}

template <typename T>
bool decodeStruct(Decoder& in, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::string_view bytes = in.view();
  if (!in.ok() || bytes.size() != sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  return true;
}

template <typename T>
void encodeList(Encoder& out, const std::vector<T>& list) {
  out.number(list.size());
  for (const T& each : list) encodeStruct(out, each);
}

template <typename T>
bool decodeList(Decoder& in, std::vector<T>& list, std::size_t most) {
  const std::size_t count = in.count();
  if (!in.ok() || count > most) return false;
  list.resize(count);
  for (T& each : list) {
    if (!decodeStruct(in, each)) return false;
  }
  return true;
}

}  // namespace bough::vmm
