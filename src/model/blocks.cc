#include "model/blocks.h"

#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "model/axes.h"

namespace hone {
namespace {

using axis::B;
using axis::R;
using axis::T;

}  // namespace

ModelBuilder::ModelBuilder(const Checkpoint& checkpoint, const ModelConfig& config,
                           std::span<const PartName> names, const BuildOptions& options)
    : config_(config),
      options_(options),
      build_(config.architecture, "BTCR"),
      weights_(checkpoint, config, names, build_) {
  ids_ = build_.input("ids", {DType::I32, {B, T}});
  positions_ = build_.input("positions", {DType::I32, {B, T}});
  rows_ = build_.input("rows", {DType::I32, {R}});
  if (config_.depends_on_length()) lengths_ = build_.input("lengths", {DType::I32, {B}});
}

ModelBuilder::Layer::Layer(ModelBuilder& model, std::int64_t index)
    : scope_(model.build_, fmt::format("layers.{}", index)) {
  model.layer_ = index;
  model.weights_.set_layer(index);
}

ValueId ModelBuilder::embed() {
  ValueId x = -1;
  {
    const GraphBuilder::Scope scope(build_, "embed_tokens");
    embedding_ = weights_.get("embed_tokens", {config_.vocabulary, config_.dim});
    x = build_.node("gather", {embedding_, ids_});
    if (config_.embedding_scale != 1) x = build_.mul(x, build_.scalar(config_.embedding_scale));
    if (options_.hidden_outputs) build_.output("hidden_embed", x);
  }
  rotary_tables();
  return x;
}

void ModelBuilder::rotary_tables() {
  const GraphBuilder::Scope scope(build_, "rotary");
  const auto tensor = [&](std::string_view part) {
    if (!weights_.has(part)) return ValueId{-1};
    return build_.cast(weights_.get(part, {config_.rope.dim / 2}), DType::F64);
  };
  RopeTensors tensors;
  if (config_.rope.kind == RopeKind::LongRope) {
    tensors.short_factors = tensor("rope_factors_short");
    tensors.long_factors = tensor("rope_factors_long");
  } else {
    tensors.freqs = tensor("rope_freqs");
  }
  rotary_ = rotary_table(build_, config_.rope, tensors, positions_, lengths_);
  if (config_.local_rope) {
    local_rotary_ = rotary_table(build_, *config_.local_rope, {}, positions_, lengths_);
  }
}

ValueId ModelBuilder::norm(ValueId x, std::string_view part) {
  const std::int64_t extent = build_.shape(x).back().as_constant().value_or(1);
  ValueId weight = weights_.get_f32(part, {extent});
  if (config_.norm_offset != 0) weight = build_.add(weight, build_.scalar(config_.norm_offset));
  const ValueId mean = build_.reduce("reduce_mean", build_.mul(x, x), -1);
  const ValueId scale = build_.node("rsqrt", {build_.add(mean, build_.scalar(config_.norm_eps))});
  return build_.mul(build_.mul(x, scale), weight);
}

ValueId ModelBuilder::linear(ValueId x, std::string_view part, std::int64_t out, Bias bias) {
  const GraphBuilder::Scope scope(build_, part);
  const std::int64_t in = build_.shape(x).back().as_constant().value_or(1);
  const ValueId y = build_.matmul_transposed(x, weights_.get(part, {out, in}));
  if (bias == Bias::None || (bias == Bias::IfPresent && !weights_.has(part, "bias"))) return y;
  return build_.add(y, weights_.get_f32(part, {out}, "bias"));
}

ValueId ModelBuilder::columns(ValueId x, std::int64_t begin, std::int64_t end) {
  const auto axis = static_cast<std::int64_t>(build_.shape(x).size()) - 1;
  return build_.slice(x, axis, Dim(begin), Dim(end));
}

ValueId ModelBuilder::activation(ValueId x) {
  if (config_.activation == Activation::Silu) {
    const ValueId one_plus = build_.add(build_.node("exp", {build_.node("neg", {x})}), build_.scalar(1));
    return build_.div(x, one_plus);
  }
  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
  const ValueId cube = build_.mul(build_.mul(x, x), x);
  const ValueId inner = build_.mul(build_.add(x, build_.mul(cube, build_.scalar(0.044715))),
                                   build_.scalar(std::sqrt(2 * std::numbers::inv_pi)));
  const ValueId factor = build_.add(build_.node("tanh", {inner}), build_.scalar(1));
  return build_.mul(build_.mul(x, build_.scalar(0.5)), factor);
}

ValueId ModelBuilder::softcap(ValueId x, double cap) {
  return build_.mul(build_.node("tanh", {build_.div(x, build_.scalar(cap))}), build_.scalar(cap));
}

ValueId ModelBuilder::gated(ValueId gate, ValueId up) {
  return linear(build_.mul(activation(gate), up), "down_proj", config_.dim, config_.feed_forward_bias);
}

ValueId ModelBuilder::feed_forward(ValueId h) {
  const GraphBuilder::Scope scope(build_, "mlp");
  const ValueId gate = linear(h, "gate_proj", config_.ffn, config_.feed_forward_bias);
  return gated(gate, linear(h, "up_proj", config_.ffn, config_.feed_forward_bias));
}

ValueId ModelBuilder::fused_feed_forward(ValueId h) {
  const GraphBuilder::Scope scope(build_, "mlp");
  const ValueId both = linear(h, "gate_up_proj", 2 * config_.ffn, config_.feed_forward_bias);
  return gated(columns(both, 0, config_.ffn), columns(both, config_.ffn, 2 * config_.ffn));
}

void ModelBuilder::end_layer(ValueId x) {
  if (options_.hidden_outputs) build_.output(fmt::format("hidden_{}", layer_), x);
}

void ModelBuilder::head(ValueId x) {
  const GraphBuilder::Scope scope(build_, "lm_head");
  const ValueId flat = build_.reshape(x, {B * T, Dim(config_.dim)});
  const ValueId h = norm(build_.node("gather", {flat, rows_}), "final_norm");  // [R,D]
  if (options_.hidden_outputs) build_.output("hidden_norm", h);
  const bool tied = config_.tied ? *config_.tied : !weights_.has("lm_head");
  if (tied) weights_.skip("lm_head");
  const ValueId out = tied ? embedding_ : weights_.get("lm_head", {config_.vocabulary, config_.dim});
  ValueId logits = build_.matmul_transposed(h, out);
  if (config_.final_softcap != 0) logits = softcap(logits, config_.final_softcap);
  build_.output("logits", logits);
}

Result<Graph> ModelBuilder::finish() {
  HONE_TRY(weights_.check());
  return build_.finish();
}

}  // namespace hone
