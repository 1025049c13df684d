#include "exec/reference_evaluator.h"

#include <fmt/format.h>

#include "exec/executor.h"
#include "graph/builder.h"
#include "plan/plan.h"

namespace hone {
namespace {

// A graph of the one node, its inputs as constants and its outputs cast to f64, which holds every value
// exactly.
Result<Graph> graph_of(const Node& node, std::span<const ConstantTensor> inputs,
                       std::span<const Type> outputs) {
  GraphBuilder build("constant", "");
  std::vector<ValueId> values;
  for (const ConstantTensor& input : inputs) {
    values.push_back(build.constant(input.type.dtype, input.values, input.type.shape));
  }
  if (outputs.size() != 1)
    return internal_error(fmt::format("op {}", node.op), "only nodes with one result are folded");
  ValueId result = build.node(node.op, std::move(values), node.attributes);
  if (build.failed()) return build.finish();
  // A view has no kernel of its own; the copy makes its elements contiguous.
  result = build.node("copy", {result});
  if (outputs[0].dtype != DType::F64) result = build.cast(result, DType::F64);
  build.output("0", result);
  return build.finish();
}

}  // namespace

Result<std::vector<ConstantTensor>> ReferenceEvaluator::evaluate(const Node& node,
                                                                 std::span<const ConstantTensor> inputs,
                                                                 std::span<const Type> outputs) const {
  const Graph graph = HONE_TRY(graph_of(node, inputs, outputs));
  PlanOptions options;
  options.level = Level::O0;
  const Plan plan = HONE_TRY(make_plan(graph, options));
  const Checkpoint no_weights;
  const std::unique_ptr<Executor> executor = HONE_TRY(Executor::create(plan, no_weights, {}));
  HONE_TRY(executor->bind({}));
  executor->run();
  const std::span<const std::byte> bytes = HONE_TRY(executor->output("0"));
  const auto* numbers = reinterpret_cast<const double*>(bytes.data());
  return std::vector<ConstantTensor>{
      {outputs[0], std::vector<double>(numbers, numbers + bytes.size() / sizeof(double))}};
}

}  // namespace hone
