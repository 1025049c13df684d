// DeepSeek-V2 and V3 (arXiv 2405.04434, 2412.19437): multi-head latent attention, and routed experts beside
// shared ones behind the first layers.
//
//   c_q = rms_norm(Wqa h);  q = Wqb c_q      or q = Wq h        H heads of n + r
//   [c | k_r] = Wkva h      c [kv_rank] is normed, k_r [r] is one for all heads
//   [k | v] = Wkvb rms_norm(c)               H heads of n and of Ev
//   q = [q_n | rope(q_r)],  k = [k_n | rope(k_r)]               of E = n + r
//
// The cache holds the keys and values of every head, as they come out of Wkvb.
//
// GGUF files have Wkvb in two halves since 2025, Wkb [H,kv_rank,n] (turned) and Wvb [H,Ev,kv_rank]. There the
// halves move to the other side of the scores and of the sum over keys (section 2.1.2), and one head of keys
// and values serves all queries:
//
//   q_n . (Wkb^T c) = (Wkb q_n) . c             q = [Wkb q_n | rope(q_r)],  k = [c | rope(k_r)],  v = c
//   sum_c p_c (Wvb c) = Wvb (sum_c p_c c)       c normed
//
// The cache holds k alone, kv_rank + r numbers a token; v is its first columns.
#include <array>
#include <numeric>
#include <vector>

#include "model/axes.h"
#include "model/experts.h"
#include "model/families.h"

