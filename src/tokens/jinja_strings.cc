#include "tokens/jinja_strings.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "tokens/jinja_source.h"
#include "tokens/unicode_class.h"
#include "tokens/utf8.h"

namespace hone::jinja {

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // memmem is linear; std::string_view::find is not.
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size() && count > 0; --count) end += utf8_step(text.substr(end)).length;
  return text.substr(0, end);
}

Result<Value> strip(const Call& call, std::string_view text, const Value* chars, bool left, bool right) {
  if (chars == nullptr || chars->is_none()) {
    if (right) text = strip_right(text);
    if (left) text.remove_prefix(leading_space(text));
    return Value::string(std::string(text));
  }
  const std::string* set = chars->as_string();
  if (set == nullptr) return call.error(fmt::format("{} takes a string", call.what));
  const auto is_member = [&](std::string_view c) { return find_text(*set, c) != std::string_view::npos; };
  // A whole character of valid UTF-8 is found nowhere but at the beginning of a character.
  while (left && !text.empty()) {
    const std::size_t length = utf8_step(text).length;
    HONE_TRY(call.evaluator.charge(call.offset, set->size()));
    if (!is_member(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
    HONE_TRY(call.evaluator.charge(call.offset, set->size()));
    if (!is_member(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return Value::string(std::string(text));
}

namespace {

constexpr char32_t kCapitalSigma = 0x3A3;

// Unicode's Final_Sigma: after a cased letter and before none, case-ignorable characters between.
bool is_final_sigma(std::string_view before, std::string_view after) {
  const auto property = [](char32_t c, UnicodeProperty which) {
    return has_property(c, which).value_or(false);
  };
  bool cased_before = false;
  while (!before.empty()) {
    std::size_t begin = before.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(before[begin]) & 0xC0U) == 0x80U) --begin;
    const char32_t c = utf8_step(before.substr(begin)).code_point;
    before = before.substr(0, begin);
    if (property(c, UnicodeProperty::CaseIgnorable)) continue;
    cased_before = property(c, UnicodeProperty::Cased);
    break;
  }
  if (!cased_before) return false;
  while (!after.empty()) {
    const Utf8Step step = utf8_step(after);
    after.remove_prefix(step.length);
    if (property(step.code_point, UnicodeProperty::CaseIgnorable)) continue;
    return !property(step.code_point, UnicodeProperty::Cased);
  }
  return true;
}

// The character of `text` at `at`, changed.
void append_changed(std::string& out, std::string_view text, std::size_t at, const Utf8Step& step,
                    LetterCase letter_case) {
  if (step.code_point == kCapitalSigma && letter_case == LetterCase::Lower) {
    append_utf8(out, is_final_sigma(text.substr(0, at), text.substr(at + step.length)) ? 0x3C2 : 0x3C3);
    return;
  }
  append_case(out, step.code_point, letter_case);
}

}  // namespace

std::string change_case(std::string_view text, LetterCase letter_case) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    append_changed(out, text, at, step, letter_case);
    at += step.length;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    append_changed(out, text, at, step, at == 0 ? LetterCase::Title : LetterCase::Lower);
    at += step.length;
  }
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  bool after_cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    append_changed(out, text, at, step, after_cased ? LetterCase::Lower : LetterCase::Title);
    after_cased = has_property(step.code_point, UnicodeProperty::Cased).value_or(false);
    at += step.length;
  }
  return out;
}

Result<bool> is_cased(const Call& call, std::string_view text, LetterCase letter_case) {
  const bool upper = letter_case == LetterCase::Upper;
  bool any = false;
  HONE_TRY(call.evaluator.charge(call.offset, 16 * text.size()));
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    text.remove_prefix(step.length);
    const auto is_upper = has_property(step.code_point, UnicodeProperty::Uppercase);
    const auto is_lower = has_property(step.code_point, UnicodeProperty::Lowercase);
    const auto is_title = has_property(step.code_point, UnicodeProperty::Titlecase);
    if (!is_upper || !is_lower || !is_title) return call.unsupported("of unassigned characters");
    if (*is_title || (upper ? *is_lower : *is_upper)) return false;
    any = any || (upper ? *is_upper : *is_lower);
  }
  return any;
}

Result<Value> replace_text(const Call& call, std::string_view text, std::string_view from,
                           std::string_view to, const Value* count) {
  std::int64_t left = -1;
  if (count != nullptr && !count->is_none()) {
    if (!count->integral()) {
      return call.error(fmt::format("'{}' object cannot be interpreted as an integer", count->type_name()));
    }
    left = *count->integral();
  }
  std::string out;
  std::size_t at = 0;
  // Nothing is found before each character and at the end.
  if (from.empty()) {
    while (left != 0) {
      HONE_TRY(call.evaluator.charge(call.offset, to.size()));
      HONE_TRY(call.evaluator.check_size(call.offset, out.size() + to.size()));
      out += to;
      if (left > 0) --left;
      if (at == text.size()) break;
      const std::size_t length = utf8_step(text.substr(at)).length;
      out += text.substr(at, length);
      at += length;
    }
    out += text.substr(at);
    return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
  }
  for (std::size_t found = find_text(text, from); found != std::string_view::npos && left != 0;
       found = find_text(text, from, at)) {
    HONE_TRY(call.evaluator.charge(call.offset, (found - at) + to.size()));
    HONE_TRY(call.evaluator.check_size(call.offset, out.size() + (found - at) + to.size()));
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
    if (left > 0) --left;
  }
  out += text.substr(at);
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

Result<Value> pad(const Call& call, std::string_view text, const Value* width, const Value* fill,
                  Align align) {
  if (width == nullptr || !width->integral()) return call.error(fmt::format("{} takes a width", call.what));
  std::string filler = " ";
  if (fill != nullptr) {
    if (fill->as_string() == nullptr || count_characters(*fill->as_string()) != 1) {
      return call.error("The fill character must be exactly one character long");
    }
    filler = *fill->as_string();
  }
  const auto length = static_cast<std::int64_t>(count_characters(text));
  if (*width->integral() <= length) return Value::string(std::string(text));
  const auto missing = static_cast<std::uint64_t>(*width->integral() - length);
  HONE_TRY(call.evaluator.check_size(call.offset, missing));
  HONE_TRY(call.evaluator.charge(call.offset, missing * filler.size()));
  // CPython's str.center: an odd space is left of the text if the width is odd too.
  std::uint64_t left = align == Align::Left ? 0 : missing;
  if (align == Align::Center)
    left = missing / 2 + (missing & static_cast<std::uint64_t>(*width->integral()) & 1U);
  std::string out;
  for (std::uint64_t i = 0; i < left; ++i) out += filler;
  out += text;
  for (std::uint64_t i = left; i < missing; ++i) out += filler;
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const char32_t c = step.code_point;
    const bool ends =
        (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) {
      at += step.length;
      continue;
    }
    const std::size_t end = at;
    at += step.length;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    out.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

}  // namespace hone::jinja
