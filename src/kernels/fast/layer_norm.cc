// layer_norm(x [..,D], w [D], b [D]) {eps} -> f32, or q8a [..,D] or in two terms [..,2,D]: (x - m) *
// (1/sqrt(v + eps)) * w + b with the mean m and the mean v of (x - m)^2. Both means and the root are f64
// (fast/sum16.h); m and the reciprocal are rounded to f32 once, and the difference, the two products and the
// sum once each.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/q8a_block.h"
#include "kernels/fast/sum16.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kRowsPerTile = 4;

std::int64_t layer_norm_tiles(const Call& call) {
  return blocks_of(row_count(call.inputs[0]), kRowsPerTile);
}

struct Moments {
  Vec16 mean;
  Vec16 scale;
};

Moments moments_of(const float* x, std::int64_t length, double eps) {
  Sum16 sums;
  clear(sums);
  for (std::int64_t i = 0; i < length; i += 16) add_to(sums, load_partial(x + i, lanes_left(length, i)));
  const auto mean = static_cast<float>(total(sums) / static_cast<double>(length));
  clear(sums);
  for (std::int64_t i = 0; i < length; i += 16) {
    const int count = lanes_left(length, i);
    const Vec16 difference = sub(load_partial(x + i, count), broadcast(mean));
    add_squares_to(sums, count == 16 ? difference : select(first_lanes(count), difference, zero16()));
  }
  const double variance = total(sums) / static_cast<double>(length);
  return {broadcast(mean), broadcast(static_cast<float>(1.0 / __builtin_sqrt(variance + eps)))};
}

void layer_norm_run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const auto* w = static_cast<const float*>(call.inputs[1].data);
  const auto* b = static_cast<const float*>(call.inputs[2].data);
  const double eps = attribute_real(call.attributes, "eps", 0.0);
  const std::int64_t length = x.shape[x.rank - 1];
  const std::int64_t end = smaller(row_count(x), (tile + 1) * kRowsPerTile);
  const std::int64_t terms = out.rank - x.rank + 1;
  for (std::int64_t row = tile * kRowsPerTile; row < end; ++row) {
    const float* from = static_cast<const float*>(x.data) + row_offset(x, row);
    const std::int64_t to = row_offset(out, row * terms);
    const std::int64_t rest = terms == 2 ? row_offset(out, row * terms + 1) : 0;
    const Moments moments = moments_of(from, length, eps);
    float block[32];
    for (std::int64_t i = 0; i < length; i += 16) {
      const int count = lanes_left(length, i);
      const Vec16 normed = mul(sub(load_partial(from + i, count), moments.mean), moments.scale);
      const Vec16 value = add(mul(normed, load_partial(w + i, count)), load_partial(b + i, count));
      if (out.dtype != DType::Q8A) {
        store_partial(static_cast<float*>(out.data) + to + i, value, count);
        continue;
      }
      store(block + i % 32, value);  // two groups of lanes make a block
      if (i % 32 == 0) continue;
      auto* blocks = static_cast<BlockQ8A*>(out.data) + i / 32;
      quantize_terms(block, blocks + to / 32, terms == 2 ? blocks + rest / 32 : nullptr);
    }
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("layer_norm.f32"), "layer_norm", kThisIsa, false, accepts_layer_norm, layer_norm_tiles,
     layer_norm_run, nullptr},
};

}  // namespace

KernelList layer_norm_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
