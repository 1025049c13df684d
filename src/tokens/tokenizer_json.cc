#include "tokens/tokenizer_json.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "file/json_text.h"
#include "tokens/json_cursor.h"
#include "tokens/tokenizer_error.h"
#include "tokens/tokenizer_json_steps.h"

namespace hone {

namespace {

// Of the parts that become a tree.
constexpr JsonLimits kStepLimits{.bytes = 16U << 20U, .depth = 64};

class TokenizerJsonReader {
 public:
  TokenizerJsonReader(std::string_view text, std::string_view path,
                      const std::function<void(std::size_t)>& read_up_to)
      : cursor_(text, path), read_up_to_(read_up_to) {
    spec_.pre_tokenizer_name = "tokenizer.json";
    spec_.places.tokens = place("model.vocab");
    spec_.places.types = place("model.vocab");
    spec_.places.merges = place("model.merges");
    spec_.places.pre_tokenizer = place("pre_tokenizer");
    spec_.places.normalizer = place("normalizer");
    spec_.places.decoder = place("decoder");
    spec_.places.added_tokens = place("added_tokens");
  }

  Result<TokenizerSpec> run() {
    HONE_TRY(cursor_.for_each_member([&](std::string_view key) { return section(key); }));
    HONE_TRY(cursor_.end());
    if (!has_model_) return bad_tokenizer(place("model"), "a tokenizer has a model", "an object", "none");
    HONE_TRY(place_tokens());
    HONE_TRY(find_unknown());
    return std::move(spec_);
  }

 private:
  // Once a token or a merge; calls back once a mebibyte.
  void tell_where() {
    if (!read_up_to_ || cursor_.offset() - told_ < (std::size_t{1} << 20U)) return;
    told_ = cursor_.offset();
    read_up_to_(told_);
  }

  std::string place(std::string_view key) const { return fmt::format("{}, {}", cursor_.path(), key); }

  Status section(std::string_view key) {
    if (key == "model") {
      has_model_ = true;
      return cursor_.for_each_member([&](std::string_view name) { return model_member(name); });
    }
    if (key == "added_tokens") {
      if (cursor_.take_null()) return {};
      return cursor_.for_each_element([&](std::size_t index) { return added_token(index); });
    }
    using Add = Status (*)(const nlohmann::json&, const std::string&, TokenizerSpec&);
    const Add add = key == "normalizer"       ? add_normaliser
                    : key == "pre_tokenizer"  ? add_pre_tokenizer
                    : key == "post_processor" ? add_post_processor
                    : key == "decoder"        ? add_decoder
                                              : nullptr;
    const std::string where = place(key);
    const std::string_view text = HONE_TRY(cursor_.skip());
    if (add == nullptr) return {};
    const nlohmann::json value = HONE_TRY(parse_json(text, where, kStepLimits));
    return add(value, where, spec_);
  }

  Status added_token(std::size_t index) {
    AddedToken token;
    bool has_id = false;
    Status read = cursor_.for_each_member([&](std::string_view name) -> Status {
      bool* flag = name == "single_word"  ? &token.single_word
                   : name == "lstrip"     ? &token.lstrip
                   : name == "rstrip"     ? &token.rstrip
                   : name == "normalized" ? &token.normalized
                   : name == "special"    ? &token.special
                                          : nullptr;
      if (flag != nullptr) {
        *flag = HONE_TRY(cursor_.boolean());
      } else if (name == "id") {
        token.id = HONE_TRY(id());
        has_id = true;
      } else if (name == "content") {
        token.content = HONE_TRY(cursor_.string());
      } else {
        HONE_TRY(cursor_.skip());
      }
      return {};
    });
    HONE_TRY(std::move(read));
    if (!has_id || token.content.empty()) {
      return bad_tokenizer(table_element(spec_.places.added_tokens, index),
                           "an added token has an id and a content");
    }
    spec_.added_tokens.push_back(std::move(token));
    return {};
  }

  Result<std::int32_t> id() {
    const std::size_t at = (cursor_.peek(), cursor_.offset());
    const std::int64_t value = HONE_TRY(cursor_.integer());
    if (value >= 0 && static_cast<std::uint64_t>(value) < kMaxTokens) return static_cast<std::int32_t>(value);
    return cursor_.error_at(at, "a token id is inside its range", "0 to 2^30 - 2");
  }

  Status model_member(std::string_view name) {
    ModelSpec& model = spec_.model;
    if (name == "type") return model_type(HONE_TRY(cursor_.string()));
    if (name == "vocab") return vocabulary();
    if (name == "merges") return cursor_.for_each_element([&](std::size_t rank) { return merge(rank); });
    if (cursor_.take_null()) return {};
    if (name == "unk_token") {
      unknown_ = HONE_TRY(cursor_.string());
    } else if (name == "unk_id") {
      model.unknown = HONE_TRY(id());
    } else if (name == "continuing_subword_prefix") {
      model.continuing_prefix = HONE_TRY(cursor_.string());
    } else if (name == "end_of_word_suffix") {
      model.end_suffix = HONE_TRY(cursor_.string());
    } else if (name == "fuse_unk") {
      model.fuse_unknown = HONE_TRY(cursor_.boolean());
    } else if (name == "byte_fallback") {
      model.byte_fallback = HONE_TRY(cursor_.boolean());
    } else if (name == "ignore_merges") {
      model.ignore_merges = HONE_TRY(cursor_.boolean());
    } else if (name == "dropout") {
      const double dropout = HONE_TRY(cursor_.number());
      if (dropout != 0) {
        return unsupported_tokenizer(place("model.dropout"), "dropout of merges", fmt::format("{}", dropout),
                                     "0 or null");
      }
    } else {
      HONE_TRY(cursor_.skip());
    }
    return {};
  }

