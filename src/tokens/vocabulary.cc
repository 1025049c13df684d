#include "tokens/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tokens/byte_alphabet.h"
#include "tokens/token_hash.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

// A slot holds the upper half of the hash, then the id; an empty one all ones, which no id below 2^30 makes.
constexpr std::uint64_t kFreeSlot = ~std::uint64_t{0};
constexpr std::uint64_t kTagMask = 0xFFFFFFFF00000000U;

constexpr std::uint8_t kRaw = 0x80;

}  // namespace

std::optional<std::int32_t> Vocabulary::find(std::string_view bytes, bool raw) const {
  const std::uint64_t hash = hash_bytes(bytes);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const std::uint64_t entry = slots_[slot];
    if (entry == kFreeSlot) return std::nullopt;
    if (((entry ^ hash) & kTagMask) != 0) continue;
    const auto id = static_cast<std::int32_t>(entry & ~kTagMask);
    if (this->raw(id) == raw && this->bytes(id) == bytes) return id;
  }
}

std::optional<std::int32_t> Vocabulary::find_written(std::string_view text) const {
  if (!byte_level_) {
    const auto id = find(text, false);
    return id ? id : find(text, true);
  }
  std::array<char, kMaxTokenBytes> letters;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::size_t count = 0;
  const bool in_alphabet = text.size() <= 2 * letters.size() && decode_letters(text, [&](char byte) {
                             if (count < letters.size()) letters[count] = byte;
                             ++count;
                           });
  if (in_alphabet && count <= letters.size()) {
    if (const auto id = find({letters.data(), count}, false)) return id;
  }
  return find(text, true);
}

std::int64_t Vocabulary::heap_bytes() const {
  const auto bytes = [](const auto& v) { return static_cast<std::int64_t>(v.capacity() * sizeof(v[0])); };
  return bytes(pool_) + bytes(offsets_) + bytes(types_) + bytes(slots_);
}

class VocabularyBuilder {
 public:
  VocabularyBuilder(const TokenizerSpec& spec, bool byte_level) : spec_(spec) {
    out_.byte_level_ = byte_level;
  }

  Result<Vocabulary> build() {
    HONE_TRY(place_added());
    HONE_TRY(measure());
    out_.pool_.reserve(pool_bytes_);
    out_.offsets_.reserve(count_ + 1);
    out_.types_.reserve(count_);
    out_.slots_.assign(slots_for(count_), kFreeSlot);
    out_.offsets_.push_back(0);
    for (std::size_t id = 0; id < count_; ++id) HONE_TRY(append(id));
    return std::move(out_);
  }

 private:
  std::string place(std::size_t id) const {
    const bool of_model = id < spec_.model.tokens.size() && !spec_.model.tokens[id].empty();
    return table_element(of_model ? spec_.places.tokens : spec_.places.added_tokens,
                         of_model ? id : added_index_of(id));
  }

  std::size_t added_index_of(std::size_t id) const {
    const AddedToken* added = added_at(id);
    return added == nullptr ? 0 : static_cast<std::size_t>(added - spec_.added_tokens.data());
  }

  const AddedToken* added_at(std::size_t id) const {
    const auto at =
        std::lower_bound(by_id_.begin(), by_id_.end(), id, [&](std::uint32_t index, std::size_t wanted) {
          return static_cast<std::size_t>(spec_.added_tokens[index].id) < wanted;
        });
    if (at == by_id_.end() || static_cast<std::size_t>(spec_.added_tokens[*at].id) != id) return nullptr;
    return &spec_.added_tokens[*at];
  }

