#include "tokens/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <pcre2.h>
#include <utility>

namespace hone {

namespace {

struct PreTokenizerRow {
  std::string_view name;
  std::string_view first;   // expression; `\s` means Unicode's White_Space
  std::string_view second;  // empty: one step
};

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array<PreTokenizerRow, 4> kRows{{
    {"gpt-2", kGpt2, {}},
    {"default", kGpt2, {}},
    // Every digit stands alone before GPT-2's expression sees the rest, so a blank run before a digit ends
    // its word there and stays whole.
    {"smollm", R"(\p{N})", kGpt2},
    {"qwen2", kQwen2, {}},
}};

// PCRE2's own \s also takes U+180E, which Unicode 6.3 moved out of White_Space.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

std::string expand_white_space(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    if (c == '\\' && next == 's') {
      out += in_class ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
      ++i;
    } else if (c == '\\' && next == 'S') {
      out += fmt::format("[^{}]", kWhiteSpace);
      ++i;
    } else {
      out += c;
    }
  }
  return out;
}

std::string row_names() {
  std::string names;
  for (const PreTokenizerRow& row : kRows) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR8, 256> buffer{};
  pcre2_get_error_message_8(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

void PreTokenizerScratch::Free::operator()(pcre2_match_data_8* data) const {
  pcre2_match_data_free_8(data);
}
void PreTokenizerScratch::Free::operator()(pcre2_match_context_8* context) const {
  pcre2_match_context_free_8(context);
}
void PreTokenizer::Free::operator()(pcre2_code_8* code) const {
  pcre2_code_free_8(code);
}

PreTokenizerScratch::PreTokenizerScratch()
    : match_data_(pcre2_match_data_create_8(1, nullptr)),
      match_context_(pcre2_match_context_create_8(nullptr)) {}

Result<PreTokenizer> PreTokenizer::compile(std::string_view name, std::string_view first,
                                           std::string_view second) {
  PreTokenizer out(name);
  for (const std::string_view expression : {first, second}) {
    if (expression.empty()) continue;
    const std::string expanded = expand_white_space(expression);
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code_8* code = pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(expanded.data()), expanded.size(),
                                         PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    if (code == nullptr) {
      return internal_error(
          fmt::format("pre-tokenizer {}", name),
          fmt::format("its expression does not compile: {} at {}", pcre2_message(error), at));
    }
    out.steps_.emplace_back(code);
    // Where there is no JIT compiler this fails, and pcre2_match interprets.
    pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE);
  }
  return out;
}

Result<const PreTokenizer*> PreTokenizer::find(std::string_view name) {
  for (const PreTokenizerRow& row : kRows) {
    if (row.name != name) continue;
    static const auto compiled = [] {
      std::vector<Result<PreTokenizer>> rows;
      rows.reserve(kRows.size());
      for (const PreTokenizerRow& each : kRows) rows.push_back(compile(each.name, each.first, each.second));
      return rows;
    }();
    const Result<PreTokenizer>& result = compiled[static_cast<std::size_t>(&row - kRows.data())];
    if (!result.ok()) return result.error();
    return &result.value();
  }
  return Error{ErrorCode::BadModel,
               Fault::File,
               "tokenizer.ggml.pre",
               fmt::format("pre-tokenizer '{}' is not supported", name),
               row_names(),
               std::string(name),
               "use a model with one of these pre-tokenizers"};
}

Status PreTokenizer::split_range(const pcre2_code_8* code, std::string_view text, std::uint32_t begin,
                                 std::uint32_t end, PreTokenizerScratch& scratch,
                                 std::vector<std::uint32_t>& ends) const {
  // The subject is the word alone: a lookahead must not see past its end.
  const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data() + begin);
  const std::size_t length = end - begin;
  const auto emit = [&](std::size_t offset) { ends.push_back(begin + static_cast<std::uint32_t>(offset)); };
  std::size_t done = 0;
  std::size_t start = 0;
  while (start < length) {
    const std::uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int rc = pcre2_match_8(code, subject, length, start, options, scratch.match_data_.get(),
                           scratch.match_context_.get());
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match_8(code, subject, length, start, options | PCRE2_NO_JIT, scratch.match_data_.get(),
                         scratch.match_context_.get());
    }
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      return Error{ErrorCode::BadInput,
                   Fault::User,
                   fmt::format("text, byte {}", begin + start),
                   fmt::format("cutting the text into words ran out of its limit: {}", pcre2_message(rc)),
                   {},
                   {},
                   "split the text"};
    }
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer_8(scratch.match_data_.get());
    if (span[0] > done) emit(span[0]);
    emit(span[1]);
    done = span[1];
    start = span[1];
  }
  if (done < length) emit(length);
  return {};
}

Status PreTokenizer::split(std::string_view text, PreTokenizerScratch& scratch,
                           std::vector<std::uint32_t>& ends) const {
  ends.clear();
  if (text.empty()) return {};
  if (!scratch.match_data_ || !scratch.match_context_) {
    return internal_error("pre-tokenizer", "no memory for a match");
  }
  const std::uint64_t limit = 1'000'000 + 16 * static_cast<std::uint64_t>(text.size());
  pcre2_set_match_limit_8(
      scratch.match_context_.get(),
      static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, std::numeric_limits<std::uint32_t>::max())));
  ends.push_back(static_cast<std::uint32_t>(text.size()));
  for (const auto& step : steps_) {
    std::swap(scratch.previous_, ends);
    ends.clear();
    std::uint32_t begin = 0;
    for (const std::uint32_t end : scratch.previous_) {
      HONE_TRY(split_range(step.get(), text, begin, end, scratch, ends));
      begin = end;
    }
  }
  return {};
}

}  // namespace hone
