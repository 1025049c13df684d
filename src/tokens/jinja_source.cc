#include "tokens/jinja_source.h"

#include <algorithm>
#include <fmt/format.h>

#include "tokens/utf8.h"

namespace hone::jinja {

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::size_t leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::Valid || !is_space(step.code_point)) break;
    at += step.length;
  }
  return at;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && text.size() - begin < 4 &&
           (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) {
      --begin;
    }
    const Utf8Step step = utf8_step(text.substr(begin));
    if (step.kind != Utf8Step::Kind::Valid || !is_space(step.code_point)) break;
    text = text.substr(0, begin);
  }
  return text;
}

Source::Source(std::string_view text) {
  text_.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      text_ += text[i];
      continue;
    }
    text_ += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  if (text_.ends_with('\n')) text_.pop_back();
}

std::string Source::place(std::size_t offset) const {
  const std::string_view before = std::string_view(text_).substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::string_view tail = newline == std::string_view::npos ? before : before.substr(newline + 1);
  // Columns count characters: continuation bytes do not count.
  const auto column = 1 + std::count_if(tail.begin(), tail.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
                      });
  return fmt::format("line {} column {}", line, column);
}

Error Source::error(std::size_t offset, std::string message) const {
  return Error{ErrorCode::BadInput,
               Fault::User,
               fmt::format("template, {}", place(offset)),
               std::move(message),
               {},
               {},
               "give another template or other messages"};
}

Error Source::unsupported(std::size_t offset, std::string_view what) const {
  Error out = error(offset, fmt::format("{} is not supported, {}", what, place(offset)));
  out.fault = Fault::Hone;
  out.next_step = "give a template that does without it";
  return out;
}

}  // namespace hone::jinja
