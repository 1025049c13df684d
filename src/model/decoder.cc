#include "model/decoder.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "graph/builder.h"
#include "model/weights.h"

namespace hone {
namespace {

const Dim B = Dim::symbol('B');  // NOLINT(readability-identifier-naming): the axis letters of docs/words.md
const Dim T = Dim::symbol('T');  // NOLINT(readability-identifier-naming)
const Dim C = Dim::symbol('C');  // NOLINT(readability-identifier-naming)
const Dim R = Dim::symbol('R');  // NOLINT(readability-identifier-naming)

class Decoder {
 public:
  Decoder(const Checkpoint& checkpoint, const ModelConfig& config, const BuildOptions& options)
      : config_(config),
        options_(options),
        build_(config.architecture, "BTCR"),
        weights_(checkpoint, build_) {}

  Result<Graph> build() {
    const ValueId ids = build_.input("ids", {DType::I32, {B, T}});
    positions_ = build_.input("positions", {DType::I32, {B, T}});
    const ValueId rows = build_.input("rows", {DType::I32, {R}});
    ValueId x = embed(ids);  // [B,T,D]
    rotary_tables();
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const GraphBuilder::Scope scope(build_, fmt::format("layers.{}", i));
      x = layer(x, i);
      if (options_.hidden_outputs) build_.output(fmt::format("hidden_{}", i), x);
    }
    head(x, rows);
    HONE_TRY(weights_.check());
    return build_.finish();
  }

 private:
  ValueId embed(ValueId ids) {
    const GraphBuilder::Scope scope(build_, "embed_tokens");
    embedding_ = weights_.get("token_embd.weight", {config_.vocabulary, config_.dim});
    const ValueId x = build_.node("gather", {embedding_, ids});
    if (options_.hidden_outputs) build_.output("hidden_embed", x);
    return x;
  }

  // cos and sin of position * theta^(-2i/R), i < R/2, in f64: in f32 the angle alone would be off by position
  // * 2^-24, 1e-4 at position 2000.
  void rotary_tables() {
    const GraphBuilder::Scope scope(build_, "rotary");
    const std::int64_t half = config_.rotary_dim / 2;
    std::vector<double> inverse_frequencies;
    for (std::int64_t i = 0; i < half; ++i) {
      inverse_frequencies.push_back(std::pow(
          config_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(config_.rotary_dim)));
    }
    ValueId frequencies = build_.constant(DType::F64, std::move(inverse_frequencies), {Dim(half)});
    if (weights_.has("rope_freqs.weight")) {
      // Llama 3's scaling, stored as the number by which each frequency is divided.
      frequencies =
          build_.div(frequencies, build_.cast(weights_.get("rope_freqs.weight", {half}), DType::F64));
    }
    const ValueId positions = build_.reshape(build_.cast(positions_, DType::F64), {B, T, Dim(1)});
    const ValueId angles = build_.mul(positions, frequencies);  // [B,T,R/2]
    cos_ = build_.cast(build_.node("cos", {angles}), DType::F32);
    sin_ = build_.cast(build_.node("sin", {angles}), DType::F32);
  }

  // x * (mean(x^2) + eps)^(-1/2) * w along the last axis (Zhang and Sennrich 2019).
  ValueId norm(ValueId x, const std::string& name, std::int64_t extent) {
    const ValueId weight = weights_.get_f32(name, {extent});
    const ValueId mean = build_.reduce("reduce_mean", build_.mul(x, x), -1);
    const ValueId scale = build_.node("rsqrt", {build_.add(mean, build_.scalar(config_.norm_eps))});
    return build_.mul(build_.mul(x, scale), weight);
  }

  // x W^T (+ b), W [out,in].
  ValueId linear(ValueId x, const std::string& name, std::int64_t out, std::int64_t in) {
    const ValueId y = build_.matmul_transposed(x, weights_.get(name + ".weight", {out, in}));
    if (!weights_.has(name + ".bias")) return y;
    return build_.add(y, weights_.get_f32(name + ".bias", {out}));
  }

