#include "passes/fuse_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/attention_mask.h"
#include "passes/fuse_softmax.h"
#include "passes/match.h"

namespace hone {
namespace {

constexpr std::size_t kRank = 5;  // of q, of the scores and of the result: [B,K,G,T,.]
const std::vector<std::int64_t> kTokensFirst{0, 3, 1, 2, 4};  // [B,K,G,T,E] -> [B,T,K,G,E]
const std::vector<std::int64_t> kHeadsFirst{0, 2, 3, 1, 4};   // its inverse

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
  if (!scores.visible.causal) return std::nullopt;
  return scores;
}

// The keys [B,C,K,E] or values [B,C,K,V] behind a matmul's right operand. `along_c_e`: the operand is
// [B,K,G,C,E], else [B,K,G,E,C].
std::optional<ValueId> find_cache(const Pattern& pattern, ValueId operand, bool along_c_e) {
  AxisPath path = pattern.path(operand, kRank);
  if (pattern.shape(operand).size() != kRank) return std::nullopt;
  return along_c_e ? path.find(4, {0, 2, kRepeats, 1, 3}) : path.find(4, {0, 2, kRepeats, 3, 1});
}

bool is_cache_type(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

struct Site {
  Match match;
  int product = -1;       // the matmul with v
  bool in_order = false;  // its result is read only by the permute to [B,T,K,G,E]
};

// q [B,K,G,T,E], k [B,C,K,E], v [B,C,K,V], positions [B,T].
bool shapes_agree(const Pattern& pattern, ValueId q, ValueId k, ValueId v, ValueId positions) {
  const Type& q_type = pattern.type(q);
  const Type& k_type = pattern.type(k);
  const Type& v_type = pattern.type(v);
  if (q_type.dtype != DType::F32 || q_type.shape.size() != kRank) return false;
  if (!is_cache_type(k_type.dtype) || k_type.dtype != v_type.dtype) return false;
  if (!std::equal(k_type.shape.begin(), k_type.shape.end() - 1, v_type.shape.begin(), v_type.shape.end() - 1))
    return false;
  const Shape& s = q_type.shape;
  const Shape& c = k_type.shape;
  const Type wanted{DType::I32, {s[0], s[3]}};
  return s[0] == c[0] && s[1] == c[2] && s[4] == c[3] && pattern.type(positions) == wanted;
}

std::optional<Site> match_site(const Graph& graph, const UseMap& uses, int node) {
  const Node& product = graph.nodes[static_cast<std::size_t>(node)];
  if (product.op != "matmul" || graph.type(product.outputs[0]).shape.size() != kRank) return std::nullopt;
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

  Site site;
  site.product = node;
  const ValueId result = product.outputs[0];
  const std::vector<int>& users = uses.users[static_cast<std::size_t>(result)];
  const Node* user = users.size() == 1 ? &graph.nodes[static_cast<std::size_t>(users[0])] : nullptr;
  site.in_order = user != nullptr && permutes_by(*user, kTokensFirst) && uses.only_used_by(result, users[0]);
  if (site.in_order) pattern.take(user->outputs[0], "permute");
  site.match = Match{pattern.nodes(),
                     {q, *k, *v, scores->visible.positions},
                     site.in_order ? user->outputs[0] : result,
                     {{"scale", scores->softcap == 0 ? scale : scale * scores->softcap}}};
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
    std::optional<Site> site = match_site(g, u, node);
    if (!site || site->in_order) return std::nullopt;
    return std::move(site->match);
  };
  for (const Match& match : find_matches(graph, uses, out_of_order)) {
    const int index = uses.producer[static_cast<std::size_t>(match.output)];
    const std::string module = graph.nodes[static_cast<std::size_t>(index)].module;
    const Shape heads_first = graph.type(match.output).shape;
    Shape tokens_first;
    for (const std::int64_t axis : kTokensFirst)
      tokens_first.push_back(heads_first[static_cast<std::size_t>(axis)]);
    const ValueId turned = graph.add_value({DType::F32, std::move(tokens_first)});
    const ValueId back = graph.add_value({DType::F32, heads_first});
    replace_uses(graph, match.output, back);
    added.emplace_back(index + 1, permute_node(match.output, turned, kTokensFirst, module));
    added.emplace_back(index + 1, permute_node(turned, back, kHeadsFirst, module));
  }
  insert_before(graph, std::move(added));
}

std::optional<Match> match_attention_at(const Graph& graph, const UseMap& uses, int node) {
  std::optional<Site> site = match_site(graph, uses, node);
  if (!site || !site->in_order) return std::nullopt;
  return std::move(site->match);
}

}  // namespace

Status fuse_attention(Graph& graph, const PassContext&) {
  bring_in_order(graph);
  return fuse_matches(graph, "attention", match_attention_at);
}

}  // namespace hone
