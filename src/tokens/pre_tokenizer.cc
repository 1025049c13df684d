#include "tokens/pre_tokenizer.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "tokens/byte_alphabet.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

constexpr std::size_t kMaxPreTokenized = std::numeric_limits<std::int32_t>::max();

// GPT-2's (Radford et al. 2019).
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Puts the pieces of one text together, by SplitBehavior: match after match, with what lies between them.
class PieceJoiner {
 public:
  PieceJoiner(SplitBehavior behavior, bool invert, std::vector<TextSpan>& out)
      : out_(&out), first_(out.size()), behavior_(behavior), invert_(invert) {}

  void add(std::uint32_t begin, std::uint32_t end, bool is_match) {
    is_match = is_match != invert_;
    const bool has_last = out_->size() > first_;
    bool join = false;
    switch (behavior_) {
      case SplitBehavior::Removed:
        if (is_match) return;
        break;
      case SplitBehavior::Isolated:
        break;
      case SplitBehavior::Contiguous:
        join = has_last && is_match == last_was_match_;
        break;
      case SplitBehavior::MergedWithPrevious:
        join = has_last && is_match && !last_was_match_;
        break;
      // A piece that is no match joins the match before it, unless that has another match behind it.
      case SplitBehavior::MergedWithNext:
        join = has_last && !is_match && last_was_match_;
        break;
    }
    last_was_match_ = is_match;
    if (join) {
      out_->back().end = end;
    } else {
      out_->push_back({begin, end});
    }
  }

 private:
  std::vector<TextSpan>* out_;
  std::size_t first_;
  SplitBehavior behavior_;
  bool invert_;
  bool last_was_match_ = false;
};

}  // namespace

Status PreTokenizer::add_cut(const TextPattern& pattern, SplitBehavior behavior, bool invert,
                             const std::string& where) {
  Step step;
  step.behavior = behavior;
  step.invert = invert;
  step.expression = HONE_TRY(Expression::compile(pattern, where));
  steps_.push_back(std::move(step));
  return {};
}

Status PreTokenizer::add(const PreTokenizerStep& step, bool last, const std::string& where) {
  using Kind = PreTokenizerStep::Kind;
  const auto expression = [](std::string_view text) { return TextPattern{std::string(text), true}; };
  switch (step.kind) {
    case Kind::Split:
      return add_cut(step.pattern, step.behavior, step.invert, where);
    case Kind::Digits:
      return add_cut(expression(R"(\p{N})"),
                     step.individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous, false, where);
    case Kind::Punctuation:
      return add_cut(expression(R"([\p{P}!-/:-@\[-`{-~])"), step.behavior, false, where);
    case Kind::Whitespace:
      return add_cut(expression(R"(\w+|[^\w\s]+)"), SplitBehavior::Removed, true, where);
    case Kind::WhitespaceSplit:
      return add_cut(expression(R"(\s)"), SplitBehavior::Removed, false, where);
    case Kind::ByteLevel: {
      if (step.add_prefix_space) {
        Step prefix;
        prefix.kind = Step::Kind::Prefix;
        steps_.push_back(std::move(prefix));
      }
      if (step.use_regex) HONE_TRY(add_cut(expression(kGpt2Words), SplitBehavior::Isolated, false, where));
      if (!last) {
        // What follows sees letters.
        Step letters;
        letters.kind = Step::Kind::Letters;
        steps_.push_back(std::move(letters));
      }
      byte_level_ = true;
      return {};
    }
    case Kind::Metaspace: {
      Step blanks;
      blanks.kind = Step::Kind::Metaspace;
      blanks.prepend = step.prepend;
      blanks.replacement = step.replacement;
      steps_.push_back(std::move(blanks));
      if (!step.split) return {};
      return add_cut({step.replacement, false}, SplitBehavior::MergedWithNext, false, where);
    }
  }
  return {};
}

