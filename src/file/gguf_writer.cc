#include "file/gguf_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "file/file_error.h"
#include "file/ggml_types.h"
#include "file/gguf.h"

namespace hone {
namespace {

constexpr std::uint32_t kVersion = 3;

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

template <class T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <class T>
void put(std::string& out, T value) {
  out += bytes_of(value);
}

void put_string(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

Error usage(std::string where, std::string message, std::string expected, std::string actual) {
  return Error{ErrorCode::Usage,    Fault::User,       std::move(where), std::move(message),
               std::move(expected), std::move(actual), "change the call"};
}

Error refused_name(std::string_view name) {
  return usage(printable(name), "a key or tensor name must be one that readers accept",
               fmt::format("1 to {} bytes of UTF-8 without control characters", GgufLimits::kNameBytes),
               printable(name));
}

// Names in `sorted` order; the error of the first unusable or repeated one.
Status check_names(std::vector<std::string_view> names) {
  std::ranges::sort(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].size() > GgufLimits::kNameBytes || !is_usable_name(names[i])) return refused_name(names[i]);
    if (i > 0 && names[i] == names[i - 1]) {
      return usage(printable(names[i]), "a key or tensor name must not repeat", "distinct names",
                   printable(names[i]));
    }
  }
  return {};
}

// Bytes of a tensor, or what a reader would refuse about it.
Result<std::uint64_t> tensor_bytes(const std::string& name, DType dtype,
                                   std::span<const std::int64_t> shape) {
  const GgmlType* type = ggml_type_of(dtype);
  if (type == nullptr) {
    return usage(printable(name), "the type must be one that GGUF has", "a ggml type",
                 std::string(dtype_name(dtype)));
  }
  if (shape.size() > GgufLimits::kDimensions) {
    return usage(printable(name), "a tensor must have at most 4 dimensions", "at most 4",
                 fmt::format("{}", shape.size()));
  }
  std::uint64_t elements = 1;
  for (const std::int64_t dim : shape) {
    const auto product = dim < 1 ? std::nullopt : checked_multiply(elements, static_cast<std::uint64_t>(dim));
    if (!product || *product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return usage(printable(name), "dimensions must be at least 1 and their product below 2^63", "1 or more",
                   fmt::format("{}", dim));
    }
    elements = *product;
  }
  const std::uint64_t row = shape.empty() ? 1 : static_cast<std::uint64_t>(shape.back());
  const auto bytes = checked_multiply(elements / type->block_elements, type->block_bytes);
  if (row % type->block_elements != 0 || !bytes) {
    return usage(printable(name), "a row must be a whole number of blocks and the size below 2^64",
                 fmt::format("a multiple of {}", type->block_elements), fmt::format("{}", row));
  }
  return *bytes;
}

std::uint64_t padding(std::uint64_t at, std::uint64_t alignment) {
  return (alignment - at % alignment) % alignment;
}

}  // namespace

GgufWriter::GgufWriter(std::uint32_t alignment) : alignment_(alignment) {
  if (alignment != kGgufDefaultAlignment) add_u32(kGgufAlignmentKey, alignment);
}

void GgufWriter::add_raw(std::string_view key, MetadataType type, std::string_view bytes) {
  keys_.emplace_back(key);
  put_string(metadata_, key);
  put(metadata_, static_cast<std::uint32_t>(type));
  metadata_ += bytes;
}

void GgufWriter::add_raw_array(std::string_view key, MetadataType element, std::uint64_t count,
                               std::string_view bytes) {
  add_raw(key, MetadataType::Array, {});
  put(metadata_, static_cast<std::uint32_t>(element));
  put(metadata_, count);
  metadata_ += bytes;
}

void GgufWriter::add_u32(std::string_view key, std::uint32_t value) {
  add_raw(key, MetadataType::U32, bytes_of(value));
}
void GgufWriter::add_i32(std::string_view key, std::int32_t value) {
  add_raw(key, MetadataType::I32, bytes_of(value));
}
void GgufWriter::add_u64(std::string_view key, std::uint64_t value) {
  add_raw(key, MetadataType::U64, bytes_of(value));
}
void GgufWriter::add_f32(std::string_view key, float value) {
  add_raw(key, MetadataType::F32, bytes_of(value));
}
void GgufWriter::add_bool(std::string_view key, bool value) {
  add_raw(key, MetadataType::Bool, bytes_of(static_cast<std::uint8_t>(value)));
}
void GgufWriter::add_string(std::string_view key, std::string_view value) {
  add_raw(key, MetadataType::String, {});
  put_string(metadata_, value);
}
void GgufWriter::add_u8s(std::string_view key, std::span<const std::byte> values) {
  add_raw_array(key, MetadataType::U8, values.size(), bytes_of(values));
}
void GgufWriter::add_u32s(std::string_view key, std::span<const std::uint32_t> values) {
  add_raw_array(key, MetadataType::U32, values.size(), bytes_of(values));
}
void GgufWriter::add_i32s(std::string_view key, std::span<const std::int32_t> values) {
  add_raw_array(key, MetadataType::I32, values.size(), bytes_of(values));
}
void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  add_raw_array(key, MetadataType::F32, values.size(), bytes_of(values));
}
void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  add_raw_array(key, MetadataType::String, values.size(), {});
  for (const std::string& value : values) put_string(metadata_, value);
}

