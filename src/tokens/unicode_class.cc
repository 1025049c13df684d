#include "tokens/unicode_class.h"

#include <array>
#include <atomic>
#include <memory>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "tokens/utf8.h"

namespace hone {

namespace {

struct FreeCode {
  void operator()(pcre2_code_8* code) const { pcre2_code_free_8(code); }
};
using Code = std::unique_ptr<pcre2_code_8, FreeCode>;

Code compile(const char* expression) {
  int error = 0;
  PCRE2_SIZE at = 0;
  return Code(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(expression), PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &at, nullptr));
}

bool matches(const Code& code, const std::string& text) {
  struct FreeData {
    void operator()(pcre2_match_data_8* data) const { pcre2_match_data_free_8(data); }
  };
  const std::unique_ptr<pcre2_match_data_8, FreeData> data(pcre2_match_data_create_8(1, nullptr));
  return data && pcre2_match_8(code.get(), reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(), 0, 0,
                               data.get(), nullptr) > 0;
}

// What is known of a code point: a bit for each property, worked out when it is asked for first.
constexpr std::uint16_t kKnown = 0x8000;
constexpr std::uint16_t kUnassigned = 0x4000;
constexpr std::uint16_t kHidden = 0x2000;
constexpr std::uint16_t kFailed = 0x1000;

std::uint16_t work_out(char32_t code_point) {
  // In the order of UnicodeProperty.
  static const std::array<Code, 10> properties{compile(R"(\p{L})"),         compile(R"(\p{Nd})"),
                                               compile(R"(\p{N})"),         compile(R"(\p{Uppercase})"),
                                               compile(R"(\p{Lowercase})"), compile(R"(\p{Lt})"),
                                               compile(R"(\p{Cased})"),     compile(R"(\p{Case_Ignorable})"),
                                               compile(R"(\p{XID_Start})"), compile(R"(\p{XID_Continue})")};
  static const Code unassigned = compile(R"(\p{Cn})");
  static const Code hidden = compile(R"([\p{C}\p{Z}])");
  std::string text;
  append_utf8(text, code_point);
  std::uint16_t out = kKnown;
  const auto note = [&](const Code& code, std::uint32_t bit) {
    if (!code) {
      out |= kFailed;
    } else if (matches(code, text)) {
      out = static_cast<std::uint16_t>(out | bit);
    }
  };
  for (std::size_t i = 0; i < properties.size(); ++i) note(properties[i], 1U << i);
  note(unassigned, kUnassigned);
  note(hidden, kHidden);
  return out;
}

std::uint16_t knowledge(char32_t code_point) {
  constexpr char32_t kEnd = 0x110000;
  static std::array<std::atomic<std::uint16_t>, kEnd> known{};
  if (code_point >= kEnd) return kKnown | kUnassigned;
  std::uint16_t out = known[code_point].load(std::memory_order_relaxed);
  if (out == 0) {
    out = work_out(code_point);
    known[code_point].store(out, std::memory_order_relaxed);
  }
  return out;
}

}  // namespace

Printable printable(char32_t code_point) {
  if (code_point < 0x7F) return code_point >= 0x20 ? Printable::Yes : Printable::No;
  const std::uint16_t known = knowledge(code_point);
  if ((known & (kUnassigned | kFailed)) != 0) return Printable::Unknown;
  return (known & kHidden) != 0 ? Printable::No : Printable::Yes;
}

std::optional<bool> has_property(char32_t code_point, UnicodeProperty property) {
  const std::uint16_t known = knowledge(code_point);
  if ((known & (kUnassigned | kFailed)) != 0) return std::nullopt;
  return (known & (1U << static_cast<unsigned>(property))) != 0;
}

}  // namespace hone
