#include "tokens/tokenizer.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "tokens/pre_tokenizer.h"
#include "tokens/token_hash.h"
#include "tokens/utf8.h"

namespace hone {

// Working memory of one encode call.
struct BpeScratch {
  PreTokenizerScratch words;
  std::vector<std::uint32_t> ends;
  // One symbol per byte that the word starts with; merged ones drop out of the list.
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> previous;
  std::vector<std::uint32_t> rank;   // of the pair that starts here
  std::vector<std::uint64_t> queue;  // (rank << 32) | position, a min-heap
};

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const std::uint32_t begin = offsets_[static_cast<std::size_t>(id)];
  const std::uint32_t end = offsets_[static_cast<std::size_t>(id) + 1];
  return {pool_.data() + begin, end - begin};
}

std::optional<TokenType> Tokenizer::token_type(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return std::nullopt;
  return static_cast<TokenType>(types_[static_cast<std::size_t>(id)] & kTypeMask);
}

std::string_view Tokenizer::text_of(std::optional<std::int32_t> id) const {
  return id ? token_bytes(*id) : std::string_view{};
}

std::string_view Tokenizer::pre_tokenizer_name() const {
  return pre_tokenizer_->name();
}

std::optional<std::uint32_t> Tokenizer::find_token(std::string_view bytes, bool raw) const {
  const std::size_t mask = token_slots_.size() - 1;
  for (std::size_t slot = hash_bytes(bytes) & mask;; slot = (slot + 1) & mask) {
    const std::uint32_t id = token_slots_[slot];
    if (id == kNone) return std::nullopt;
    if (((types_[id] & kRawBit) != 0) == raw && token_bytes(static_cast<std::int32_t>(id)) == bytes)
      return id;
  }
}

std::optional<std::int32_t> Tokenizer::special_token_id(std::string_view text) const {
  if (text.empty()) return std::nullopt;
  for (const bool raw : {true, false}) {
    const auto id = find_token(text, raw);
    if (id && (types_[*id] & kTypeMask) != static_cast<std::uint8_t>(TokenType::Normal)) {
      return static_cast<std::int32_t>(*id);
    }
  }
  return std::nullopt;
}

std::uint32_t Tokenizer::find_merge(std::uint32_t left, std::uint32_t right) const {
  const std::size_t mask = merge_slots_.size() - 1;
  for (std::size_t slot = hash_pair(left, right) & mask;; slot = (slot + 1) & mask) {
    const std::uint32_t rank = merge_slots_[slot];
    if (rank == kNone) return kNone;
    const Merge& merge = merges_[rank];
    if (merge.left == left && merge.right == right) return rank;
  }
}

std::optional<std::uint32_t> Tokenizer::match_special(std::string_view text, bool control_too) const {
  // specials_ is sorted by bytes, so the tokens that agree with the first k bytes of the text are a range
  // that shrinks as k grows; a token of length k stands first in its range.
  std::optional<std::uint32_t> best;
  std::size_t low = 0;
  std::size_t high = specials_.size();
  const auto bytes_of = [&](std::size_t i) { return token_bytes(static_cast<std::int32_t>(specials_[i])); };
  for (std::size_t k = 0; k < text.size() && low < high; ++k) {
    const auto wanted = static_cast<unsigned char>(text[k]);
    const auto byte_at = [&](std::uint32_t id) -> int {
      const std::string_view bytes = token_bytes(static_cast<std::int32_t>(id));
      return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : -1;
    };
    const auto first = specials_.begin() + static_cast<std::ptrdiff_t>(low);
    const auto last = specials_.begin() + static_cast<std::ptrdiff_t>(high);
    const auto from = std::partition_point(first, last, [&](auto id) { return byte_at(id) < wanted; });
    const auto to = std::partition_point(from, last, [&](auto id) { return byte_at(id) <= wanted; });
    low = static_cast<std::size_t>(from - specials_.begin());
    high = static_cast<std::size_t>(to - specials_.begin());
    if (low < high && bytes_of(low).size() == k + 1) {
      const std::uint8_t type = types_[specials_[low]] & kTypeMask;
      if (control_too || type == static_cast<std::uint8_t>(TokenType::UserDefined)) best = specials_[low];
    }
  }
  return best;
}

