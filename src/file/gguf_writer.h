// GGUF version 3 writer: metadata and tensor list first, then tensor data streamed in pieces, so that a file
// larger than memory can be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "file/metadata.h"
#include "file/output_file.h"
#include "tensor/dtype.h"

namespace hone {

class GgufWriter {
 public:
  // `alignment` of the tensor data in bytes, a power of two of at least 8. One other than 32 is written as
  // general.alignment.
  explicit GgufWriter(std::uint32_t alignment = 32);

  void add_u32(std::string_view key, std::uint32_t value);
  void add_i32(std::string_view key, std::int32_t value);
  void add_u64(std::string_view key, std::uint64_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_u8s(std::string_view key, std::span<const std::byte> values);
  void add_u32s(std::string_view key, std::span<const std::uint32_t> values);
  void add_i32s(std::string_view key, std::span<const std::int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  void add_strings(std::string_view key, std::span<const std::string> values);
  // Any value of a file that was read, unchanged.
  void add_value(std::string_view key, const MetadataValue& value);

  // `shape` outermost axis first, as in TensorEntry. Data follows in the order of these calls.
  void add_tensor(std::string name, DType dtype, std::vector<std::int64_t> shape);

  // Everything before the tensor data, padded to the alignment. Errors (Usage): a bad alignment, a repeated
  // key or tensor name, a name that readers refuse, more than four axes, an axis below 1, a row that is not
  // whole blocks, a type GGUF does not have.
  Result<std::vector<std::byte>> header() const;
  // Bytes of the whole file, for a check of the space left. Same errors.
  Result<std::uint64_t> file_bytes() const;

  // Creates the file and writes the header.
  Status begin(const std::string& path);
  // The next bytes of the current tensor; the padding between tensors is the writer's. A piece may not run
  // past the end of its tensor.
  Status append(std::span<const std::byte> piece);
  // Errors if bytes of a tensor are missing. Only now does the file appear under its name.
  Status finish();

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes;
  };

  void add_raw(std::string_view key, MetadataType type, std::string_view bytes);
  void add_raw_array(std::string_view key, MetadataType element, std::uint64_t count, std::string_view bytes);
  Status check() const;
  Status pad(std::uint64_t count);

  std::uint32_t alignment_;
  std::vector<std::string> keys_;
  std::string metadata_;  // encoded entries
  std::vector<Tensor> tensors_;
  std::unique_ptr<OutputFile> file_;
  std::size_t current_ = 0;
  std::uint64_t written_ = 0;  // of the current tensor
};

}  // namespace hone
