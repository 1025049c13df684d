// The pre-norm decoder with rotary attention over grouped kv heads and a SwiGLU feed-forward, built from
// primitive ops: Llama 2 and 3 (Touvron et al. 2023; arXiv 2407.21783), SmolLM2, Qwen2 (biases on q, k, v)
// and Qwen3 (norms on the heads of q and k). What a checkpoint has decides: biases, head norms and rope_freqs
// are used where their tensors are.
//
//   h = rms_norm(x);  q, k, v = h Wq^T, h Wk^T, h Wv^T;  q, k turned by their positions
//   x = x + softmax(q k^T / sqrt(E), keys at or before the token) v Wo^T
//   h = rms_norm(x);  x = x + (silu(h Wg^T) * (h Wu^T)) Wd^T
#pragma once

#include "model/family.h"

namespace hone {

Result<Graph> build_decoder(const Checkpoint& checkpoint, const ModelConfig& config,
                            const BuildOptions& options);

}  // namespace hone
