#include "engine/random_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <system_error>
#include <vector>

#include "base/philox.h"
#include "engine/quantize_file.h"
#include "engine/random_vocabulary.h"
#include "file/gguf_writer.h"
#include "tensor/block_formats.h"

namespace hone {
namespace {

constexpr std::array kShapes{
    ModelShape{"tiny", "llama", 2, 64, 128, 4, 2, 16, 320, false, false},
    ModelShape{"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, true, false},
    ModelShape{"qwen2-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, true, true},
    ModelShape{"qwen2-1.5b", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, true, true},
    ModelShape{"llama2-7b", "llama", 32, 4096, 11008, 32, 32, 128, 32000, false, false},
};

// Blocks of random bytes become values of a known deviation by their scales alone: those are written, in f16,
// and all else of a block stays random.
struct RandomBlocks {
  DType type;
  double deviation;           // of a value before the scale
  std::size_t scale_at;       // bytes into the block
  std::ptrdiff_t minimum_at;  // -1: the type has none
  double minimum;             // in units of the scale; moves the mean to 0
};

// A quant of n levels has the variance (n * n - 1) / 12. A K block multiplies it by a random scale s of 6
// bits (8 in Q6_K, signed) and takes away a random minimum m of 6 bits: Var(s q - 7.5 m) with E[s] = E[m]
// = 31.5 and E[s s] = E[m m] = 1333.5, and E[s s] = 5461.5 of 8 bits.
constexpr std::array kRandomBlocks{
    RandomBlocks{DType::Q8_0, 73.9, 0, -1, 0}, RandomBlocks{DType::Q5_0, 9.23, 0, -1, 0},
    RandomBlocks{DType::Q4_0, 4.61, 0, -1, 0}, RandomBlocks{DType::Q4_1, 4.61, 0, 2, -7.5},
    RandomBlocks{DType::Q4_K, 258, 0, 2, 7.5}, RandomBlocks{DType::Q6_K, 1366, 208, -1, 0}};

const RandomBlocks* blocks_of(DType type) {
  const auto* found = std::ranges::find(kRandomBlocks, type, &RandomBlocks::type);
  return found == kRandomBlocks.end() ? nullptr : found;
}

// One tensor's values in pieces, of standard deviation 1/sqrt(K).
class RandomRows {
 public:
  RandomRows(DType dtype, std::int64_t k, std::uint64_t seed, std::uint64_t stream)
      : dtype_(dtype), k_(k), key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(stream)} {}

  Status fill(std::span<std::byte> out, std::int64_t elements) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(k_));
    const RandomBlocks* blocks = blocks_of(dtype_);
    if (blocks == nullptr) {
      std::vector<float> values(static_cast<std::size_t>(elements));
      for (float& value : values) value = static_cast<float>((uniform() - 0.5) * std::sqrt(12.0) * deviation);
      return encode_row(dtype_, values.data(), elements, out.data());
    }
    fill_bytes(out);
    const double scale = deviation / blocks->deviation;
    const std::uint16_t scale_bits = f32_to_f16(static_cast<float>(scale));
    const std::uint16_t minimum_bits = f32_to_f16(static_cast<float>(scale * blocks->minimum));
    const auto block = static_cast<std::size_t>(dtype_row(dtype_).block_bytes);
    for (std::size_t at = 0; at + block <= out.size(); at += block) {
      std::memcpy(out.data() + at + blocks->scale_at, &scale_bits, 2);
      if (blocks->minimum_at >= 0) std::memcpy(out.data() + at + blocks->minimum_at, &minimum_bits, 2);
    }
    return {};
  }

 private:
  PhiloxCounter next() {
    return philox_4x32_10(
        {static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_++ >> 32), 1, 0}, key_);
  }
  double uniform() {
    if (left_ == 0) {
      draw_ = next();
      left_ = 4;
    }
    return static_cast<double>(draw_[static_cast<std::size_t>(--left_)]) * 0x1p-32;
  }
  void fill_bytes(std::span<std::byte> out) {
    for (std::size_t at = 0; at < out.size(); at += 16) {
      const auto draw = std::bit_cast<std::array<std::byte, 16>>(next());
      std::memcpy(out.data() + at, draw.data(), std::min<std::size_t>(16, out.size() - at));
    }
  }

  DType dtype_;
  std::int64_t k_;
  PhiloxKey key_;
  std::uint64_t counter_ = 0;
  PhiloxCounter draw_{};
  int left_ = 0;
};

std::vector<GgufTensor> tensors_of(const ModelShape& shape) {
  std::vector<GgufTensor> out;
  const auto add = [&](std::string name, std::vector<std::int64_t> dims) {
    GgufTensor& tensor = out.emplace_back();
    tensor.name = std::move(name);
    tensor.shape = std::move(dims);
  };
  add("token_embd.weight", {shape.vocabulary, shape.dim});
  add("output_norm.weight", {shape.dim});
  if (!shape.tied) add("output.weight", {shape.vocabulary, shape.dim});
  const std::int64_t q = shape.heads * shape.head_dim;
  const std::int64_t kv = shape.kv_heads * shape.head_dim;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string block = fmt::format("blk.{}.", i);
    add(block + "attn_norm.weight", {shape.dim});
    add(block + "attn_q.weight", {q, shape.dim});
    add(block + "attn_k.weight", {kv, shape.dim});
    add(block + "attn_v.weight", {kv, shape.dim});
    if (shape.attention_bias) {
      add(block + "attn_q.bias", {q});
      add(block + "attn_k.bias", {kv});
      add(block + "attn_v.bias", {kv});
    }
    add(block + "attn_output.weight", {shape.dim, q});
    add(block + "ffn_norm.weight", {shape.dim});
    add(block + "ffn_gate.weight", {shape.ffn, shape.dim});
    add(block + "ffn_up.weight", {shape.ffn, shape.dim});
    add(block + "ffn_down.weight", {shape.dim, shape.ffn});
  }
  return out;
}

