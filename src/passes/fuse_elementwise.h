// fuse-elementwise: connected elementwise nodes with one result become one launch, which runs as a strip
// program.
//
//   %1 = exp(%x)
//   %2 = add(%1, %y)        ->      %3 = fused_elementwise(%x, %y) body "fused_elementwise" { exp, add, mul }
//   %3 = mul(%2, %2)
//
// A producer joins if all that read it are in the cluster and its shape is the result's; scalar constants go
// into the body. Views stay outside, as inputs. Inside, values have types that a strip register holds (f64,
// f32, i32, i64, bool), so that no rounding is lost: same bits. A single node stays as it is.
//
// Last of the fusing passes: it takes what no named pattern has claimed, the casts of assign-precision among
// it.
#pragma once

#include <cstddef>

#include "passes/pass.h"

namespace hone {

// The strip registers of this many nodes, 1 KiB each for f32, still fit a 32 KiB first-level cache.
inline constexpr std::size_t kMaxClusterNodes = 24;
// More input streams than this outrun the hardware prefetchers.
inline constexpr std::size_t kMaxClusterInputs = 12;

Status fuse_elementwise(Graph& graph, const PassContext& context);

}  // namespace hone
