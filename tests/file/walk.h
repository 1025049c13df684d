// Touches everything a parsed checkpoint offers, as a user of it would; shared by tests and fuzz targets.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "file/checkpoint.h"

namespace hone::testing {

inline std::uint64_t walk_value(const MetadataValue& value) {
  std::uint64_t sum = value.type_text().size();
  if (const auto text = value.as_string()) {
    for (const char c : *text) sum += static_cast<unsigned char>(c);
  }
  if (const auto array = value.as_array()) {
    array->for_each_string([&sum](std::uint64_t index, std::string_view text) {
      sum += index;
      for (const char c : text) sum += static_cast<unsigned char>(c);
    });
    for (std::uint64_t i = 0; i <= array->size() && i < 1000; ++i) {
      sum += array->integer_at(i).has_value() + array->real_at(i).has_value() + array->bool_at(i).has_value();
    }
  }
  return sum + value.as_integer().has_value() + value.as_real().has_value() + value.as_bool().has_value();
}

// False if a promise of the readers does not hold: distinct findable names, sizes that fit, data inside the
// file.
inline bool walk(const Checkpoint& checkpoint, std::uint64_t file_bytes, std::uint64_t& sum) {
  bool ok = checkpoint.header_bytes <= file_bytes;
  for (const MetadataEntry& entry : checkpoint.metadata.entries()) {
    sum += entry.key.size() + walk_value(entry.value);
  }
  for (const TensorEntry& tensor : checkpoint.tensors) {
    ok = ok && checkpoint.find_tensor(tensor.name) == &tensor;
    ok = ok && tensor.offset >= checkpoint.header_bytes && tensor.offset <= file_bytes;
    ok = ok && tensor.bytes <= file_bytes - tensor.offset;
    ok = ok && tensor.elements() >= 0 && !tensor.type_name.empty();
    if (tensor.dtype) {
      ok = ok && dtype_bytes(*tensor.dtype, tensor.elements()) == static_cast<std::int64_t>(tensor.bytes);
      ok = ok && dtype_name(*tensor.dtype) == tensor.type_name;
    }
  }
  return ok;
}

}  // namespace hone::testing
