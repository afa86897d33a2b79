// libFuzzer: arbitrary bytes as requests, as a hostile guest may send them. The input is a row of requests, each behind
// its length (2 bytes, little endian); an INIT comes first by itself, so that what follows is reached. The last byte of
// the input chooses whether INIT comes at all.
#include <cstring>
#include <memory>
#include <vector>

#include "native/branchfs/fuse/dispatcher.h"
#include "native/branchfs/fuse/memory_fs.h"

namespace {

using namespace bough;
using namespace bough::fuse;

std::vector<std::byte> initRequest() {
  struct {
    fuse_in_header header;
    fuse_init_in in;
  } request{};
  request.header.len = sizeof(request);
  request.header.opcode = FUSE_INIT;
  request.header.unique = 1;
  request.in.major = kMajor;
  request.in.minor = kMinor;
  request.in.flags = ~0u;
  auto bytes = std::as_bytes(std::span(&request, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto answer = std::make_unique<std::byte[]>(kAnswerBytes);
  static const auto init = initRequest();
  const std::span<std::byte> space(answer.get(), kAnswerBytes);
  MemoryFs fs;
  {
    Dispatcher dispatcher(fs);
    if (size > 0 && data[size - 1] != 0xff) dispatcher.handle(init, space);
    while (size >= 2) {
      const std::size_t length = std::min<std::size_t>(static_cast<std::size_t>(data[0] | (data[1] << 8)), size - 2);
      // A copy of exactly this size, so that the sanitizer sees one byte too many.
      std::vector<std::byte> request(length);
      if (length > 0) std::memcpy(request.data(), data + 2, length);
      // Most requests say their own length; a fuzzer would rarely guess it.
      if (length >= sizeof(fuse_in_header) && (data[0] & 7) != 7) {
        const auto claimed = static_cast<std::uint32_t>(length);
        std::memcpy(request.data(), &claimed, sizeof(claimed));
      }
      if (dispatcher.handle(request, space) > kAnswerBytes) __builtin_trap();
      data += 2 + length;
      size -= 2 + length;
    }
  }
  // Whatever the client did, everything is given back.
  if (fs.openHandles() != 0 || fs.lookups() != 0) __builtin_trap();
  return 0;
}
