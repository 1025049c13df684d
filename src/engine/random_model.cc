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

// One tensor's values in pieces: random quants with one scale, or random floats, of standard deviation
// 1/sqrt(K).
class RandomRows {
 public:
  RandomRows(DType dtype, std::int64_t k, std::uint64_t seed, std::uint64_t stream)
      : dtype_(dtype), k_(k), key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(stream)} {}

  Status fill(std::span<std::byte> out, std::int64_t elements) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(k_));
    if (!dtype_row(dtype_).is_quantised) {
      std::vector<float> values(static_cast<std::size_t>(elements));
      for (float& value : values) value = static_cast<float>((uniform() - 0.5) * std::sqrt(12.0) * deviation);
      return encode_row(dtype_, values.data(), elements, out.data());
    }
    fill_bytes(out);
    // Quants uniform over their range have a deviation of range/sqrt(12); the scale brings it to the one
    // wanted.
    const double range = dtype_ == DType::Q8_0 ? 256.0 : 16.0;
    const std::uint16_t scale = f32_to_f16(static_cast<float>(deviation * std::sqrt(12.0) / range));
    const std::uint16_t minimum = f32_to_f16(static_cast<float>(-deviation * std::sqrt(12.0) / 2));
    const auto block = static_cast<std::size_t>(dtype_row(dtype_).block_bytes);
    for (std::size_t at = 0; at + block <= out.size(); at += block) {
      std::memcpy(out.data() + at, &scale, 2);
      if (dtype_ == DType::Q4_1) std::memcpy(out.data() + at + 2, &minimum, 2);
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

struct TensorPlan {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
};

std::vector<TensorPlan> tensors_of(const ModelShape& shape, DType type) {
  std::vector<TensorPlan> out{{"token_embd.weight", type, {shape.vocabulary, shape.dim}},
                              {"output_norm.weight", DType::F32, {shape.dim}}};
  if (!shape.tied) out.push_back({"output.weight", type, {shape.vocabulary, shape.dim}});
  const std::int64_t q = shape.heads * shape.head_dim;
  const std::int64_t kv = shape.kv_heads * shape.head_dim;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string block = fmt::format("blk.{}.", i);
    const auto add = [&](const char* name, DType dtype, std::vector<std::int64_t> dims) {
      out.push_back({block + name, dtype, std::move(dims)});
    };
    add("attn_norm.weight", DType::F32, {shape.dim});
    add("attn_q.weight", type, {q, shape.dim});
    add("attn_k.weight", type, {kv, shape.dim});
    add("attn_v.weight", type, {kv, shape.dim});
    if (shape.attention_bias) {
      add("attn_q.bias", DType::F32, {q});
      add("attn_k.bias", DType::F32, {kv});
      add("attn_v.bias", DType::F32, {kv});
    }
    add("attn_output.weight", type, {shape.dim, q});
    add("ffn_norm.weight", DType::F32, {shape.dim});
    add("ffn_gate.weight", type, {shape.ffn, shape.dim});
    add("ffn_up.weight", type, {shape.ffn, shape.dim});
    add("ffn_down.weight", type, {shape.dim, shape.ffn});
  }
  return out;
}

void add_metadata(const ModelShape& shape, GgufWriter& writer) {
  const std::string arch(shape.architecture);
  const auto add = [&](const char* key, std::int64_t value) {
    writer.add_u32(fmt::format("{}.{}", arch, key), static_cast<std::uint32_t>(value));
  };
  writer.add_string("general.architecture", arch);
  writer.add_string("general.name", fmt::format("random {}", shape.name));
  add("block_count", shape.layers);
  add("context_length", 32768);
  add("embedding_length", shape.dim);
  add("feed_forward_length", shape.ffn);
  add("attention.head_count", shape.heads);
  add("attention.head_count_kv", shape.kv_heads);
  add("attention.key_length", shape.head_dim);
  writer.add_f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6F);
  writer.add_f32(arch + ".rope.freq_base", 1e6F);
}

Status write_tensor(const TensorPlan& tensor, std::uint64_t seed, std::uint64_t stream, GgufWriter& writer) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) elements *= extent;
  const std::int64_t k = tensor.shape.back();
  if (tensor.shape.size() == 1) {
    // Norm weights of 1 and biases of 0 keep activations in range.
    const bool bias = tensor.name.ends_with(".bias");
    const std::vector<float> values(static_cast<std::size_t>(elements), bias ? 0.0F : 1.0F);
    return writer.append(std::as_bytes(std::span(values)));
  }
  RandomRows rows(tensor.dtype, k, seed, stream);
  const std::int64_t rows_per_piece = std::max<std::int64_t>(1, (std::int64_t{1} << 20) / k);
  for (std::int64_t row = 0; row < tensor.shape[0]; row += rows_per_piece) {
    const std::int64_t count = std::min(rows_per_piece, tensor.shape[0] - row) * k;
    std::vector<std::byte> piece(static_cast<std::size_t>(dtype_bytes(tensor.dtype, count)));
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
Result<GgufWriter> writer_of(const ModelShape& shape, DType type, const std::vector<TensorPlan>& tensors) {
  constexpr std::array kWrittenTypes{DType::F32, DType::F16, DType::Q4_0, DType::Q4_1, DType::Q8_0};
  if (std::find(kWrittenTypes.begin(), kWrittenTypes.end(), type) == kWrittenTypes.end()) {
    return Error{ErrorCode::Usage,
                 Fault::User,
                 "--type",
                 "random weights are not made in this type",
                 "f32, f16, q4_0, q4_1 or q8_0",
                 std::string(dtype_name(type)),
                 {}};
  }
  GgufWriter writer;
  add_metadata(shape, writer);
  for (const TensorPlan& tensor : tensors) writer.add_tensor(tensor.name, tensor.dtype, tensor.shape);
  return writer;
}

}  // namespace

Status write_random_model(const ModelShape& shape, DType type, std::uint64_t seed, const std::string& path) {
  const std::vector<TensorPlan> tensors = tensors_of(shape, type);
  GgufWriter writer = HONE_TRY(writer_of(shape, type, tensors));
  HONE_TRY(writer.begin(path));
  for (std::size_t i = 0; i < tensors.size(); ++i) HONE_TRY(write_tensor(tensors[i], seed, i, writer));
  return writer.finish();
}

Status write_model_header(const ModelShape& shape, DType type, const std::string& path) {
  const GgufWriter writer = HONE_TRY(writer_of(shape, type, tensors_of(shape, type)));
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
