#include "tokens/gguf_pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

// The expressions are those of the models' own tokenizer.json.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekIdeographs = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kUpToThreeDigits = R"(\p{N}{1,3})";
// Every digit stands alone before the next expression sees the rest, so a blank run before a digit ends its
// word there and stays whole.
constexpr std::string_view kDigit = R"(\p{N})";

struct PreTokenizerRow {
  std::string_view name;
  bool nfc;
  bool ignore_merges;
  std::array<std::string_view, 5> expressions;  // applied in order; empty: no more
};

constexpr std::array kPreTokenizerRows{
    PreTokenizerRow{"gpt-2", false, false, {kGpt2}},
    PreTokenizerRow{"default", false, false, {kGpt2}},
    PreTokenizerRow{"phi-2", false, false, {kGpt2}},
    PreTokenizerRow{"mpt", false, false, {kGpt2}},
    PreTokenizerRow{"olmo", true, false, {kGpt2}},
    PreTokenizerRow{"smollm", false, false, {kDigit, kGpt2}},
    PreTokenizerRow{"starcoder", false, false, {kDigit, kGpt2}},
    PreTokenizerRow{"refact", false, false, {kDigit, kGpt2}},
    PreTokenizerRow{"command-r", true, false, {kDigit, kGpt2}},
    PreTokenizerRow{"qwen2", true, false, {kQwen2}},
    PreTokenizerRow{"deepseek-r1-qwen", true, false, {kQwen2}},
    PreTokenizerRow{"stablelm2", true, false, {kQwen2}},
    PreTokenizerRow{"llama-bpe", false, true, {kLlama3}},
    PreTokenizerRow{"llama3", false, true, {kLlama3}},
    PreTokenizerRow{"llama-v3", false, true, {kLlama3}},
    PreTokenizerRow{"chatglm-bpe", false, false, {kLlama3}},
    PreTokenizerRow{"glm4", false, false, {kLlama3}},
    PreTokenizerRow{"dbrx", false, false, {kLlama3}},
    PreTokenizerRow{"gpt-4o", false, false, {kGpt4o}},
    PreTokenizerRow{"llama4", false, false, {kGpt4o}},
    PreTokenizerRow{"tekken", false, true, {kTekken}},
    PreTokenizerRow{"deepseek-v3", false, false, {kUpToThreeDigits, kDeepSeekIdeographs, kDeepSeekWords}},
    PreTokenizerRow{"deepseek-coder",
                    false,
                    false,
                    {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-퟿]+", kDigit}},
};

// Some files hold line ends themselves where others hold "\\r" and "\\n"; in an expression they mean the
// same.
std::string with_escapes(std::string_view expression) {
  std::string out;
  for (const char c : expression) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// The expressions that cut a text, one after the other, before its bytes become letters; nullopt for steps
// that are no such list. A single expression may also be said to remove what it does not match: each that
// stands alone in the table matches every text from end to end.
std::optional<std::vector<std::string>> expressions_of(const std::vector<PreTokenizerStep>& steps) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PreTokenizerStep& step = steps[i];
    if (step.kind == PreTokenizerStep::Kind::Split) {
      const bool cuts = step.behavior == SplitBehavior::Isolated ||
                        (step.behavior == SplitBehavior::Removed && step.invert && steps.size() == 2);
      if (!step.pattern.is_expression || !cuts) return std::nullopt;
      out.push_back(with_escapes(step.pattern.text));
    } else if (step.kind == PreTokenizerStep::Kind::Digits && step.individual) {
      out.emplace_back(kDigit);
    } else if (step.kind == PreTokenizerStep::Kind::ByteLevel && !step.add_prefix_space) {
      if (step.use_regex) out.emplace_back(kGpt2);
      if (i + 1 != steps.size()) return std::nullopt;
      return out;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;  // the bytes stay bytes
}

}  // namespace

std::optional<std::string_view> gguf_pre_tokenizer_name(const TokenizerSpec& spec) {
  const auto expressions = expressions_of(spec.pre_tokenizer);
  const bool nfc = spec.normaliser.size() == 1 && spec.normaliser[0].kind == NormaliserStep::Kind::Nfc;
  if (!expressions || (!spec.normaliser.empty() && !nfc)) return std::nullopt;
  for (const PreTokenizerRow& row : kPreTokenizerRows) {
    const auto last = std::ranges::find(row.expressions, std::string_view{});
    if (row.nfc == nfc && row.ignore_merges == spec.model.ignore_merges &&
        std::equal(row.expressions.begin(), last, expressions->begin(), expressions->end())) {
      return row.name;
    }
  }
  return std::nullopt;
}

std::string gguf_pre_tokenizer_names() {
  std::string names;
  for (const PreTokenizerRow& row : kPreTokenizerRows) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

Status fill_pre_tokenizer(std::string_view name, TokenizerSpec& spec) {
  for (const PreTokenizerRow& row : kPreTokenizerRows) {
    if (row.name != name) continue;
    spec.pre_tokenizer_name = row.name;
    spec.model.ignore_merges = row.ignore_merges;
    if (row.nfc) spec.normaliser.emplace_back();
    spec.pre_tokenizer.reserve(row.expressions.size() + 1);
    for (const std::string_view expression : row.expressions) {
      if (expression.empty()) break;
      PreTokenizerStep split;
      split.pattern = {std::string(expression), true};
      spec.pre_tokenizer.push_back(std::move(split));
    }
    PreTokenizerStep bytes;
    bytes.kind = PreTokenizerStep::Kind::ByteLevel;
    spec.pre_tokenizer.push_back(std::move(bytes));
    return {};
  }
  return Error{ErrorCode::BadModel,
               Fault::File,
               "tokenizer.ggml.pre",
               fmt::format("pre-tokenizer '{}' is not supported", name.substr(0, 80)),
               gguf_pre_tokenizer_names(),
               std::string(name.substr(0, 80)),
               "use a model with one of these pre-tokenizers"};
}

}  // namespace hone
