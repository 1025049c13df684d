#include "engine/rounding_model.h"

#include <fmt/format.h>

#include "file/stacked_tensors.h"
#include "tensor/block_formats.h"

namespace hone {
namespace {

// The tensor, or the tensors of a stack one after the other.
Result<TensorData> read_weight(const Checkpoint& checkpoint, const GraphInput& input, const Type& type,
                               const Bindings& bindings) {
  TensorData out{type.dtype, HONE_TRY(extents_of(type, bindings)), {}};
  const std::int64_t parts = is_stacked(input.name) ? out.shape[0] : 1;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::string name = name_in_stack(input.name, i);
    const TensorEntry* entry = checkpoint.find_tensor(name);
    if (entry == nullptr) return internal_error(name, "a weight of the graph is not in the checkpoint");
    // A vector that the graph has in f32 may be stored in 16 bits (passes/widen_weights.h).
    out.dtype = entry->dtype.value_or(out.dtype);
    const std::size_t begin = out.bytes.size();
    out.bytes.resize(begin + entry->bytes);
    HONE_TRY(checkpoint.read_tensor(*entry, 0, std::span(out.bytes).subspan(begin)));
  }
  return out;
}

// Whether the rule of some node reads the numbers of `weight`: a table that is only gathered from is exact.
bool is_multiplied(const Graph& graph, const UseMap& uses, ValueId weight) {
  for (const int user : uses.users[static_cast<std::size_t>(weight)]) {
    const Node& node = graph.nodes[static_cast<std::size_t>(user)];
    if (node.op != "gather" || node.inputs[0] != weight) return true;
  }
  return false;
}

class Model {
 public:
  Model(const Graph& graph, const NamedTensors& inputs, const NamedTensors& values,
        const Checkpoint& checkpoint, const Bindings& bindings,
        const std::map<std::string, std::vector<double>>& fed)
      : graph_(graph),
        inputs_(inputs),
        values_(values),
        checkpoint_(checkpoint),
        bindings_(bindings),
        fed_(fed),
        uses_(graph) {}

  Result<std::map<std::string, Spread>> run() {
    for (const GraphInput& input : graph_.inputs) HONE_TRY(add_input(input));
    for (const Node& node : graph_.nodes) {
      for (const ValueId output : node.outputs) HONE_TRY(add_result(node, output));
    }
    std::map<std::string, Spread> out;
    for (auto& [value, spread] : spreads_) out.emplace(graph_.value_name(value), std::move(spread));
    return out;
  }

 private:
  Result<Spread> empty(ValueId value) const {
    const Type& type = graph_.type(value);
    return Spread{type, HONE_TRY(extents_of(type, bindings_)), {}, {}};
  }

  Status add_input(const GraphInput& input) {
    Spread spread = HONE_TRY(empty(input.value));
    if (input.kind == InputKind::Weight) {
      if (is_multiplied(graph_, uses_, input.value)) {
        spread.values = HONE_TRY(weight_values(checkpoint_, input, spread.type, bindings_));
        const auto given = fed_.find(input.name);
        if (given != fed_.end()) spread.deviation = given->second;
      }
    } else if (input.kind == InputKind::Input) {
      spread.values = HONE_TRY(numbers(inputs_, input.name));
      const auto given = fed_.find(input.name);
      if (given != fed_.end()) spread.deviation = given->second;
    }
    spreads_[input.value] = std::move(spread);
    return {};
  }

  static Result<std::vector<double>> numbers(const NamedTensors& from, const std::string& name) {
    const auto found = from.find(name);
    if (found == from.end()) return internal_error(name, "a value of the graph has not been recorded");
    return to_doubles(found->second);
  }

  Status add_result(const Node& node, ValueId output) {
    Spread spread = HONE_TRY(empty(output));
    spread.values = HONE_TRY(numbers(values_, graph_.value_name(output)));
    const RoundingRule* rule = find_rounding_rule(node.op);
    if (rule == nullptr) {
      return internal_error(fmt::format("op {}", node.op), "src/engine/rounding_rules.cc has no rule for it");
    }
    RoundingSite site{node, {}, spread, bindings_};
    for (const ValueId input : node.inputs) site.inputs.push_back(&spreads_[input]);
    spread.deviation = HONE_TRY(rule->deviation(site));
    spreads_[output] = std::move(spread);
    return {};
  }

  const Graph& graph_;
  const NamedTensors& inputs_;
  const NamedTensors& values_;
  const Checkpoint& checkpoint_;
  const Bindings& bindings_;
  const std::map<std::string, std::vector<double>>& fed_;
  UseMap uses_;
  std::map<ValueId, Spread> spreads_;
};

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-53;
    case DType::F32:
      return 0x1p-24;
    case DType::F16:
      return 0x1p-11;
    case DType::BF16:
      return 0x1p-8;
    default:
      return 0;
  }
}

Result<std::vector<double>> weight_values(const Checkpoint& checkpoint, const GraphInput& input,
                                          const Type& type, const Bindings& bindings) {
  const TensorData stored = HONE_TRY(read_weight(checkpoint, input, type, bindings));
  if (stored.dtype == type.dtype || !dtype_row(type.dtype).is_quantised) return to_doubles(stored);
  std::vector<double> exact = HONE_TRY(to_doubles(stored));
  // As exec/load_weights.h rounds them. Blocks do not cross rows, so all rows are one.
  const std::vector<float> values(exact.begin(), exact.end());
  TensorData rounded{type.dtype, stored.shape, {}};
  const auto count = static_cast<std::int64_t>(values.size());
  rounded.bytes.resize(static_cast<std::size_t>(dtype_bytes(type.dtype, count)));
  HONE_TRY(encode_row(type.dtype, values.data(), count, rounded.bytes.data()));
  return to_doubles(rounded);
}

Result<std::map<std::string, Spread>> rounding_spreads(
    const Graph& graph, const NamedTensors& inputs, const NamedTensors& values, const Checkpoint& checkpoint,
    const Bindings& bindings, const std::map<std::string, std::vector<double>>& fed) {
  return Model(graph, inputs, values, checkpoint, bindings, fed).run();
}

}  // namespace hone
