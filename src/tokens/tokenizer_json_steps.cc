#include "tokens/tokenizer_json_steps.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

using Json = nlohmann::json;

constexpr int kMaxStepDepth = 8;  // Sequences inside each other

Error wrong_kind(const std::string& where, std::string_view name, std::string_view expected) {
  return bad_tokenizer(fmt::format("{}.{}", where, name), "a field has the kind that the format gives it",
                       std::string(expected), "missing, or of another kind");
}

// Fields of one step. A missing one has the default, where there is one.
class StepReader {
 public:
  StepReader(const Json& value, const std::string& where) : value_(value), where_(where) {}

  Result<std::string> text(const char* name, const char* fallback = nullptr) const {
    const auto at = value_.find(name);
    if (at == value_.end() || at->is_null()) {
      if (fallback != nullptr) return std::string(fallback);
      return wrong_kind(where_, name, "a text");
    }
    if (!at->is_string()) return wrong_kind(where_, name, "a text");
    return at->get<std::string>();
  }

  Result<bool> flag(const char* name, bool fallback) const {
    const auto at = value_.find(name);
    if (at == value_.end() || at->is_null()) return fallback;
    if (!at->is_boolean()) return wrong_kind(where_, name, "true or false");
    return at->get<bool>();
  }

  Result<std::uint32_t> count(const char* name) const {
    const auto at = value_.find(name);
    if (at == value_.end() || !at->is_number_unsigned() ||
        at->get<std::uint64_t>() > std::numeric_limits<std::uint16_t>::max()) {
      return wrong_kind(where_, name, "a number from 0 to 65535");
    }
    return at->get<std::uint32_t>();
  }

  // {"String": ..} or {"Regex": ..}.
  Result<TextPattern> pattern() const {
    const auto at = value_.find("pattern");
    if (at != value_.end() && at->is_object() && at->size() == 1 && at->begin()->is_string() &&
        (at->contains("String") || at->contains("Regex"))) {
      return TextPattern{at->begin()->get<std::string>(), at->contains("Regex")};
    }
    return wrong_kind(where_, "pattern", "an object with String or Regex");
  }