  Status place_added() {
    const StringTable& tokens = spec_.model.tokens;
    const auto& added = spec_.added_tokens;
    count_ = tokens.size();
    by_id_.reserve(added.size());
    for (std::size_t i = 0; i < added.size(); ++i) {
      if (added[i].id < 0) {
        return bad_tokenizer(table_element(spec_.places.added_tokens, i), "a token id is not negative", {},
                             fmt::format("{}", added[i].id));
      }
      const auto id = static_cast<std::size_t>(added[i].id);
      if (id < tokens.size() && !tokens[id].empty() && tokens[id] != added[i].content) {
        return bad_tokenizer(table_element(spec_.places.added_tokens, i),
                             "an added token with the id of another token has its text",
                             fmt::format("'{}'", to_valid_utf8(tokens[id].substr(0, 80))),
                             fmt::format("'{}'", to_valid_utf8(added[i].content.substr(0, 80))));
      }
      count_ = std::max(count_, id + 1);
      by_id_.push_back(static_cast<std::uint32_t>(i));
    }
    std::sort(by_id_.begin(), by_id_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(added[a].id, a) < std::pair(added[b].id, b);
    });
    for (std::size_t i = 1; i < by_id_.size(); ++i) {
      if (added[by_id_[i]].id != added[by_id_[i - 1]].id) continue;
      return bad_tokenizer(table_element(spec_.places.added_tokens, by_id_[i]),
                           "each added token has its own id", {},
                           fmt::format("{} again", added[by_id_[i]].id));
    }
    // A table with room for every id up to a single large one would be large for nothing.
    if (count_ > 2 * (tokens.size() + added.size()) + 1024) {
      return bad_tokenizer(table_element(spec_.places.added_tokens, by_id_.empty() ? 0 : by_id_.back()),
                           "token ids have few holes", fmt::format("{} tokens", tokens.size() + added.size()),
                           fmt::format("id {}", count_ - 1));
    }
    return {};
  }

  std::string_view text_at(std::size_t id) const {
    const StringTable& tokens = spec_.model.tokens;
    if (id < tokens.size() && !tokens[id].empty()) return tokens[id];
    const AddedToken* added = added_at(id);
    return added == nullptr ? std::string_view{} : std::string_view(added->content);
  }

  TokenType type_at(std::size_t id) const {
    if (id < spec_.model.types.size()) {
      const TokenType type = spec_.model.types[id];
      if (type != TokenType::Normal) return type;
    }
    const AddedToken* added = added_at(id);
    if (added == nullptr) return TokenType::Normal;
    return added->special ? TokenType::Control : TokenType::UserDefined;
  }

  Status measure() {
    if (spec_.model.tokens.empty() || count_ > kMaxTokens) {
      return bad_tokenizer(spec_.places.tokens, "a vocabulary has from 1 to 2^30 - 1 tokens", {},
                           fmt::format("{}", spec_.model.tokens.empty() ? 0 : count_));
    }
    // Upper bound: letters are longer than their bytes.
    for (std::size_t id = 0; id < count_; ++id) {
      const std::string_view text = text_at(id);
      if (text.size() > kMaxTokenBytes) {
        return bad_tokenizer(place(id), "a token has too many bytes",
                             fmt::format("at most {}", kMaxTokenBytes), fmt::format("{}", text.size()));
      }
      std::size_t letters = 0;
      const bool decodes = out_.byte_level_ && type_at(id) == TokenType::Normal &&
                           decode_letters(text, [&](char) { ++letters; });
      pool_bytes_ += decodes ? letters : text.size();
    }
    if (pool_bytes_ > std::numeric_limits<std::uint32_t>::max()) {
      return bad_tokenizer(spec_.places.tokens, "the tokens together have too many bytes", "under 2^32",
                           fmt::format("{}", pool_bytes_));
    }
    return {};
  }

  Status append(std::size_t id) {
    const std::string_view text = text_at(id);
    const TokenType type = type_at(id);
    const std::size_t begin = out_.pool_.size();
    bool raw = type != TokenType::Normal && type != TokenType::Byte;
    if (out_.byte_level_) {
      raw =
          type != TokenType::Normal || !decode_letters(text, [&](char byte) { out_.pool_.push_back(byte); });
      if (raw) out_.pool_.resize(begin);
    }
    if (raw || !out_.byte_level_) out_.pool_.insert(out_.pool_.end(), text.begin(), text.end());
    out_.offsets_.push_back(static_cast<std::uint32_t>(out_.pool_.size()));
    out_.types_.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(type) | (raw ? kRaw : 0U)));
    const std::string_view bytes(out_.pool_.data() + begin, out_.pool_.size() - begin);
    return bytes.empty() ? Status{} : insert(static_cast<std::uint32_t>(id), bytes, raw);
  }

  Status insert(std::uint32_t id, std::string_view bytes, bool raw) {
    const std::uint64_t hash = hash_bytes(bytes);
    const std::size_t mask = out_.slots_.size() - 1;
    std::size_t slot = hash & mask;
    for (std::size_t probes = 0; out_.slots_[slot] != kFreeSlot; slot = (slot + 1) & mask) {
      const std::uint64_t entry = out_.slots_[slot];
      const auto other = static_cast<std::int32_t>(entry & ~kTagMask);
      if (((entry ^ hash) & kTagMask) == 0 && out_.raw(other) == raw && out_.bytes(other) == bytes) {
        return bad_tokenizer(place(id), "each token stands once in a vocabulary", {},
                             fmt::format("the text of token {} again", other));
      }
      if (++probes == kMaxProbes) return bad_tokenizer(place(id), "too many entries have the same hash");
    }
    out_.slots_[slot] = (hash & kTagMask) | id;
    return {};
  }

  const TokenizerSpec& spec_;
  Vocabulary out_;
  std::vector<std::uint32_t> by_id_;  // positions in added_tokens, sorted by id
  std::size_t count_ = 0;
  std::size_t pool_bytes_ = 0;
};

Result<Vocabulary> Vocabulary::build(const TokenizerSpec& spec, bool byte_level) {
  return VocabularyBuilder(spec, byte_level).build();
}

}  // namespace hone
