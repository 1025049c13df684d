// What every checkpoint format is read into: metadata and named tensors as ranges of bytes of its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "file/mapped_file.h"
#include "file/metadata.h"
#include "tensor/dtype.h"

namespace hone {

struct TensorEntry {
  std::string name;
  std::optional<DType> dtype;       // nullopt: known by name and size, but hone cannot decode it
  std::string type_name;            // "f32", "q4_k"; equals dtype_name(*dtype) where dtype is set
  std::vector<std::int64_t> shape;  // outermost axis first (row-major); GGUF's `ne` reversed
  std::uint64_t offset = 0;         // absolute, in bytes from the start of its file
  std::uint64_t bytes = 0;
  std::uint32_t file = 0;  // position in Checkpoint::files

  // Product of the shape; 1 for a scalar. Readers have checked that it fits.
  std::int64_t elements() const;
};

struct Checkpoint {
  std::string path;    // as it was opened
  std::string format;  // "gguf", "safetensors", "huggingface"
  std::string folder;  // where config.json and the tokenizer's files lie; empty for GGUF
  Metadata metadata;
  std::vector<TensorEntry> tensors;                // in the order of the headers, file after file
  std::vector<std::shared_ptr<MappedFile>> files;  // empty when the checkpoint was parsed from memory
  std::uint64_t header_bytes = 0;                  // of the first file: where its tensor data begins
  // config.json and generation_config.json of a Hugging Face folder, each an object; null where there is
  // none, and for GGUF.
  std::shared_ptr<const nlohmann::json> config;
  std::shared_ptr<const nlohmann::json> generation_config;

  // nullptr if there is none. Logarithmic once index_tensors ran (every reader runs it), linear before.
  const TensorEntry* find_tensor(std::string_view name) const;

  // Sorts the names. If two tensors share one, returns the position of the later one in `tensors`.
  std::optional<std::size_t> index_tensors();

  // Fills `out` from byte `begin` of the tensor's data, read and not mapped: the pages never count as memory
  // of this process. Errors: those of MappedFile::read_at.
  Status read_tensor(const TensorEntry& tensor, std::uint64_t begin, std::span<std::byte> out) const;

  // Gives back the pages of every file that are resident: a hint.
  void drop_pages() const;

 private:
  std::vector<std::uint32_t> by_name_;
};

}  // namespace hone
