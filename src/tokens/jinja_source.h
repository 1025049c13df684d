// The template's text with newlines as Jinja sees them, and errors with line and column in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone::jinja {

// The characters that Python's str.isspace takes for white space.
bool is_space(char32_t code_point);
// Length of the run of white space at the start of `text`.
std::size_t leading_space(std::string_view text);
// `text` without the white space at its end.
std::string_view strip_right(std::string_view text);

class Source {
 public:
  // Every "\r\n" and "\r" becomes "\n"; one newline at the end goes.
  explicit Source(std::string_view text);

  std::string_view text() const { return text_; }

  // BadInput at the byte `offset` of text(). `message` is one sentence.
  Error error(std::size_t offset, std::string message) const;
  // "filter 'map' is not supported, line 3 column 12".
  Error unsupported(std::size_t offset, std::string_view what) const;

 private:
  std::string place(std::size_t offset) const;

  std::string text_;
};

}  // namespace hone::jinja
