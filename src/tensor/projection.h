// The attributes of a `projection` node: matmuls of one x by several weights in one launch, each with what
// follows it on its own columns. Read by passes, which match it, and by kernels, which run it; the node's
// body says the same in primitive ops.
//
// With r = 1, or 1 / sqrt(sum(row_sums) / K + eps) where the norm of x is folded into its products:
//
//   v = r * (x W^T)                       or  activation(r * (x Wgate^T)) * (r * (x W^T))
//   v = v + bias, then activation(v) where there is no gate
//   v = rms_norm(v) with head_norm, then rope(v), of each `head` columns
//   v = v + residual
//   output = v, converted to its type; or written to state at the row's position
//
// and where the next norm is folded too, output is v in f32, output + 1 is v * (next_norm + next_offset) and
// output + 2 [..,N/32] the sums of the squares of v over each 32 columns.
#pragma once

#include <cstdint>

namespace hone {

enum class ProjectionActivation : std::int64_t { None, Silu, GeluTanh };

// One section. Operands are numbers of inputs of the node; -1: absent.
struct ProjectionSection {
  std::int64_t weight = -1;      // [N,K]
  std::int64_t gate = -1;        // [N,K]
  std::int64_t activation = 0;   // ProjectionActivation, of the gate, or without one of v
  std::int64_t bias = -1;        // f32 [N]
  std::int64_t head_norm = -1;   // f32 [head], only where there is a rope
  std::int64_t cosine = -1;      // f32 [B,T,R/2]
  std::int64_t sine = -1;        // f32 [B,T,R/2]
  std::int64_t interleaved = 0;  // pairs (2i, 2i+1) instead of (i, i + R/2)
  std::int64_t head = 0;         // columns of one head, where there is a rope
  std::int64_t residual = -1;    // f32 [..,N]
  std::int64_t state = -1;       // [B,C,..], N elements a row
  std::int64_t positions = -1;   // i32 [B,T]
  std::int64_t next_norm = -1;   // f32 [N]
  std::int64_t output = 0;       // number of the output
};

// As the attribute "sections" (ints): the sections' fields in this order, one section behind the other.
inline constexpr std::int64_t kProjectionFields = 14;
static_assert(sizeof(ProjectionSection) == kProjectionFields * sizeof(std::int64_t));

// Columns over which the squares for a folded norm are summed: the block of q8a, so that both have one tile.
inline constexpr std::int64_t kSquaresBlock = 32;
// A rope's head at most this wide is done on a tile.
inline constexpr std::int64_t kLargestHead = 256;

// Attributes besides: "terms" (int; 2: x is q8a [..,2,K], two rows that are added up), "row_sums" (int, the
// number of an input f32 [..,K/32]; absent: no folded norm), "eps" (real), "next_offset" (real); of all head
// norms "head_eps" and "head_offset" (real); "sequence" (int, the number of an input i32 [1,N]; absent: row
// (b,t) is of sequence b): whose state each row is written to.

}  // namespace hone
