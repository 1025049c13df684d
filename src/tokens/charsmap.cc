#include "tokens/charsmap.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace hone {

namespace {

constexpr std::size_t kTrieBlock = 256;  // units; children of a node lie in one block
constexpr std::size_t kMostTrieBytes = 4U << 20;
constexpr std::size_t kMostRuleBytes = 256;

// A unit, as Darts-clone packs it (darts.h, DoubleArrayUnit).
bool unit_has_leaf(std::uint32_t unit) {
  return ((unit >> 8) & 1U) != 0;
}
std::uint32_t unit_value(std::uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}
// Equal to the byte on the edge to it; a value never is.
std::uint32_t unit_label(std::uint32_t unit) {
  return unit & 0x800000FFU;
}
std::size_t unit_offset(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & (1U << 9)) >> 6);
}

// Walks every node once, depth first. Darts-clone shares equal subtrees, so a node may have several parents;
// it must not be below itself.
class TrieCheck {
 public:
  TrieCheck(const std::vector<std::uint32_t>& units, const std::vector<char>& texts, std::string_view place)
      : units_(units), texts_(texts), place_(place), heights_(units.size(), kNew) {}

  Status run() {
    HONE_TRY(enter(0));
    while (!open_.empty()) {
      if (open_.back().byte == kTrieBlock) {
        HONE_TRY(leave());
        continue;
      }
      const std::uint32_t byte = open_.back().byte++;
      const std::size_t child = open_.back().base ^ byte;
      if (unit_label(units_[child]) != byte) continue;
      if (heights_[child] == kNew) {
        HONE_TRY(enter(child));
      } else if (heights_[child] == kOpen) {
        return fail(child, "a trie has no cycle", "a node below itself");
      } else {
        HONE_TRY(raise(heights_[child]));
      }
    }
    return {};
  }

 private:
  struct Node {
    std::size_t at;
    std::size_t base;      // the child on byte b stands at base ^ b
    std::uint32_t byte;    // the next child to look at
    std::uint16_t height;  // of what is seen so far
  };
  static constexpr std::uint16_t kNew = 0xFFFF;
  static constexpr std::uint16_t kOpen = 0xFFFE;

  Error fail(std::size_t unit, std::string message, std::string actual) const {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 fmt::format("{}, unit {}", place_, unit),
                 std::move(message),
                 {},
                 std::move(actual),
                 "download the tokenizer again, or convert it again"};
  }

  Status enter(std::size_t at) {
    const std::size_t base = at ^ unit_offset(units_[at]);
    if ((base | (kTrieBlock - 1)) >= units_.size()) {
      return fail(at, "a unit leads to a place inside of the trie",
                  fmt::format("{} of {}", base, units_.size()));
    }
    if (at != 0 && unit_has_leaf(units_[at])) HONE_TRY(check_leaf(base));
    if (open_.size() > kMostRuleBytes) return fail(at, "a rule replaces at most 256 bytes", "more");
    heights_[at] = kOpen;
    open_.push_back({at, base, 0, 0});
    return {};
  }

  Status leave() {
    const Node node = open_.back();
    open_.pop_back();
    heights_[node.at] = node.height;
    return open_.empty() ? Status{} : raise(node.height);
  }

  // The open node has a child of this height.
  Status raise(std::uint16_t child) {
    Node& node = open_.back();
    node.height = std::max(node.height, static_cast<std::uint16_t>(child + 1));
    if (node.height <= kMostRuleBytes) return {};
    return fail(node.at, "a rule replaces at most 256 bytes", "more");
  }

  Status check_leaf(std::size_t at) const {
    const std::size_t begin = unit_value(units_[at]);
    if (begin >= texts_.size()) {
      return fail(at, "a rule's value is an offset of its replacement",
                  fmt::format("{} of {}", begin, texts_.size()));
    }
    const std::size_t room = std::min(texts_.size() - begin, kMostRuleBytes + 1);
    if (std::memchr(texts_.data() + begin, 0, room) == nullptr) {
      return fail(at, "a replacement has at most 256 bytes and then a zero byte", "more");
    }
    return {};
  }

  const std::vector<std::uint32_t>& units_;
  const std::vector<char>& texts_;
  std::string_view place_;
  std::vector<std::uint16_t> heights_;  // of the longest way down, or kNew, kOpen
  std::vector<Node> open_;
};

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes, std::string_view place) {
  static_assert(std::endian::native == std::endian::little);
  std::uint32_t trie_bytes = 0;
  const auto broken = [&](std::string actual) {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 std::string(place),
                 "a character map is the size of its trie, the trie and the replacements",
                 "a size in whole blocks of 1024 bytes, at most 4 MiB and less than what follows",
                 std::move(actual),
                 "download the tokenizer again, or convert it again"};
  };
  if (bytes.size() < sizeof trie_bytes) return broken(fmt::format("{} bytes", bytes.size()));
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % (kTrieBlock * sizeof(std::uint32_t)) != 0 ||
      trie_bytes > kMostTrieBytes || trie_bytes >= bytes.size()) {
    return broken(fmt::format("{} of {} bytes", trie_bytes, bytes.size()));
  }
  if (bytes.size() - trie_bytes > kMostTrieBytes) {
    return broken(fmt::format("{} bytes of replacements", bytes.size() - trie_bytes));
  }
  Charsmap out;
  out.units_.resize(trie_bytes / sizeof(std::uint32_t));
  std::memcpy(out.units_.data(), bytes.data(), trie_bytes);
  bytes.remove_prefix(trie_bytes);
  out.texts_.assign(bytes.begin(), bytes.end());
  HONE_TRY(TrieCheck(out.units_, out.texts_, place).run());
  return out;
}

std::string_view Charsmap::replacement(std::uint32_t value) const {
  return {texts_.data() + value};
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> best;
  std::size_t base = unit_offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t at = base ^ byte;
    const std::uint32_t unit = units_[at];
    if (unit_label(unit) != byte) break;
    base = at ^ unit_offset(unit);
    if (unit_has_leaf(unit)) best = Match{i + 1, replacement(unit_value(units_[base]))};
  }
  return best;
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text) const {
  std::size_t base = unit_offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t at = base ^ byte;
    const std::uint32_t unit = units_[at];
    if (unit_label(unit) != byte) break;
    base = at ^ unit_offset(unit);
    if (unit_has_leaf(unit)) return Match{i + 1, replacement(unit_value(units_[base]))};
  }
  return std::nullopt;
}

std::int64_t Charsmap::heap_bytes() const {
  return static_cast<std::int64_t>(units_.capacity() * sizeof(std::uint32_t) + texts_.capacity());
}

}  // namespace hone
