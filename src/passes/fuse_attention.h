// fuse-attention: scaled, causally masked attention over grouped kv heads becomes one launch, without the
// scores in memory (online softmax: Milakov and Gimelshein 2018; Dao et al. 2022).
//
//   %s = matmul(%q, %k5) {transpose_b = 1}      # [B,K,G,T,E] x [B,K,1,C,E] -> [B,K,G,T,C]
//   %t = mul(%s, %scale)
//   %m = less_equal(%iota, %positions5)         # key c <= position of token t
//   %u = select(%m, %t, %minus_infinity)
//   %p = softmax(%u)
//   %o = matmul(%p, %v5)                        # -> [B,K,G,T,E]
//   %a = permute(%o) {axes = ints[0, 3, 1, 2, 4]}
//   ->  %a = attention(%q, %k, %v, %positions) {scale = 0.125} body ..     # k, v [B,C,K,E]; -> [B,T,K,G,E]
//
// Heads in one axis, q [B,H,T,E], with each key's group repeated by broadcast and reshape or one key a head,
// get views around the fused node. Without a mask every token sees all keys: an encoder's attention(%q, %k,
// %v).
//
// Other spellings that arrive here: the scale on q, before or after the mask, or as a divisor; the mask as
// less and not, with select's branches swapped, or added as select(m, 0, -inf); keys and values turned by
// other chains of permute, reshape, broadcast and widening casts; the softmax spelled out. Where the last
// permute is another one or missing, the inverse is put behind. The mask is copied into every body, for all
// layers share it.
//
// After fuse-softmax; before fuse-elementwise, which would take the scale and the mask.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_attention(Graph& graph, const PassContext& context);

}  // namespace hone
