// top_k(x f32 [..,N]) {k} -> i32 [..,k], and take_along_axis along the last axis. Both choose and move: there
// is nothing to round. Rows are short (one per token, one element per expert), so scalar code it is.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kRowsPerTile = 16;

std::int64_t row_tiles(const Call& call) {
  return blocks_of(row_count(call.outputs[0]), kRowsPerTile);
}

// NaN stands above all numbers: its index is in range like any other, and the NaN goes on from there.
bool ranks_above(float a, float b) {
  if (a != a) return b == b;
  return a > b;
}

// The indices chosen so far stay sorted; a later index goes behind its equals.
void choose(const float* x, std::int64_t width, std::int64_t count, std::int32_t* chosen) {
  std::int64_t have = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    if (have == count && !ranks_above(x[i], x[chosen[count - 1]])) continue;
    std::int64_t place = have < count ? have++ : count - 1;
    for (; place > 0 && ranks_above(x[i], x[chosen[place - 1]]); --place) chosen[place] = chosen[place - 1];
    chosen[place] = static_cast<std::int32_t>(i);
  }
}

void run_top_k(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t end = smaller(row_count(out), (tile + 1) * kRowsPerTile);
  for (std::int64_t row = tile * kRowsPerTile; row < end; ++row) {
    choose(static_cast<const float*>(x.data) + row_offset(x, row), x.shape[x.rank - 1],
           out.shape[out.rank - 1], static_cast<std::int32_t*>(out.data) + row_offset(out, row));
  }
}

template <class T>
void take_row(const void* from, std::int64_t from_stride, const std::int32_t* indices,
              std::int64_t index_stride, void* to, std::int64_t to_stride, std::int64_t count) {
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i)
    target[i * to_stride] = source[indices[i * index_stride] * from_stride];
}

void run_take(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::int64_t bytes = element_bytes(x.dtype);
  const int last = out.rank - 1;
  const std::int64_t end = smaller(row_count(out), (tile + 1) * kRowsPerTile);
  for (std::int64_t row = tile * kRowsPerTile; row < end; ++row) {
    const void* from = static_cast<const char*>(x.data) + row_offset(x, row) * bytes;
    const std::int32_t* chosen = static_cast<const std::int32_t*>(indices.data) + row_offset(indices, row);
    void* to = static_cast<char*>(out.data) + row_offset(out, row) * bytes;
    const std::int64_t count = out.shape[last];
    const std::int64_t s = x.strides[last];
    const std::int64_t i = indices.strides[last];
    const std::int64_t t = out.strides[last];
    switch (bytes) {
      case 1:
        take_row<std::uint8_t>(from, s, chosen, i, to, t, count);
        break;
      case 2:
        take_row<std::uint16_t>(from, s, chosen, i, to, t, count);
        break;
      case 4:
        take_row<std::uint32_t>(from, s, chosen, i, to, t, count);
        break;
      default:
        take_row<std::uint64_t>(from, s, chosen, i, to, t, count);
        break;
    }
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("top_k.f32"), "top_k", kThisIsa, false, accepts_top_k, row_tiles, run_top_k, nullptr},
    {HONE_KERNEL_NAME("take_along_axis.rows"), "take_along_axis", kThisIsa, false, accepts_take_along_axis,
     row_tiles, run_take, nullptr},
};

}  // namespace

KernelList routing_kernels() {
  return {kKernels, 2};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
