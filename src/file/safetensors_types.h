// The element types of safetensors (enum Dtype of its specification).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace hone {

struct SafetensorsType {
  std::string_view name;       // as in the file: "BF16"
  std::string_view type_name;  // as hone prints it: "bf16"
  std::uint64_t bits;          // of one element
  std::optional<DType> dtype;  // nullopt: hone knows the size but cannot decode the values
};

// nullptr: no such type.
const SafetensorsType* safetensors_type(std::string_view name);
const SafetensorsType* safetensors_type_of(DType dtype);

}  // namespace hone
