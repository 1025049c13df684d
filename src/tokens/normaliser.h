// Text -> the form in which the vocabulary was trained: one idea after the other, in the file's order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/expression.h"
#include "tokens/spm_normaliser.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Working memory of one caller. Not to be shared between threads.
struct NormaliserScratch {
  std::string other;
  std::vector<std::int32_t> code_points;
  ExpressionScratch expressions;
};

// Immutable once built.
class Normaliser {
 public:
  // Errors: BadModel for a step that is not supported or whose expression does not compile.
  static Result<Normaliser> build(const TokenizerSpec& spec);

  bool empty() const { return steps_.empty(); }
  // True: apply() takes ill-formed UTF-8 as well (SentencePiece's normaliser comes first).
  bool takes_any_bytes() const { return !steps_.empty() && steps_.front().spm != nullptr; }
  // `text` in place; it must be well-formed UTF-8 and stays so. Time is n log n at most. Errors: BadInput for
  // an expression that runs out of its match limit, or a text that would grow beyond 2^31 - 1 bytes.
  Status apply(std::string& text, NormaliserScratch& scratch) const;

  std::int64_t heap_bytes() const;

 private:
  struct Step {
    NormaliserStep spec;
    std::optional<Expression> expression;      // Replace
    std::shared_ptr<const SpmNormaliser> spm;  // SentencePiece
  };
  static Status apply_step(const Step& step, std::string& text, NormaliserScratch& scratch);

  std::vector<Step> steps_;
};

}  // namespace hone
