#include "model/experts.h"

#include <algorithm>
#include <limits>

#include "model/axes.h"

namespace hone {
namespace {

using axis::B;
using axis::T;

ValueId sigmoid(GraphBuilder& build, ValueId x) {
  const ValueId one = build.scalar(1);
  return build.div(one, build.add(one, build.node("exp", {build.node("neg", {x})})));
}

ValueId softmax(GraphBuilder& build, ValueId x) {
  const ValueId weights = build.node("exp", {build.sub(x, build.reduce("reduce_max", x, -1))});
  return build.div(weights, build.reduce("reduce_sum", weights, -1));
}

ValueId top_k(GraphBuilder& build, ValueId x, std::int64_t k) {
  return build.node("top_k", {x}, {{"k", k}});
}

ValueId take(GraphBuilder& build, ValueId x, ValueId indices) {
  return build.node("take_along_axis", {x, indices}, {{"axis", std::int64_t{-1}}});
}

// scores [B,T,X] with the experts outside of the token's best groups at -inf.
ValueId only_best_groups(GraphBuilder& build, const ExpertConfig& experts, ValueId scores) {
  const Dim groups(experts.groups);
  const Dim size(experts.count / experts.groups);
  const ValueId grouped = build.reshape(scores, {B, T, groups, size});
  ValueId best = -1;  // [B,T,groups,1]
  if (experts.sigmoid) {
    best = build.reduce("reduce_sum", take(build, grouped, top_k(build, grouped, 2)), -1);
  } else {
    best = build.reduce("reduce_max", grouped, -1);
  }
  const ValueId chosen = top_k(build, build.reshape(best, {B, T, groups}), experts.groups_per_token);
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(experts.groups));
  for (std::int64_t i = 0; i < experts.groups; ++i) numbers.push_back(static_cast<double>(i));
  const ValueId group = build.constant(DType::I32, std::move(numbers), {groups});
  ValueId inside = -1;  // bool [B,T,groups]
  for (std::int64_t j = 0; j < experts.groups_per_token; ++j) {
    const ValueId is_chosen = build.node("equal", {build.slice(chosen, 2, Dim(j), Dim(j + 1)), group});
    inside = j == 0 ? is_chosen : build.node("or", {inside, is_chosen});
  }
  const ValueId hidden = build.scalar(-std::numeric_limits<double>::infinity());
  const ValueId limited = build.select(build.reshape(inside, {B, T, groups, Dim(1)}), grouped, hidden);
  return build.reshape(limited, {B, T, Dim(experts.count)});
}

struct Routes {
  ValueId experts = -1;  // i32 [B,T,J]
  ValueId weights = -1;  // f32 [B,T,J]
};

Routes route(ModelBuilder& model, ValueId h) {
  GraphBuilder& build = model.graph();
  const ExpertConfig& experts = model.config().experts;
  const GraphBuilder::Scope scope(build, "router");
  const ValueId logits = model.linear(h, "router", experts.count);
  const ValueId scores = experts.sigmoid ? sigmoid(build, logits) : softmax(build, logits);
  ValueId ranked = scores;
  if (model.weights().has("router_bias", "")) {
    ranked = build.add(ranked, model.weights().get_f32("router_bias", {experts.count}, ""));
  }
  if (experts.groups_per_token < experts.groups) ranked = only_best_groups(build, experts, ranked);
  const ValueId chosen = top_k(build, ranked, experts.per_token);
  ValueId weights = take(build, scores, chosen);
  if (experts.normalise) weights = build.div(weights, build.reduce("reduce_sum", weights, -1));
  if (experts.scale != 1) weights = build.mul(weights, build.scalar(experts.scale));
  return {chosen, weights};
}

// silu(gate) * up, times W_down^T, by the experts chosen for each row and weighted: [B,T,D].
ValueId routed(ModelBuilder& model, ValueId h) {
  GraphBuilder& build = model.graph();
  const ExpertConfig& experts = model.config().experts;
  const Dim dim(model.config().dim);
  const Routes routes = route(model, h);
  const GraphBuilder::Scope scope(build, "experts");
  const ValueId rows = build.reshape(h, {B, T, Dim(1), dim});
  const auto by_experts = [&](ValueId x, std::string_view part, std::int64_t out, std::int64_t in) {
    const GraphBuilder::Scope inner(build, part.substr(7));
    return build.node("expert_matmul",
                      {x, model.weights().get(part, {experts.count, out, in}), routes.experts});
  };
  const ValueId gate = by_experts(rows, "expert_gate_proj", experts.ffn, model.config().dim);
  const ValueId up = by_experts(rows, "expert_up_proj", experts.ffn, model.config().dim);
  const ValueId out =
      by_experts(build.mul(model.activation(gate), up), "expert_down_proj", model.config().dim,
                 experts.ffn);  // [B,T,J,D]
  const ValueId weights = build.reshape(routes.weights, {B, T, Dim(1), Dim(experts.per_token)});
  return build.reshape(build.matmul(weights, out), {B, T, dim});
}

ValueId shared(ModelBuilder& model, ValueId h) {
  GraphBuilder& build = model.graph();
  const GraphBuilder::Scope scope(build, "shared");
  const std::int64_t width = model.config().experts.shared_ffn;
  const ValueId gate = model.linear(h, "shared_gate_proj", width);
  const ValueId up = model.linear(h, "shared_up_proj", width);
  const ValueId out =
      model.linear(build.mul(model.activation(gate), up), "shared_down_proj", model.config().dim);
  if (!model.weights().has("shared_router")) return out;
  // GGUF files hold the one row as a vector.
  const bool vector = model.config().style == FileStyle::Gguf;
  const std::int64_t dim = model.config().dim;
  ValueId row =
      model.weights().get_f32("shared_router", vector ? std::vector{dim} : std::vector{std::int64_t{1}, dim});
  if (vector) row = build.reshape(row, {Dim(1), Dim(dim)});
  return build.mul(out, sigmoid(build, build.matmul_transposed(h, row)));
}

}  // namespace

bool has_experts(const ExpertConfig& experts, std::int64_t layer) {
  if (experts.count == 0 || layer < experts.first_layer) return false;
  const auto& dense = experts.dense_layers;
  if (std::find(dense.begin(), dense.end(), layer) != dense.end()) return false;
  return (layer + 1) % std::max<std::int64_t>(experts.layer_step, 1) == 0;
}

ValueId routed_feed_forward(ModelBuilder& model, ValueId h) {
  const ExpertConfig& experts = model.config().experts;
  if (!has_experts(experts, model.layer())) return model.feed_forward(h);
  const GraphBuilder::Scope scope(model.graph(), "mlp");
  const ValueId y = routed(model, h);
  return experts.shared_ffn == 0 ? y : model.add(y, shared(model, h));
}

}  // namespace hone
