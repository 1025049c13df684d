#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

#include "graph/op_rows.h"
#include "tensor/projection.h"

namespace hone {
namespace {

using Types = std::vector<Type>;

// A fused node computes what its body says: same number of inputs, same types, outputs of the body.
Result<Types> infer_from_body(const Node& node, std::span<const Type> inputs) {
  if (node.body == nullptr) return type_error("a fused node carries a body", "body { .. }");
  const Graph& body = *node.body;
  if (body.inputs.size() != inputs.size()) {
    return type_error("a fused node has the inputs of its body",
                      fmt::format("{} inputs", body.inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!(body.type(body.inputs[i].value) == inputs[i])) {
      return type_error(fmt::format("input {} differs from the body's", i),
                        type_to_string(body.type(body.inputs[i].value)));
    }
  }
  Types types;
  for (const GraphOutput& output : body.outputs) types.push_back(body.type(output.value));
  return types;
}

Dim body_operations(const Node& node, std::span<const Type>, std::span<const Type>) {
  Dim sum(0);
  for (const Node& inner : node.body->nodes) {
    const OpRow* row = find_op(inner.op);
    if (row == nullptr) continue;
    Types inputs;
    Types outputs;
    for (const ValueId value : inner.inputs) inputs.push_back(node.body->type(value));
    for (const ValueId value : inner.outputs) outputs.push_back(node.body->type(value));
    sum = sum + (row->operations != nullptr ? row->operations(inner, inputs, outputs)
                                            : element_count(outputs[0].shape));
  }
  return sum;
}

Result<Types> infer_quantize(const Node& node, std::span<const Type> inputs) {
  if (inputs[0].dtype != DType::F32 || inputs[0].shape.empty())
    return type_error("quantize_q8a takes f32 [..,K]", "f32");
  const std::optional<std::int64_t> k = inputs[0].shape.back().as_constant();
  if (!k || *k % 32 != 0)
    return type_error("quantize_q8a needs whole blocks along the last axis", "K a multiple of 32");
  Shape shape = inputs[0].shape;
  const std::int64_t terms = node.attributes.integer("terms", 1);
  if (terms != 1 && terms != 2) return type_error("quantize_q8a makes one term or two", "terms of 1 or 2");
  if (terms == 2) shape.insert(shape.end() - 1, Dim(2));
  return Types{{DType::Q8A, std::move(shape)}};
}

constexpr OpRow fused(std::string_view name, int min_inputs, int max_inputs, std::string_view summary) {
  return OpRow{.name = name,
               .op_class = OpClass::Fused,
               .min_inputs = min_inputs,
               .max_inputs = max_inputs,
               .infer = infer_from_body,
               .operations = body_operations,
               .summary = summary};
}

// A residual is read by the tile that writes its sum. Read as anything else, by another section or as x, it
// is read by other tiles too.
int projection_overwrites(const Node& node, std::size_t output) {
  const auto* fields = node.attributes.get<std::vector<std::int64_t>>("sections");
  if (fields == nullptr) return -1;
  std::int64_t residual = -1;
  std::vector<std::int64_t> operands{0, node.attributes.integer("row_sums", -1)};
  for (std::size_t i = 0; i + kProjectionFields <= fields->size(); i += kProjectionFields) {
    ProjectionSection section;
    std::memcpy(static_cast<void*>(&section), fields->data() + i, sizeof(section));
    if (section.output == static_cast<std::int64_t>(output)) residual = section.residual;
    operands.insert(operands.end(),
                    {section.weight, section.gate, section.bias, section.head_norm, section.cosine,
                     section.sine, section.residual, section.state, section.positions, section.next_norm});
  }
  if (residual < 0 || std::count(operands.begin(), operands.end(), residual) != 1) return -1;
  const ValueId value = node.inputs[static_cast<std::size_t>(residual)];
  return std::count(node.inputs.begin(), node.inputs.end(), value) == 1 ? static_cast<int>(residual) : -1;
}

// The sum in the residual's place.
int norm_add_overwrites(const Node& node, std::size_t output) {
  const ValueId residual = node.inputs[2];
  return output == 0 && std::count(node.inputs.begin(), node.inputs.end(), residual) == 1 ? 2 : -1;
}

constexpr std::array kFusedRows{
    fused("rms_norm", 2, 2, "x / sqrt(mean(x^2) + eps) * (w + offset) along the last axis"),
    OpRow{.name = "norm_add",
          .op_class = OpClass::Fused,
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer_from_body,
          .operations = body_operations,
          .overwrites = norm_add_overwrites,
          .summary = "r + rms_norm(x, w), and with a fourth input the rms_norm of that sum by it"},
    fused("layer_norm", 3, 3, "(x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b along the last axis"),
    fused("softmax", 1, 1, "exp(x - max x) / sum along the last axis"),
    fused("rope", 3, 3, "pairs of x [B,T,..,E] turned by the angles whose cos and sin are [B,T,R/2]"),
    fused(
        "attention", 3, 5,
        "softmax(scale * q k^T, keys c <= position) v: q [B,K,G,T,E], k [B,C,K,E], v [B,C,K,V], positions "
        "[B,T] -> [B,T,K,G,V]; without positions all keys; with a sequence [1,N] of each row, q [1,K,G,N,E] "
        "and positions [1,N]; `window` keys at most, scores capped by `softcap`"),
    fused("swiglu_mlp", 3, 3, "silu(x Wg^T) * (x Wu^T)"),
    fused("geglu_mlp", 3, 3, "gelu(x Wg^T) * (x Wu^T), gelu by tanh"),
    OpRow{.name = "projection",
          .op_class = OpClass::Fused,
          .min_inputs = 2,
          .max_inputs = -1,
          .infer = infer_from_body,
          .operations = body_operations,
          .overwrites = projection_overwrites,
          .summary = "matmuls of one x in one launch, each with what follows on its own columns "
                     "(tensor/projection.h)"},
    fused("fused_elementwise", 0, -1, "a chain of elementwise ops in one launch"),
    OpRow{
        .name = "quantize_q8a",
        .op_class = OpClass::Fused,
        .min_inputs = 1,
        .max_inputs = 1,
        .infer = infer_quantize,
        .summary =
            "x [..,K] rounded to int8 blocks of 32 with one f32 scale each; with terms = 2 [..,2,K], behind "
            "each row what its rounding left, rounded the same way"},
};

}  // namespace

std::span<const OpRow> fused_rows() {
  return kFusedRows;
}

}  // namespace hone
