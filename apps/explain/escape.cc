#include "apps/explain/escape.h"

namespace hone {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// Bytes of the character at the beginning of `text`, 0 where it is no valid UTF-8 (Unicode 15, table 3-7).
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t bytes = 0;
  if (first >= 0xC2 && first <= 0xDF) bytes = 2;
  if (first >= 0xE0 && first <= 0xEF) bytes = 3;
  if (first >= 0xF0 && first <= 0xF4) bytes = 4;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || beyond ? 0 : bytes;
}

std::string replaced(std::string_view text, std::string_view (*replacement)(char)) {
  std::string out;
  for (const char c : text) {
    const std::string_view with = replacement(c);
    if (with.empty()) {
      out += c;
    } else {
      out += with;
    }
  }
  return out;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // C1 controls are U+0080 to U+009F: C2 80 to C2 9F.
    const bool control = first < 0x20 || first == 0x7F ||
                         (first == 0xC2 && bytes == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (bytes == 0 || control) {
      out += kReplacement;
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

std::string html_text(std::string_view text) {
  return replaced(clean_text(text), [](char c) -> std::string_view {
    switch (c) {
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      default:
        return {};
    }
  });
}

std::string script_json(std::string_view json) {
  return replaced(json, [](char c) -> std::string_view { return c == '<' ? "\\u003c" : ""; });
}

std::string dot_text(std::string_view text, std::string_view line_end) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += replaced(clean_text(text.substr(0, end)), [](char c) -> std::string_view {
      switch (c) {
        case '"':
          return "\\\"";
        case '\\':
          return "\\\\";
        case '&':
          return "&amp;";
        default:
          return {};
      }
    });
    if (end == std::string_view::npos) return out;
    out += line_end;
    text.remove_prefix(end + 1);
  }
}

std::string clipped(std::string_view text, std::size_t width) {
  std::size_t characters = 0;
  std::size_t cut = 0;  // where `width` - 2 characters end
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (continues(text[i])) continue;
    if (characters + 2 == width) cut = i;
    ++characters;
  }
  return characters <= width ? std::string(text) : std::string(text.substr(0, cut)) + "..";
}

}  // namespace hone
