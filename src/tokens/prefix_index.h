// Which strings of a set begin a text: sorted, and narrowed byte by byte.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

class PrefixIndex {
 public:
  struct Key {
    std::string_view text;  // not empty; what it points to must outlive the index
    std::uint32_t value;
  };
  struct Match {
    std::size_t length;
    std::uint32_t value;
  };

  PrefixIndex() = default;
  explicit PrefixIndex(std::vector<Key> keys) : keys_(std::move(keys)) {
    std::ranges::sort(keys_, {}, &Key::text);
    for (std::uint32_t i = 0; i < keys_.size(); ++i) {
      longest_ = std::max(longest_, keys_[i].text.size());
      Range& range = first_[static_cast<unsigned char>(keys_[i].text[0])];
      if (range.low == range.high) range.low = i;
      range.high = i + 1;
    }
  }

  bool empty() const { return keys_.empty(); }
  // Bytes of the longest key.
  std::size_t longest_key() const { return longest_; }
  std::int64_t heap_bytes() const { return static_cast<std::int64_t>(keys_.capacity() * sizeof(Key)); }

  // Calls visit(length, value) for each key that begins `text`, shortest first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    if (text.empty()) return;
    Range range = first_[static_cast<unsigned char>(text[0])];
    for (std::size_t depth = 1; range.low < range.high; ++depth) {
      // Of the keys with these first bytes, the one that ends here sorts first.
      const Key& key = keys_[range.low];
      if (key.text.size() == depth) {
        visit(depth, key.value);
        ++range.low;
      }
      if (depth == text.size()) return;
      narrow(range, depth, static_cast<unsigned char>(text[depth]));
    }
  }

  std::optional<Match> longest(std::string_view text) const {
    std::optional<Match> out;
    for_each_prefix(text, [&](std::size_t length, std::uint32_t value) { out = Match{length, value}; });
    return out;
  }

 private:
  struct Range {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
  };

  // Every key of the range is longer than `depth`.
  void narrow(Range& range, std::size_t depth, unsigned char byte) const {
    const auto at = [&](std::uint32_t i) { return static_cast<unsigned char>(keys_[i].text[depth]); };
    const auto search = [&](std::uint32_t low, std::uint32_t high, auto&& before) {
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (before(at(middle))) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    range.low = search(range.low, range.high, [byte](unsigned char c) { return c < byte; });
    range.high = search(range.low, range.high, [byte](unsigned char c) { return c <= byte; });
  }

  std::vector<Key> keys_;
  std::array<Range, 256> first_{};
  std::size_t longest_ = 0;
};

}  // namespace hone
