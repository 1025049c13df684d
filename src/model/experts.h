// Feed-forwards of routed experts (Shazeer et al. 2017, arXiv 1701.06538): a router gives each token a score
// for each of X experts; the token goes through the J of them that it scores highest, and through the shared
// ones.
//
//   s = softmax(Wr h), or sigmoid(Wr h)
//   chosen = the J largest of s + b       b: a bias that only the choice sees (DeepSeek-V3); else 0
//            with groups: only experts of the best groups, a group counting by its largest s, or by the sum
//            of its two largest s + b
//   w = s[chosen], over their sum if `normalise`, times `scale`
//   y = sum over j of w_j E_j(h) + shared(h)        E(h) = W_down (silu(W_gate h) * W_up h)
#pragma once

#include "model/blocks.h"

namespace hone {

// True if layer `layer` has experts; the others are dense.
bool has_experts(const ExpertConfig& experts, std::int64_t layer);

// The feed-forward of the builder's layer, routed or dense: h [B,T,D] -> [B,T,D]. Parts: router (and its bias
// router_bias where the checkpoint has it), expert_gate_proj, expert_up_proj, expert_down_proj [X,..];
// shared_gate_proj, shared_up_proj, shared_down_proj where there are shared experts, and shared_router [1,D]
// where their sum is weighted by sigmoid(h . w).
ValueId routed_feed_forward(ModelBuilder& model, ValueId h);

}  // namespace hone
