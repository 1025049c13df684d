#include "engine/quantize_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "file/ggml_types.h"
#include "file/gguf_writer.h"
#include "model/config.h"
#include "tensor/block_formats.h"
#include "tokens/gguf_tokenizer.h"
#include "tokens/load_tokenizer.h"

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

bool is_sensitive(std::span<const GgufTensor> tensors, std::string_view name) {
  if (name == "output.weight") return true;
  if (name == "token_embd.weight") {
    return std::ranges::find(tensors, "output.weight", &GgufTensor::name) == tensors.end();
  }
  if (name.find(".attn_v.") == std::string_view::npos && name.find(".ffn_down") == std::string_view::npos) {
    return false;
  }
  std::int64_t layers = 0;
  for (const GgufTensor& tensor : tensors) layers = std::max(layers, layer_number(tensor.name) + 1);
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
  double offset;
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
    if (job.offset != 0) {
      for (float& value : values) value = static_cast<float>(static_cast<double>(value) + job.offset);
    }
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

// A tensor as rows in the order they are written.
class SourceRows {
 public:
  SourceRows(const Checkpoint& checkpoint, const GgufTensor& tensor)
      : checkpoint_(checkpoint), tensor_(tensor) {
    const bool vector = tensor.shape.size() < 2;
    // What is paired in a vector are its elements.
    row_ = tensor.shape.empty() || (vector && tensor.paired_rows > 0) ? 1 : tensor.shape.back();
    std::int64_t elements = 1;
    for (const std::int64_t axis : tensor.shape) elements *= axis;
    rows_ = elements / row_;
    if (!tensor.parts.empty()) rows_per_part_ = tensor.parts.front()->elements() / row_;
  }
  DType dtype() const { return tensor_.parts.empty() ? DType::F32 : *tensor_.parts.front()->dtype; }
  std::int64_t row() const { return row_; }
  std::int64_t rows() const { return rows_; }

  Status read(std::int64_t first, std::span<std::byte> out) const {
    const std::int64_t row_bytes = dtype_bytes(dtype(), row_);
    const auto bytes = static_cast<std::int64_t>(out.size());
    if (tensor_.parts.empty()) {
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(tensor_.values.data()) + first * row_bytes,
                  out.size());
      return {};
    }
    for (std::int64_t at = 0; at < bytes;) {
      const std::int64_t source = source_row(first + at / row_bytes);
      const std::int64_t left_in_part = rows_per_part_ - source % rows_per_part_;
      const std::int64_t together =
          tensor_.paired_rows > 0 ? 1 : std::min((bytes - at) / row_bytes, left_in_part);
      const TensorEntry& part = *tensor_.parts[static_cast<std::size_t>(source / rows_per_part_)];
      HONE_TRY(checkpoint_.read_tensor(
          part, static_cast<std::uint64_t>(source % rows_per_part_ * row_bytes),
          out.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(together * row_bytes))));
      at += together * row_bytes;
    }
    return {};
  }

 private:
  std::int64_t source_row(std::int64_t written) const {
    const std::int64_t head = tensor_.paired_rows;
    if (head == 0) return written;
    const std::int64_t within = written % head;
    return written - within + within / 2 + (within % 2 != 0 ? head / 2 : 0);
  }

  const Checkpoint& checkpoint_;
  const GgufTensor& tensor_;
  std::int64_t row_ = 1;
  std::int64_t rows_ = 1;
  std::int64_t rows_per_part_ = 1;
};

// Returns the relative error, which is summed row by row, so it does not depend on the number of threads.
Result<double> write_tensor(const Checkpoint& checkpoint, const GgufTensor& tensor, DType to,
                            ThreadPool& pool, GgufWriter& writer) {
  const SourceRows rows(checkpoint, tensor);
  const DType from = rows.dtype();
  const bool copied = from == to && tensor.offset == 0;
  const std::int64_t row_bytes = dtype_bytes(from, rows.row());
  const std::int64_t step = std::max<std::int64_t>(1, static_cast<std::int64_t>(kPieceBytes) / row_bytes);
  double error = 0;
  double norm = 0;
  std::vector<std::byte> source;
  std::vector<std::byte> target;
  std::vector<double> errors;
  std::vector<double> norms;
  for (std::int64_t first = 0; first < rows.rows(); first += step) {
    const std::int64_t count = std::min(step, rows.rows() - first);
    source.resize(static_cast<std::size_t>(count * row_bytes));
    HONE_TRY(rows.read(first, source));
    if (copied) {
      HONE_TRY(writer.append(source));
      continue;
    }
    target.resize(static_cast<std::size_t>(dtype_bytes(to, count * rows.row())));
    errors.resize(static_cast<std::size_t>(count));
    norms.resize(static_cast<std::size_t>(count));
    EncodeJob job{from, to, rows.row(), tensor.offset, source.data(), target.data(), &errors, &norms};
    pool.run(count, encode_rows, &job);
    HONE_TRY(writer.append(target));
    for (const double value : errors) error += value;
    for (const double value : norms) norm += value;
  }
  return norm > 0 ? std::sqrt(error / norm) : 0.0;
}

void copy_metadata(const Checkpoint& checkpoint, GgufWriter& writer) {
  for (const MetadataEntry& entry : checkpoint.metadata.entries()) {
    const bool is_own = entry.key == "general.file_type" || entry.key == "general.quantization_version" ||
                        entry.key == "general.alignment" || entry.key.starts_with("split.");
    if (!is_own) writer.add_value(entry.key, entry.value);
  }
}

