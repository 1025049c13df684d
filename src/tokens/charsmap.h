// SentencePiece's precompiled_charsmap: rules "these bytes become those", longest match first.
//
// Its bytes: u32 size of a trie, the trie as a Darts-clone double array of u32 units, then the replacements,
// each ended by a zero byte; a leaf's value is the offset of its replacement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hone {

// Immutable.
class Charsmap {
 public:
  // `place` is named in errors. Errors (BadModel), with the unit or byte in `where`: sizes that contradict
  // each other; a unit that leads outside of the array or to a node above it; a rule that is
  // longer than 256 bytes on either side, or whose replacement does not end. After that, no walk leaves the
  // tables.
  static Result<Charsmap> parse(std::string_view bytes, std::string_view place);

  struct Match {
    std::size_t length;            // bytes of the text
    std::string_view replacement;  // lives as long as this object
  };
  // The longest rule at the start of `text`, and the shortest.
  std::optional<Match> longest(std::string_view text) const;
  std::optional<Match> shortest(std::string_view text) const;

  std::int64_t heap_bytes() const;

 private:
  Charsmap() = default;
  std::string_view replacement(std::uint32_t value) const;

  std::vector<std::uint32_t> units_;
  std::vector<char> texts_;
};

}  // namespace hone
