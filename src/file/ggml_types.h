// The tensor types a GGUF file can name: ggml type id -> name and block size (ggml.h, enum ggml_type; block
// structures in ggml-common.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace hone {

struct GgmlType {
  std::uint32_t id;
  std::string_view name;
  std::uint64_t block_elements;
  std::uint64_t block_bytes;
  std::optional<DType> dtype;  // nullopt: hone knows the size but cannot decode the values
};

std::span<const GgmlType> ggml_types();
// nullptr: no such type, or one that was withdrawn from the format.
const GgmlType* ggml_type(std::uint32_t id);
// nullptr: GGUF has no type for it (u8, bool, f8, ...).
const GgmlType* ggml_type_of(DType dtype);

}  // namespace hone
