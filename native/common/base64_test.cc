// Bytes over the wire: every byte comes back, text stays text, what is no text is seen.
#include "native/common/base64.h"

#include <doctest/doctest.h>

using namespace bough;

TEST_CASE("base64: the vectors of RFC 4648, and back") {
  CHECK(toBase64("") == "");
  CHECK(toBase64("f") == "Zg==");
  CHECK(toBase64("fo") == "Zm8=");
  CHECK(toBase64("foo") == "Zm9v");
  CHECK(toBase64("foobar") == "Zm9vYmFy");
  std::string all;
  for (int i = 0; i < 256; i++) all.push_back(static_cast<char>(i));
  for (std::size_t n = 0; n <= all.size(); n++) CHECK(fromBase64(toBase64(all.substr(0, n))) == all.substr(0, n));
  CHECK(fromBase64("Zg") == "f");
  CHECK_FALSE(fromBase64("Z").has_value());
  CHECK_FALSE(fromBase64("Zg\n=").has_value());
}

TEST_CASE("UTF-8: only what RFC 3629 allows") {
  CHECK(validUtf8(""));
  CHECK(validUtf8("plain, ümlaut, 漢字, 🌳"));
  for (const char* bad :
       {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "a\x80", "\xf0\x8f\xbf\xbf"}) {
    CHECK_FALSE(validUtf8(bad));
  }
}
