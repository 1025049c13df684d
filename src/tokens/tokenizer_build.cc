// Metadata -> flat tables. Two walks over the vocabulary: one that checks it and adds up the sizes, one that
// fills.
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <string>

#include "base/checked.h"
#include "tokens/pre_tokenizer.h"
#include "tokens/token_hash.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
// A longer token is no word of any language; the bound keeps the search for special tokens linear in the
// text.
constexpr std::size_t kMaxTokenBytes = 4096;
// A table at most half full needs a few dozen probes; thousands mean a vocabulary made to collide.
constexpr std::size_t kMaxProbes = 4096;
constexpr std::uint64_t kMaxEntries = std::numeric_limits<std::int32_t>::max() / 2;

Error bad(std::string where, std::string message, std::string expected = {}, std::string actual = {}) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               std::move(where),
               std::move(message),
               std::move(expected),
               std::move(actual),
               "convert the model again from its original"};
}

std::string element(std::string_view key, std::uint64_t index) {
  return fmt::format("{}[{}]", key, index);
}

// GPT-2's byte alphabet (Radford et al. 2019, `bytes_to_unicode`): a printable Latin-1 byte stands for
// itself, the others for U+0100 onwards in order.
constexpr bool is_own_letter(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::size_t kAlphabetEnd = 0x100 + 68;

constexpr std::array<std::int16_t, kAlphabetEnd> make_letter_bytes() {
  std::array<std::int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  std::size_t other = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes[is_own_letter(byte) ? byte : other++] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}

constexpr auto kLetterBytes = make_letter_bytes();

// Calls put(byte) for the byte of each letter. False if `text` has a character outside of the alphabet.
template <class Put>
bool decode_letters(std::string_view text, Put&& put) {
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    if (step.kind != Utf8Step::Kind::Valid || step.code_point >= kAlphabetEnd) return false;
    const std::int16_t byte = kLetterBytes[step.code_point];
    if (byte < 0) return false;
    put(static_cast<char>(static_cast<unsigned char>(byte)));
    text.remove_prefix(step.length);
  }
  return true;
}

struct TokenForm {
  std::size_t bytes;
  bool raw;
};

TokenForm token_form(std::string_view text, TokenType type) {
  std::size_t letters = 0;
  if (type == TokenType::Normal && decode_letters(text, [&](char) { ++letters; })) return {letters, false};
  return {text.size(), true};
}

bool is_recognised(TokenType type) {
  return type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
}

// Keys that the tables are built from, and their sizes.
struct Sources {
  MetadataArray tokens;
  std::optional<MetadataArray> types;
  MetadataArray merges;
  std::string_view chat_template;
  std::uint64_t pool_bytes = 0;
  std::uint64_t specials = 0;
};

Result<TokenType> type_at(const Sources& sources, std::uint64_t index) {
  if (!sources.types) return TokenType::Normal;
  const auto value = sources.types->integer_at(index);
  if (!value || *value < 1 || *value > 6) {
    return bad(element(kTypesKey, index), "a token type is a number from 1 to 6", "1 to 6",
               value ? fmt::format("{}", *value) : "no integer");
  }
  return static_cast<TokenType>(*value);
}

Status measure(Sources& sources) {
  std::optional<Error> failed;
  sources.tokens.for_each_string([&](std::uint64_t index, std::string_view text) {
    if (failed) return;
    auto type = type_at(sources, index);
    if (!type.ok()) {
      failed = std::move(type).error();
    } else if (text.size() > kMaxTokenBytes) {
      failed = bad(element(kTokensKey, index), "a token has too many bytes",
                   fmt::format("at most {}", kMaxTokenBytes), fmt::format("{}", text.size()));
    } else {
      sources.pool_bytes += token_form(text, *type).bytes;
      if (is_recognised(*type) && !text.empty()) ++sources.specials;
    }
  });
  if (failed) return *failed;
  if (sources.pool_bytes > std::numeric_limits<std::uint32_t>::max()) {
    return bad(std::string(kTokensKey), "the tokens together have too many bytes", "under 2^32",
               fmt::format("{}", sources.pool_bytes));
  }
  return {};
}

Result<Sources> read_sources(const Metadata& metadata) {
  const std::string_view model = HONE_TRY(metadata.required_string("tokenizer.ggml.model"));
  if (model != "gpt2") {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 "tokenizer.ggml.model",
                 fmt::format("tokenizer model '{}' is not supported", model),
                 "gpt2",
                 std::string(model),
                 "use a model with a byte-level BPE tokenizer"};
  }
  const MetadataArray tokens = HONE_TRY(metadata.required_array(kTokensKey, ArrayKind::Strings));
  const auto types = HONE_TRY(metadata.optional_array(kTypesKey, ArrayKind::Integers));
  const MetadataArray merges = HONE_TRY(metadata.required_array(kMergesKey, ArrayKind::Strings));
  const auto chat_template = HONE_TRY(metadata.optional_string("tokenizer.chat_template"));
  if (tokens.size() == 0 || tokens.size() > kMaxEntries) {
    return bad(std::string(kTokensKey), "a vocabulary has from 1 to 2^30 - 1 tokens", {},
               fmt::format("{}", tokens.size()));
  }
  if (merges.size() > kMaxEntries) {
    return bad(std::string(kMergesKey), "there are at most 2^30 - 1 merges", {},
               fmt::format("{}", merges.size()));
  }
  if (types && types->size() != tokens.size()) {
    return bad(std::string(kTypesKey), "there is one token type for each token",
               fmt::format("{}", tokens.size()), fmt::format("{}", types->size()));
  }
  Sources sources{tokens, types, merges, chat_template.value_or(std::string_view{})};
  HONE_TRY(measure(sources));
  return sources;
}

}  // namespace

