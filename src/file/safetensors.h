// safetensors: u64 header length, a JSON header {name: {dtype, shape, data_offsets}}, then the data without
// holes (specification: github.com/huggingface/safetensors, section Format). Hostile input: see file/gguf.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "file/checkpoint.h"
#include "file/mapped_file.h"
#include "tensor/dtype.h"

namespace hone {

// Limits of this reader, stricter than the format's 100 MB header; they bound its memory and time.
struct SafetensorsLimits {
  static constexpr std::uint64_t kHeaderBytes = 16ull << 20;
  static constexpr std::uint64_t kStringBytes = 4ull << 20;  // of one JSON string (a metadata value)
  static constexpr std::uint64_t kTensors = 65'536;
  static constexpr std::uint64_t kMetadataEntries = 65'536;
  static constexpr std::uint64_t kNameBytes = 256;
  static constexpr std::size_t kDimensions = 8;
};

// Maps the file and reads its header. `__metadata__` becomes Checkpoint::metadata, all values strings.
Result<Checkpoint> read_safetensors(const std::string& path);
Result<Checkpoint> read_safetensors(std::shared_ptr<MappedFile> file);

// Reads from memory. `bytes` is the whole file. `path` is named in errors.
Result<Checkpoint> parse_safetensors(std::span<const std::byte> bytes, const std::string& path);

struct SafetensorsTensor {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;  // outermost axis first; may be empty (a scalar) or have zeros
  std::span<const std::byte> data;  // row-major, exactly dtype_bytes(product of shape)
};

// Writes a file that every safetensors reader takes: header padded to 8 bytes, data laid out by falling
// element size so that each tensor is aligned. Errors (Usage): a type the format lacks (block-quantised),
// data of another size than the shape, a repeated or unusable name; (BadFile) the file cannot be written.
Status write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                         std::span<const std::pair<std::string, std::string>> metadata = {});

}  // namespace hone
