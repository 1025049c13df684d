#include "passes/precision.h"

#include <array>

namespace hone {
namespace {

enum class WeightKind : std::uint8_t { Wide, Half, Quantised };

struct PolicyRow {
  WeightKind weights;
  Isa isa;
  PrecisionPolicy policy;
};

constexpr PrecisionPolicy kExact{.int8_activations = false, .kv = DType::F32};
constexpr PrecisionPolicy kHalf{.int8_activations = false, .kv = DType::F16};
constexpr PrecisionPolicy kInt8{.int8_activations = true, .kv = DType::F16};

constexpr std::array kPolicies{
    PolicyRow{WeightKind::Wide, Isa::Portable, kExact},
    PolicyRow{WeightKind::Wide, Isa::Avx2, kExact},
    PolicyRow{WeightKind::Wide, Isa::Avx512, kExact},
    PolicyRow{WeightKind::Half, Isa::Portable, kHalf},
    PolicyRow{WeightKind::Half, Isa::Avx2, kHalf},
    PolicyRow{WeightKind::Half, Isa::Avx512, kHalf},
    PolicyRow{WeightKind::Quantised, Isa::Portable, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Avx2, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Avx512, kInt8},
};

WeightKind kind_of(DType dtype) {
  if (dtype_row(dtype).is_quantised) return WeightKind::Quantised;
  return dtype == DType::F16 || dtype == DType::BF16 ? WeightKind::Half : WeightKind::Wide;
}

}  // namespace

PrecisionPolicy default_policy(Level level, DType dominant_weight_type, Isa isa) {
  if (level < Level::O3) return kExact;
  const WeightKind kind = kind_of(dominant_weight_type);
  for (const PolicyRow& row : kPolicies) {
    if (row.weights == kind && row.isa == isa) return row.policy;
  }
  return kExact;
}

}  // namespace hone