  // Rotary position embedding (Su et al. 2021) of x [B,T,(heads..),E].
  ValueId rope(ValueId x) {
    const Shape shape = build_.shape(x);
    const auto axis = static_cast<std::int64_t>(shape.size()) - 1;
    const std::int64_t half = config_.rotary_dim / 2;
    Shape table{B, T};
    table.resize(shape.size() - 1, Dim(1));
    table.push_back(Dim(half));
    const ValueId cos = build_.reshape(cos_, table);
    const ValueId sin = build_.reshape(sin_, table);
    const bool partial = config_.rotary_dim < config_.head_dim;
    ValueId turning = partial ? build_.slice(x, axis, Dim(0), Dim(config_.rotary_dim)) : x;
    const auto turn = [&](ValueId first, ValueId second) {
      const ValueId a = build_.sub(build_.mul(first, cos), build_.mul(second, sin));
      const ValueId b = build_.add(build_.mul(second, cos), build_.mul(first, sin));
      return std::pair{a, b};
    };
    ValueId turned = 0;
    if (config_.rope_interleaved) {
      Shape pairs(shape.begin(), shape.end() - 1);
      pairs.push_back(Dim(half));
      const Shape single = pairs;
      pairs.push_back(Dim(2));
      turning = build_.reshape(turning, pairs);
      const auto [a, b] = turn(build_.reshape(build_.slice(turning, axis + 1, Dim(0), Dim(1)), single),
                               build_.reshape(build_.slice(turning, axis + 1, Dim(1), Dim(2)), single));
      Shape column = single;
      column.push_back(Dim(1));
      Shape whole(shape.begin(), shape.end() - 1);
      whole.push_back(Dim(config_.rotary_dim));
      turned = build_.reshape(build_.concat({build_.reshape(a, column), build_.reshape(b, column)}, axis + 1),
                              whole);
    } else {
      const auto [a, b] = turn(build_.slice(turning, axis, Dim(0), Dim(half)),
                               build_.slice(turning, axis, Dim(half), Dim(config_.rotary_dim)));
      turned = build_.concat({a, b}, axis);
    }
    if (!partial) return turned;
    return build_.concat({turned, build_.slice(x, axis, Dim(config_.rotary_dim), Dim(config_.head_dim))},
                         axis);
  }

  // One of q, k, v: projected, cut into heads, normed and turned where the model does that.
  ValueId heads(ValueId h, const std::string& block, std::string_view letter, const Shape& shape,
                std::int64_t count) {
    const GraphBuilder::Scope scope(build_, fmt::format("{}_proj", letter));
    const std::string name = fmt::format("{}.attn_{}", block, letter);
    ValueId x = build_.reshape(linear(h, name, count * config_.head_dim, config_.dim), shape);
    const std::string norm_name = name + "_norm.weight";
    if (weights_.has(norm_name)) x = norm(x, norm_name, config_.head_dim);
    return letter == "v" ? x : rope(x);
  }

  // Appends rows [B,T,K,E] to a state and returns it as [B,K,1,C,E].
  ValueId remember(std::string_view letter, std::int64_t index, ValueId rows) {
    const Dim kv_heads(config_.kv_heads);
    const Dim head_dim(config_.head_dim);
    const std::string name = fmt::format("{}.{}", letter, index);
    const ValueId state = build_.state(name, {DType::F32, {B, C, kv_heads, head_dim}});
    const ValueId all = build_.node("state_append", {state, rows, positions_});
    build_.update(name, all);
    return build_.reshape(build_.permute(all, {0, 2, 1, 3}), {B, kv_heads, Dim(1), C, head_dim});
  }