Result<PreTokenizer> PreTokenizer::build(const TokenizerSpec& spec) {
  PreTokenizer out;
  const std::size_t count = spec.pre_tokenizer.size();
  out.steps_.reserve(2 * count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string where = table_element(spec.places.pre_tokenizer, i);
    if (out.byte_level_ && spec.pre_tokenizer[i].kind == PreTokenizerStep::Kind::ByteLevel) {
      return unsupported_tokenizer(where, "a second pre-tokenizer", "ByteLevel", "one");
    }
    HONE_TRY(out.add(spec.pre_tokenizer[i], i + 1 == count, where));
  }
  if (std::any_of(out.steps_.begin(), out.steps_.end(),
                  [](const Step& s) { return s.kind == Step::Kind::Letters; })) {
    Step bytes;
    bytes.kind = Step::Kind::Bytes;
    out.steps_.push_back(std::move(bytes));
  }
  return out;
}

Status PreTokenizer::cut(const Step& step, std::string_view text, PreTokenizerScratch& scratch,
                         std::vector<TextSpan>& words) {
  std::swap(scratch.previous, words);
  words.clear();
  for (const TextSpan piece : scratch.previous) {
    // The subject is the piece alone: a look-around must not see past its ends.
    const std::string_view subject = text.substr(piece.begin, piece.end - piece.begin);
    PieceJoiner joiner(step.behavior, step.invert, words);
    std::uint32_t done = 0;
    HONE_TRY(step.expression->for_each_match(subject, scratch.expressions,
                                             [&](std::uint32_t begin, std::uint32_t end) {
                                               if (begin > done)
                                                 joiner.add(piece.begin + done, piece.begin + begin, false);
                                               joiner.add(piece.begin + begin, piece.begin + end, true);
                                               done = end;
                                             }));
    if (done < subject.size()) joiner.add(piece.begin + done, piece.end, false);
  }
  std::erase_if(words, [](const TextSpan& word) { return word.begin == word.end; });
  return {};
}

// Steps that change the text, piece by piece.
void PreTokenizer::rewrite(const Step& step, std::string_view text, bool at_start, std::string& out,
                           std::vector<TextSpan>& words) {
  out.clear();
  out.reserve(text.size() + words.size());
  for (TextSpan& word : words) {
    const std::string_view piece = text.substr(word.begin, word.end - word.begin);
    const bool first = at_start && word.begin == 0;
    const auto begin = static_cast<std::uint32_t>(out.size());
    switch (step.kind) {
      case Step::Kind::Prefix:
        if (!piece.starts_with(' ')) out += ' ';
        out += piece;
        break;
      case Step::Kind::Metaspace:
        if ((step.prepend == PrependScheme::Always || (step.prepend == PrependScheme::First && first)) &&
            !piece.starts_with(' ') && !piece.starts_with(step.replacement)) {
          out += step.replacement;
        }
        for (const char c : piece) {
          if (c == ' ') {
            out += step.replacement;
          } else {
            out += c;
          }
        }
        break;
      case Step::Kind::Letters:
        for (const char c : piece) append_letter(out, c);
        break;
      case Step::Kind::Bytes:
        decode_letters(piece, [&](char byte) { out += byte; });
        break;
      case Step::Kind::Cut:
        break;
    }
    word = {begin, static_cast<std::uint32_t>(out.size())};
  }
}

Result<std::string_view> PreTokenizer::split(std::string_view text, bool at_start,
                                             PreTokenizerScratch& scratch,
                                             std::vector<TextSpan>& words) const {
  words.clear();
  if (text.empty()) return text;
  words.push_back({0, static_cast<std::uint32_t>(text.size())});
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::Cut) {
      HONE_TRY(cut(step, text, scratch, words));
      continue;
    }
    if (text.size() > kMaxPreTokenized / std::max<std::size_t>(2, step.replacement.size() + 1)) {
      return Error{ErrorCode::BadInput,
                   Fault::User,
                   "text",
                   "a text with its blanks replaced has at most 2^31 - 1 bytes",
                   {},
                   {},
                   "split the text"};
    }
    rewrite(step, text, at_start, scratch.other, words);
    scratch.text.swap(scratch.other);
    text = scratch.text;
  }
  return text;
}

std::int64_t PreTokenizer::heap_bytes() const {
  std::size_t bytes = steps_.capacity() * sizeof(Step);
  for (const Step& step : steps_) bytes += step.replacement.capacity();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace hone
