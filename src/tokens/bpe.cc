#include "tokens/bpe.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>

#include "tokens/token_hash.h"
#include "tokens/tokenizer_error.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::uint32_t kNoRank = 0xffffffffU;
constexpr std::uint32_t kNoSymbol = 0xffffffffU;
constexpr std::uint64_t kFreeMerge = ~std::uint64_t{0};
constexpr std::uint64_t kMergeTag = 0xFFFFFFFF00000000U;
// Up to here a scan for the lowest rank is quicker than a heap.
constexpr std::size_t kShortWord = 24;
// From here on a heap of every pair no longer fits the caches; buckets by rank do.
constexpr std::size_t kLongWord = 512;
constexpr std::uint32_t kNoBucket = 0xffffffffU;

struct MergeRow {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t merged;
};

// (left, right) -> rank. A slot holds the upper half of the pair's hash, then the rank, so that a pair that
// does not merge costs one look into one table.
class MergeTable {
 public:
  void reserve(std::size_t count) {
    rows_.reserve(count);
    slots_.assign(slots_for(count), kFreeMerge);
  }

  // False where the pair is there already, or where too many pairs hash alike.
  bool add(const MergeRow& row) {
    const std::uint64_t hash = hash_pair(row.left, row.right);
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash & mask;
    for (std::size_t probes = 0; slots_[slot] != kFreeMerge; slot = (slot + 1) & mask) {
      if (is_pair(slots_[slot], hash, row.left, row.right) || ++probes == kMaxProbes) return false;
    }
    slots_[slot] = (hash & kMergeTag) | rows_.size();
    rows_.push_back(row);
    return true;
  }

  std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t hash = hash_pair(left, right);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
      const std::uint64_t entry = slots_[slot];
      if (entry == kFreeMerge) return kNoRank;
      if (is_pair(entry, hash, left, right)) return static_cast<std::uint32_t>(entry);
    }
  }

  std::uint32_t merged(std::uint32_t rank) const { return rows_[rank].merged; }
  std::size_t size() const { return rows_.size(); }

  std::int64_t heap_bytes() const {
    return static_cast<std::int64_t>(rows_.capacity() * sizeof(MergeRow) +
                                     slots_.capacity() * sizeof(slots_[0]));
  }

 private:
  bool is_pair(std::uint64_t entry, std::uint64_t hash, std::uint32_t left, std::uint32_t right) const {
    if (((entry ^ hash) & kMergeTag) != 0) return false;
    const MergeRow& row = rows_[static_cast<std::uint32_t>(entry)];
    return row.left == left && row.right == right;
  }

  std::vector<MergeRow> rows_;        // [M] by rank
  std::vector<std::uint64_t> slots_;  // [power of two >= 2M], linear probing
};

