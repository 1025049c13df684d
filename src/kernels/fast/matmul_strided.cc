// matmul of two activations: a f32 [..,M,K] x b f32, f16 or bf16 [..,K,N] (or [..,N,K] with transpose_b) ->
// f32
// [..,M,N]; leading axes broadcast, any strides. One output is, per segment of kSegment elements of K, one
// chain of fused multiply-adds from zero in index order; segments are added in order. A tile is 64 x 64
// outputs.
#include "kernels/fast/axes.h"
#include "kernels/fast/block_load.h"
#include "kernels/fast/list.h"
#include "kernels/fast/row_block.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kSegment = 256;
constexpr std::int64_t kTileRows = 64;

std::int64_t matmul_tiles(const Call& call) {
  const TensorView& out = call.outputs[0];
  std::int64_t matrices = 1;
  for (int axis = 0; axis < out.rank - 2; ++axis) matrices *= out.shape[axis];
  return matrices * blocks_of(out.shape[out.rank - 2], kTileRows) *
         blocks_of(out.shape[out.rank - 1], kBlockWidth);
}

std::int64_t matmul_scratch(const Call&) {
  return kSegment * kBlockWidth * 4;
}

// The offset of matrix `index` (row-major over the output's leading axes) in an operand that broadcasts to
// them.
std::int64_t matrix_offset(const TensorView& view, const TensorView& out, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = out.rank - 3; axis >= 0; --axis) {
    offset += index % out.shape[axis] * stride_along(view, axis, out.rank);
    index /= out.shape[axis];
  }
  return offset;
}

// One tile's operands. `b` is (k, n).
struct Tile {
  Operand a;
  Source b;
  float* out = nullptr;
  std::int64_t out_row = 0;
  std::int64_t rows = 0, columns = 0, depth = 0;
};

Tile tile_at(const Call& call, std::int64_t index) {
  const TensorView& a = call.inputs[0];
  const TensorView& b = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::int64_t column_blocks = blocks_of(out.shape[out.rank - 1], kBlockWidth);
  const std::int64_t row_blocks = blocks_of(out.shape[out.rank - 2], kTileRows);
  const std::int64_t column = index % column_blocks * kBlockWidth;
  const std::int64_t row = index / column_blocks % row_blocks * kTileRows;
  const std::int64_t matrix = index / column_blocks / row_blocks;
  const bool transposed = attribute_integer(call.attributes, "transpose_b", 0) != 0;
  Tile tile;
  tile.rows = smaller(kTileRows, out.shape[out.rank - 2] - row);
  tile.columns = smaller(kBlockWidth, out.shape[out.rank - 1] - column);
  tile.depth = a.shape[a.rank - 1];
  tile.a.row = a.strides[a.rank - 2];
  tile.a.column = a.strides[a.rank - 1];
  tile.a.data = static_cast<const float*>(a.data) + matrix_offset(a, out, matrix) + row * tile.a.row;
  tile.b.dtype = b.dtype;
  tile.b.row = b.strides[b.rank - (transposed ? 1 : 2)];
  tile.b.column = b.strides[b.rank - (transposed ? 2 : 1)];
  tile.b.data = static_cast<const char*>(b.data) + source_bytes(b.dtype, matrix_offset(b, out, matrix));
  tile.b.data = element_at(tile.b, 0, column);
  tile.out_row = out.strides[out.rank - 2];
  tile.out = static_cast<float*>(out.data) + matrix_offset(out, out, matrix) + row * tile.out_row +
             column * out.strides[out.rank - 1];
  return tile;
}

// b's rows [begin, begin + depth) as f32 with contiguous rows: in place where they are that already, else in
// scratch.
Operand load_segment(const Tile& tile, std::int64_t begin, std::int64_t depth, float* scratch) {
  Source b = tile.b;
  b.data = element_at(tile.b, begin, 0);
  if (b.column == 1 && b.dtype == DType::F32 && tile.columns % 16 == 0) {
    return {reinterpret_cast<const float*>(b.data), b.row, 1};
  }
  if (b.column == 1) {
    load_straight(b, depth, tile.columns, scratch, kBlockWidth);
  } else if (b.row == 1) {
    load_transposed({b.data, b.dtype, b.column, 1}, tile.columns, depth, scratch);
  } else {
    load_scattered(b, depth, tile.columns, scratch, kBlockWidth);
  }
  return {scratch, kBlockWidth, 1};
}

// kRows rows x kGroups groups of 16 columns of one segment, added to the output or, for the first one,
// stored.
template <int kRows, int kGroups>
void multiply_block(const Operand& a, const Operand& b, std::int64_t depth, std::int64_t columns, bool first,
                    float* out, std::int64_t out_row) {
  Accumulators<kRows, kGroups> sums;
  clear(sums);
  multiply(a, b, depth, sums);
  for (int row = 0; row < kRows; ++row) {
    for (int group = 0; group < kGroups; ++group) {
      const int count = static_cast<int>(smaller(16, columns - 16 * group));
      float* to = out + row * out_row + 16 * group;
      const Vec16 sum = sums.at[row][group];
      store_partial(to, first ? sum : add(load_partial(to, count), sum), count);
    }
  }
}

void multiply_segment(const Tile& tile, const Operand& b, std::int64_t begin, std::int64_t depth) {
  const bool first = begin == 0;
  std::int64_t row = 0;
  for (; row + kRowBlock <= tile.rows; row += kRowBlock) {
    const Operand a = {tile.a.data + row * tile.a.row + begin * tile.a.column, tile.a.row, tile.a.column};
    for (std::int64_t column = 0; column < tile.columns; column += 16) {
      multiply_block<kRowBlock, 1>(a, {b.data + column, b.row, 1}, depth, tile.columns - column, first,
                                   tile.out + row * tile.out_row + column, tile.out_row);
    }
  }
  for (; row < tile.rows; ++row) {
    const Operand a = {tile.a.data + row * tile.a.row + begin * tile.a.column, tile.a.row, tile.a.column};
    float* out = tile.out + row * tile.out_row;
    if (tile.columns == kBlockWidth) {
      multiply_block<1, kGroupBlock>(a, b, depth, tile.columns, first, out, tile.out_row);
      continue;
    }
    for (std::int64_t column = 0; column < tile.columns; column += 16) {
      multiply_block<1, 1>(a, {b.data + column, b.row, 1}, depth, tile.columns - column, first, out + column,
                           tile.out_row);
    }
  }
}

void matmul_run(const Call& call, std::int64_t index) {
  const Tile tile = tile_at(call, index);
  float* scratch = reinterpret_cast<float*>(call.scratch);
  std::int64_t begin = 0;
  do {
    const std::int64_t depth = smaller(kSegment, tile.depth - begin);
    multiply_segment(tile, load_segment(tile, begin, depth, scratch), begin, depth);
    begin += kSegment;
  } while (begin < tile.depth);
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("matmul.f32.strided"), "matmul", kThisIsa, false, accepts_matmul_strided, matmul_tiles,
     matmul_run, matmul_scratch},
};

}  // namespace

KernelList matmul_strided_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
