// attention: softmax(scale * q k^T over the visible keys) v. q [B,K,G,T,E], k and v [B,C,K,E], positions i32
// [B,T] -> [B,T,K,G,E]. Key c is visible to token t of sequence b iff c <= positions[b,t]; a token with a
// negative position gets zeros. A tile is one row of q.
#include <cmath>
#include <limits>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.inputs[0], 1));
}

// The query, the sum of values, one key or value row, and a score per key.
std::int64_t scratch_bytes(const Call& call) {
  return (3 * last_extent(call.inputs[0]) + call.inputs[1].shape[1]) * 8;
}

std::int64_t row_offset(const TensorView& view, std::int64_t b, std::int64_t c, std::int64_t head) {
  return b * view.strides[0] + c * view.strides[1] + head * view.strides[2];
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& q = call.inputs[0];
  const TensorView& keys = call.inputs[1];
  const TensorView& values = call.inputs[2];
  const TensorView& positions = call.inputs[3];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(q);
  const double scale = call.attributes->real("scale", 1.0);
  auto* query = reinterpret_cast<double*>(call.scratch);
  double* sum = query + width;
  double* row = sum + width;
  double* scores = row + width;

  const std::int64_t t = tile % q.shape[3];
  const std::int64_t g = tile / q.shape[3] % q.shape[2];
  const std::int64_t head = tile / (q.shape[3] * q.shape[2]) % q.shape[1];
  const std::int64_t b = tile / (q.shape[3] * q.shape[2] * q.shape[1]);
  std::int64_t position = 0;
  load_integers(positions, b * positions.strides[0] + t * positions.strides[1], 1, 1, &position);
  const std::int64_t visible = std::min(position + 1, keys.shape[1]);

  load_reals(q, offset_of(without_last(q, 1), tile), last_stride(q), width, query);
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < visible; ++c) {
    load_reals(keys, row_offset(keys, b, c, head), last_stride(keys), width, row);
    double dot = 0;
    for (std::int64_t e = 0; e < width; ++e) dot += query[e] * row[e];
    scores[c] = dot * scale;
    largest = scores[c] > largest ? scores[c] : largest;
  }
  for (std::int64_t e = 0; e < width; ++e) sum[e] = 0;
  double total = 0;
  for (std::int64_t c = 0; c < visible; ++c) {
    const double weight = std::exp(scores[c] - largest);
    total += weight;
    load_reals(values, row_offset(values, b, c, head), last_stride(values), width, row);
    for (std::int64_t e = 0; e < width; ++e) sum[e] += weight * row[e];
  }
  if (visible > 0) {
    for (std::int64_t e = 0; e < width; ++e) sum[e] /= total;
  }
  const std::int64_t at =
      b * out.strides[0] + t * out.strides[1] + head * out.strides[2] + g * out.strides[3];
  store_reals(out, at, last_stride(out), width, sum);
}

std::string_view accepts(const Signature& signature) {
  if (signature.inputs[0].shape.size() != 5 || signature.inputs[1].shape.size() != 4) {
    return "needs q [B,K,G,T,E], k and v [B,C,K,E]";
  }
  return needs_plain(signature);
}

constexpr Kernel kKernels[] = {{.name = "attention.reference",
                                .op = "attention",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList attention_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
