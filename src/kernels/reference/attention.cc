// attention: softmax(scale * q k^T over the visible keys) v. q [B,K,G,T,E], k [B,C,K,E], v [B,C,K,V],
// positions i32 [B,T] -> [B,T,K,G,V]. Without positions all keys are visible; else key c is to token t of
// sequence b iff c <= positions[b,t], and with a `window` only if c > positions[b,t] - window; a token with a
// negative position gets zeros. With a `softcap` the scores are softcap * tanh(scale * q k^T / softcap). Of a
// flattened step q is [1,K,G,N,E], positions [1,N], and a fifth input i32 [1,N] says whose keys each row
// sees. A tile is one row of q.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.inputs[0], 1));
}

// The query, the sum of values, one key or value row, and a score per key.
std::int64_t scratch_bytes(const Call& call) {
  const std::int64_t wider = std::max(last_extent(call.inputs[0]), last_extent(call.inputs[2]));
  return (3 * wider + call.inputs[1].shape[1]) * 8;
}

std::int64_t row_offset(const TensorView& view, std::int64_t b, std::int64_t c, std::int64_t head) {
  return b * view.strides[0] + c * view.strides[1] + head * view.strides[2];
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& q = call.inputs[0];
  const TensorView& keys = call.inputs[1];
  const TensorView& values = call.inputs[2];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(q);
  const std::int64_t value_width = last_extent(values);
  const std::int64_t wider = std::max(width, value_width);
  const double scale = call.attributes->real("scale", 1.0);
  const double softcap = call.attributes->real("softcap", 0.0);
  const std::int64_t window = call.attributes->integer("window");
  auto* query = reinterpret_cast<double*>(call.scratch);
  double* sum = query + wider;
  double* row = sum + wider;
  double* scores = row + wider;

  const std::int64_t t = tile % q.shape[3];
  const std::int64_t g = tile / q.shape[3] % q.shape[2];
  const std::int64_t head = tile / (q.shape[3] * q.shape[2]) % q.shape[1];
  const std::int64_t b = tile / (q.shape[3] * q.shape[2] * q.shape[1]);
  std::int64_t position = keys.shape[1] - 1;
  const std::int64_t token = b * q.shape[3] + t;
  if (call.input_count >= 4) position = integer_at(call.inputs[3], token);
  const std::int64_t sequence = call.input_count == 5 ? integer_at(call.inputs[4], token) : b;
  const std::int64_t visible = std::min(position + 1, keys.shape[1]);
  const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, position + 1 - window) : 0;

  load_reals(q, offset_of(without_last(q, 1), tile), last_stride(q), width, query);
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = first; c < visible; ++c) {
    load_reals(keys, row_offset(keys, sequence, c, head), last_stride(keys), width, row);
    double dot = 0;
    for (std::int64_t e = 0; e < width; ++e) dot += query[e] * row[e];
    scores[c] = softcap == 0 ? dot * scale : softcap * std::tanh(dot * scale / softcap);
    largest = scores[c] > largest ? scores[c] : largest;
  }
  for (std::int64_t e = 0; e < value_width; ++e) sum[e] = 0;
  double total = 0;
  for (std::int64_t c = first; c < visible; ++c) {
    const double weight = std::exp(scores[c] - largest);
    total += weight;
    load_reals(values, row_offset(values, sequence, c, head), last_stride(values), value_width, row);
    for (std::int64_t e = 0; e < value_width; ++e) sum[e] += weight * row[e];
  }
  if (visible > 0) {
    for (std::int64_t e = 0; e < value_width; ++e) sum[e] /= total;
  }
  const std::int64_t at =
      b * out.strides[0] + t * out.strides[1] + head * out.strides[2] + g * out.strides[3];
  store_reals(out, at, last_stride(out), value_width, sum);
}

std::string_view accepts(const Signature& signature) {
  if (signature.inputs[0].shape.size() != 5 || signature.inputs[1].shape.size() != 4) {
    return "needs q [B,K,G,T,E], k [B,C,K,E] and v [B,C,K,V]";
  }
  // Rows of q8_0 are decoded by load_reals, whole blocks at a time.
  std::vector<OperandSpec> inputs(signature.inputs.begin(), signature.inputs.end());
  for (const std::size_t cache : {1, 2}) {
    if (inputs[cache].dtype == DType::Q8_0) inputs[cache].dtype = DType::F32;
  }
  return needs_plain_inputs({signature.op, signature.attributes, inputs, signature.outputs});
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
