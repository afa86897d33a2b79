// What is encoded comes back, and no bytes whatever make the decoder read outside them.
#include "native/common/codec.h"

#include <doctest/doctest.h>

#include "native/common/crc32c.h"

using namespace bough;

TEST_CASE("numbers, strings and flags come back") {
  Encoder out;
  const std::uint64_t numbers[] = {0, 1, 127, 128, 300, 1ULL << 32, 1ULL << 63, ~0ULL};
  const std::int64_t signedNumbers[] = {0, -1, 1, -64, 64, INT64_MIN, INT64_MAX};
  for (auto n : numbers) out.number(n);
  for (auto n : signedNumbers) out.signedNumber(n);
  out.bytes(std::string("a\0b\n", 4));
  out.flag(true);
  out.fixed32(0xDEADBEEF);

  Decoder in(out.str());
  for (auto n : numbers) CHECK(in.number() == n);
  for (auto n : signedNumbers) CHECK(in.signedNumber() == n);
  CHECK(in.bytes() == std::string("a\0b\n", 4));
  CHECK(in.flag());
  CHECK(in.fixed32() == 0xDEADBEEF);
  CHECK(in.ok());
  CHECK(in.atEnd());
}

TEST_CASE("short and senseless bytes fail once and for all") {
  Encoder out;
  out.bytes("hello");
  for (std::size_t cut = 0; cut < out.size(); cut++) {
    Decoder in(std::string_view(out.str()).substr(0, cut));
    in.bytes();
    CHECK_FALSE(in.ok());
    CHECK(in.number() == 0);
  }
  Decoder tooLong("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  tooLong.number();
  CHECK_FALSE(tooLong.ok());
  Decoder count("\x7f");
  CHECK(count.count() == 0);
  CHECK_FALSE(count.ok());
}

TEST_CASE("crc32c: the vectors of RFC 3720") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43);
  std::string rising;
  for (char c = 0; c < 32; c++) rising.push_back(c);
  CHECK(crc32c(rising) == 0x46DD794E);
  CHECK(crc32c("56789", crc32c("1234")) == crc32c("123456789"));
}
