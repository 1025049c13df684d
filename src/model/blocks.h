// The blocks that the families are composed of, from primitive ops. A family's file reads as its equations.
//
// Axes: B sequences, T tokens of the step, C context, R rows of logits, D model, H heads, K kv heads, G =
// H/K, E of a head, F feed-forward, V vocabulary.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/builder.h"
#include "model/config.h"
#include "model/names.h"
#include "model/rotary.h"
#include "model/weights.h"

namespace hone {

struct BuildOptions {
  // Adds the outputs hidden_embed, hidden_0 .. [B,T,D] and hidden_norm [R,D].
  bool hidden_outputs = false;
};

class ModelBuilder {
 public:
  // Declares the inputs ids, positions, rows, and lengths where the rotary table depends on it.
  ModelBuilder(const Checkpoint& checkpoint, const ModelConfig& config, std::span<const PartName> names,
               const BuildOptions& options);

  const ModelConfig& config() const { return config_; }
  GraphBuilder& graph() { return build_; }
  Weights& weights() { return weights_; }

  // Layer `index`, while it lives: its weights, its states, the module path of its nodes.
  class Layer {
   public:
    Layer(ModelBuilder& model, std::int64_t index);

   private:
    GraphBuilder::Scope scope_;
  };
  std::int64_t layer() const { return layer_; }

  // The embedding rows of ids, times embedding_scale: [B,T,D].
  ValueId embed();
  ValueId add(ValueId a, ValueId b) { return build_.add(a, b); }
  ValueId mul(ValueId a, ValueId b) { return build_.mul(a, b); }

  // x * (mean(x^2) + eps)^(-1/2) * (offset + w) along the last axis (Zhang and Sennrich 2019).
  ValueId norm(ValueId x, std::string_view part);
  // x W^T (+ b), W [out, last axis of x].
  ValueId linear(ValueId x, std::string_view part, std::int64_t out, Bias bias = Bias::None);
  // Columns [begin, end) of the last axis: one projection out of a fused one.
  ValueId columns(ValueId x, std::int64_t begin, std::int64_t end);

  // q, k and v of a layer.
  struct Projections {
    ValueId q = -1;
    ValueId k = -1;
    ValueId v = -1;
  };
  // h [B,T,D] projected by q_proj, k_proj, v_proj with config.qkv_bias: [B,T,H*E], [B,T,K*E], [B,T,K*Ev].
  Projections project(ValueId h);
  // The same by qkv_proj, whose rows are those of q, then k, then v.
  Projections project_fused(ValueId h);
  // Cut into heads: q [B,T,K,G,E], k [B,T,K,E], v [B,T,K,Ev].
  Projections cut_heads(Projections flat);
  // q and k of heads turned by their positions.
  Projections turn(Projections heads);

  // x [B,T,..,E] turned by its position; a sliding layer turns by config.local_rope where that is given.
  ValueId rope(ValueId x);

  // softmax(scale q k^T, keys that the layer sees) v of turned heads, with k and v appended to the states
  // k.LAYER and v.LAYER: [B,T,H*Ev]. A layer sees the keys at or before the token, if it slides the last
  // sliding_window of them.
  ValueId attend(const Projections& heads);
  // The same of q [B,T,K,G,E] and kv [B,T,K,E], which is appended to the state k.LAYER alone: the first v_dim
  // columns of the keys are the values. [B,T,H*v_dim].
  ValueId attend_shared(ValueId q, ValueId kv, std::int64_t v_dim);
  // o_proj of what attend() gives: [B,T,D].
  ValueId project_output(ValueId x);
  // All of it, for layers that do nothing else to q, k and v.
  ValueId attention(ValueId h);
  // The same with a norm over each head of q and k before they turn.
  ValueId head_normed_attention(ValueId h);
  // The same with q, k and v in one matrix.
  ValueId fused_attention(ValueId h);

  // act(gate) * up of both [..,F], times W_down^T: [B,T,D].
  ValueId feed_forward(ValueId h);
  // The same with gate and up in one matrix, gate's rows first.
  ValueId fused_feed_forward(ValueId h);
  ValueId activation(ValueId x);
  // cap * tanh(x / cap)
  ValueId softcap(ValueId x, double cap);

  // What is asked for after a layer: its hidden state.
  void end_layer(ValueId x);
  // The final norm of the wanted rows, the output matrix, the outputs `logits` [R,V] and hidden_norm.
  void head(ValueId x);

  Result<Graph> finish();

 private:
  friend class Layer;
  ValueId remember(std::string_view letter, ValueId rows);
  ValueId heads_first(ValueId rows);
  ValueId attend_to(ValueId tokens_first_q, ValueId all_k, ValueId all_v);
  ValueId visible_keys();
  ValueId gated(ValueId gate, ValueId up);
  void rotary_tables();

  const ModelConfig& config_;
  const BuildOptions& options_;
  GraphBuilder build_;
  Weights weights_;
  std::int64_t layer_ = 0;
  ValueId ids_ = -1;
  ValueId positions_ = -1;  // i32 [B,T]
  ValueId rows_ = -1;       // i32 [R]
  ValueId lengths_ = -1;    // i32 [B]
  ValueId embedding_ = -1;
  RotaryTable rotary_;
  RotaryTable local_rotary_;
};

}  // namespace hone
