// Element types: one row per type. A block-quantised type stores `block_elements` values in `block_bytes`
// bytes; for every other type a block is one element.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I8,
  U8,
  I16,
  I32,
  U32,
  I64,
  U64,
  Bool,
  F8E4M3,
  F8E5M2,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ4_NL,
  IQ4_XS,
  TQ1_0,
  TQ2_0,
  MXFP4,
  NVFP4,
  Q8A,  // activations of an int8 matmul: see tensor/block_formats.h
  Count,
};

struct DTypeRow {
  DType dtype;
  std::string_view name;  // as printed in the IR and in reports: "f32", "q4_1"
  std::int64_t block_elements;
  std::int64_t block_bytes;
  bool is_float;      // takes part in arithmetic as a real number
  bool is_quantised;  // block-quantised: read-only in arithmetic, decoded by rows
};

const DTypeRow& dtype_row(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

inline std::string_view dtype_name(DType dtype) {
  return dtype_row(dtype).name;
}

// Bytes of `elements` values. `elements` must be a multiple of the block size.
inline std::int64_t dtype_bytes(DType dtype, std::int64_t elements) {
  const DTypeRow& row = dtype_row(dtype);
  return elements / row.block_elements * row.block_bytes;
}

}  // namespace hone
