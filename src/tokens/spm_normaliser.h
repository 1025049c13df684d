// SentencePiece's normaliser: character map, white space, and the blank in front (its normalizer.cc describes
// the order).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokens/charsmap.h"
#include "tokens/prefix_index.h"
#include "tokens/string_table.h"

namespace hone {

inline constexpr std::string_view kSpmSpace = "\xE2\x96\x81";  // U+2581, what a blank becomes

// SentencePiece's NormalizerSpec, and TrainerSpec's treat_whitespace_as_suffix.
struct SpmNormaliserOptions {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;  // at both ends, and all but one inside
  bool escape_whitespaces = true;        // blanks become U+2581
  bool whitespace_as_suffix = false;     // the blank that is added stands at the end
};

// Immutable once built.
class SpmNormaliser {
 public:
  // `charsmap`: the bytes of precompiled_charsmap, or empty; `place` names them in errors (those of
  // Charsmap::parse). `fixed`: texts that the map leaves as they are (user-defined symbols).
  static Result<SpmNormaliser> build(const SpmNormaliserOptions& options, std::string_view charsmap,
                                     StringTable fixed, std::string_view place);

  // The normalised text into `out`. A byte that is no part of a well-formed character becomes U+FFFD. Time is
  // linear in the text. The caller refuses a result of 2^31 bytes or more: it may lack its end.
  void apply(std::string_view text, std::string& out) const;

  const SpmNormaliserOptions& options() const { return options_; }
  std::int64_t heap_bytes() const;

 private:
  SpmNormaliser() = default;
  struct Unit {
    std::size_t length;     // bytes of the text
    std::string_view text;  // what they become
  };
  Unit next_unit(std::string_view text) const;

  SpmNormaliserOptions options_;
  std::optional<Charsmap> charsmap_;
  StringTable fixed_texts_;
  PrefixIndex fixed_;
};

}  // namespace hone