class BpeEncoder final : public WordEncoder {
 public:
  explicit BpeEncoder(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

  Status fill(const TokenizerSpec& spec);
  void encode_word(std::string_view word, EncoderScratch& s, std::vector<std::int32_t>& out) const override;
  std::int64_t heap_bytes() const override {
    return merges_.heap_bytes() + static_cast<std::int64_t>(byte_pairs_.capacity() * sizeof(std::uint32_t)) +
           static_cast<std::int64_t>(continuing_prefix_.size() + end_suffix_.size());
  }

 private:
  Status add_merge(const TokenizerSpec& spec, std::uint32_t rank, std::string& joined);
  void fill_bytes();
  bool start_bytes(std::string_view word, EncoderScratch& s) const;
  void start_units(std::string_view word, EncoderScratch& s) const;
  std::uint32_t unit_id(std::string_view unit, bool first, bool last, EncoderScratch& s) const;
  bool push_bytes(std::string_view unit, EncoderScratch& s) const;
  void merge_short(EncoderScratch& s, std::vector<std::int32_t>& out) const;
  static void link(EncoderScratch& s);
  static void unlink_right(EncoderScratch& s, std::uint32_t at);
  void rank_pair(EncoderScratch& s, std::uint32_t at) const;
  void merge_by_heap(EncoderScratch& s) const;
  void merge_by_buckets(EncoderScratch& s) const;

  const Vocabulary* vocabulary_;
  MergeTable merges_;
  std::vector<std::uint32_t> byte_pairs_;      // [256][256] rank of two bytes; empty unless byte-level
  std::array<std::uint32_t, 256> byte_ids_{};  // byte tokens: of the alphabet, or "<0x0A>" with byte_fallback
  std::string continuing_prefix_;
  std::string end_suffix_;
  std::uint32_t unknown_ = kNoSymbol;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

Status BpeEncoder::add_merge(const TokenizerSpec& spec, std::uint32_t rank, std::string& joined) {
  const std::string_view left = spec.model.merges[2 * std::size_t{rank}];
  std::string_view right = spec.model.merges[2 * std::size_t{rank} + 1];
  const auto find = [&](std::string_view text) -> Result<std::uint32_t> {
    const auto id = vocabulary_->find_written(text);
    if (id) return static_cast<std::uint32_t>(*id);
    return bad_tokenizer(table_element(spec.places.merges, rank), "a merge joins two tokens into a third",
                         "tokens of the vocabulary",
                         fmt::format("'{}' is none", to_valid_utf8(text.substr(0, 80))));
  };
  MergeRow row{};
  row.left = HONE_TRY(find(left));
  row.right = HONE_TRY(find(right));
  if (right.starts_with(continuing_prefix_)) right.remove_prefix(continuing_prefix_.size());
  joined.assign(left);
  joined.append(right);
  row.merged = HONE_TRY(find(joined));
  if (merges_.add(row)) return {};
  return bad_tokenizer(
      table_element(spec.places.merges, rank), "each merge stands once in its list", {},
      fmt::format("merge {} again, or too many that hash alike", merges_.rank(row.left, row.right)));
}

Status BpeEncoder::fill(const TokenizerSpec& spec) {
  const ModelSpec& model = spec.model;
  continuing_prefix_ = model.continuing_prefix;
  end_suffix_ = model.end_suffix;
  fuse_unknown_ = model.fuse_unknown;
  ignore_merges_ = model.ignore_merges;
  if (model.unknown) unknown_ = static_cast<std::uint32_t>(*model.unknown);
  const std::size_t count = model.merges.size() / 2;
  if (count > kMaxTokens) {
    return bad_tokenizer(spec.places.merges, "there are at most 2^30 - 1 merges", {},
                         fmt::format("{}", count));
  }
  merges_.reserve(count);
  std::string joined;
  for (std::uint32_t rank = 0; rank < count; ++rank) HONE_TRY(add_merge(spec, rank, joined));
  fill_bytes();
  byte_fallback_ = model.byte_fallback && !vocabulary_->byte_level();
  return {};
}

void BpeEncoder::fill_bytes() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(static_cast<unsigned char>(byte));
    const auto id = vocabulary_->byte_level() ? vocabulary_->find({&c, 1}, false)
                                              : vocabulary_->find_written(fmt::format("<0x{:02X}>", byte));
    byte_ids_[byte] = id ? static_cast<std::uint32_t>(*id) : kNoSymbol;
  }
  if (!vocabulary_->byte_level() || !continuing_prefix_.empty() || !end_suffix_.empty()) return;
  byte_pairs_.assign(std::size_t{256} * 256, kNoRank);
  for (std::size_t left = 0; left < 256; ++left) {
    for (std::size_t right = 0; right < 256; ++right) {
      if (byte_ids_[left] == kNoSymbol || byte_ids_[right] == kNoSymbol) continue;
      byte_pairs_[left * 256 + right] = merges_.rank(byte_ids_[left], byte_ids_[right]);
    }
  }
}

// ids and the rank of each pair, from the table of byte pairs. False where a byte lacks a token that is not
// simply left out.
bool BpeEncoder::start_bytes(std::string_view word, EncoderScratch& s) const {
  if (byte_pairs_.empty()) return false;
  s.ids.clear();
  s.rank.clear();
  std::size_t last = 0;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    const std::uint32_t id = byte_ids_[byte];
    if (id == kNoSymbol) {
      if (unknown_ != kNoSymbol) return false;
      continue;
    }
    if (!s.ids.empty()) s.rank.push_back(byte_pairs_[last * 256 + byte]);
    s.ids.push_back(id);
    last = byte;
  }
  s.rank.push_back(kNoRank);
  return true;
}

std::uint32_t BpeEncoder::unit_id(std::string_view unit, bool first, bool last, EncoderScratch& s) const {
  std::string_view text = unit;
  if ((!first && !continuing_prefix_.empty()) || (last && !end_suffix_.empty())) {
    s.text.assign(first ? std::string_view{} : std::string_view(continuing_prefix_));
    s.text.append(unit);
    if (last) s.text.append(end_suffix_);
    text = s.text;
  }
  auto id = vocabulary_->find(text, false);
  if (!id && !vocabulary_->byte_level()) id = vocabulary_->find(text, true);
  return id ? static_cast<std::uint32_t>(*id) : kNoSymbol;
}

