// merge-projections: products of one x by several weights become one launch, which reads x once and has the
// tiles of all of them to share among the threads. The weights stay where they are.
//
//   %q = matmul(%x, %wq) {transpose_b = 1}
//   %k = projection(%x, %wk, ..)
//   %v = projection(%x, %wv, ..)
//   ->
//   %q, %k, %v = projection(%x, %wq, %wk, .., %wv, ..) {sections = ..} body ..
//
// A product stays apart if something that another of them depends on reads it. After fuse-epilogue, whose
// projections it joins as they are.
#pragma once

#include "passes/pass.h"

namespace hone {

Status merge_projections(Graph& graph, const PassContext& context);

}  // namespace hone