  Result<SplitBehavior> behavior() const {
    constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames{{
        {"Removed", SplitBehavior::Removed},
        {"Isolated", SplitBehavior::Isolated},
        {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
        {"MergedWithNext", SplitBehavior::MergedWithNext},
        {"Contiguous", SplitBehavior::Contiguous},
    }};
    const std::string name = HONE_TRY(text("behavior", "Isolated"));
    for (const auto& [known, behavior] : kNames) {
      if (known == name) return behavior;
    }
    return wrong_kind(where_, "behavior",
                      "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
  }

  // `add_prefix_space` is what came before `prepend_scheme`.
  Result<PrependScheme> prepend() const {
    const bool legacy = HONE_TRY(flag("add_prefix_space", true));
    const std::string name = HONE_TRY(text("prepend_scheme", legacy ? "always" : "never"));
    if (name == "always") return PrependScheme::Always;
    if (name == "first") return PrependScheme::First;
    if (name == "never") return PrependScheme::Never;
    return wrong_kind(where_, "prepend_scheme", "always, first, never");
  }

 private:
  const Json& value_;
  const std::string& where_;
};

// Calls add(step, type, where) for each step of `value` in order, through Sequences.
template <class Add>
Status walk_steps(const Json& value, const std::string& where, const char* list_name, int depth,
                  const Add& add) {
  if (value.is_null()) return {};
  if (!value.is_object()) return bad_tokenizer(where, "a step is an object", "an object", value.type_name());
  const std::string type = HONE_TRY(StepReader(value, where).text("type"));
  if (type != "Sequence") return add(value, type, where);
  const auto list = value.find(list_name);
  if (list == value.end() || !list->is_array()) return wrong_kind(where, list_name, "an array");
  if (depth == kMaxStepDepth) {
    return bad_tokenizer(where, "sequences are nested at most 8 deep");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    HONE_TRY(
        walk_steps((*list)[i], fmt::format("{}.{}[{}]", where, list_name, i), list_name, depth + 1, add));
  }
  return {};
}

Result<NormaliserStep> read_normaliser(const Json& value, const std::string& type, const std::string& where) {
  using Kind = NormaliserStep::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 6> kPlain{{
      {"NFC", Kind::Nfc},
      {"NFD", Kind::Nfd},
      {"NFKC", Kind::Nfkc},
      {"NFKD", Kind::Nfkd},
      {"Lowercase", Kind::Lowercase},
      {"StripAccents", Kind::StripAccents},
  }};
  const StepReader fields(value, where);
  NormaliserStep step;
  for (const auto& [name, kind] : kPlain) {
    if (name != type) continue;
    step.kind = kind;
    return step;
  }
  if (type == "Strip") {
    step.kind = Kind::Strip;
    step.left = HONE_TRY(fields.flag("strip_left", true));
    step.right = HONE_TRY(fields.flag("strip_right", true));
  } else if (type == "Replace") {
    step.kind = Kind::Replace;
    step.pattern = HONE_TRY(fields.pattern());
    step.content = HONE_TRY(fields.text("content"));
  } else if (type == "Prepend") {
    step.kind = Kind::Prepend;
    step.content = HONE_TRY(fields.text("prepend"));
  } else {
    return unsupported_tokenizer(
        where, "normalizer", type,
        "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Sequence");
  }
  return step;
}

Result<PreTokenizerStep> read_pre_tokenizer(const Json& value, const std::string& type,
                                            const std::string& where) {
  using Kind = PreTokenizerStep::Kind;
  const StepReader fields(value, where);
  PreTokenizerStep step;
  if (type == "Split") {
    step.pattern = HONE_TRY(fields.pattern());
    step.behavior = HONE_TRY(fields.behavior());
    step.invert = HONE_TRY(fields.flag("invert", false));
  } else if (type == "ByteLevel") {
    step.kind = Kind::ByteLevel;
    step.add_prefix_space = HONE_TRY(fields.flag("add_prefix_space", true));
    step.use_regex = HONE_TRY(fields.flag("use_regex", true));
  } else if (type == "Digits") {
    step.kind = Kind::Digits;
    step.individual = HONE_TRY(fields.flag("individual_digits", false));
  } else if (type == "Punctuation") {
    step.kind = Kind::Punctuation;
    step.behavior = HONE_TRY(fields.behavior());
  } else if (type == "Metaspace") {
    step.kind = Kind::Metaspace;
    step.replacement = HONE_TRY(fields.text("replacement"));
    step.prepend = HONE_TRY(fields.prepend());
    step.split = HONE_TRY(fields.flag("split", true));
    if (step.replacement.empty()) return wrong_kind(where, "replacement", "a character");
  } else if (type == "Whitespace") {
    step.kind = Kind::Whitespace;
  } else if (type == "WhitespaceSplit") {
    step.kind = Kind::WhitespaceSplit;
  } else {
    return unsupported_tokenizer(
        where, "pre-tokenizer", type,
        "Split, ByteLevel, Digits, Punctuation, Metaspace, Whitespace, WhitespaceSplit, Sequence");
  }
  return step;
}

Result<DecoderStep> read_decoder(const Json& value, const std::string& type, const std::string& where) {
  using Kind = DecoderStep::Kind;
  const StepReader fields(value, where);
  DecoderStep step;
  if (type == "ByteLevel") {
    step.kind = Kind::ByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::ByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::Fuse;
  } else if (type == "Replace") {
    step.kind = Kind::Replace;
    step.pattern = HONE_TRY(fields.pattern());
    step.content = HONE_TRY(fields.text("content"));
  } else if (type == "Strip") {
    step.kind = Kind::Strip;
    step.content = HONE_TRY(fields.text("content"));
    step.start = HONE_TRY(fields.count("start"));
    step.stop = HONE_TRY(fields.count("stop"));
  } else if (type == "Metaspace") {
    step.kind = Kind::Metaspace;
    step.content = HONE_TRY(fields.text("replacement"));
    step.prepend = HONE_TRY(fields.prepend());
  } else {
    return unsupported_tokenizer(where, "decoder", type,
                                 "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, Sequence");
  }
  return step;
}

Result<std::int32_t> read_id(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxTokens) {
    return bad_tokenizer(where, "a token id is a number from 0 to 2^30 - 1");
  }
  return value.get<std::int32_t>();
}

// The ids that stand for one special token of a template.
Status add_template_token(const Json& value, const Json& piece, const std::string& where,
                          std::vector<std::int32_t>& out) {
  const auto name = piece.find("id");
  const auto tokens = value.find("special_tokens");
  if (name == piece.end() || !name->is_string() || tokens == value.end() || !tokens->is_object()) {
    return wrong_kind(where, "id", "the name of one of special_tokens");
  }
  const auto token = tokens->find(name->get<std::string>());
  if (token == tokens->end() || !token->is_object())
    return wrong_kind(where, "id", "the name of one of special_tokens");
  const auto ids = token->find("ids");
  if (ids == token->end() || !ids->is_array()) return wrong_kind(where, "special_tokens", "tokens with ids");
  for (const Json& id : *ids) out.push_back(HONE_TRY(read_id(id, where)));
  return {};
}

// What stands before and after sequence A of `single`.
Status read_template(const Json& value, const std::string& where, std::vector<std::int32_t>& before,
                     std::vector<std::int32_t>& after) {
  const auto single = value.find("single");
  if (single == value.end() || !single->is_array()) return wrong_kind(where, "single", "an array");
  int sequences = 0;
  for (const Json& piece : *single) {
    if (piece.is_object() && piece.contains("SpecialToken") && piece["SpecialToken"].is_object()) {
      HONE_TRY(add_template_token(value, piece["SpecialToken"], where, sequences == 0 ? before : after));
    } else if (piece.is_object() && piece.contains("Sequence")) {
      ++sequences;
    } else {
      return wrong_kind(where, "single", "an array of SpecialToken and Sequence");
    }
  }
  if (sequences == 1) return {};
  return wrong_kind(where, "single", "one Sequence");
}

// ["</s>", 2]
Status add_pair(const Json& value, const std::string& where, const char* name,
                std::vector<std::int32_t>& out) {
  const auto pair = value.find(name);
  if (pair == value.end() || !pair->is_array() || pair->size() != 2)
    return wrong_kind(where, name, "a token and its id");
  out.push_back(HONE_TRY(read_id((*pair)[1], where)));
  return {};
}

}  // namespace

