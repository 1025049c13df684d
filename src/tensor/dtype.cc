#include "tensor/dtype.h"

#include <array>

namespace hone {
namespace {

constexpr std::array<DTypeRow, static_cast<std::size_t>(DType::Count)> kRows{{
    {DType::F64, "f64", 1, 8, true, false},
    {DType::F32, "f32", 1, 4, true, false},
    {DType::F16, "f16", 1, 2, true, false},
    {DType::BF16, "bf16", 1, 2, true, false},
    {DType::I8, "i8", 1, 1, false, false},
    {DType::U8, "u8", 1, 1, false, false},
    {DType::I16, "i16", 1, 2, false, false},
    {DType::I32, "i32", 1, 4, false, false},
    {DType::U32, "u32", 1, 4, false, false},
    {DType::I64, "i64", 1, 8, false, false},
    {DType::U64, "u64", 1, 8, false, false},
    {DType::Bool, "bool", 1, 1, false, false},
    {DType::F8E4M3, "f8_e4m3", 1, 1, true, false},
    {DType::F8E5M2, "f8_e5m2", 1, 1, true, false},
    {DType::Q4_0, "q4_0", 32, 18, true, true},
    {DType::Q4_1, "q4_1", 32, 20, true, true},
    {DType::Q5_0, "q5_0", 32, 22, true, true},
    {DType::Q5_1, "q5_1", 32, 24, true, true},
    {DType::Q8_0, "q8_0", 32, 34, true, true},
    {DType::Q2_K, "q2_k", 256, 84, true, true},
    {DType::Q3_K, "q3_k", 256, 110, true, true},
    {DType::Q4_K, "q4_k", 256, 144, true, true},
    {DType::Q5_K, "q5_k", 256, 176, true, true},
    {DType::Q6_K, "q6_k", 256, 210, true, true},
    {DType::IQ1_S, "iq1_s", 256, 50, true, true},
    {DType::IQ1_M, "iq1_m", 256, 56, true, true},
    {DType::IQ2_XXS, "iq2_xxs", 256, 66, true, true},
    {DType::IQ2_XS, "iq2_xs", 256, 74, true, true},
    {DType::IQ2_S, "iq2_s", 256, 82, true, true},
    {DType::IQ3_XXS, "iq3_xxs", 256, 98, true, true},
    {DType::IQ3_S, "iq3_s", 256, 110, true, true},
    {DType::IQ4_NL, "iq4_nl", 32, 18, true, true},
    {DType::IQ4_XS, "iq4_xs", 256, 136, true, true},
    {DType::TQ1_0, "tq1_0", 256, 54, true, true},
    {DType::TQ2_0, "tq2_0", 256, 66, true, true},
    {DType::MXFP4, "mxfp4", 32, 17, true, true},
    {DType::NVFP4, "nvfp4", 64, 36, true, true},
    {DType::Q8A, "q8a", 32, 48, true, true},
}};

}  // namespace

const DTypeRow& dtype_row(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace hone