namespace hone {
namespace {

using axis::B;
using axis::T;

constexpr std::array kNames{
    PartName{"q_a_proj", "blk.{}.attn_q_a", "model.layers.{}.self_attn.q_a_proj"},
    PartName{"q_a_norm", "blk.{}.attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"},
    PartName{"q_b_proj", "blk.{}.attn_q_b", "model.layers.{}.self_attn.q_b_proj"},
    PartName{"kv_a_proj", "blk.{}.attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
    PartName{"kv_a_norm", "blk.{}.attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"},
    PartName{"kv_b_proj", "blk.{}.attn_kv_b", "model.layers.{}.self_attn.kv_b_proj"},
    PartName{"k_b_proj", "blk.{}.attn_k_b", ""},
    PartName{"v_b_proj", "blk.{}.attn_v_b", ""},
    PartName{"router", "blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    PartName{"router_bias", "blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.gate.e_score_correction_bias"},
    PartName{"expert_gate_proj", "blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.*.gate_proj"},
    PartName{"expert_up_proj", "blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.*.up_proj"},
    PartName{"expert_down_proj", "blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.*.down_proj"},
    PartName{"shared_gate_proj", "blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    PartName{"shared_up_proj", "blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    PartName{"shared_down_proj", "blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
};

// The norms of the low ranks have an eps of their own, which no key of the files says.
constexpr double kLowRankEps = 1e-6;

ValueId low_rank_norm(ModelBuilder& model, ValueId x, std::string_view part) {
  GraphBuilder& build = model.graph();
  const ValueId weight = model.weights().get_f32(part, {build.shape(x).back().as_constant().value_or(1)});
  const ValueId mean = build.reduce("reduce_mean", build.mul(x, x), -1);
  const ValueId scale = build.node("rsqrt", {build.add(mean, build.scalar(kLowRankEps))});
  return build.mul(build.mul(x, scale), weight);
}

// Wq h, or through the low rank: [B,T,H,n+r].
ValueId queries(ModelBuilder& model, ValueId h) {
  const ModelConfig& config = model.config();
  const std::int64_t width = config.heads * config.head_dim;
  const std::int64_t rank = config.latent.q_rank;
  const ValueId q =
      rank == 0
          ? model.linear(h, "q_proj", width, config.qkv_bias)
          : model.linear(low_rank_norm(model, model.linear(h, "q_a_proj", rank, config.qkv_bias), "q_a_norm"),
                         "q_b_proj", width);
  return model.graph().reshape(q, {B, T, Dim(config.heads), Dim(config.head_dim)});
}

// What the kv projection gives: the normed latent [B,T,kv_rank], and the turned keys of one head [B,T,1,r].
struct Latent {
  ValueId c = -1;
  ValueId turned_k = -1;
};

Latent project_latent(ModelBuilder& model, ValueId h) {
  const auto& [q_rank, rank, nope, rope, absorbed] = model.config().latent;
  const ValueId both = model.linear(h, "kv_a_proj", rank + rope, model.config().qkv_bias);
  const ValueId one_k =
      model.graph().reshape(model.columns(both, rank, rank + rope), {B, T, Dim(1), Dim(rope)});
  return {low_rank_norm(model, model.columns(both, 0, rank), "kv_a_norm"), model.rope(one_k)};
}

ValueId expanded_attention(ModelBuilder& model, ValueId h) {
  GraphBuilder& build = model.graph();
  const ModelConfig& config = model.config();
  const auto& [q_rank, rank, nope, rope, absorbed] = config.latent;
  const Dim heads(config.heads);
  const ValueId q = queries(model, h);
  const ValueId turned_q = model.rope(model.columns(q, nope, nope + rope));
  const ValueId all_q = build.concat({model.columns(q, 0, nope), turned_q}, 3);

  const Latent latent = project_latent(model, h);
  const ValueId turned_k =
      build.node("broadcast", {latent.turned_k}, {{"shape", Shape{B, T, heads, Dim(rope)}}});
  const std::int64_t each = nope + config.v_head_dim;
  const ValueId kv =
      build.reshape(model.linear(latent.c, "kv_b_proj", config.heads * each), {B, T, heads, Dim(each)});
  ModelBuilder::Projections out;
  out.q = build.reshape(all_q, {B, T, heads, Dim(1), Dim(config.head_dim)});
  out.k = build.concat({model.columns(kv, 0, nope), turned_k}, 3);
  out.v = model.columns(kv, nope, each);
  return model.attend(out);
}

// x [B,T,H,in] by the matrix of each head, the part [H,out,in]: [B,T,H,out].
ValueId by_head(ModelBuilder& model, ValueId x, std::string_view part, std::int64_t out) {
  GraphBuilder& build = model.graph();
  const GraphBuilder::Scope scope(build, part);
  const std::int64_t heads = model.config().heads;
  const std::int64_t in = build.shape(x).back().as_constant().value_or(1);
  std::vector<double> numbers(static_cast<std::size_t>(heads));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const ValueId head = build.node("broadcast", {build.constant(DType::I32, std::move(numbers), {Dim(heads)})},
                                  {{"shape", Shape{B, T, Dim(heads)}}});
  return build.node("expert_matmul", {x, model.weights().get(part, {heads, out, in}), head});
}

ValueId absorbed_attention(ModelBuilder& model, ValueId h) {
  GraphBuilder& build = model.graph();
  const ModelConfig& config = model.config();
  const auto& [q_rank, rank, nope, rope, absorbed] = config.latent;
  const Dim heads(config.heads);
  const ValueId q = queries(model, h);
  const ValueId turned_q = model.rope(model.columns(q, nope, nope + rope));
  const ValueId absorbed_q = by_head(model, model.columns(q, 0, nope), "k_b_proj", rank);
  const ValueId all_q =
      build.reshape(build.concat({absorbed_q, turned_q}, 3), {B, T, Dim(1), heads, Dim(rank + rope)});

  const Latent latent = project_latent(model, h);
  const ValueId rows = build.reshape(latent.c, {B, T, Dim(1), Dim(rank)});
  const ValueId mixed = model.attend_shared(all_q, build.concat({rows, latent.turned_k}, 3), rank);
  const ValueId out =
      by_head(model, build.reshape(mixed, {B, T, heads, Dim(rank)}), "v_b_proj", config.v_head_dim);
  return build.reshape(out, {B, T, Dim(config.heads * config.v_head_dim)});
}

ValueId attention(ModelBuilder& model, ValueId h) {
  const GraphBuilder::Scope scope(model.graph(), "attn");
  return model.project_output(model.config().latent.absorbed ? absorbed_attention(model, h)
                                                             : expanded_attention(model, h));
}

void describe(ModelConfig& config) {
  config.rope.interleaved = true;
  if (config.style == FileStyle::HuggingFace) config.tied = false;
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, attention(model, model.norm(x, "attention_norm")));
    x = model.add(x, routed_feed_forward(model, model.norm(x, "feed_forward_norm")));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "deepseek",
                         .gguf = "deepseek2",
                         .hugging_face = "deepseek_v2 deepseek_v3",
                         .names = kNames,
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& deepseek_family() {
  return kFamily;
}

}  // namespace hone