void Tokenizer::encode_word(std::string_view word, BpeScratch& s, std::vector<std::int32_t>& out) const {
  s.ids.clear();
  for (const char c : word) {
    const std::uint32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id != kNone) s.ids.push_back(id);
  }
  const auto count = static_cast<std::uint32_t>(s.ids.size());
  if (count == 0) return;
  if (count == 1) {
    out.push_back(static_cast<std::int32_t>(s.ids[0]));
    return;
  }
  s.next.resize(count);
  s.previous.resize(count);
  s.rank.resize(count);
  s.queue.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    s.previous[i] = i == 0 ? kNone : i - 1;
    s.next[i] = i + 1 == count ? kNone : i + 1;
    s.rank[i] = i + 1 == count ? kNone : find_merge(s.ids[i], s.ids[i + 1]);
    if (s.rank[i] != kNone) s.queue.push_back((static_cast<std::uint64_t>(s.rank[i]) << 32) | i);
  }
  std::make_heap(s.queue.begin(), s.queue.end(), std::greater<>());
  const auto renew_pair = [&](std::uint32_t at) {
    s.rank[at] = s.next[at] == kNone ? kNone : find_merge(s.ids[at], s.ids[s.next[at]]);
    if (s.rank[at] == kNone) return;
    s.queue.push_back((static_cast<std::uint64_t>(s.rank[at]) << 32) | at);
    std::push_heap(s.queue.begin(), s.queue.end(), std::greater<>());
  };
  while (!s.queue.empty()) {
    const std::uint64_t top = s.queue.front();
    std::pop_heap(s.queue.begin(), s.queue.end(), std::greater<>());
    s.queue.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    // An entry is stale when the pair at its place has changed since.
    if (s.rank[at] != static_cast<std::uint32_t>(top >> 32)) continue;
    const std::uint32_t right = s.next[at];
    s.ids[at] = merges_[s.rank[at]].merged;
    s.next[at] = s.next[right];
    s.rank[right] = kNone;
    if (s.next[at] != kNone) s.previous[s.next[at]] = at;
    renew_pair(at);
    if (s.previous[at] != kNone) renew_pair(s.previous[at]);
  }
  for (std::uint32_t i = 0; i != kNone; i = s.next[i]) out.push_back(static_cast<std::int32_t>(s.ids[i]));
}

Status Tokenizer::encode_plain(std::string_view text, BpeScratch& s, std::vector<std::int32_t>& out) const {
  while (!text.empty()) {
    const std::size_t valid = utf8_valid_prefix(text);
    HONE_TRY(pre_tokenizer_->split(text.substr(0, valid), s.words, s.ends));
    std::uint32_t begin = 0;
    for (const std::uint32_t end : s.ends) {
      encode_word(text.substr(begin, end - begin), s, out);
      begin = end;
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    encode_word(text.substr(0, 1), s, out);
    text.remove_prefix(1);
  }
  return {};
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  constexpr std::size_t kMaxText = std::numeric_limits<std::int32_t>::max();
  if (text.size() > kMaxText) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "text",
                 "a text has at most 2^31 - 1 bytes",
                 fmt::format("at most {} bytes", kMaxText),
                 fmt::format("{} bytes", text.size()),
                 "split the text"};
  }
  BpeScratch scratch;
  std::vector<std::int32_t> out;
  if (options.add_special && add_bos_) out.push_back(*special_.bos);
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool candidate = special_first_bytes_[static_cast<unsigned char>(text[at])];
    const auto id = candidate ? match_special(text.substr(at), options.parse_special) : std::nullopt;
    if (!id) {
      ++at;
      continue;
    }
    HONE_TRY(encode_plain(text.substr(begin, at - begin), scratch, out));
    out.push_back(static_cast<std::int32_t>(*id));
    at += token_bytes(static_cast<std::int32_t>(*id)).size();
    begin = at;
  }
  HONE_TRY(encode_plain(text.substr(begin), scratch, out));
  if (options.add_special && add_eos_) out.push_back(*special_.eos);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, DecodeOptions options) const {
  std::string out;
  for (const std::int32_t id : ids) {
    if (options.skip_special && token_type(id) == TokenType::Control) continue;
    out.append(token_bytes(id));
  }
  return out;
}

bool Tokenizer::is_end_of_generation(std::int32_t id) const {
  if (id == special_.eos || id == special_.end_of_turn) return true;
  if (token_type(id) != TokenType::Control) return false;
  constexpr std::array<std::string_view, 7> kEnds{"<|im_end|>",    "<|endoftext|>", "<|eot_id|>", "<|end|>",
                                                  "<end_of_turn>", "</s>",          "<|eom_id|>"};
  return std::find(kEnds.begin(), kEnds.end(), token_bytes(id)) != kEnds.end();
}

std::int64_t Tokenizer::heap_bytes() const {
  const auto bytes = [](const auto& v) { return static_cast<std::int64_t>(v.capacity() * sizeof(v[0])); };
  return bytes(pool_) + bytes(offsets_) + bytes(types_) + bytes(token_slots_) + bytes(merges_) +
         bytes(merge_slots_) + bytes(specials_) + bytes(chat_template_);
}

}  // namespace hone