bool BpeEncoder::push_bytes(std::string_view unit, EncoderScratch& s) const {
  if (!byte_fallback_) return false;
  const auto id_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  for (const char c : unit) {
    if (id_of(c) == kNoSymbol) return false;
  }
  for (const char c : unit) s.ids.push_back(id_of(c));
  return true;
}

// ids and the rank of each pair, for units with affixes or without tokens.
void BpeEncoder::start_units(std::string_view word, EncoderScratch& s) const {
  s.ids.clear();
  s.rank.clear();
  bool unknown = false;  // the last unit was an unknown one that has not been written
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = vocabulary_->byte_level() ? 1 : utf8_step(word.substr(at)).length;
    const std::string_view unit = word.substr(at, length);
    const std::uint32_t id = unit_id(unit, at == 0, at + length == word.size(), s);
    at += length;
    if (id != kNoSymbol) {
      if (unknown) s.ids.push_back(unknown_);
      unknown = false;
      s.ids.push_back(id);
    } else if (!push_bytes(unit, s) && unknown_ != kNoSymbol) {
      if (unknown && !fuse_unknown_) s.ids.push_back(unknown_);
      unknown = true;
    }
  }
  if (unknown) s.ids.push_back(unknown_);
  for (std::size_t i = 1; i < s.ids.size(); ++i) s.rank.push_back(merges_.rank(s.ids[i - 1], s.ids[i]));
  s.rank.push_back(kNoRank);
}

void BpeEncoder::merge_short(EncoderScratch& s, std::vector<std::int32_t>& out) const {
  std::size_t count = s.ids.size();
  std::uint32_t* ids = s.ids.data();
  std::uint32_t* ranks = s.rank.data();
  while (count > 1) {
    const auto lowest = static_cast<std::size_t>(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[lowest] == kNoRank) break;
    ids[lowest] = merges_.merged(ranks[lowest]);
    std::copy(ids + lowest + 2, ids + count, ids + lowest + 1);
    std::copy(ranks + lowest + 1, ranks + count, ranks + lowest);
    --count;
    if (lowest + 1 < count) ranks[lowest] = merges_.rank(ids[lowest], ids[lowest + 1]);
    if (lowest > 0) ranks[lowest - 1] = merges_.rank(ids[lowest - 1], ids[lowest]);
  }
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int32_t>(ids[i]));
}

void BpeEncoder::link(EncoderScratch& s) {
  const auto count = static_cast<std::uint32_t>(s.ids.size());
  s.next.resize(count);
  s.previous.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    s.previous[i] = i == 0 ? kNoSymbol : i - 1;
    s.next[i] = i + 1 == count ? kNoSymbol : i + 1;
  }
}

// The symbol behind `at` has become part of it.
void BpeEncoder::unlink_right(EncoderScratch& s, std::uint32_t at) {
  const std::uint32_t right = s.next[at];
  s.next[at] = s.next[right];
  s.rank[right] = kNoRank;
  if (s.next[at] != kNoSymbol) s.previous[s.next[at]] = at;
}

void BpeEncoder::rank_pair(EncoderScratch& s, std::uint32_t at) const {
  s.rank[at] = s.next[at] == kNoSymbol ? kNoRank : merges_.rank(s.ids[at], s.ids[s.next[at]]);
}

void BpeEncoder::merge_by_heap(EncoderScratch& s) const {
  const auto count = static_cast<std::uint32_t>(s.ids.size());
  s.queue.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (s.rank[i] != kNoRank) s.queue.push_back((std::uint64_t{s.rank[i]} << 32) | i);
  }
  std::make_heap(s.queue.begin(), s.queue.end(), std::greater<>());
  const auto renew_pair = [&](std::uint32_t at) {
    rank_pair(s, at);
    if (s.rank[at] == kNoRank) return;
    s.queue.push_back((std::uint64_t{s.rank[at]} << 32) | at);
    std::push_heap(s.queue.begin(), s.queue.end(), std::greater<>());
  };
  while (!s.queue.empty()) {
    const std::uint64_t top = s.queue.front();
    std::pop_heap(s.queue.begin(), s.queue.end(), std::greater<>());
    s.queue.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    // An entry is stale when the pair at its place has changed since.
    if (s.rank[at] != static_cast<std::uint32_t>(top >> 32)) continue;
    s.ids[at] = merges_.merged(s.rank[at]);
    unlink_right(s, at);
    renew_pair(at);
    if (s.previous[at] != kNoSymbol) renew_pair(s.previous[at]);
  }
}

