// Ids in one at a time, text out as soon as it is certain: whole UTF-8 characters only, and nothing that may
// turn out to be part of a stop string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/tokenizer.h"

namespace hone {

struct StreamPiece {
  std::string text;      // valid UTF-8, possibly empty
  bool stopped = false;  // a stop string is complete; the text before it has left, nothing more will come
};

// The pieces joined are to_valid_utf8(decode(ids)) (tokens/utf8.h), cut before the first occurrence of a stop
// string. Where several stop strings end at the same byte, the cut is before the one that starts first.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder. Empty stop strings are ignored. Control tokens give no text unless
  // `skip_special` is false.
  StreamDecoder(const Tokenizer& tokenizer, std::vector<std::string> stops, bool skip_special = true);

  StreamPiece push(std::int32_t id);
  // What was held back: an unfinished character leaves as U+FFFD, an unfinished stop string as it is.
  StreamPiece finish();

 private:
  // Adds valid text to held_ and cuts at the first complete stop string.
  StreamPiece release(std::string_view text);

  const Tokenizer* tokenizer_;
  std::vector<std::string> stops_;
  std::string partial_;  // bytes of a character that has not ended
  std::string held_;     // valid text, a true prefix of some stop string
  bool skip_special_;
  bool stopped_ = false;
  bool at_start_ = true;  // no token has given text
};

}  // namespace hone
