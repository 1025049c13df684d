#include "tokens/normaliser.h"

#include <fmt/format.h>
#include <limits>
#include <utf8proc.h>
#include <utility>

#include "tokens/tokenizer_error.h"
#include "tokens/unicode_form.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::size_t kMaxNormalised = std::numeric_limits<std::int32_t>::max();

Error too_long_text() {
  return Error{
      ErrorCode::BadInput, Fault::User, "text", "a normalised text has at most 2^31 - 1 bytes", {}, {},
      "split the text"};
}

// Calls put(code point) for each character.
template <class Put>
void for_each_character(std::string_view text, Put&& put) {
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    put(step.code_point);
    text.remove_prefix(step.length);
  }
}

void append_lowercase(std::string& out, std::string_view text) {
  for_each_character(text, [&](char32_t c) {
    if (c == 0x130) {
      out += "i\xCC\x87";  // the only character whose small form has two
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<std::int32_t>(c))));
    }
  });
}

void append_without_marks(std::string& out, std::string_view text) {
  for_each_character(text, [&](char32_t c) {
    const auto category = utf8proc_category(static_cast<std::int32_t>(c));
    const bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                      category == UTF8PROC_CATEGORY_ME;
    if (!mark) append_utf8(out, c);
  });
}

void append_stripped(std::string& out, std::string_view text, bool left, bool right) {
  std::size_t begin = 0;
  while (left && begin < text.size()) {
    const Utf8Step step = utf8_step(text.substr(begin));
    if (!is_white_space(step.code_point)) break;
    begin += step.length;
  }
  std::size_t end = begin;
  for (std::size_t at = begin; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    at += step.length;
    if (!right || !is_white_space(step.code_point)) end = at;
  }
  out.append(text.substr(begin, end - begin));
}

Status append_replaced(std::string& out, std::string_view text, const Expression& expression,
                       std::string_view content, ExpressionScratch& scratch) {
  std::size_t done = 0;
  bool too_long = false;
  HONE_TRY(expression.for_each_match(text, scratch, [&](std::uint32_t begin, std::uint32_t end) {
    too_long = too_long || out.size() + content.size() + text.size() > kMaxNormalised;
    if (too_long) return;
    out.append(text.substr(done, begin - done));
    out.append(content);
    done = end;
  }));
  if (too_long) return too_long_text();
  out.append(text.substr(done));
  return {};
}

}  // namespace

Result<Normaliser> Normaliser::build(const TokenizerSpec& spec) {
  Normaliser out;
  out.steps_.reserve(spec.normaliser.size());
  for (std::size_t i = 0; i < spec.normaliser.size(); ++i) {
    const NormaliserStep& step = spec.normaliser[i];
    const std::string where = table_element(spec.places.normalizer, i);
    if (step.kind == NormaliserStep::Kind::Precompiled) {
      return unsupported_tokenizer(where, "normalizer", "Precompiled",
                                   "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend");
    }
    std::optional<Expression> expression;
    if (step.kind == NormaliserStep::Kind::Replace)
      expression = HONE_TRY(Expression::compile(step.pattern, where));
    std::shared_ptr<const SpmNormaliser> spm;
    if (step.kind == NormaliserStep::Kind::SentencePiece) {
      spm = std::make_shared<const SpmNormaliser>(
          HONE_TRY(SpmNormaliser::build(step.spm, step.content, step.fixed, where)));
    }
    if (spm) {
      NormaliserStep kept;  // without the tables that `spm` holds
      kept.kind = step.kind;
      out.steps_.push_back({std::move(kept), std::nullopt, std::move(spm)});
    } else {
      out.steps_.push_back({step, std::move(expression), nullptr});
    }
  }
  return out;
}

Status Normaliser::apply_step(const Step& step, std::string& text, NormaliserScratch& scratch) {
  std::string& out = scratch.other;
  out.clear();
  const auto form = [&](UnicodeForm which) { append_unicode_form(out, text, which, scratch.code_points); };
  switch (step.spec.kind) {
    case NormaliserStep::Kind::Nfc:
      form(UnicodeForm::C);
      break;
    case NormaliserStep::Kind::Nfd:
      form(UnicodeForm::D);
      break;
    case NormaliserStep::Kind::Nfkc:
      form(UnicodeForm::KC);
      break;
    case NormaliserStep::Kind::Nfkd:
      form(UnicodeForm::KD);
      break;
    case NormaliserStep::Kind::Lowercase:
      append_lowercase(out, text);
      break;
    case NormaliserStep::Kind::StripAccents:
      append_without_marks(out, text);
      break;
    case NormaliserStep::Kind::Strip:
      append_stripped(out, text, step.spec.left, step.spec.right);
      break;
    case NormaliserStep::Kind::Replace:
      HONE_TRY(append_replaced(out, text, *step.expression, step.spec.content, scratch.expressions));
      break;
    case NormaliserStep::Kind::Prepend:
      if (!text.empty()) out = step.spec.content + text;
      break;
    case NormaliserStep::Kind::Precompiled:
      out = text;
      break;  // refused by build()
    case NormaliserStep::Kind::SentencePiece:
      step.spm->apply(text, out);
      if (out.size() > kMaxNormalised) return too_long_text();
      break;
  }
  text.swap(out);
  return {};
}

Status Normaliser::apply(std::string& text, NormaliserScratch& scratch) const {
  for (const Step& step : steps_) HONE_TRY(apply_step(step, text, scratch));
  return {};
}

std::int64_t Normaliser::heap_bytes() const {
  std::size_t bytes = steps_.capacity() * sizeof(Step);
  std::int64_t of_spm = 0;
  for (const Step& step : steps_) {
    bytes += step.spec.content.capacity() + step.spec.pattern.text.capacity();
    if (step.spm) of_spm += static_cast<std::int64_t>(sizeof(SpmNormaliser)) + step.spm->heap_bytes();
  }
  return static_cast<std::int64_t>(bytes) + of_spm;
}

}  // namespace hone