Status check_source(const Checkpoint& checkpoint, const std::string& path) {
  const auto refuse = [&](std::string message, std::string expected, std::string actual,
                          std::string next_step) {
    return Error{ErrorCode::BadModel, Fault::User,       checkpoint.path,     std::move(message),
                 std::move(expected), std::move(actual), std::move(next_step)};
  };
  if (checkpoint.format != "gguf" && checkpoint.config == nullptr) {
    return refuse("the file does not say what model it is of", "a GGUF file, or a folder with config.json",
                  checkpoint.format, "give the folder that holds it");
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

std::uint32_t ggml_file_type(DType type, bool mix) {
  return mix ? row_of(type).mixed_file_type : row_of(type).file_type;
}

DType target_type(std::span<const GgufTensor> tensors, const GgufTensor& tensor,
                  const QuantizeOptions& options) {
  const DType from = tensor.parts.empty() ? DType::F32 : tensor.parts.front()->dtype.value_or(DType::F32);
  if (!dtype_row(from).is_float) return from;
  if (tensor.shape.size() < 2 || !tensor.name.ends_with(".weight") || is_router(tensor.name)) {
    // A block of a vector's type has no meaning here; what another file holds in 16 bits or in f64 becomes
    // f32, GGUF's type for it.
    return options.keep_small_types || dtype_row(from).is_quantised ? from : DType::F32;
  }
  const bool widen = options.mix && is_sensitive(tensors, tensor.name);
  DType to = widen ? wider_type(options.type) : options.type;
  while (tensor.shape.back() % dtype_row(to).block_elements != 0) to = row_of(to).narrow;
  return to;
}

namespace {

// The folder's tokenizer; what of it GGUF cannot say becomes notes. A tokenizer that hone cannot read, or
// that GGUF cannot hold, is no reason to write no weights.
std::vector<std::string> add_tokenizer(const Checkpoint& checkpoint, const ModelConfig& config,
                                       GgufWriter& writer) {
  const Result<std::optional<TokenizerSpec>> spec = load_tokenizer_spec(checkpoint);
  const auto left_out = [](const Error& error) {
    return std::vector{fmt::format("the file has no tokenizer: {} ({})", error.message, error.where)};
  };
  if (!spec.ok()) return left_out(spec.error());
  if (!spec->has_value()) return {};
  Result<std::vector<std::string>> notes = add_gguf_tokenizer(**spec, config.vocabulary, writer);
  if (!notes.ok()) return left_out(notes.error());
  return std::move(notes).value();
}

}  // namespace

Result<QuantizeReport> quantize_file(const Checkpoint& checkpoint, const std::string& path,
                                     const QuantizeOptions& chosen, ThreadPool& pool,
                                     const QuantizeProgress& progress) {
  HONE_TRY(check_source(checkpoint, path));
  GgufWriter writer;
  QuantizeOptions options = chosen;
  QuantizeReport report;
  std::vector<GgufTensor> tensors;
  if (checkpoint.format == "gguf") {
    options.keep_small_types = true;
    tensors = as_gguf_tensors(checkpoint);
    copy_metadata(checkpoint, writer);
  } else {
    const ModelConfig config = HONE_TRY(read_config(checkpoint));
    GgufForm form = HONE_TRY(gguf_form(checkpoint, config));
    add_gguf_config(config, form, writer);
    report.notes = config.notes;
    for (std::string& note : add_tokenizer(checkpoint, config, writer))
      report.notes.push_back(std::move(note));
    tensors = std::move(form.tensors);
  }
  writer.add_u32("general.quantization_version", 2);
  writer.add_u32("general.file_type", ggml_file_type(options.type, options.mix));
  report.tensors.reserve(tensors.size());
  std::uint64_t total = 0;
  for (const GgufTensor& from : tensors) {
    QuantizedTensor tensor;
    tensor.name = from.name;
    tensor.from = from.parts.empty() ? "f32" : from.parts.front()->type_name;
    tensor.to = target_type(tensors, from, options);
    std::int64_t elements = 1;
    for (const std::int64_t axis : from.shape) elements *= axis;
    for (const TensorEntry* part : from.parts) tensor.bytes_before += part->bytes;
    tensor.bytes_after = static_cast<std::uint64_t>(dtype_bytes(tensor.to, elements));
    tensor.narrowed_rows =
        !from.shape.empty() && from.shape.back() % dtype_row(options.type).block_elements != 0;
    writer.add_tensor(tensor.name, tensor.to, from.shape);
    total += tensor.bytes_before;
    report.tensors.push_back(std::move(tensor));
  }
  HONE_TRY(writer.begin(path));
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < report.tensors.size(); ++i) {
    QuantizedTensor& tensor = report.tensors[i];
    tensor.relative_error = HONE_TRY(write_tensor(checkpoint, tensors[i], tensor.to, pool, writer));
    done += tensor.bytes_before;
    if (progress) progress(done, total);
  }
  for (const std::shared_ptr<MappedFile>& file : checkpoint.files) report.bytes_before += file->size();
  report.bytes_after = HONE_TRY(writer.file_bytes());
  HONE_TRY(writer.finish());
  return report;
}

}  // namespace hone
