// What every checkpoint format is read into: metadata and named tensors as ranges of bytes of one file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  std::uint64_t offset = 0;         // absolute, in bytes from the start of the file
  std::uint64_t bytes = 0;

  // Product of the shape; 1 for a scalar. Readers have checked that it fits.
  std::int64_t elements() const;
};

struct Checkpoint {
  std::string path;
  std::string format;  // "gguf", "safetensors"
  Metadata metadata;
  std::vector<TensorEntry> tensors;  // in the order of the file's header
  std::shared_ptr<MappedFile> file;  // null when the checkpoint was parsed from memory
  std::uint64_t header_bytes = 0;    // where the tensor data begins

  // nullptr if there is none. Logarithmic once index_tensors ran (every reader runs it), linear before.
  const TensorEntry* find_tensor(std::string_view name) const;

  // Sorts the names. If two tensors share one, returns the position of the later one in `tensors`.
  std::optional<std::size_t> index_tensors();

 private:
  std::vector<std::uint32_t> by_name_;
};

}  // namespace hone
