#include "engine/quantize_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "file/ggml_types.h"
#include "file/gguf_writer.h"
#include "tensor/block_formats.h"

namespace hone {
namespace {

// A type that can be written; general.file_type as llama.cpp numbers it (llama.h, enum llama_ftype), without
// and with a mix.
struct WrittenType {
  DType type;
  std::uint32_t file_type;
  std::uint32_t mixed_file_type;
  DType wider;   // of sensitive matrices
  DType narrow;  // where a row is not whole blocks
};

constexpr std::array kTypes{
    WrittenType{DType::F32, 0, 0, DType::F32, DType::F32},
    WrittenType{DType::F16, 1, 1, DType::F16, DType::F16},
    WrittenType{DType::BF16, 32, 32, DType::BF16, DType::BF16},
    WrittenType{DType::Q8_0, 7, 7, DType::F16, DType::F16},
    WrittenType{DType::Q6_K, 18, 18, DType::Q8_0, DType::Q8_0},
    WrittenType{DType::Q5_1, 9, 9, DType::Q8_0, DType::F16},
    WrittenType{DType::Q5_0, 8, 8, DType::Q8_0, DType::F16},
    WrittenType{DType::Q5_K, 16, 17, DType::Q6_K, DType::Q5_1},
    WrittenType{DType::Q4_1, 3, 3, DType::Q8_0, DType::F16},
    WrittenType{DType::Q4_0, 2, 2, DType::Q8_0, DType::F16},
    WrittenType{DType::Q4_K, 14, 15, DType::Q6_K, DType::Q5_0},
    WrittenType{DType::IQ4_NL, 25, 25, DType::Q6_K, DType::F16},
};

const WrittenType& row_of(DType type) {
  const auto* found = std::ranges::find(kTypes, type, &WrittenType::type);
  return found == kTypes.end() ? kTypes[0] : *found;
}

// The layer number of "blk.7.ffn_down.weight"; -1 of a tensor outside the layers.
std::int64_t layer_number(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  name.remove_prefix(4);
  std::int64_t layer = 0;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) != 0 && layer < 100'000) {
    layer = layer * 10 + (name[0] - '0');
    name.remove_prefix(1);
  }
  return layer;
}

bool is_sensitive(const Checkpoint& checkpoint, std::string_view name) {
  if (name == "output.weight") return true;
  if (name == "token_embd.weight") return checkpoint.find_tensor("output.weight") == nullptr;
  if (name.find(".attn_v.") == std::string_view::npos && name.find(".ffn_down") == std::string_view::npos) {
    return false;
  }
  std::int64_t layers = 0;
  for (const TensorEntry& tensor : checkpoint.tensors)
    layers = std::max(layers, layer_number(tensor.name) + 1);
  const std::int64_t layer = layer_number(name);
  const std::int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

bool is_router(std::string_view name) {
  return name.find("ffn_gate_inp") != std::string_view::npos;
}

constexpr std::uint64_t kPieceBytes = 4U << 20U;

struct EncodeJob {
  DType from;
  DType to;
  std::int64_t row;  // values
  const std::byte* source;
  std::byte* target;
  std::vector<double>* squared_error;  // of each row of the piece
  std::vector<double>* squared;
};

void encode_rows(void* context, std::int64_t begin, std::int64_t end, int /*thread*/) {
  const auto& job = *static_cast<const EncodeJob*>(context);
  std::vector<float> values(static_cast<std::size_t>(job.row));
  std::vector<float> back(static_cast<std::size_t>(job.row));
  for (std::int64_t r = begin; r < end; ++r) {
    std::byte* target = job.target + r * dtype_bytes(job.to, job.row);
    // Both types have been checked to have coders.
    (void)decode_row(job.from, job.source + r * dtype_bytes(job.from, job.row), job.row, values.data());
    (void)encode_row(job.to, values.data(), job.row, target);
    (void)decode_row(job.to, target, job.row, back.data());
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = static_cast<double>(back[i]) - static_cast<double>(values[i]);
      error += difference * difference;
      norm += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    (*job.squared_error)[static_cast<std::size_t>(r)] = error;
    (*job.squared)[static_cast<std::size_t>(r)] = norm;
  }
}

Status copy_tensor(const Checkpoint& checkpoint, const TensorEntry& entry, GgufWriter& writer) {
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < entry.bytes; at += kPieceBytes) {
    piece.resize(std::min(kPieceBytes, entry.bytes - at));
    HONE_TRY(checkpoint.read_tensor(entry, at, piece));
    HONE_TRY(writer.append(piece));
  }
  return {};
}

// The error is summed row by row, so it does not depend on the number of threads.
Result<double> encode_tensor(const Checkpoint& checkpoint, const TensorEntry& entry, DType to,
                             ThreadPool& pool, GgufWriter& writer) {
  const std::int64_t row = entry.shape.empty() ? 1 : entry.shape.back();
  const std::int64_t rows = entry.elements() / row;
  const std::int64_t row_bytes = dtype_bytes(*entry.dtype, row);
  const std::int64_t step = std::max<std::int64_t>(1, static_cast<std::int64_t>(kPieceBytes) / row_bytes);
  double error = 0;
  double norm = 0;
  std::vector<std::byte> source;
  std::vector<std::byte> target;
  std::vector<double> errors;
  std::vector<double> norms;
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    source.resize(static_cast<std::size_t>(count * row_bytes));
    target.resize(static_cast<std::size_t>(dtype_bytes(to, count * row)));
    errors.resize(static_cast<std::size_t>(count));
    norms.resize(static_cast<std::size_t>(count));
    HONE_TRY(checkpoint.read_tensor(entry, static_cast<std::uint64_t>(first * row_bytes), source));
    EncodeJob job{*entry.dtype, to, row, source.data(), target.data(), &errors, &norms};
    pool.run(count, encode_rows, &job);
    HONE_TRY(writer.append(target));
    for (const double value : errors) error += value;
    for (const double value : norms) norm += value;
  }
  return norm > 0 ? std::sqrt(error / norm) : 0.0;
}

