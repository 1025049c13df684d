#include "tokens/unicode_form.h"

#include <algorithm>
#include <utf8proc.h>

#include "tokens/utf8.h"

namespace hone {

namespace {

// Characters that are in every form C text as they are and start a new one: no mark, no part of a composition
// with what is before them (UAX 15, NFC_Quick_Check=Yes and combining class 0). A sound choice of the
// frequent ones, so that most texts are copied.
bool is_stable_in_c(char32_t c) {
  if (c < 0x300) return true;
  if (c < 0x2010) return c >= 0x400 && c < 0x483;
  if (c < 0x2028) return true;
  if (c < 0x3000) return c >= 0x2500 && c < 0x2ADC;  // drawings, dingbats, braille, mathematical operators
  if (c < 0x3100) return c < 0x302A || (c > 0x303F && c < 0x3099) || c > 0x309A;
  return (c >= 0x3400 && c < 0xA000) || (c >= 0xAC00 && c < 0xD7A4) || (c >= 0xFF01 && c < 0xFF61) ||
         (c >= 0x1F300 && c < 0x1FB00);
}

bool is_stable(char32_t c, UnicodeForm form) {
  return form == UnicodeForm::C ? is_stable_in_c(c) : c < 0x80;
}

std::int32_t combining_class(std::int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

// The canonical ordering: runs of characters with a combining class other than 0, sorted by it.
void order_marks(std::vector<std::int32_t>& points) {
  for (std::size_t at = 0; at < points.size();) {
    if (combining_class(points[at]) == 0) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < points.size() && combining_class(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(at),
                     points.begin() + static_cast<std::ptrdiff_t>(end),
                     [](std::int32_t a, std::int32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

void append_region(std::string& out, std::string_view text, UnicodeForm form,
                   std::vector<std::int32_t>& points) {
  const bool compatible = form == UnicodeForm::KC || form == UnicodeForm::KD;
  const bool composed = form == UnicodeForm::C || form == UnicodeForm::KC;
  const auto decompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                        (compatible ? UTF8PROC_COMPAT : 0));
  points.clear();
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    text.remove_prefix(step.length);
    std::int32_t parts[32];  // the longest decomposition has 18 (U+FDFA)
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<std::int32_t>(step.code_point), parts, 32, decompose, &boundary);
    if (count > 0 && count <= 32) {
      points.insert(points.end(), parts, parts + count);
    } else {
      points.push_back(static_cast<std::int32_t>(step.code_point));
    }
  }
  order_marks(points);
  auto length = static_cast<utf8proc_ssize_t>(points.size());
  if (composed) {
    const auto compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    length = utf8proc_normalize_utf32(points.data(), length, compose);
  }
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    append_utf8(out, static_cast<char32_t>(points[static_cast<std::size_t>(i)]));
}

}  // namespace

void append_unicode_form(std::string& out, std::string_view text, UnicodeForm form,
                         std::vector<std::int32_t>& code_points) {
  out.reserve(out.size() + text.size());
  std::size_t copied = 0;  // text before it has left
  std::size_t stable = 0;  // the last stable character: what follows may still join it
  for (std::size_t at = 0; at < text.size();) {
    Utf8Step step = utf8_step(text.substr(at));
    if (is_stable(step.code_point, form)) {
      stable = at;
      at += step.length;
      continue;
    }
    std::size_t end = at + step.length;
    while (end < text.size()) {
      step = utf8_step(text.substr(end));
      if (is_stable(step.code_point, form)) break;
      end += step.length;
    }
    const std::size_t begin = std::max(stable, copied);
    out.append(text.substr(copied, begin - copied));
    append_region(out, text.substr(begin, end - begin), form, code_points);
    copied = end;
    stable = end;
    at = end;
  }
  out.append(text.substr(copied));
}

}  // namespace hone