  Status model_type(std::string_view type) {
    if (type == "BPE") {
      spec_.model.kind = ModelSpec::Kind::Bpe;
    } else if (type == "Unigram") {
      spec_.model.kind = ModelSpec::Kind::Unigram;
    } else {
      return unsupported_tokenizer(place("model.type"), "tokenizer model", type, "BPE, Unigram");
    }
    return {};
  }

  // {"text": id, ..}, or [["text", score], ..] of a Unigram model, where the place is the id.
  Status vocabulary() {
    if (!texts_.empty()) return cursor_.error("a vocabulary stands once in its model", "one vocab");
    if (cursor_.peek() == JsonCursor::Kind::Array) {
      return cursor_.for_each_element([&](std::size_t index) { return scored_token(index); });
    }
    return cursor_.for_each_member([&](std::string_view text) -> Status {
      if (text.empty()) return cursor_.error("a token is not empty", "a text");
      tell_where();
      const std::size_t at = cursor_.offset();
      ids_.push_back(HONE_TRY(id()));
      texts_.push_back(text);
      if (texts_.bytes() > kMaxTokens)
        return cursor_.error_at(at, "the tokens together have at most 2^30 bytes", {});
      return {};
    });
  }

  Status scored_token(std::size_t index) {
    if (index >= kMaxTokens) return cursor_.error("a vocabulary has at most 2^30 - 1 tokens", {});
    return cursor_.for_each_element([&](std::size_t part) -> Status {
      if (part == 0) {
        texts_.push_back(HONE_TRY(cursor_.string()));
        ids_.push_back(static_cast<std::int32_t>(index));
      } else if (part == 1) {
        spec_.model.scores.push_back(static_cast<float>(HONE_TRY(cursor_.number())));
      } else {
        return cursor_.error("a token and its score are two", "]");
      }
      return {};
    });
  }

  // "left right", or ["left", "right"].
  Status merge(std::size_t rank) {
    StringTable& merges = spec_.model.merges;
    const std::size_t before = merges.size();
    tell_where();
    if (cursor_.peek() == JsonCursor::Kind::Array) {
      Status read = cursor_.for_each_element([&](std::size_t) -> Status {
        merges.push_back(HONE_TRY(cursor_.string()));
        return {};
      });
      HONE_TRY(std::move(read));
    } else {
      const std::string_view text = HONE_TRY(cursor_.string());
      const std::size_t space = text.find(' ');
      if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
        merges.push_back(text.substr(0, space));
        merges.push_back(text.substr(space + 1));
      }
    }
    const bool two = merges.size() == before + 2 && !merges[before].empty() && !merges[before + 1].empty();
    if (two && merges.bytes() <= 2 * kMaxTokens) return {};
    return bad_tokenizer(table_element(spec_.places.merges, rank), "a merge is two tokens",
                         "'left right' or [left, right]", "another form");
  }

  // tokens by id.
  Status place_tokens() {
    // The tokenizers library sums scores in f64, tokens/unigram.h in f32 as SentencePiece does: cuts that tie
    // in one differ in the other.
    if (spec_.model.kind == ModelSpec::Kind::Unigram) {
      return unsupported_tokenizer(place("model.type"), "tokenizer model", "Unigram", "BPE");
    }
    std::size_t count = 0;
    bool in_order = true;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      in_order = in_order && static_cast<std::size_t>(ids_[i]) == i;
      count = std::max(count, static_cast<std::size_t>(ids_[i]) + 1);
    }
    if (in_order) {
      spec_.model.tokens = std::move(texts_);
      return {};
    }
    // A table with room for every id up to a single large one would be large for nothing.
    if (count > 2 * ids_.size() + 1024) {
      return bad_tokenizer(spec_.places.tokens, "token ids have few holes",
                           fmt::format("{} tokens", ids_.size()), fmt::format("id {}", count - 1));
    }
    constexpr std::uint32_t kHole = 0xffffffffU;
    std::vector<std::uint32_t> entry_of(count, kHole);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      std::uint32_t& entry = entry_of[static_cast<std::size_t>(ids_[i])];
      if (entry != kHole) {
        return bad_tokenizer(table_element(spec_.places.tokens, static_cast<std::uint64_t>(ids_[i])),
                             "each id stands once in a vocabulary", {}, fmt::format("id {} again", ids_[i]));
      }
      entry = static_cast<std::uint32_t>(i);
    }
    spec_.model.tokens.reserve(count, texts_.bytes());
    for (const std::uint32_t entry : entry_of) {
      spec_.model.tokens.push_back(entry == kHole ? std::string_view{} : texts_[entry]);
    }
    return {};
  }

  Status find_unknown() {
    if (!unknown_) return {};
    const StringTable& tokens = spec_.model.tokens;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id] == *unknown_) spec_.model.unknown = static_cast<std::int32_t>(id);
    }
    if (spec_.model.unknown) return {};
    return bad_tokenizer(place("model.unk_token"), "the unknown token is in the vocabulary",
                         "one of its tokens", unknown_->substr(0, 80));
  }

  JsonCursor cursor_;
  const std::function<void(std::size_t)>& read_up_to_;
  std::size_t told_ = 0;
  TokenizerSpec spec_;
  StringTable texts_;              // of model.vocab, in the order of the file
  std::vector<std::int32_t> ids_;  // beside texts_
  std::optional<std::string> unknown_;
  bool has_model_ = false;
};

}  // namespace

Result<TokenizerSpec> tokenizer_spec_from_json(std::string_view text, std::string_view path,
                                               const std::function<void(std::size_t)>& read_up_to) {
  return TokenizerJsonReader(text, path, read_up_to).run();
}

}  // namespace hone