void copy_metadata(const Checkpoint& checkpoint, const QuantizeOptions& options, GgufWriter& writer) {
  for (const MetadataEntry& entry : checkpoint.metadata.entries()) {
    const bool is_own = entry.key == "general.file_type" || entry.key == "general.quantization_version" ||
                        entry.key == "general.alignment" || entry.key.starts_with("split.");
    if (!is_own) writer.add_value(entry.key, entry.value);
  }
  const WrittenType& row = row_of(options.type);
  writer.add_u32("general.quantization_version", 2);
  writer.add_u32("general.file_type", options.mix ? row.mixed_file_type : row.file_type);
}

Status check_source(const Checkpoint& checkpoint, const std::string& path) {
  const auto refuse = [&](std::string message, std::string expected, std::string actual,
                          std::string next_step) {
    return Error{ErrorCode::BadModel, Fault::User,       checkpoint.path,     std::move(message),
                 std::move(expected), std::move(actual), std::move(next_step)};
  };
  if (checkpoint.format != "gguf") {
    return refuse("only a GGUF checkpoint can be written as GGUF", "a GGUF file", checkpoint.format,
                  "convert it with llama.cpp's convert_hf_to_gguf.py --outtype f32 or bf16 first");
  }
  std::string undecodable;
  for (const TensorEntry& tensor : checkpoint.tensors) {
    if (tensor.dtype) continue;
    if (!undecodable.empty()) undecodable += ", ";
    undecodable += fmt::format("{} ({})", tensor.name, tensor.type_name);
  }
  if (!undecodable.empty()) {
    return refuse("tensors have types that hone cannot decode", "types that hone inspect shows as known",
                  undecodable, "start from another file of the model");
  }
  std::error_code ignored;
  for (const std::shared_ptr<MappedFile>& file : checkpoint.files) {
    if (std::filesystem::equivalent(file->path(), path, ignored)) {
      return Error{ErrorCode::Usage, Fault::User, "-o", "the output must not be the file that is read",
                   "another path",   path,        {}};
    }
  }
  return {};
}

}  // namespace

std::vector<DType> quantize_types() {
  std::vector<DType> out;
  out.reserve(kTypes.size());
  for (const WrittenType& row : kTypes) out.push_back(row.type);
  return out;
}

std::optional<DType> quantize_type_from_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::optional<DType> type = dtype_from_name(lower);
  if (!type || std::ranges::find(kTypes, *type, &WrittenType::type) == kTypes.end()) return std::nullopt;
  return type;
}

DType wider_type(DType type) {
  return row_of(type).wider;
}

DType target_type(const Checkpoint& checkpoint, const TensorEntry& entry, const QuantizeOptions& options) {
  const DType from = entry.dtype.value_or(DType::F32);
  if (!dtype_row(from).is_float || entry.shape.size() < 2 || !entry.name.ends_with(".weight")) return from;
  if (is_router(entry.name)) return from;
  const bool widen = options.mix && is_sensitive(checkpoint, entry.name);
  DType to = widen ? wider_type(options.type) : options.type;
  while (entry.shape.back() % dtype_row(to).block_elements != 0) to = row_of(to).narrow;
  return to;
}

Result<QuantizeReport> quantize_file(const Checkpoint& checkpoint, const std::string& path,
                                     const QuantizeOptions& options, ThreadPool& pool,
                                     const QuantizeProgress& progress) {
  HONE_TRY(check_source(checkpoint, path));
  GgufWriter writer;
  copy_metadata(checkpoint, options, writer);
  QuantizeReport report;
  report.tensors.reserve(checkpoint.tensors.size());
  std::uint64_t total = 0;
  for (const TensorEntry& entry : checkpoint.tensors) {
    QuantizedTensor tensor;
    tensor.name = entry.name;
    tensor.from = entry.type_name;
    tensor.to = target_type(checkpoint, entry, options);
    tensor.bytes_before = entry.bytes;
    tensor.bytes_after = static_cast<std::uint64_t>(dtype_bytes(tensor.to, entry.elements()));
    tensor.narrowed_rows =
        !entry.shape.empty() && entry.shape.back() % dtype_row(options.type).block_elements != 0;
    writer.add_tensor(tensor.name, tensor.to, entry.shape);
    report.tensors.push_back(std::move(tensor));
    total += entry.bytes;
  }
  HONE_TRY(writer.begin(path));
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < report.tensors.size(); ++i) {
    const TensorEntry& entry = checkpoint.tensors[i];
    QuantizedTensor& tensor = report.tensors[i];
    if (entry.dtype == tensor.to) {
      HONE_TRY(copy_tensor(checkpoint, entry, writer));
    } else {
      tensor.relative_error = HONE_TRY(encode_tensor(checkpoint, entry, tensor.to, pool, writer));
    }
    done += entry.bytes;
    if (progress) progress(done, total);
  }
  for (const std::shared_ptr<MappedFile>& file : checkpoint.files) report.bytes_before += file->size();
  report.bytes_after = HONE_TRY(writer.file_bytes());
  HONE_TRY(writer.finish());
  return report;
}

}  // namespace hone
