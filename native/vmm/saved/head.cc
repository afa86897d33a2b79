// See head.h.
#include "native/vmm/saved/head.h"

#include <algorithm>

#include "native/common/codec.h"
#include "native/common/crc32c.h"
#include "native/vmm/memory/guest_memory.h"

namespace bough::vmm {
namespace {

constexpr std::string_view kMagic = "BOUGHSAV";
constexpr std::uint64_t kMostConfig = 64 * 1024;
constexpr std::uint64_t kMostState = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostRam = std::uint64_t{1} << 40;

void fixed64(Encoder& out, std::uint64_t value) {
  out.fixed32(static_cast<std::uint32_t>(value));
  out.fixed32(static_cast<std::uint32_t>(value >> 32));
}

std::uint64_t fixed64(Decoder& in) {
  const std::uint64_t low = in.fixed32();
  return low | static_cast<std::uint64_t>(in.fixed32()) << 32;
}

template <std::size_t kSize>
std::string_view text(const std::array<std::uint8_t, kSize>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error damaged(const char* what) {
  return Error{EINVAL, "E_SAVED_DAMAGED",
               std::string("The saved machine is damaged (") + what + "): use another save."};
}

std::uint64_t roundUp(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::string toText(const SavedDigest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::uint64_t SavedHead::ramOffset() const {
  // A full save's RAM is mapped: where a huge page could begin, one does.
  return roundUp(stateOffset() + stateBytes, kind == SavedKind::kFull ? kSavedBlock : kSavedPage);
}

std::uint64_t SavedHead::tableBytes() const {
  return kind == SavedKind::kFull ? ramBytes / kSavedBlock * 4 : pages * 8;
}

SavedDigest SavedHead::digest() const {
  Encoder sums;
  for (const std::uint32_t crc : {configCrc, stateCrc, tableCrc}) sums.fixed32(crc);
  const std::uint32_t sum = crc32c(sums.str());
  SavedDigest digest{};
  std::copy(identity.begin(), identity.end(), digest.begin());
  for (std::size_t i = 0; i < 4; i++) digest.at(identity.size() + i) = static_cast<std::uint8_t>(sum >> (8 * i));
  return digest;
}

std::string SavedHead::encode() const {
  Encoder out;
  out.raw(kMagic);
  out.fixed32(kSavedVersion);
  out.fixed32(static_cast<std::uint32_t>(kind));
  out.fixed32(cpuDigest);
  out.fixed32(0);
  for (const std::uint64_t value : {ramBytes, pages, configBytes, stateBytes, fileBytes()}) fixed64(out, value);
  for (const std::uint32_t crc : {configCrc, stateCrc, tableCrc}) out.fixed32(crc);
  out.raw(text(identity));
  out.raw(text(base));
  out.fixed32(crc32c(out.str()));
  std::string page = out.take();
  page.resize(kSavedPage, '\0');
  return page;
}

Result<SavedHead> SavedHead::decode(std::string_view page) {
  if (page.size() != kSavedPage || !page.starts_with(kMagic)) {
    return Error{EINVAL, "E_SAVED_FORMAT",
                 "This is no saved machine, or one whose saving did not come to its end: use another save."};
  }
  Decoder in(page.substr(kMagic.size()));
  if (const std::uint32_t version = in.fixed32(); version != kSavedVersion) {
    return Error{ENOTSUP, "E_SAVED_VERSION",
                 "The machine was saved in format " + std::to_string(version) + ", and this boughvm reads " +
                     std::to_string(kSavedVersion) + ": load it with the version that saved it."};
  }
  SavedHead head;
  const std::uint32_t kind = in.fixed32();
  head.cpuDigest = in.fixed32();
  const std::uint32_t reserved = in.fixed32();
  head.ramBytes = fixed64(in);
  head.pages = fixed64(in);
  head.configBytes = fixed64(in);
  head.stateBytes = fixed64(in);
  const std::uint64_t fileBytes = fixed64(in);
  for (std::uint32_t* crc : {&head.configCrc, &head.stateCrc, &head.tableCrc}) *crc = in.fixed32();
  for (std::uint8_t& byte : head.identity) byte = in.byte();
  for (std::uint8_t& byte : head.base) byte = in.byte();
  constexpr std::size_t kHeadBytes = 8 + 4 * 4 + 5 * 8 + 3 * 4 + 16 + 20;
  if (in.fixed32() != crc32c(page.substr(0, kHeadBytes))) return damaged("the checksum of its head");
  if (page.substr(kHeadBytes + 4).find_first_not_of('\0') != std::string_view::npos || reserved != 0) {
    return damaged("its head has more than it should");
  }
  if (kind != static_cast<std::uint32_t>(SavedKind::kFull) && kind != static_cast<std::uint32_t>(SavedKind::kDiff)) {
    return damaged("its kind");
  }
  head.kind = static_cast<SavedKind>(kind);
  if (head.ramBytes < kSavedBlock || head.ramBytes > kMostRam || head.ramBytes % kSavedBlock != 0) {
    return damaged("the size of its RAM");
  }
  const std::uint64_t all = head.ramBytes / kSavedPage;
  if (head.kind == SavedKind::kFull ? head.pages != all : head.pages > all) return damaged("the number of its pages");
  if (head.configBytes > kMostConfig || head.stateBytes > kMostState) return damaged("the size of its state");
  if (fileBytes != head.fileBytes()) return damaged("its size");
  return head;
}

}  // namespace bough::vmm
