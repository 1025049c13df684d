#include "tokens/spm_bpe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "tokens/spm_normaliser.h"
#include "tokens/spm_unknown.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

constexpr std::uint32_t kNoSpmId = 0xFFFFFFFFU;

class SpmBpeEncoder : public WordEncoder {
 public:
  SpmBpeEncoder(const Vocabulary& vocabulary, SpmUnknown unknown)
      : vocabulary_(vocabulary), unknown_(unknown), user_defined_(user_defined_index(vocabulary)) {}

  // Neighbours at which no merge reaches across are cut first, so heaps stay small.
  void encode_word(std::string_view word, EncoderScratch& s, std::vector<std::int32_t>& out) const override {
    Unknowns unknowns{word.data(), false};
    std::size_t begin = 0;
    std::size_t at = 0;
    while (at < word.size()) {
      const auto fixed = user_defined_.longest(word.substr(at));
      if (fixed) {
        encode_region(word.substr(begin, at - begin), s, unknowns, out);
        out.push_back(static_cast<std::int32_t>(fixed->value));
        unknowns.last = false;
        at += fixed->length;
        begin = at;
        continue;
      }
      if (at > begin && word.substr(at).starts_with(kSpmSpace) &&
          !before_space_[static_cast<unsigned char>(word[at - 1])]) {
        encode_region(word.substr(begin, at - begin), s, unknowns, out);
        begin = at;
      }
      at += spm_character(word.substr(at));
    }
    encode_region(word.substr(begin), s, unknowns, out);
  }

  std::int64_t heap_bytes() const override {
    return user_defined_.heap_bytes() + static_cast<std::int64_t>(ranks_.capacity() * sizeof(ranks_[0]));
  }

