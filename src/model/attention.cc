// Attention of the ModelBuilder: grouped heads over keys and values that outlive the step.
#include <fmt/format.h>
#include <limits>

#include "model/axes.h"
#include "model/blocks.h"

namespace hone {
namespace {

using axis::B;
using axis::C;
using axis::T;

}  // namespace

ModelBuilder::Projections ModelBuilder::project(ValueId h) {
  const ValueId q = linear(h, "q_proj", config_.heads * config_.head_dim, config_.qkv_bias);
  const ValueId k = linear(h, "k_proj", config_.kv_heads * config_.head_dim, config_.qkv_bias);
  return {q, k, linear(h, "v_proj", config_.kv_heads * config_.v_head_dim, config_.qkv_bias)};
}

ModelBuilder::Projections ModelBuilder::project_fused(ValueId h) {
  const std::int64_t q_end = config_.heads * config_.head_dim;
  const std::int64_t k_end = q_end + config_.kv_heads * config_.head_dim;
  const std::int64_t v_end = k_end + config_.kv_heads * config_.v_head_dim;
  const ValueId all = linear(h, "qkv_proj", v_end, config_.qkv_bias);
  const ValueId q = columns(all, 0, q_end);
  const ValueId k = columns(all, q_end, k_end);
  return {q, k, columns(all, k_end, v_end)};
}

ModelBuilder::Projections ModelBuilder::cut_heads(Projections flat) {
  const Dim kv_heads(config_.kv_heads);
  const Dim group(config_.heads / config_.kv_heads);
  const ValueId q = build_.reshape(flat.q, {B, T, kv_heads, group, Dim(config_.head_dim)});
  const ValueId k = build_.reshape(flat.k, {B, T, kv_heads, Dim(config_.head_dim)});
  return {q, k, build_.reshape(flat.v, {B, T, kv_heads, Dim(config_.v_head_dim)})};
}

ModelBuilder::Projections ModelBuilder::turn(Projections heads) {
  const ValueId q = rope(heads.q);
  return {q, rope(heads.k), heads.v};
}

ValueId ModelBuilder::rope(ValueId x) {
  const bool local = config_.local_rope.has_value() && config_.slides(layer_);
  return rotate(build_, local ? *config_.local_rope : config_.rope, local ? local_rotary_ : rotary_, x);
}

// Appends rows [B,T,K,E] to a state: [B,C,K,E].
ValueId ModelBuilder::remember(std::string_view letter, ValueId rows) {
  const Shape shape = build_.shape(rows);
  const std::string name = fmt::format("{}.{}", letter, layer_);
  const ValueId state = build_.state(name, {DType::F32, {B, C, shape[2], shape[3]}});
  const ValueId all = build_.node("state_append", {state, rows, positions_});
  build_.update(name, all);
  return all;
}

// [B,C,K,E] as [B,K,1,C,E].
ValueId ModelBuilder::heads_first(ValueId rows) {
  const Shape shape = build_.shape(rows);
  return build_.reshape(build_.permute(rows, {0, 2, 1, 3}), {B, shape[2], Dim(1), C, shape[3]});
}

// bool [B,1,1,T,C]: key c <= position, and position - window < c in a layer that slides.
ValueId ModelBuilder::visible_keys() {
  const ValueId positions = build_.reshape(positions_, {B, Dim(1), Dim(1), T, Dim(1)});
  const ValueId keys = build_.iota({C}, 0);
  const ValueId causal = build_.node("less_equal", {keys, positions});
  // A window as long as the context hides nothing.
  const bool hides = config_.any_context || config_.sliding_window < config_.context_length;
  if (!config_.slides(layer_) || !hides) return causal;
  const ValueId window = build_.scalar(static_cast<double>(config_.sliding_window), DType::I32);
  return build_.node("and", {causal, build_.node("less", {build_.sub(positions, window), keys})});
}

ValueId ModelBuilder::attend(const Projections& heads) {
  const ValueId all_k = heads_first(remember("k", heads.k));
  const ValueId all_v = heads_first(remember("v", heads.v));
  return attend_to(heads.q, all_k, all_v);
}

ValueId ModelBuilder::attend_shared(ValueId q, ValueId kv, std::int64_t v_dim) {
  const ValueId all = remember("k", kv);
  const ValueId all_k = heads_first(all);
  const ValueId all_v = heads_first(columns(all, 0, v_dim));
  return attend_to(q, all_k, all_v);
}

// q [B,T,K,G,E], all_k [B,K,1,C,E], all_v [B,K,1,C,Ev]: [B,T,H*Ev].
ValueId ModelBuilder::attend_to(ValueId tokens_first_q, ValueId all_k, ValueId all_v) {
  const ValueId q = build_.permute(tokens_first_q, {0, 2, 3, 1, 4});  // [B,K,G,T,E]
  ValueId scores = build_.matmul_transposed(q, all_k);                // [B,K,G,T,C]
  scores = build_.mul(scores, build_.scalar(config_.attention_scale));
  if (config_.attention_softcap != 0) scores = softcap(scores, config_.attention_softcap);
  scores = build_.select(visible_keys(), scores, build_.scalar(-std::numeric_limits<double>::infinity()));
  const ValueId shifted = build_.sub(scores, build_.reduce("reduce_max", scores, -1));
  const ValueId weights = build_.node("exp", {shifted});
  const ValueId probabilities = build_.div(weights, build_.reduce("reduce_sum", weights, -1));
  const ValueId out = build_.matmul(probabilities, all_v);  // [B,K,G,T,Ev]
  const Dim width = Dim(config_.heads) * build_.shape(all_v).back();
  return build_.reshape(build_.permute(out, {0, 3, 1, 2, 4}), {B, T, width});
}

ValueId ModelBuilder::attention(ValueId h) {
  const GraphBuilder::Scope scope(build_, "attn");
  return project_output(attend(turn(cut_heads(project(h)))));
}

ValueId ModelBuilder::head_normed_attention(ValueId h) {
  const GraphBuilder::Scope scope(build_, "attn");
  Projections heads = cut_heads(project(h));
  heads.q = norm(heads.q, "q_norm");
  heads.k = norm(heads.k, "k_norm");
  return project_output(attend(turn(heads)));
}

ValueId ModelBuilder::fused_attention(ValueId h) {
  const GraphBuilder::Scope scope(build_, "attn");
  return project_output(attend(turn(cut_heads(project_fused(h)))));
}

ValueId ModelBuilder::project_output(ValueId x) {
  return linear(x, "o_proj", config_.dim, config_.o_bias);
}

}  // namespace hone
