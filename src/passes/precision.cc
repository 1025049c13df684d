#include "passes/precision.h"

#include <array>

namespace hone {
namespace {

enum class WeightKind : std::uint8_t { Wide, Half, Quantised };

struct Choice {
  bool int8_activations;
  DType kv;
};

struct PolicyRow {
  WeightKind weights;
  Isa isa;
  Choice choice;
};

constexpr Choice kExact{false, DType::F32};
constexpr Choice kHalf{false, DType::F16};
constexpr Choice kInt8{true, DType::F16};

constexpr std::array kPolicies{
    PolicyRow{WeightKind::Wide, Isa::Portable, kExact},
    PolicyRow{WeightKind::Wide, Isa::Avx2, kExact},
    PolicyRow{WeightKind::Wide, Isa::Avx512, kExact},
    PolicyRow{WeightKind::Wide, Isa::Amx, kExact},
    PolicyRow{WeightKind::Half, Isa::Portable, kHalf},
    PolicyRow{WeightKind::Half, Isa::Avx2, kHalf},
    PolicyRow{WeightKind::Half, Isa::Avx512, kHalf},
    PolicyRow{WeightKind::Half, Isa::Amx, kHalf},
    PolicyRow{WeightKind::Quantised, Isa::Portable, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Avx2, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Avx512, kInt8},
    PolicyRow{WeightKind::Quantised, Isa::Amx, kInt8},
};

WeightKind kind_of(DType dtype) {
  if (dtype_row(dtype).is_quantised) return WeightKind::Quantised;
  return dtype == DType::F16 || dtype == DType::BF16 ? WeightKind::Half : WeightKind::Wide;
}

}  // namespace

PrecisionPolicy default_policy(Level level, DType dominant_weight_type, Isa isa) {
  PrecisionPolicy policy;
  if (level < Level::O3) return policy;
  const WeightKind kind = kind_of(dominant_weight_type);
  for (const PolicyRow& row : kPolicies) {
    if (row.weights != kind || row.isa != isa) continue;
    policy.int8_activations = row.choice.int8_activations;
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
      break;
    case Precision::Exact:
      policy.int8_activations = kExact.int8_activations;
      policy.kv = kExact.kv;
      break;
  }
  return policy;
}

}  // namespace hone
