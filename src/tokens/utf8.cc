#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Table 3-7 of the Unicode Standard: what the second byte may be, and how many bytes there are.
struct LeadRow {
  std::uint32_t length;
  unsigned char second_low;
  unsigned char second_high;
};

LeadRow lead_row(unsigned char lead) {
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {Utf8Step::Kind::Valid, 1, lead};
  const LeadRow row = lead_row(lead);
  if (row.length == 0) return {Utf8Step::Kind::Invalid, 1, 0};
  char32_t code_point = lead & (0xFFU >> (row.length + 1));
  for (std::uint32_t i = 1; i < row.length; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::Truncated, i, 0};
    const unsigned char low = i == 1 ? row.second_low : 0x80;
    const unsigned char high = i == 1 ? row.second_high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::Invalid, i, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3FU);
  }
  return {Utf8Step::Kind::Valid, row.length, code_point};
}

std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::Valid) break;
    at += step.length;
  }
  return at;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = utf8_valid_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out.append(kReplacement);
    text.remove_prefix(utf8_step(text).length);
  }
  return out;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t bits) { out.push_back(static_cast<char>(static_cast<unsigned char>(bits))); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace hone