class TokenizerBuilder {
 public:
  explicit TokenizerBuilder(const Sources& sources) : sources_(sources) {}

  Result<Tokenizer> build(const Metadata& metadata) {
    const auto pre = HONE_TRY(metadata.optional_string("tokenizer.ggml.pre"));
    out_.pre_tokenizer_ = HONE_TRY(PreTokenizer::find(pre.value_or("default")));
    HONE_TRY(fill_tokens());
    HONE_TRY(fill_merges());
    fill_specials();
    out_.chat_template_.assign(sources_.chat_template.begin(), sources_.chat_template.end());
    HONE_TRY(fill_roles(metadata));
    return std::move(out_);
  }

  static std::int64_t heap_bytes(const Sources& sources) {
    const std::uint64_t tokens = sources.tokens.size();
    const std::uint64_t merges = sources.merges.size();
    const std::uint64_t words = (tokens + 1) + slots_for(tokens) + slots_for(merges) + sources.specials;
    return static_cast<std::int64_t>(sources.pool_bytes + tokens + 4 * words +
                                     sizeof(Tokenizer::Merge) * merges + sources.chat_template.size());
  }

 private:
  Status fill_tokens() {
    const std::uint64_t count = sources_.tokens.size();
    out_.pool_.reserve(sources_.pool_bytes);
    out_.offsets_.reserve(count + 1);
    out_.types_.reserve(count);
    out_.token_slots_.resize(slots_for(count), Tokenizer::kNone);
    out_.byte_ids_.fill(Tokenizer::kNone);
    std::optional<Error> failed;
    out_.offsets_.push_back(0);
    sources_.tokens.for_each_string([&](std::uint64_t index, std::string_view text) {
      if (failed) return;
      // measure() has read every type already.
      const auto type = type_at(sources_, index);
      const TokenType known = type.ok() ? *type : TokenType::Normal;
      const bool raw = token_form(text, known).raw;
      if (raw) {
        out_.pool_.insert(out_.pool_.end(), text.begin(), text.end());
      } else {
        decode_letters(text, [&](char byte) { out_.pool_.push_back(byte); });
      }
      out_.offsets_.push_back(static_cast<std::uint32_t>(out_.pool_.size()));
      out_.types_.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(known) | (raw ? kRawBit : 0U)));
      auto inserted = insert_token(static_cast<std::uint32_t>(index), raw);
      if (!inserted.ok()) failed = std::move(inserted).error();
    });
    if (failed) return *failed;
    return {};
  }

  Status insert_token(std::uint32_t id, bool raw) {
    const std::string_view bytes = out_.token_bytes(static_cast<std::int32_t>(id));
    if (bytes.empty()) return {};
    const std::size_t mask = out_.token_slots_.size() - 1;
    std::size_t slot = hash_bytes(bytes) & mask;
    for (std::size_t probes = 0; out_.token_slots_[slot] != Tokenizer::kNone; slot = (slot + 1) & mask) {
      const std::uint32_t other = out_.token_slots_[slot];
      const bool other_raw = (out_.types_[other] & kRawBit) != 0;
      if (other_raw == raw && out_.token_bytes(static_cast<std::int32_t>(other)) == bytes) {
        return bad(element(kTokensKey, id), "each token stands once in a vocabulary", {},
                   fmt::format("the text of token {} again", other));
      }
      if (++probes == kMaxProbes) return collision(kTokensKey, id);
    }
    out_.token_slots_[slot] = id;
    if (!raw && bytes.size() == 1) out_.byte_ids_[static_cast<unsigned char>(bytes[0])] = id;
    return {};
  }

  static Error collision(std::string_view key, std::uint64_t index) {
    return bad(element(key, index), "too many entries have the same hash");
  }

  Status fill_merges() {
    out_.merges_.reserve(sources_.merges.size());
    out_.merge_slots_.resize(slots_for(sources_.merges.size()), Tokenizer::kNone);
    std::optional<Error> failed;
    sources_.merges.for_each_string([&](std::uint64_t index, std::string_view text) {
      if (failed) return;
      auto added = add_merge(static_cast<std::uint32_t>(index), text);
      if (!added.ok()) failed = std::move(added).error();
    });
    if (failed) return *failed;
    return {};
  }

  // `text` in the byte alphabet, or else as it stands.
  Result<std::uint32_t> merge_token(std::uint32_t rank, std::string_view text) {
    bytes_.clear();
    const bool letters = decode_letters(text, [&](char byte) { bytes_.push_back(byte); });
    std::optional<std::uint32_t> id;
    if (letters) id = out_.find_token(bytes_, false);
    if (!id) id = out_.find_token(text, true);
    if (!id) {
      return bad(element(kMergesKey, rank), "a merge joins two tokens into a third",
                 "tokens of the vocabulary", fmt::format("'{}' is none", to_valid_utf8(text.substr(0, 80))));
    }
    return *id;
  }

  Status add_merge(std::uint32_t rank, std::string_view text) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string_view::npos) {
      return bad(element(kMergesKey, rank), "a merge is two tokens with one space between them",
                 "'left right'", fmt::format("'{}'", to_valid_utf8(text.substr(0, 80))));
    }
    if (text.size() > 2 * kMaxTokenBytes) {
      return bad(element(kMergesKey, rank), "a merge has too many bytes",
                 fmt::format("at most {}", 2 * kMaxTokenBytes), fmt::format("{}", text.size()));
    }
    joined_.assign(text.substr(0, space));
    joined_.append(text.substr(space + 1));
    Tokenizer::Merge merge{};
    merge.left = HONE_TRY(merge_token(rank, text.substr(0, space)));
    merge.right = HONE_TRY(merge_token(rank, text.substr(space + 1)));
    merge.merged = HONE_TRY(merge_token(rank, joined_));
    const std::size_t mask = out_.merge_slots_.size() - 1;
    std::size_t slot = hash_pair(merge.left, merge.right) & mask;
    for (std::size_t probes = 0; out_.merge_slots_[slot] != Tokenizer::kNone; slot = (slot + 1) & mask) {
      const Tokenizer::Merge& other = out_.merges_[out_.merge_slots_[slot]];
      if (other.left == merge.left && other.right == merge.right) {
        return bad(element(kMergesKey, rank), "each merge stands once in its list", {},
                   fmt::format("merge {} again", out_.merge_slots_[slot]));
      }
      if (++probes == kMaxProbes) return collision(kMergesKey, rank);
    }
    out_.merge_slots_[slot] = rank;
    out_.merges_.push_back(merge);
    return {};
  }

  void fill_specials() {
    out_.specials_.reserve(sources_.specials);
    for (std::int32_t id = 0; id < out_.vocab_size(); ++id) {
      const std::string_view bytes = out_.token_bytes(id);
      if (bytes.empty() || !is_recognised(*out_.token_type(id))) continue;
      out_.specials_.push_back(static_cast<std::uint32_t>(id));
      out_.special_first_bytes_[static_cast<unsigned char>(bytes[0])] = true;
    }
    std::sort(out_.specials_.begin(), out_.specials_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return out_.token_bytes(static_cast<std::int32_t>(a)) < out_.token_bytes(static_cast<std::int32_t>(b));
    });
  }

  Result<std::optional<std::int32_t>> role(const Metadata& metadata, std::string_view name) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    const auto id = HONE_TRY(metadata.optional_integer(key));
    if (!id) return std::optional<std::int32_t>{};
    if (*id < 0 || *id >= out_.vocab_size()) {
      return bad(key, "a token id is inside the vocabulary", fmt::format("0 to {}", out_.vocab_size() - 1),
                 fmt::format("{}", *id));
    }
    return std::optional<std::int32_t>(static_cast<std::int32_t>(*id));
  }

  Status fill_roles(const Metadata& metadata) {
    out_.special_.bos = HONE_TRY(role(metadata, "bos"));
    out_.special_.eos = HONE_TRY(role(metadata, "eos"));
    out_.special_.unknown = HONE_TRY(role(metadata, "unknown"));
    out_.special_.padding = HONE_TRY(role(metadata, "padding"));
    out_.special_.end_of_turn = HONE_TRY(role(metadata, "eot"));
    out_.add_bos_ = HONE_TRY(metadata.optional_bool("tokenizer.ggml.add_bos_token")).value_or(false);
    out_.add_eos_ = HONE_TRY(metadata.optional_bool("tokenizer.ggml.add_eos_token")).value_or(false);
    if (out_.add_bos_ && !out_.special_.bos) {
      return bad("tokenizer.ggml.add_bos_token", "a begin token that is to be added has an id",
                 "tokenizer.ggml.bos_token_id", "no such key");
    }
    if (out_.add_eos_ && !out_.special_.eos) {
      return bad("tokenizer.ggml.add_eos_token", "an end token that is to be added has an id",
                 "tokenizer.ggml.eos_token_id", "no such key");
    }
    return {};
  }

  const Sources& sources_;
  Tokenizer out_;
  std::string bytes_;
  std::string joined_;
};

Result<Tokenizer> Tokenizer::from_metadata(const Metadata& metadata) {
  const Sources sources = HONE_TRY(read_sources(metadata));
  return TokenizerBuilder(sources).build(metadata);
}

Result<std::int64_t> Tokenizer::predicted_heap_bytes(const Metadata& metadata) {
  const Sources sources = HONE_TRY(read_sources(metadata));
  return TokenizerBuilder::heap_bytes(sources);
}

}  // namespace hone
