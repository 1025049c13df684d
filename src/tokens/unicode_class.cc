#include "tokens/unicode_class.h"

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

}  // namespace

Printable printable(char32_t code_point) {
  if (code_point < 0x7F) return code_point >= 0x20 ? Printable::Yes : Printable::No;
  static const Code unassigned = compile(R"(\p{Cn})");
  static const Code hidden = compile(R"([\p{C}\p{Z}])");
  if (!unassigned || !hidden) return Printable::Unknown;
  std::string text;
  append_utf8(text, code_point);
  if (matches(unassigned, text)) return Printable::Unknown;
  return matches(hidden, text) ? Printable::No : Printable::Yes;
}

}  // namespace hone