  // Ranks by score; facts of the pieces.
  void prepare(const std::vector<float>& scores) {
    const auto count = static_cast<std::size_t>(vocabulary_.size());
    std::vector<std::uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
    ranks_.assign(count, kNoSpmId);
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
      ranks_[order[i]] = rank;
    }
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
      const TokenType type = vocabulary_.type(id);
      const std::string_view text = vocabulary_.bytes(id);
      any_unused_ = any_unused_ || type == TokenType::Unused;
      longest_ = std::max(longest_, text.size());
      for (std::size_t at = text.find(kSpmSpace, 1); at < text.size(); at = text.find(kSpmSpace, at + 1)) {
        before_space_[static_cast<unsigned char>(text[at - 1])] = true;
      }
    }
  }

 private:
  struct Unknowns {
    const char* begin;
    bool last;  // what was appended last is an unknown character
  };
  // How an Unused piece was made: bytes of its left part.
  using Halves = std::unordered_map<std::uint32_t, std::uint32_t>;

  // The piece that a merge can make of `text`.
  std::uint32_t find_piece(std::string_view text) const {
    if (text.size() > longest_) return kNoSpmId;
    auto id = vocabulary_.find(text, false);
    if (id && vocabulary_.type(*id) == TokenType::Normal) return static_cast<std::uint32_t>(*id);
    if (!any_unused_ && user_defined_.empty()) return kNoSpmId;
    id = vocabulary_.find(text, true);
    if (!id) return kNoSpmId;
    const TokenType type = vocabulary_.type(*id);
    const bool usable = type == TokenType::Unused || type == TokenType::UserDefined;
    return usable ? static_cast<std::uint32_t>(*id) : kNoSpmId;
  }

  void encode_region(std::string_view text, EncoderScratch& s, Unknowns& unknowns,
                     std::vector<std::int32_t>& out) const {
    if (text.empty()) return;
    Halves halves;
    start_symbols(text, s);
    merge_symbols(text, s, halves);
    for (std::uint32_t i = 0; i != kNoSpmId; i = s.next[i]) {
      const std::uint32_t begin = s.begins[i];
      const std::uint32_t end =
          s.next[i] == kNoSpmId ? static_cast<std::uint32_t>(text.size()) : s.begins[s.next[i]];
      emit(text.substr(begin, end - begin), halves, unknowns, out);
    }
  }

  static void start_symbols(std::string_view text, EncoderScratch& s) {
    s.begins.clear();
    for (std::size_t at = 0; at < text.size(); at += spm_character(text.substr(at))) {
      s.begins.push_back(static_cast<std::uint32_t>(at));
    }
    const auto count = static_cast<std::uint32_t>(s.begins.size());
    s.next.resize(count);
    s.previous.resize(count);
    s.rank.assign(count, kNoSpmId);
    for (std::uint32_t i = 0; i < count; ++i) {
      s.previous[i] = i == 0 ? kNoSpmId : i - 1;
      s.next[i] = i + 1 == count ? kNoSpmId : i + 1;
    }
    s.queue.clear();
  }

  // s.rank[i]: rank of the piece that symbol i and the next one make. An entry of the queue is stale when it
  // is another by now; entries of one rank at one place are all the same.
  void merge_symbols(std::string_view text, EncoderScratch& s, Halves& halves) const {
    const auto pair_text = [&](std::uint32_t i) {
      const std::uint32_t second = s.next[i];
      const std::size_t end = s.next[second] == kNoSpmId ? text.size() : s.begins[s.next[second]];
      return text.substr(s.begins[i], end - s.begins[i]);
    };
    const auto renew = [&](std::uint32_t i) {
      s.rank[i] = kNoSpmId;
      if (s.next[i] == kNoSpmId) return false;
      const std::uint32_t id = find_piece(pair_text(i));
      if (id == kNoSpmId) return false;
      s.rank[i] = ranks_[id];
      s.queue.push_back((static_cast<std::uint64_t>(ranks_[id]) << 32) | i);
      if (any_unused_ && vocabulary_.type(static_cast<std::int32_t>(id)) == TokenType::Unused) {
        halves[id] = s.begins[s.next[i]] - s.begins[i];
      }
      return true;
    };
    for (std::uint32_t i = 0; i < s.begins.size(); ++i) renew(i);
    // The pairs of the start are sorted once; only those that merges make need the heap.
    s.sorted.swap(s.queue);
    std::ranges::sort(s.sorted);
    s.queue.clear();
    std::size_t first = 0;
    while (first < s.sorted.size() || !s.queue.empty()) {
      std::uint64_t top = 0;
      if (s.queue.empty() || (first < s.sorted.size() && s.sorted[first] <= s.queue.front())) {
        top = s.sorted[first++];
      } else {
        top = s.queue.front();
        std::ranges::pop_heap(s.queue, std::greater<>());
        s.queue.pop_back();
      }
      const auto at = static_cast<std::uint32_t>(top);
      if (s.rank[at] != static_cast<std::uint32_t>(top >> 32)) continue;
      const std::uint32_t right = s.next[at];
      s.next[at] = s.next[right];
      s.rank[right] = kNoSpmId;
      if (s.next[at] != kNoSpmId) s.previous[s.next[at]] = at;
      if (s.previous[at] != kNoSpmId && renew(s.previous[at]))
        std::ranges::push_heap(s.queue, std::greater<>());
      if (renew(at)) std::ranges::push_heap(s.queue, std::greater<>());
    }
  }

  // The ids of one symbol; an Unused piece is taken apart, its parts too.
  void emit(std::string_view text, const Halves& halves, Unknowns& unknowns,
            std::vector<std::int32_t>& out) const {
    std::vector<std::string_view> parts;
    for (bool more = true; more;) {
      const std::uint32_t id = symbol_id(text);
      const auto half = id == kNoSpmId || halves.empty() ? halves.end() : halves.find(id);
      if (half != halves.end() && half->second < text.size()) {
        parts.push_back(text.substr(half->second));
        text = text.substr(0, half->second);
        continue;
      }
      if (id == kNoSpmId) {
        unknown_.append(text, unknowns.last, out);
      } else {
        out.push_back(static_cast<std::int32_t>(id));
      }
      unknowns.last = id == kNoSpmId;
      more = !parts.empty();
      if (more) {
        text = parts.back();
        parts.pop_back();
      }
    }
  }

  // A single character may also be the text of a control piece.
  std::uint32_t symbol_id(std::string_view text) const {
    const std::uint32_t id = find_piece(text);
    if (id != kNoSpmId) return id;
    const auto reserved = vocabulary_.find(text, true);
    if (!reserved || vocabulary_.type(*reserved) != TokenType::Control) return kNoSpmId;
    return static_cast<std::uint32_t>(*reserved);
  }

  const Vocabulary& vocabulary_;
  SpmUnknown unknown_;
  PrefixIndex user_defined_;
  std::vector<std::uint32_t> ranks_;      // [V] by descending score; equal scores share one
  std::array<bool, 256> before_space_{};  // last bytes of what stands before U+2581 inside of a piece
  std::size_t longest_ = 0;               // bytes
  bool any_unused_ = false;
};

}  // namespace

Result<std::unique_ptr<const WordEncoder>> make_spm_bpe_encoder(const TokenizerSpec& spec,
                                                                const Vocabulary& vocabulary) {
  HONE_TRY(check_scores(spec, vocabulary));
  SpmUnknown unknown = HONE_TRY(SpmUnknown::build(spec, vocabulary));
  auto out = std::make_unique<SpmBpeEncoder>(vocabulary, unknown);
  out->prepare(spec.model.scores);
  return std::unique_ptr<const WordEncoder>(std::move(out));
}

}  // namespace hone
