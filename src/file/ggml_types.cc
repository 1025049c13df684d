#include "file/ggml_types.h"

#include <array>

namespace hone {
namespace {

// Ids 4, 5, 31..33 and 36..38 were withdrawn and stand in no valid file.
constexpr std::array kTypes{
    GgmlType{0, "f32", 1, 4, DType::F32},
    GgmlType{1, "f16", 1, 2, DType::F16},
    GgmlType{2, "q4_0", 32, 18, DType::Q4_0},
    GgmlType{3, "q4_1", 32, 20, DType::Q4_1},
    GgmlType{6, "q5_0", 32, 22, DType::Q5_0},
    GgmlType{7, "q5_1", 32, 24, DType::Q5_1},
    GgmlType{8, "q8_0", 32, 34, DType::Q8_0},
    GgmlType{9, "q8_1", 32, 36, std::nullopt},  // two f16 (scale, scaled sum) and 32 x i8
    GgmlType{10, "q2_k", 256, 84, DType::Q2_K},
    GgmlType{11, "q3_k", 256, 110, DType::Q3_K},
    GgmlType{12, "q4_k", 256, 144, DType::Q4_K},
    GgmlType{13, "q5_k", 256, 176, DType::Q5_K},
    GgmlType{14, "q6_k", 256, 210, DType::Q6_K},
    GgmlType{15, "q8_k", 256, 292, std::nullopt},
    GgmlType{16, "iq2_xxs", 256, 66, DType::IQ2_XXS},
    GgmlType{17, "iq2_xs", 256, 74, DType::IQ2_XS},
    GgmlType{18, "iq3_xxs", 256, 98, DType::IQ3_XXS},
    GgmlType{19, "iq1_s", 256, 50, DType::IQ1_S},
    GgmlType{20, "iq4_nl", 32, 18, DType::IQ4_NL},
    GgmlType{21, "iq3_s", 256, 110, DType::IQ3_S},
    GgmlType{22, "iq2_s", 256, 82, DType::IQ2_S},
    GgmlType{23, "iq4_xs", 256, 136, DType::IQ4_XS},
    GgmlType{24, "i8", 1, 1, DType::I8},
    GgmlType{25, "i16", 1, 2, DType::I16},
    GgmlType{26, "i32", 1, 4, DType::I32},
    GgmlType{27, "i64", 1, 8, DType::I64},
    GgmlType{28, "f64", 1, 8, DType::F64},
    GgmlType{29, "iq1_m", 256, 56, DType::IQ1_M},
    GgmlType{30, "bf16", 1, 2, DType::BF16},
    GgmlType{34, "tq1_0", 256, 54, DType::TQ1_0},
    GgmlType{35, "tq2_0", 256, 66, DType::TQ2_0},
    GgmlType{39, "mxfp4", 32, 17, DType::MXFP4},
    GgmlType{40, "nvfp4", 64, 36, DType::NVFP4},
    GgmlType{41, "q1_0", 128, 18, std::nullopt},
};

}  // namespace

std::span<const GgmlType> ggml_types() {
  return kTypes;
}

const GgmlType* ggml_type(std::uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

const GgmlType* ggml_type_of(DType dtype) {
  for (const GgmlType& type : kTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

}  // namespace hone
