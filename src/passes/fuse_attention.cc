#include "passes/fuse_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/attention_mask.h"
#include "passes/fuse_softmax.h"
#include "passes/match.h"

namespace hone {
namespace {

// q, the scores and the result are [B,K,G,T,.], or [B,H,T,.] with the heads in one axis.
constexpr std::size_t kGrouped = 5;
constexpr std::size_t kFlat = 4;

using Axes = std::vector<std::int64_t>;
// [B,K,G,T,E] -> [B,T,K,G,E] and its inverse; [B,H,T,E] -> [B,T,H,E], which is its own.
const Axes& tokens_first(std::size_t rank) {
  static const Axes grouped{0, 3, 1, 2, 4};
  static const Axes flat{0, 2, 1, 3};
  return rank == kGrouped ? grouped : flat;
}
const Axes& heads_first(std::size_t rank) {
  static const Axes grouped{0, 2, 3, 1, 4};
  return rank == kGrouped ? grouped : tokens_first(kFlat);
}

bool permutes_by(const Node& node, const std::vector<std::int64_t>& axes) {
  const auto* found = node.attributes.get<std::vector<std::int64_t>>("axes");
  return node.op == "permute" && found != nullptr && *found == axes;
}

// A product with, or quotient by, a positive constant.
struct Scaled {
  ValueId value = -1;
  double factor = 1;
};

std::optional<Scaled> match_scale(const Pattern& pattern, ValueId value) {
  if (const Node* product = pattern.look(value, "mul")) {
    for (const auto& [x, number] : both_orders(*product)) {
      const std::optional<double> factor = pattern.scalar(number);
      if (factor && *factor > 0 && std::isfinite(*factor)) return Scaled{x, *factor};
    }
  }
  if (const Node* quotient = pattern.look(value, "div")) {
    const std::optional<double> divisor = pattern.scalar(quotient->inputs[1]);
    if (divisor && *divisor > 0 && std::isfinite(*divisor)) return Scaled{quotient->inputs[0], 1 / *divisor};
  }
  return std::nullopt;
}

struct Scores {
  const Node* matmul = nullptr;
  double scale = 1;    // outside a tanh until one is met, then inside it
  double softcap = 0;  // what a tanh is multiplied by; 0: there is none
  VisibleKeys visible;
};

// From the softmax's operand back to the product of q and k: scales, masks and one tanh, in any order, but no
// mask inside the tanh.
std::optional<Scores> match_scores(Pattern& pattern, ValueId value) {
  Scores scores;
  while (scores.matmul == nullptr) {
    if (const Node* matmul = pattern.take(value, "matmul")) {
      scores.matmul = matmul;
    } else if (const std::optional<Scaled> scaled = match_scale(pattern, value)) {
      const Node* product = pattern.take(value, "mul");
      if (product == nullptr) pattern.take(value, "div");
      scores.scale *= scaled->factor;
      value = scaled->value;
    } else if (const Node* cap = pattern.take(value, "tanh")) {
      if (scores.softcap != 0) return std::nullopt;
      scores.softcap = scores.scale;
      scores.scale = 1;
      value = cap->inputs[0];
    } else {
      const std::optional<MaskedScores> masked =
          scores.softcap == 0 ? match_attention_mask(pattern, value) : std::nullopt;
      if (!masked || !scores.visible.restrict_by(masked->visible)) return std::nullopt;
      value = masked->scores;
    }
  }
  // Causal, or no mask at all.
  if (!scores.visible.causal && scores.visible.positions >= 0) return std::nullopt;
  return scores;
}

// Heads [B,H,..] that are groups [B,K,G,..] with their axes merged: the groups.
std::optional<ValueId> merged_groups(const Pattern& pattern, const AxisPath& path) {
  const Node* node = path.producer();
  if (node == nullptr || node->op != "reshape") return std::nullopt;
  const Shape& from = pattern.shape(node->inputs[0]);
  const Shape& to = pattern.shape(path.value());
  const bool merges = from.size() == kGrouped && to.size() == kFlat && from[0] == to[0] &&
                      from[1] * from[2] == to[1] && from[3] == to[2] && from[4] == to[3];
  return merges ? std::optional(node->inputs[0]) : std::nullopt;
}

// The keys [B,C,K,E] or values [B,C,K,V] behind a matmul's right operand. `along_c_e`: the operand is
// [B,K,G,C,E] or [B,H,C,E], else the last two axes are turned.
std::optional<ValueId> find_cache(const Pattern& pattern, ValueId operand, bool along_c_e) {
  const std::size_t rank = pattern.shape(operand).size();
  AxisPath path = pattern.path(operand, rank);
  if (rank == kGrouped) {
    return along_c_e ? path.find(4, {0, 2, kRepeats, 1, 3}) : path.find(4, {0, 2, kRepeats, 3, 1});
  }
  if (rank != kFlat) return std::nullopt;
  AxisPath one_to_one = path;
  const std::optional<ValueId> direct =
      along_c_e ? one_to_one.find(4, {0, 2, 1, 3}) : one_to_one.find(4, {0, 2, 3, 1});
  if (direct) return direct;
  do {
    // Turned on the way, or not yet.
    const bool straight = path.follows(4, {0, 1, 2, 3});
    if (!straight && !path.follows(4, {0, 1, 3, 2})) continue;
    const std::optional<ValueId> groups = merged_groups(pattern, path);
    if (!groups) continue;
    AxisPath deep = pattern.path(*groups, kGrouped);
    return straight == along_c_e ? deep.find(4, {0, 2, kRepeats, 1, 3})
                                 : deep.find(4, {0, 2, kRepeats, 3, 1});
  } while (path.step());
  return std::nullopt;
}

bool is_cache_type(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

struct AttentionSite {
  Match match;
  int product = -1;       // the matmul with v
  bool in_order = false;  // its result is read only by the permute to [B,T,K,G,E]
};

// q [B,K,G,T,E] or [B,H,T,E], k [B,C,K,E], v [B,C,K,V], positions [B,T] or -1.
bool shapes_agree(const Pattern& pattern, ValueId q, ValueId k, ValueId v, ValueId positions) {
  const Type& q_type = pattern.type(q);
  const Type& k_type = pattern.type(k);
  const Type& v_type = pattern.type(v);
  const std::size_t rank = q_type.shape.size();
  if (q_type.dtype != DType::F32 || (rank != kGrouped && rank != kFlat)) return false;
  if (!is_cache_type(k_type.dtype) || k_type.dtype != v_type.dtype) return false;
  if (!std::equal(k_type.shape.begin(), k_type.shape.end() - 1, v_type.shape.begin(), v_type.shape.end() - 1))
    return false;
  const Shape& s = q_type.shape;
  const Shape& c = k_type.shape;
  if (positions >= 0 && !(pattern.type(positions) == Type{DType::I32, {s[0], s[rank - 2]}})) return false;
  const std::optional<std::int64_t> heads = s[1].as_constant();
  const std::optional<std::int64_t> kv_heads = c[2].as_constant();
  const bool groups = rank == kGrouped ? s[1] == c[2] : heads && kv_heads && *heads % *kv_heads == 0;
  return groups && s[0] == c[0] && s[rank - 1] == c[3];
}

std::optional<AttentionSite> match_site(const Graph& graph, const UseMap& uses, int node) {
  const Node& product = graph.nodes[static_cast<std::size_t>(node)];
  const std::size_t rank = graph.type(product.outputs[0]).shape.size();
  if (product.op != "matmul" || (rank != kGrouped && rank != kFlat)) return std::nullopt;
  Pattern pattern(graph, uses);
  pattern.take(product.outputs[0], "matmul");
  const std::optional<ValueId> v =
      find_cache(pattern, product.inputs[1], product.attributes.integer("transpose_b") == 0);
  if (!v) return std::nullopt;
  const std::optional<ValueId> masked = match_softmax(pattern, product.inputs[0]);
  const std::optional<Scores> scores = masked ? match_scores(pattern, *masked) : std::nullopt;
  if (!scores) return std::nullopt;
  const std::optional<ValueId> k =
      find_cache(pattern, scores->matmul->inputs[1], scores->matmul->attributes.integer("transpose_b") != 0);
  if (!k) return std::nullopt;
  ValueId q = scores->matmul->inputs[0];
  double scale = scores->scale;
  const int scores_node = uses.producer[static_cast<std::size_t>(scores->matmul->outputs[0])];
  if (const std::optional<Scaled> scaled = match_scale(pattern, q);
      scaled && uses.only_used_by(q, scores_node)) {
    if (pattern.take(q, "mul") == nullptr) pattern.take(q, "div");
    q = scaled->value;
    scale *= scaled->factor;
  }
  if (!shapes_agree(pattern, q, *k, *v, scores->visible.positions)) return std::nullopt;

  AttentionSite site;
  site.product = node;
  const ValueId result = product.outputs[0];
  const std::vector<int>& users = uses.users[static_cast<std::size_t>(result)];
  const Node* user = users.size() == 1 ? &graph.nodes[static_cast<std::size_t>(users[0])] : nullptr;
  site.in_order =
      user != nullptr && permutes_by(*user, tokens_first(rank)) && uses.only_used_by(result, users[0]);
  if (site.in_order) pattern.take(user->outputs[0], "permute");
  site.match = Match{pattern.nodes(),
                     {q, *k, *v},
                     site.in_order ? user->outputs[0] : result,
                     {{"scale", scores->softcap == 0 ? scale : scale * scores->softcap}}};
  if (scores->visible.positions >= 0) site.match.inputs.push_back(scores->visible.positions);
  if (scores->softcap != 0) site.match.attributes.set("softcap", scores->softcap);
  if (scores->visible.window != 0) site.match.attributes.set("window", scores->visible.window);
  return site;
}

Node permute_node(ValueId from, ValueId to, const std::vector<std::int64_t>& axes,
                  const std::string& module) {
  Node node;
  node.op = "permute";
  node.inputs = {from};
  node.outputs = {to};
  node.attributes.set("axes", axes);
  node.module = module;
  return node;
}

// Puts the permute to [B,T,K,G,E] and its inverse behind every result that is read in another order.
void bring_in_order(Graph& graph) {
  const UseMap uses(graph);
  std::vector<std::pair<int, Node>> added;
  const auto out_of_order = [](const Graph& g, const UseMap& u, int node) -> std::optional<Match> {
    std::optional<AttentionSite> site = match_site(g, u, node);
    if (!site || site->in_order) return std::nullopt;
    return std::move(site->match);
  };
  for (const Match& match : find_matches(graph, uses, out_of_order)) {
    const int index = uses.producer[static_cast<std::size_t>(match.output)];
    const std::string module = graph.nodes[static_cast<std::size_t>(index)].module;
    const Shape found = graph.type(match.output).shape;
    Shape wanted;
    for (const std::int64_t axis : tokens_first(found.size()))
      wanted.push_back(found[static_cast<std::size_t>(axis)]);
    const ValueId turned = graph.add_value({DType::F32, std::move(wanted)});
    const ValueId back = graph.add_value({DType::F32, found});
    replace_uses(graph, match.output, back);
    added.emplace_back(index + 1, permute_node(match.output, turned, tokens_first(found.size()), module));
    added.emplace_back(index + 1, permute_node(turned, back, heads_first(found.size()), module));
  }
  insert_before(graph, std::move(added));
}

std::optional<Match> match_attention_at(const Graph& graph, const UseMap& uses, int node) {
  std::optional<AttentionSite> site = match_site(graph, uses, node);
  if (!site || !site->in_order) return std::nullopt;
  return std::move(site->match);
}

Node reshape_node(ValueId from, ValueId to, const Shape& shape, const std::string& module) {
  Node node;
  node.op = "reshape";
  node.inputs = {from};
  node.outputs = {to};
  node.attributes.set("shape", shape);
  node.module = module;
  return node;
}

// The op takes q [B,K,G,T,E] and gives [B,T,K,G,V]: where the heads are in one axis, views stand around it,
// and in its body their inverses.
Status group_heads(Graph& graph) {
  std::vector<std::pair<int, Node>> added;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != "attention" || graph.type(graph.nodes[n].inputs[0]).shape.size() != kFlat)
      continue;
    Node& node = graph.nodes[n];
    const ValueId q = node.inputs[0];
    const ValueId result = node.outputs[0];
    const Shape flat = graph.type(q).shape;
    const Dim kv_heads = graph.type(node.inputs[1]).shape[2];
    const Dim groups(*flat[1].as_constant() / *kv_heads.as_constant());
    const Shape grouped{flat[0], kv_heads, groups, flat[2], flat[3]};
    const Shape given = graph.type(result).shape;  // [B,T,H,V]
    const Shape wanted{given[0], given[1], kv_heads, groups, given[3]};
    const ValueId grouped_q = graph.add_value({DType::F32, grouped});
    const ValueId grouped_result = graph.add_value({DType::F32, wanted});
    added.emplace_back(static_cast<int>(n), reshape_node(q, grouped_q, grouped, node.module));
    added.emplace_back(static_cast<int>(n) + 1, reshape_node(grouped_result, result, given, node.module));
    Graph body = *node.body;
    const ValueId inner_q = body.inputs[0].value;
    body.inputs[0].value = body.add_value({DType::F32, grouped});
    body.nodes.insert(body.nodes.begin(), reshape_node(body.inputs[0].value, inner_q, flat, {}));
    const ValueId inner_result = body.add_value({DType::F32, wanted});
    body.nodes.push_back(reshape_node(body.outputs[0].value, inner_result, wanted, {}));
    body.outputs[0].value = inner_result;
    node.inputs[0] = grouped_q;
    node.outputs[0] = grouped_result;
    node.body = std::make_shared<const Graph>(std::move(body));
  }
  insert_before(graph, std::move(added));
  return {};
}

}  // namespace

Status fuse_attention(Graph& graph, const PassContext& context) {
  bring_in_order(graph);
  HONE_TRY(fuse_matches(graph, "attention", match_attention_at, context));
  return group_heads(graph);
}

}  // namespace hone
