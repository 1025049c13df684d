#include "passes/precision.h"

#include <array>

namespace hone {
namespace {

enum class WeightKind : std::uint8_t { Wide, Half, Bf16, Quantised };

struct Choice {
  Activations activations;
  DType kv;
};

struct PolicyRow {
  WeightKind weights;
  Isa isa;
  Choice choice;
};

constexpr Choice kExact{Activations::F32, DType::F32};
constexpr Choice kHalf{Activations::F32, DType::F16};
constexpr Choice kInt8{Activations::Q8a, DType::F16};
constexpr Choice kBf16{Activations::Bf16, DType::F16};

constexpr std::array kPolicies{
    PolicyRow{WeightKind::Wide, Isa::Portable, kExact},
    PolicyRow{WeightKind::Wide, Isa::Avx2, kExact},
    PolicyRow{WeightKind::Wide, Isa::Avx512, kExact},
    PolicyRow{WeightKind::Wide, Isa::Amx, kExact},
    PolicyRow{WeightKind::Half, Isa::Portable, kHalf},
    PolicyRow{WeightKind::Half, Isa::Avx2, kHalf},
    PolicyRow{WeightKind::Half, Isa::Avx512, kHalf},
    PolicyRow{WeightKind::Half, Isa::Amx, kHalf},
    PolicyRow{WeightKind::Bf16, Isa::Portable, kHalf},
    PolicyRow{WeightKind::Bf16, Isa::Avx2, kHalf},
    PolicyRow{WeightKind::Bf16, Isa::Avx512, kHalf},
    PolicyRow{WeightKind::Bf16, Isa::Amx, kBf16},
    PolicyRow{WeightKind::Quantised, Isa::Portable, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Avx2, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Avx512, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Amx, kInt8},
};

WeightKind kind_of(DType dtype) {
  if (dtype_row(dtype).is_quantised) return WeightKind::Quantised;
  if (dtype == DType::BF16) return WeightKind::Bf16;
  return dtype == DType::F16 ? WeightKind::Half : WeightKind::Wide;
}

}  // namespace

PrecisionPolicy default_policy(Level level, DType dominant_weight_type, Isa isa) {
  PrecisionPolicy policy;
  if (level < Level::O3) return policy;
  const WeightKind kind = kind_of(dominant_weight_type);
  for (const PolicyRow& row : kPolicies) {
    if (row.weights != kind || row.isa != isa) continue;
    policy.int8_activations = row.choice.activations == Activations::Q8a;
    policy.bf16_activations = row.choice.activations == Activations::Bf16;
    policy.kv = row.choice.kv;
  }
  return policy;
}

PrecisionPolicy policy_of(Precision precision, const PrecisionPolicy& fast) {
  PrecisionPolicy policy = fast;
  switch (precision) {
    case Precision::Fast:
      break;
    case Precision::Balanced:
      policy.two_terms = fast.int8_activations;
      policy.bf16_activations = false;
      break;
    case Precision::Exact:
      policy.int8_activations = false;
      policy.bf16_activations = false;
      policy.kv = kExact.kv;
      break;
  }
  return policy;
}

}  // namespace hone
