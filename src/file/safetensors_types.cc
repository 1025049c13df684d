#include "file/safetensors_types.h"

#include <array>

namespace hone {
namespace {

constexpr std::array kTypes{
    SafetensorsType{"F64", "f64", 64, DType::F64},
    SafetensorsType{"F32", "f32", 32, DType::F32},
    SafetensorsType{"F16", "f16", 16, DType::F16},
    SafetensorsType{"BF16", "bf16", 16, DType::BF16},
    SafetensorsType{"I64", "i64", 64, DType::I64},
    SafetensorsType{"I32", "i32", 32, DType::I32},
    SafetensorsType{"I16", "i16", 16, DType::I16},
    SafetensorsType{"I8", "i8", 8, DType::I8},
    SafetensorsType{"U64", "u64", 64, DType::U64},
    SafetensorsType{"U32", "u32", 32, DType::U32},
    SafetensorsType{"U16", "u16", 16, std::nullopt},
    SafetensorsType{"U8", "u8", 8, DType::U8},
    SafetensorsType{"BOOL", "bool", 8, DType::Bool},
    SafetensorsType{"F8_E4M3", "f8_e4m3", 8, DType::F8E4M3},
    SafetensorsType{"F8_E5M2", "f8_e5m2", 8, DType::F8E5M2},
    SafetensorsType{"F8_E8M0", "f8_e8m0", 8, std::nullopt},
    SafetensorsType{"F6_E2M3", "f6_e2m3", 6, std::nullopt},
    SafetensorsType{"F6_E3M2", "f6_e3m2", 6, std::nullopt},
    SafetensorsType{"F4", "f4", 4, std::nullopt},
    SafetensorsType{"C64", "c64", 64, std::nullopt},
};

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) {
  for (const SafetensorsType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

const SafetensorsType* safetensors_type_of(DType dtype) {
  for (const SafetensorsType& type : kTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

}  // namespace hone