void GgufWriter::add_value(std::string_view key, const MetadataValue& value) {
  if (key == kGgufAlignmentKey) return;  // the constructor's: this file is laid out anew
  if (const auto text = value.as_string()) return add_string(key, *text);
  if (const auto array = value.as_array()) {
    const std::span<const std::byte> bytes = array->bytes();
    return add_raw_array(key, array->element_type(), array->size(),
                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  if (value.type() == MetadataType::F32) return add_f32(key, static_cast<float>(value.as_real().value_or(0)));
  // All other scalars are the low bytes of the little-endian pattern.
  const std::uint64_t bits = value.bits();
  add_raw(key, value.type(), bytes_of(bits).substr(0, metadata_type_bytes(value.type())));
}

void GgufWriter::add_tensor(std::string name, DType dtype, std::vector<std::int64_t> shape) {
  const Result<std::uint64_t> bytes = tensor_bytes(name, dtype, shape);
  tensors_.push_back({std::move(name), dtype, std::move(shape), bytes.ok() ? *bytes : 0});
}

Status GgufWriter::check() const {
  if (alignment_ < 8 || !std::has_single_bit(alignment_)) {
    return usage("general.alignment", "the alignment must be a power of two of at least 8", "8, 16, 32, ...",
                 fmt::format("{}", alignment_));
  }
  HONE_TRY(check_names({keys_.begin(), keys_.end()}));
  std::vector<std::string_view> names;
  names.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) {
    names.push_back(tensor.name);
    HONE_TRY(tensor_bytes(tensor.name, tensor.dtype, tensor.shape));
  }
  return check_names(std::move(names));
}

Result<std::vector<std::byte>> GgufWriter::header() const {
  HONE_TRY(check());
  std::string out = "GGUF";
  put(out, kVersion);
  put(out, static_cast<std::uint64_t>(tensors_.size()));
  put(out, static_cast<std::uint64_t>(keys_.size()));
  out += metadata_;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i-- > 0;) put(out, tensor.shape[i]);
    put(out, ggml_type_of(tensor.dtype)->id);
    put(out, offset);
    offset += tensor.bytes + padding(tensor.bytes, alignment_);
  }
  out.append(padding(out.size(), alignment_), '\0');
  const std::span<const std::byte> bytes = std::as_bytes(std::span(out));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<std::uint64_t> GgufWriter::file_bytes() const {
  std::uint64_t total = HONE_TRY(header()).size();
  for (const Tensor& tensor : tensors_) total += tensor.bytes + padding(tensor.bytes, alignment_);
  return total;
}

Status GgufWriter::begin(const std::string& path) {
  const std::vector<std::byte> bytes = HONE_TRY(header());
  file_ = HONE_TRY(OutputFile::create(path));
  current_ = 0;
  written_ = 0;
  return file_->append(bytes);
}

Status GgufWriter::append(std::span<const std::byte> piece) {
  if (!file_) return internal_error("gguf writer", "append needs begin");
  if (piece.empty()) return {};
  if (current_ >= tensors_.size() || piece.size() > tensors_[current_].bytes - written_) {
    const bool after_end = current_ >= tensors_.size();
    return internal_error(after_end ? file_->path() : printable(tensors_[current_].name),
                          "a piece must end inside its tensor");
  }
  HONE_TRY(file_->append(piece));
  written_ += piece.size();
  if (written_ < tensors_[current_].bytes) return {};
  const std::uint64_t count = padding(written_, alignment_);
  ++current_;
  written_ = 0;
  return pad(count);
}

Status GgufWriter::pad(std::uint64_t count) {
  constexpr std::array<std::byte, 64> kZeros{};
  while (count > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(count, kZeros.size());
    HONE_TRY(file_->append(std::span(kZeros).first(piece)));
    count -= piece;
  }
  return {};
}

Status GgufWriter::finish() {
  if (!file_) return internal_error("gguf writer", "finish needs begin");
  if (current_ < tensors_.size()) {
    return internal_error(printable(tensors_[current_].name),
                          "every tensor must be written in full before finish");
  }
  const std::unique_ptr<OutputFile> file = std::move(file_);
  return file->commit();
}

}  // namespace hone
