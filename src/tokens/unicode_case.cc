#include "tokens/unicode_case.h"

#include <algorithm>
#include <array>

#include "tokens/utf8.h"

namespace hone {

namespace {

struct CaseRange {
  char32_t first;
  char32_t last;
  std::uint32_t stride;
  std::int32_t distance;
};

struct CaseSpecial {
  char32_t code_point;
  std::array<char32_t, 3> letters;  // 0: none
};

#include "tokens/unicode_case_table.inc"

template <class Ranges, class Specials>
void append_mapped(std::string& out, char32_t c, const Ranges& ranges, const Specials& specials) {
  const auto special =
      std::lower_bound(specials.begin(), specials.end(), c,
                       [](const CaseSpecial& row, char32_t x) { return row.code_point < x; });
  if (special != specials.end() && special->code_point == c) {
    for (const char32_t letter : special->letters) {
      if (letter != 0) append_utf8(out, letter);
    }
    return;
  }
  const auto row = std::lower_bound(ranges.begin(), ranges.end(), c,
                                    [](const CaseRange& range, char32_t x) { return range.last < x; });
  const bool maps = row != ranges.end() && c >= row->first && (c - row->first) % row->stride == 0;
  append_utf8(out, maps ? static_cast<char32_t>(static_cast<std::int32_t>(c) + row->distance) : c);
}

}  // namespace

void append_case(std::string& out, char32_t code_point, LetterCase letter_case) {
  if (code_point < 0x80) {
    const auto c = static_cast<char>(code_point);
    const bool lower = letter_case == LetterCase::Lower;
    if (lower && c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if (!lower && c >= 'a' && c <= 'z') {
      out += static_cast<char>(c - 'a' + 'A');
    } else {
      out += c;
    }
    return;
  }
  if (code_point == 0x3A3) return append_utf8(out, letter_case == LetterCase::Lower ? 0x3C3 : 0x3A3);
  switch (letter_case) {
    case LetterCase::Upper:
      return append_mapped(out, code_point, kUpperRanges, kUpperSpecials);
    case LetterCase::Lower:
      return append_mapped(out, code_point, kLowerRanges, kLowerSpecials);
    case LetterCase::Title:
      return append_mapped(out, code_point, kTitleRanges, kTitleSpecials);
  }
}

}  // namespace hone
