// The Evaluator that fold-constants is handed: one node at a time with its reference kernel.
#pragma once

#include "graph/evaluator.h"

namespace hone {

class ReferenceEvaluator final : public Evaluator {
 public:
  Result<std::vector<ConstantTensor>> evaluate(const Node& node, std::span<const ConstantTensor> inputs,
                                               std::span<const Type> outputs) const override;
};

}  // namespace hone
