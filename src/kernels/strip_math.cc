#include "kernels/strip_math.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace hone::kernels {
namespace {

using Function = double (*)(double);

Function function_of(StripOp op) {
  switch (op) {
    case StripOp::Exp:
      return [](double x) { return std::exp(x); };
    case StripOp::Log:
      return [](double x) { return std::log(x); };
    case StripOp::Sqrt:
      return [](double x) { return std::sqrt(x); };
    case StripOp::Rsqrt:
      return [](double x) { return 1.0 / std::sqrt(x); };
    case StripOp::Sin:
      return [](double x) { return std::sin(x); };
    case StripOp::Cos:
      return [](double x) { return std::cos(x); };
    default:
      return [](double x) { return std::tanh(x); };
  }
}

// The nearest T at or below in magnitude; NaN gives 0, what is out of range the nearest end of the range.
template <class T>
T from_double(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    constexpr double kEnd = sizeof(T) == 4 ? 0x1p31 : 0x1p63;
    if (std::isnan(value)) return 0;
    if (value >= kEnd) return std::numeric_limits<T>::max();
    if (value < -kEnd) return std::numeric_limits<T>::min();
    return static_cast<T>(value);
  }
}

template <class T>
void apply(Function function, const void* a, void* result, std::int64_t count) {
  const T* x = static_cast<const T*>(a);
  T* out = static_cast<T*>(result);
  for (std::int64_t i = 0; i < count; ++i) out[i] = from_double<T>(function(static_cast<double>(x[i])));
}

template <class T>
void apply_power(const void* a, const void* b, void* result, std::int64_t count) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* out = static_cast<T*>(result);
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = from_double<T>(std::pow(static_cast<double>(x[i]), static_cast<double>(y[i])));
  }
}

}  // namespace

void strip_function(StripOp op, DType dtype, const void* a, void* result, std::int64_t count) {
  const Function function = function_of(op);
  switch (dtype) {
    case DType::F64:
      apply<double>(function, a, result, count);
      break;
    case DType::I32:
      apply<std::int32_t>(function, a, result, count);
      break;
    case DType::I64:
      apply<std::int64_t>(function, a, result, count);
      break;
    default:
      apply<float>(function, a, result, count);
      break;
  }
}

void strip_power(DType dtype, const void* a, const void* b, void* result, std::int64_t count) {
  switch (dtype) {
    case DType::F64:
      apply_power<double>(a, b, result, count);
      break;
    case DType::I32:
      apply_power<std::int32_t>(a, b, result, count);
      break;
    case DType::I64:
      apply_power<std::int64_t>(a, b, result, count);
      break;
    default:
      apply_power<float>(a, b, result, count);
      break;
  }
}

}  // namespace hone::kernels