Status add_normaliser(const Json& value, const std::string& where, TokenizerSpec& spec) {
  return walk_steps(value, where, "normalizers", 0,
                    [&](const Json& step, const std::string& type, const std::string& at) -> Status {
                      spec.normaliser.push_back(HONE_TRY(read_normaliser(step, type, at)));
                      return {};
                    });
}

Status add_pre_tokenizer(const Json& value, const std::string& where, TokenizerSpec& spec) {
  return walk_steps(value, where, "pretokenizers", 0,
                    [&](const Json& step, const std::string& type, const std::string& at) -> Status {
                      spec.pre_tokenizer.push_back(HONE_TRY(read_pre_tokenizer(step, type, at)));
                      return {};
                    });
}

Status add_decoder(const Json& value, const std::string& where, TokenizerSpec& spec) {
  return walk_steps(value, where, "decoders", 0,
                    [&](const Json& step, const std::string& type, const std::string& at) -> Status {
                      spec.decoder.push_back(HONE_TRY(read_decoder(step, type, at)));
                      return {};
                    });
}

Status add_post_processor(const Json& value, const std::string& where, TokenizerSpec& spec) {
  return walk_steps(value, where, "processors", 0,
                    [&](const Json& step, const std::string& type, const std::string& at) -> Status {
                      std::vector<std::int32_t> before;
                      std::vector<std::int32_t> after;
                      if (type == "ByteLevel") return {};  // it moves offsets only
                      if (type == "TemplateProcessing") {
                        HONE_TRY(read_template(step, at, before, after));
                      } else if (type == "BertProcessing" || type == "RobertaProcessing") {
                        HONE_TRY(add_pair(step, at, "cls", before));
                        HONE_TRY(add_pair(step, at, "sep", after));
                      } else {
                        return unsupported_tokenizer(
                            at, "post-processor", type,
                            "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, Sequence");
                      }
                      // A later step stands around what the earlier ones made.
                      spec.before.insert(spec.before.begin(), before.begin(), before.end());
                      spec.after.insert(spec.after.end(), after.begin(), after.end());
                      return {};
                    });
}

}  // namespace hone
