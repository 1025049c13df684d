// JSON read in one pass without a tree: the caller asks for what it expects and gets views into the text. For
// vocabularies, whose trees would be ten times their tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// A place in a text of JSON (RFC 8259). Every error (BadFile) names path, line, column and byte.
class JsonCursor {
 public:
  enum class Kind : std::uint8_t { Object, Array, String, Number, Bool, Null, None };

  // Both must outlive the cursor. A byte order mark is passed over.
  JsonCursor(std::string_view text, std::string_view path);

  // What begins here; None at the end of the text and where no value can begin.
  Kind peek();
  std::size_t offset() const { return at_; }
  std::string_view text() const { return text_; }
  std::string_view path() const { return path_; }

  // A string without its escapes, valid UTF-8. The view holds until the next call of string() or a loop.
  Result<std::string_view> string();
  Result<bool> boolean();
  Result<double> number();
  Result<std::int64_t> integer();
  // Passes a null and says so; anything else stays.
  bool take_null();
  // Passes any value, nested at most 64 deep, and returns its text.
  Result<std::string_view> skip();
  // Nothing but white space may follow.
  Status end();

  // visit(std::string_view key) -> Status must pass the value. The key holds for the whole visit.
  template <class Visit>
  Status for_each_member(Visit&& visit) {
    HONE_TRY(open('{', "an object"));
    for (bool first = true; HONE_TRY(more('}', first)); first = false) {
      std::string copy;
      std::string_view key = HONE_TRY(string());
      if (key.data() == buffer_.data()) {
        copy = key;
        key = copy;
      }
      HONE_TRY(colon());
      HONE_TRY(visit(key));
    }
    return {};
  }

  // visit(std::size_t index) -> Status must pass the element.
  template <class Visit>
  Status for_each_element(Visit&& visit) {
    HONE_TRY(open('[', "an array"));
    std::size_t index = 0;
    for (bool first = true; HONE_TRY(more(']', first)); first = false) HONE_TRY(visit(index++));
    return {};
  }

  // A rule broken at the cursor, or at a byte.
  Error error(std::string message, std::string expected) const;
  Error error_at(std::size_t offset, std::string message, std::string expected) const;

 private:
  void skip_space();
  Status open(char bracket, std::string_view name);
  // True where another entry follows; passes the comma, or the closing bracket.
  Result<bool> more(char bracket, bool first);
  Status colon();
  Status scalar();
  Status unescape(std::size_t begin);
  std::optional<std::uint32_t> hex4(std::size_t at) const;

  std::string_view text_;
  std::string_view path_;
  std::size_t at_ = 0;
  std::string buffer_;  // the last string that had escapes
};

}  // namespace hone
