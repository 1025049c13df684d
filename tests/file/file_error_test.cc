#include "file/file_error.h"

#include <gtest/gtest.h>
#include <string>

namespace hone::testing {
namespace {

// The edges of the Unicode standard's table of well-formed UTF-8 (3-7).
TEST(UsableName, Utf8) {
  for (const std::string_view good :
       {"a", "\x7e", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "blk.0.\xc3\xbc"}) {
    EXPECT_TRUE(is_usable_name(good)) << printable(good);
  }
  for (const std::string_view bad :
       {"", "\x01", "a\nb", "\x7f", "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2x", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xe1\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(is_usable_name(bad)) << printable(bad);
  }
  EXPECT_FALSE(is_usable_name(std::string_view("a\0b", 3)));
}

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(printable("a\"\\\n\xff"), R"("a\x22\x5c\x0a\xff")");
  EXPECT_EQ(printable(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\" (61 bytes)");
}

}  // namespace
}  // namespace hone::testing