  ValueId attention(ValueId h, const std::string& block, std::int64_t index) {
    const GraphBuilder::Scope scope(build_, "attn");
    const Dim kv_heads(config_.kv_heads);               // K
    const Dim group(config_.heads / config_.kv_heads);  // G
    const Dim head_dim(config_.head_dim);               // E
    ValueId q = heads(h, block, "q", {B, T, kv_heads, group, head_dim}, config_.heads);
    q = build_.permute(q, {0, 2, 3, 1, 4});  // [B,K,G,T,E]
    const Shape kv_shape{B, T, kv_heads, head_dim};
    const ValueId k = remember("k", index, heads(h, block, "k", kv_shape, config_.kv_heads));
    const ValueId v = remember("v", index, heads(h, block, "v", kv_shape, config_.kv_heads));
    ValueId scores = build_.matmul_transposed(q, k);  // [B,K,G,T,C]
    scores = build_.mul(scores, build_.scalar(1.0 / std::sqrt(static_cast<double>(config_.head_dim))));
    const ValueId positions = build_.reshape(positions_, {B, Dim(1), Dim(1), T, Dim(1)});
    const ValueId visible = build_.node("less_equal", {build_.iota({C}, 0), positions});
    scores = build_.select(visible, scores, build_.scalar(-std::numeric_limits<double>::infinity()));
    const ValueId shifted = build_.sub(scores, build_.reduce("reduce_max", scores, -1));
    const ValueId weights = build_.node("exp", {shifted});
    const ValueId probabilities = build_.div(weights, build_.reduce("reduce_sum", weights, -1));
    ValueId out = build_.matmul(probabilities, v);  // [B,K,G,T,E]
    out = build_.reshape(build_.permute(out, {0, 3, 1, 2, 4}), {B, T, Dim(config_.heads * config_.head_dim)});
    const GraphBuilder::Scope projection(build_, "o_proj");
    return linear(out, block + ".attn_output", config_.dim, config_.heads * config_.head_dim);
  }

  ValueId feed_forward(ValueId h, const std::string& block) {
    const GraphBuilder::Scope scope(build_, "mlp");
    const ValueId gate = linear(h, block + ".ffn_gate", config_.ffn, config_.dim);
    const ValueId up = linear(h, block + ".ffn_up", config_.ffn, config_.dim);
    const ValueId one_plus = build_.add(build_.node("exp", {build_.node("neg", {gate})}), build_.scalar(1));
    const ValueId silu = build_.div(gate, one_plus);
    return linear(build_.mul(silu, up), block + ".ffn_down", config_.dim, config_.ffn);
  }

  ValueId layer(ValueId x, std::int64_t index) {
    const std::string block = fmt::format("blk.{}", index);
    x = build_.add(x, attention(norm(x, block + ".attn_norm.weight", config_.dim), block, index));
    return build_.add(x, feed_forward(norm(x, block + ".ffn_norm.weight", config_.dim), block));
  }

  void head(ValueId x, ValueId rows) {
    const GraphBuilder::Scope scope(build_, "lm_head");
    const ValueId flat = build_.reshape(x, {B * T, Dim(config_.dim)});
    const ValueId wanted = build_.node("gather", {flat, rows});  // [R,D]
    const ValueId h = norm(wanted, "output_norm.weight", config_.dim);
    if (options_.hidden_outputs) build_.output("hidden_norm", h);
    // Tied: the embedding serves as output matrix where the file has no other.
    const bool tied = !weights_.has("output.weight");
    const ValueId out = tied ? embedding_ : weights_.get("output.weight", {config_.vocabulary, config_.dim});
    build_.output("logits", build_.matmul_transposed(h, out));
  }

  const ModelConfig& config_;
  const BuildOptions& options_;
  GraphBuilder build_;
  Weights weights_;
  ValueId positions_ = 0;
  ValueId embedding_ = 0;
  ValueId cos_ = 0;
  ValueId sin_ = 0;
};

}  // namespace

Result<Graph> build_decoder(const Checkpoint& checkpoint, const ModelConfig& config,
                            const BuildOptions& options) {
  return Decoder(checkpoint, config, options).build();
}

}  // namespace hone