DType type_of(const ModelShape& shape, const RandomWeights& weights, std::span<const GgufTensor> tensors,
              const GgufTensor& tensor) {
  const bool output = tensor.name == (shape.tied ? "token_embd.weight" : "output.weight");
  QuantizeOptions options;
  options.type = output ? weights.output.value_or(weights.type) : weights.type;
  options.mix = weights.mix && !(output && weights.output.has_value());
  return target_type(tensors, tensor, options);
}

void add_metadata(const ModelShape& shape, const RandomWeights& weights, GgufWriter& writer) {
  const std::string arch(shape.architecture);
  const auto add = [&](const char* key, std::int64_t value) {
    writer.add_u32(fmt::format("{}.{}", arch, key), static_cast<std::uint32_t>(value));
  };
  writer.add_string("general.architecture", arch);
  writer.add_string("general.name", fmt::format("random {}", shape.name));
  writer.add_u32("general.quantization_version", 2);
  writer.add_u32("general.file_type", ggml_file_type(weights.type, weights.mix));
  add("block_count", shape.layers);
  add("context_length", 32768);
  add("embedding_length", shape.dim);
  add("feed_forward_length", shape.ffn);
  add("attention.head_count", shape.heads);
  add("attention.head_count_kv", shape.kv_heads);
  add("attention.key_length", shape.head_dim);
  writer.add_f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6F);
  writer.add_f32(arch + ".rope.freq_base", 1e6F);
  add_random_vocabulary(shape.vocabulary, writer);
}

Status write_tensor(const GgufTensor& tensor, DType type, std::uint64_t seed, std::uint64_t stream,
                    GgufWriter& writer) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) elements *= extent;
  const std::int64_t k = tensor.shape.back();
  if (tensor.shape.size() == 1) {
    // Norm weights of 1 and biases of 0 keep activations in range.
    const bool bias = tensor.name.ends_with(".bias");
    const std::vector<float> values(static_cast<std::size_t>(elements), bias ? 0.0F : 1.0F);
    return writer.append(std::as_bytes(std::span(values)));
  }
  RandomRows rows(type, k, seed, stream);
  const std::int64_t rows_per_piece = std::max<std::int64_t>(1, (std::int64_t{1} << 20) / k);
  for (std::int64_t row = 0; row < tensor.shape[0]; row += rows_per_piece) {
    const std::int64_t count = std::min(rows_per_piece, tensor.shape[0] - row) * k;
    std::vector<std::byte> piece(static_cast<std::size_t>(dtype_bytes(type, count)));
    HONE_TRY(rows.fill(piece, count));
    HONE_TRY(writer.append(piece));
  }
  return {};
}

}  // namespace

std::span<const ModelShape> model_shapes() {
  return kShapes;
}

Result<ModelShape> find_shape(std::string_view name) {
  std::string known;
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) return shape;
    if (!known.empty()) known += ", ";
    known += shape.name;
  }
  return Error{ErrorCode::Usage, Fault::User, "--shape", "no such shape", known, std::string(name), {}};
}

namespace {

// With everything that stands before the tensors' data.
Result<GgufWriter> writer_of(const ModelShape& shape, const RandomWeights& weights,
                             const std::vector<GgufTensor>& tensors) {
  const auto written = [](DType type) {
    return type == DType::F32 || type == DType::F16 || type == DType::BF16 || blocks_of(type) != nullptr;
  };
  for (const DType type : {weights.type, weights.output.value_or(weights.type)}) {
    if (written(type)) continue;
    return Error{ErrorCode::Usage,
                 Fault::User,
                 "--type",
                 "random weights are not made in this type",
                 "f32, f16, bf16, q8_0, q6_k, q5_0, q4_k, q4_1 or q4_0",
                 std::string(dtype_name(type)),
                 {}};
  }
  GgufWriter writer;
  add_metadata(shape, weights, writer);
  for (const GgufTensor& tensor : tensors)
    writer.add_tensor(tensor.name, type_of(shape, weights, tensors, tensor), tensor.shape);
  return writer;
}

}  // namespace

Status write_random_model(const ModelShape& shape, const RandomWeights& weights, std::uint64_t seed,
                          const std::string& path) {
  const std::vector<GgufTensor> tensors = tensors_of(shape);
  GgufWriter writer = HONE_TRY(writer_of(shape, weights, tensors));
  HONE_TRY(writer.begin(path));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    HONE_TRY(write_tensor(tensors[i], type_of(shape, weights, tensors, tensors[i]), seed, i, writer));
  return writer.finish();
}

Status write_model_header(const ModelShape& shape, const RandomWeights& weights, const std::string& path) {
  const GgufWriter writer = HONE_TRY(writer_of(shape, weights, tensors_of(shape)));
  const std::vector<std::byte> header = HONE_TRY(writer.header());
  const std::uint64_t bytes = HONE_TRY(writer.file_bytes());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(header.data()), static_cast<std::streamsize>(header.size()));
  file.close();
  std::error_code failed;
  if (file.good()) std::filesystem::resize_file(path, bytes, failed);
  if (!file.good() || failed) {
    return Error{ErrorCode::BadModel,
                 Fault::User,
                 path,
                 "the file could not be written",
                 {},
                 failed.message(),
                 "check the folder and the space left"};
  }
  return {};
}

}  // namespace hone
