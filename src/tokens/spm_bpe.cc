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
// A region is long, and walking all ranks costs less than a heap that no cache holds, from this many symbols
// on, and from a quarter of the number of ranks on.
constexpr std::size_t kLongRegion = 256;

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
  // A pair that a merge made, in the list of its rank.
  struct Later {
    std::uint32_t position;
    std::uint32_t before;  // the next one of the list
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
    for (std::uint32_t i = 0; i != kNoSpmId; i = s.symbols[i].next) {
      const std::uint32_t begin = s.symbols[i].begin;
      const std::uint32_t end = s.symbols[i].next == kNoSpmId ? static_cast<std::uint32_t>(text.size())
                                                              : s.symbols[s.symbols[i].next].begin;
      emit(text.substr(begin, end - begin), halves, unknowns, out);
    }
  }

  static void start_symbols(std::string_view text, EncoderScratch& s) {
    s.symbols.clear();
    for (std::size_t at = 0; at < text.size(); at += spm_character(text.substr(at))) {
      s.symbols.push_back({static_cast<std::uint32_t>(at), kNoSpmId, kNoSpmId, kNoSpmId});
    }
    const auto count = static_cast<std::uint32_t>(s.symbols.size());
    for (std::uint32_t i = 1; i < count; ++i) {
      s.symbols[i].previous = i - 1;
      s.symbols[i - 1].next = i;
    }
  }

  // s.symbols[i].rank: rank of the piece that symbol i and the next one make. An entry of a queue is stale
  // when it is another by now; entries of one rank at one place are all the same.
  bool renew(std::string_view text, std::uint32_t i, EncoderScratch& s, Halves& halves) const {
    s.symbols[i].rank = kNoSpmId;
    const std::uint32_t second = s.symbols[i].next;
    if (second == kNoSpmId) return false;
    const std::size_t end =
        s.symbols[second].next == kNoSpmId ? text.size() : s.symbols[s.symbols[second].next].begin;
    const std::uint32_t id = find_piece(text.substr(s.symbols[i].begin, end - s.symbols[i].begin));
    if (id == kNoSpmId) return false;
    s.symbols[i].rank = ranks_[id];
    if (any_unused_ && vocabulary_.type(static_cast<std::int32_t>(id)) == TokenType::Unused) {
      halves[id] = s.symbols[second].begin - s.symbols[i].begin;
    }
    return true;
  }

  // Joins symbol `at` and the next one; push(i) is told of each pair that this makes.
  template <class Push>
  void join(std::string_view text, std::uint32_t at, EncoderScratch& s, Halves& halves,
            const Push& push) const {
    const std::uint32_t right = s.symbols[at].next;
    s.symbols[at].next = s.symbols[right].next;
    s.symbols[right].rank = kNoSpmId;
    if (s.symbols[at].next != kNoSpmId) s.symbols[s.symbols[at].next].previous = at;
    const std::uint32_t left = s.symbols[at].previous;
    if (left != kNoSpmId && renew(text, left, s, halves)) push(left);
    if (renew(text, at, s, halves)) push(at);
  }

  static std::uint64_t entry_of(const EncoderScratch& s, std::uint32_t i) {
    return (static_cast<std::uint64_t>(s.symbols[i].rank) << 32) | i;
  }

  void merge_symbols(std::string_view text, EncoderScratch& s, Halves& halves) const {
    if (s.symbols.size() > std::max(kLongRegion, ranks_.size() / 4)) return merge_by_buckets(text, s, halves);
    // The pairs of the start are sorted once; only those that merges make need the heap.
    s.sorted.clear();
    for (std::uint32_t i = 0; i < s.symbols.size(); ++i) {
      if (renew(text, i, s, halves)) s.sorted.push_back(entry_of(s, i));
    }
    std::ranges::sort(s.sorted);
    s.queue.clear();
    const auto push = [&](std::uint32_t i) {
      s.queue.push_back(entry_of(s, i));
      std::ranges::push_heap(s.queue, std::greater<>());
    };
    std::size_t first = 0;
    while (first < s.sorted.size() || !s.queue.empty()) {
      const bool from_sorted =
          s.queue.empty() || (first < s.sorted.size() && s.sorted[first] <= s.queue.front());
      const std::uint64_t top = from_sorted ? s.sorted[first++] : take_front(s.queue);
      const auto at = static_cast<std::uint32_t>(top);
      if (s.symbols[at].rank == static_cast<std::uint32_t>(top >> 32)) join(text, at, s, halves, push);
    }
  }

  static std::uint64_t take_front(std::vector<std::uint64_t>& heap) {
    const std::uint64_t top = heap.front();
    std::ranges::pop_heap(heap, std::greater<>());
    heap.pop_back();
    return top;
  }

  // The order of the heap, in linear time: a bucket of positions for each rank. What a merge makes mostly
  // ranks behind it, so the buckets are walked upwards, each put in order once when its turn comes; what
  // ranks before the bucket that is being walked, or in it, goes to a heap beside (s.queue) that stays small.
  void merge_by_buckets(std::string_view text, EncoderScratch& s, Halves& halves) const {
    std::vector<std::uint32_t> begin_of(ranks_.size() +
                                        1);  // first how many, then where each rank's positions begin
    std::vector<Later> later;                // pairs that merges made, a list for each rank
    std::vector<std::uint32_t> last_of(ranks_.size(), kNoSpmId);
    const auto count = static_cast<std::uint32_t>(s.symbols.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (renew(text, i, s, halves)) ++begin_of[s.symbols[i].rank + 1];
    }
    std::partial_sum(begin_of.begin(), begin_of.end(), begin_of.begin());
    std::vector<std::uint32_t> starts(begin_of.back());
    std::vector<std::uint32_t> fill(begin_of.begin(), begin_of.end() - 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (s.symbols[i].rank != kNoSpmId) starts[fill[s.symbols[i].rank]++] = i;
    }
    s.queue.clear();
    std::uint32_t walked = 0;
    const auto push = [&](std::uint32_t i) {
      if (s.symbols[i].rank <= walked) {
        s.queue.push_back(entry_of(s, i));
        std::ranges::push_heap(s.queue, std::greater<>());
        return;
      }
      later.push_back({i, last_of[s.symbols[i].rank]});
      last_of[s.symbols[i].rank] = static_cast<std::uint32_t>(later.size() - 1);
    };
    const auto join_if_fresh = [&](std::uint64_t entry) {
      const auto at = static_cast<std::uint32_t>(entry);
      if (s.symbols[at].rank == static_cast<std::uint32_t>(entry >> 32)) join(text, at, s, halves, push);
    };
    std::vector<std::uint32_t> positions;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      walked = rank;
      positions.assign(starts.begin() + begin_of[rank], starts.begin() + begin_of[rank + 1]);
      const std::size_t in_order = positions.size();
      for (std::uint32_t each = last_of[rank]; each != kNoSpmId; each = later[each].before) {
        positions.push_back(later[each].position);
      }
      if (positions.size() > in_order) std::ranges::sort(positions);
      for (const std::uint32_t at : positions) {
        const std::uint64_t entry = (static_cast<std::uint64_t>(rank) << 32) | at;
        while (!s.queue.empty() && s.queue.front() < entry) join_if_fresh(take_front(s.queue));
        join_if_fresh(entry);
      }
      while (!s.queue.empty()) join_if_fresh(take_front(s.queue));
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
