#include "passes/fuse_quantise.h"

#include "passes/match.h"

namespace hone {
namespace {

constexpr std::int64_t kBlockElements = 32;  // elements of a q8a block (tensor/block_formats.h)

bool has_whole_blocks(const Type& type) {
  const std::optional<std::int64_t> length = last_extent(type.shape);
  return length && *length % kBlockElements == 0;
}

bool is_launch_with_q8a(std::string_view op) {
  return op == "rms_norm" || op == "layer_norm" || op == "attention";
}

// True of what assign-precision puts in front of products.
bool rounds(const Graph& graph, const Node& node) {
  return node.op == "quantize_q8a" || (node.op == "cast" && graph.type(node.outputs[0]).dtype == DType::BF16);
}

// The launches above, and those of them that write two terms, or bf16.
bool takes(std::string_view op, const Node& quantise) {
  if (quantise.op == "cast") return op == "rms_norm" || op == "attention";
  const bool one_term_only = op == "attention" || op == "norm_add";
  return is_launch_with_q8a(op) && (!one_term_only || quantise.attributes.integer("terms", 1) == 1);
}

const Node* producer(const Graph& graph, const UseMap& uses, ValueId value) {
  const int index = uses.producer[static_cast<std::size_t>(value)];
  return index < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(index)];
}

// quantize(reshape(a)) -> reshape(quantize(a)), and so of a cast to bf16: the blocks of a row-major value are
// the same in every shape whose rows are whole blocks.
void quantise_before_reshape(Graph& graph) {
  const UseMap uses(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!rounds(graph, graph.nodes[n]) || graph.nodes[n].attributes.integer("terms", 1) != 1) continue;
    const ValueId viewed = graph.nodes[n].inputs[0];
    const Node* reshape = producer_if(graph, uses, viewed, "reshape");
    if (reshape == nullptr || !uses.only_used_by(viewed, static_cast<int>(n))) continue;
    const ValueId source = reshape->inputs[0];
    const int reshape_index = uses.producer[static_cast<std::size_t>(viewed)];
    const Node* launch = producer(graph, uses, source);
    if (launch == nullptr || !is_launch_with_q8a(launch->op) || !uses.only_used_by(source, reshape_index))
      continue;
    const DType dtype = graph.type(graph.nodes[n].outputs[0]).dtype;
    if (dtype == DType::Q8A && !has_whole_blocks(graph.type(source))) continue;
    Node view = *reshape;
    Node quantise = graph.nodes[n];
    quantise.inputs = {source};
    quantise.outputs = {graph.add_value({dtype, graph.type(source).shape})};
    view.inputs = quantise.outputs;
    view.outputs = graph.nodes[n].outputs;
    graph.nodes[static_cast<std::size_t>(reshape_index)] = std::move(quantise);
    graph.nodes[n] = std::move(view);
  }
}

// The launch and the quantisation behind it as one node of the launch's op.
Result<Node> launch_with_q8a(const Graph& graph, const UseMap& uses, int launch, int quantise) {
  const Node& node = graph.nodes[static_cast<std::size_t>(launch)];
  return fused_node(graph, uses,
                    {{launch, quantise},
                     node.inputs,
                     graph.nodes[static_cast<std::size_t>(quantise)].outputs,
                     node.op,
                     node.attributes,
                     node.op});
}

}  // namespace

Status fuse_quantise(Graph& graph, const PassContext& context) {
  quantise_before_reshape(graph);
  const UseMap uses(graph);
  std::vector<std::pair<std::array<int, 2>, Node>> made;
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const Node& node = graph.nodes[static_cast<std::size_t>(n)];
    if (!rounds(graph, node) || !uses.only_used_by(node.inputs[0], n)) continue;
    const int launch = uses.producer[static_cast<std::size_t>(node.inputs[0])];
    if (launch < 0 || !takes(graph.nodes[static_cast<std::size_t>(launch)].op, node)) continue;
    made.emplace_back(std::array{launch, n}, HONE_TRY(launch_with_q8a(graph, uses, launch, n)));
  }
  for (auto& [nodes, fused] : made) {
    context.fired(fused.op);
    const std::string module = graph.nodes[static_cast<std::size_t>(nodes[0])].module;
    put_in_place(graph, nodes, std::move(fused));
    graph.nodes[static_cast<std::size_t>(nodes[1])].module = module;
  }
  if (!made.empty()) sweep(graph);
  return {};
}

}  // namespace hone
