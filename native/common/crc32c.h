// CRC-32C (Castagnoli, RFC 3720 appendix B.4). Used for the frames of the store's log and snapshot.
#pragma once

#include <cstdint>
#include <string_view>

namespace bough {

/// The checksum of `data`; `crc`: that of the bytes before it, to go on.
std::uint32_t crc32c(std::string_view data, std::uint32_t crc = 0);

}  // namespace bough