// One bucket of positions per rank, and a heap of the ranks that have one. While the pairs (x, y) of one rank
// are merged, every new symbol contains xy: no new pair (x, y) can arise, so a bucket is complete when it
// becomes the lowest, and one sort puts it in order. Mostly it is in order already, and the whole is linear.
void BpeEncoder::merge_by_buckets(EncoderScratch& s) const {
  // What a merge touches lies together: its place is far from that of the last one.
  struct Symbol {
    std::uint32_t id;
    std::uint32_t next;
    std::uint32_t previous;
    std::uint32_t rank;  // of the pair that starts here
  };
  const auto count = static_cast<std::uint32_t>(s.ids.size());
  std::vector<Symbol> symbols(count);
  for (std::uint32_t i = 0; i < count; ++i) symbols[i] = {s.ids[i], s.next[i], s.previous[i], s.rank[i]};
  s.bucket_of.resize(merges_.size(), kNoBucket);  // all kNoBucket between two words
  s.queue.clear();
  const auto push = [&](std::uint32_t at) {
    const std::uint32_t rank = symbols[at].rank;
    if (rank == kNoRank) return;
    std::uint32_t& bucket = s.bucket_of[rank];
    if (bucket == kNoBucket) {
      if (s.free_buckets.empty()) {
        s.free_buckets.push_back(static_cast<std::uint32_t>(s.buckets.size()));
        s.buckets.emplace_back();
      }
      bucket = s.free_buckets.back();
      s.free_buckets.pop_back();
      s.queue.push_back(std::uint64_t{rank} << 32);
      std::push_heap(s.queue.begin(), s.queue.end(), std::greater<>());
    }
    s.buckets[bucket].push_back(at);
  };
  const auto renew = [&](std::uint32_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = symbol.next == kNoSymbol ? kNoRank : merges_.rank(symbol.id, symbols[symbol.next].id);
    push(at);
  };
  for (std::uint32_t i = 0; i < count; ++i) push(i);
  while (!s.queue.empty()) {
    // The lower half of an entry counts the positions that are done.
    const auto rank = static_cast<std::uint32_t>(s.queue.front() >> 32);
    const auto done = static_cast<std::uint32_t>(s.queue.front());
    const std::uint32_t bucket = s.bucket_of[rank];
    std::vector<std::uint32_t>& positions = s.buckets[bucket];
    if (done == 0 && !std::is_sorted(positions.begin(), positions.end()))
      std::sort(positions.begin(), positions.end());
    const std::uint32_t at = positions[done];
    if (done + 1 < positions.size()) {
      ++s.queue.front();
    } else {
      std::pop_heap(s.queue.begin(), s.queue.end(), std::greater<>());
      s.queue.pop_back();
      positions.clear();
      s.free_buckets.push_back(bucket);
      s.bucket_of[rank] = kNoBucket;
    }
    Symbol& symbol = symbols[at];
    if (symbol.rank != rank) continue;  // the pair at this place has changed since
    symbol.id = merges_.merged(rank);
    symbols[symbol.next].rank = kNoRank;
    symbol.next = symbols[symbol.next].next;
    if (symbol.next != kNoSymbol) symbols[symbol.next].previous = at;
    renew(at);
    if (symbol.previous != kNoSymbol) renew(symbol.previous);
  }
  for (std::uint32_t i = 0; i != kNoSymbol; i = symbols[i].next) {
    s.ids[i] = symbols[i].id;
    s.next[i] = symbols[i].next;
  }
}

void BpeEncoder::encode_word(std::string_view word, EncoderScratch& s, std::vector<std::int32_t>& out) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    if (const auto id = vocabulary_->find(word, false)) {
      out.push_back(*id);
      return;
    }
  }
  if (!start_bytes(word, s)) start_units(word, s);
  if (s.ids.empty()) return;
  if (s.ids.size() <= kShortWord) {
    merge_short(s, out);
    return;
  }
  link(s);
  if (s.ids.size() <= kLongWord) {
    merge_by_heap(s);
  } else {
    merge_by_buckets(s);
  }
  for (std::uint32_t i = 0; i != kNoSymbol; i = s.next[i]) out.push_back(static_cast<std::int32_t>(s.ids[i]));
}

}  // namespace

Result<std::unique_ptr<const WordEncoder>> make_bpe_encoder(const TokenizerSpec& spec,
                                                            const Vocabulary& vocabulary) {
  auto encoder = std::make_unique<BpeEncoder>(vocabulary);
  HONE_TRY(encoder->fill(spec));
  return std::unique_ptr<const WordEncoder>(std::move(encoder));
}

}  // namespace hone
