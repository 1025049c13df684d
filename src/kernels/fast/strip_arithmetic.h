// The arithmetic of the strip machine: one op on registers of one type, `lanes` elements, a multiple of 16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/fast/math16.h"
#include "kernels/fast/strip_memory.h"
#include "kernels/strip_math.h"
#include "kernels/strip_program.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

template <class R, class A, class F>
HONE_INLINE void map_lanes2(const void* a, const void* b, void* result, std::int64_t count, F f) {
  const A* x = static_cast<const A*>(a);
  const A* y = static_cast<const A*>(b);
  R* out = static_cast<R*>(result);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    R group[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) group[lane] = f(x[i + lane], y[i + lane]);
    __builtin_memcpy(out + i, group, sizeof(group));
  }
}

template <class F>
HONE_INLINE void map_vectors(const void* a, void* result, std::int64_t count, F f) {
  const float* x = static_cast<const float*>(a);
  float* out = static_cast<float*>(result);
  for (std::int64_t i = 0; i < count; i += kLanes) store(out + i, f(load(x + i)));
}
template <class F>
HONE_INLINE void map_vectors2(const void* a, const void* b, void* result, std::int64_t count, F f) {
  const float* x = static_cast<const float*>(a);
  const float* y = static_cast<const float*>(b);
  float* out = static_cast<float*>(result);
  for (std::int64_t i = 0; i < count; i += kLanes) store(out + i, f(load(x + i), load(y + i)));
}

// The type in which T wraps modulo 2^n without undefined behaviour.
template <class T>
struct Wrapping {
  using Type = T;
};
template <>
struct Wrapping<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct Wrapping<std::int64_t> {
  using Type = std::uint64_t;
};

template <class T>
HONE_INLINE bool unordered(T a) {
  if constexpr (__is_same(T, double)) return __builtin_isnan(a);
  return false;
}

template <class T>
HONE_INLINE void select_lanes(const std::byte* const* operands, std::byte* result, std::int64_t lanes) {
  const std::uint8_t* condition = reinterpret_cast<const std::uint8_t*>(operands[0]);
  const T* x = reinterpret_cast<const T*>(operands[1]);
  const T* y = reinterpret_cast<const T*>(operands[2]);
  for (std::int64_t i = 0; i < lanes; i += kLanes) {
    T group[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      group[lane] = condition[i + lane] != 0 ? x[i + lane] : y[i + lane];
    __builtin_memcpy(result + i * static_cast<std::int64_t>(sizeof(T)), group, sizeof(group));
  }
}

// f32 functions that have a vector form; false if `op` is not one of them.
inline bool run_f32(StripOp op, const std::byte* const* operands, std::byte* result, std::int64_t lanes) {
  const void* a = operands[0];
  const void* b = operands[1];
  switch (op) {
    case StripOp::Neg:
      map_vectors(a, result, lanes, [](Vec16 x) { return negate(x); });
      return true;
    case StripOp::Abs:
      map_vectors(a, result, lanes, [](Vec16 x) { return absolute(x); });
      return true;
    case StripOp::Exp:
      map_vectors(a, result, lanes, [](Vec16 x) { return exp(x); });
      return true;
    case StripOp::Tanh:
      map_vectors(a, result, lanes, [](Vec16 x) { return tanh(x); });
      return true;
    case StripOp::Sqrt:
      map_vectors(a, result, lanes, [](Vec16 x) { return sqrt(x); });
      return true;
    case StripOp::Rsqrt:
      map_vectors(a, result, lanes, [](Vec16 x) { return div(broadcast(1.0F), sqrt(x)); });
      return true;
    case StripOp::Add:
      map_vectors2(a, b, result, lanes, [](Vec16 x, Vec16 y) { return add(x, y); });
      return true;
    case StripOp::Sub:
      map_vectors2(a, b, result, lanes, [](Vec16 x, Vec16 y) { return sub(x, y); });
      return true;
    case StripOp::Mul:
      map_vectors2(a, b, result, lanes, [](Vec16 x, Vec16 y) { return mul(x, y); });
      return true;
    case StripOp::Div:
      map_vectors2(a, b, result, lanes, [](Vec16 x, Vec16 y) { return div(x, y); });
      return true;
    case StripOp::Max:
      map_vectors2(a, b, result, lanes, [](Vec16 x, Vec16 y) { return select(is_nan(x), x, max(x, y)); });
      return true;
    case StripOp::Min:
      map_vectors2(a, b, result, lanes, [](Vec16 x, Vec16 y) { return select(is_nan(x), x, min(x, y)); });
      return true;
    default:
      return false;
  }
}

// + - * / max min neg abs on f64 and on integers (division of integers by zero gives 0).
template <class T>
inline void run_numbers(StripOp op, const std::byte* const* operands, std::byte* result, std::int64_t lanes) {
  using W = typename Wrapping<T>::Type;
  const void* a = operands[0];
  const void* b = operands[1];
  switch (op) {
    case StripOp::Neg:
      map_lanes<W, W>(a, result, lanes, [](W x) { return static_cast<W>(-x); });
      break;
    case StripOp::Abs:
      map_lanes<W, T>(a, result, lanes, [](T x) {
        if constexpr (__is_same(T, double)) return __builtin_fabs(x);
        return x < T{0} ? static_cast<W>(-static_cast<W>(x)) : static_cast<W>(x);
      });
      break;
    case StripOp::Add:
      map_lanes2<W, W>(a, b, result, lanes, [](W x, W y) { return x + y; });
      break;
    case StripOp::Sub:
      map_lanes2<W, W>(a, b, result, lanes, [](W x, W y) { return x - y; });
      break;
    case StripOp::Mul:
      map_lanes2<W, W>(a, b, result, lanes, [](W x, W y) { return x * y; });
      break;
    case StripOp::Div:
      map_lanes2<T, T>(a, b, result, lanes, [](T x, T y) {
        if constexpr (__is_same(T, double)) return x / y;
        if (y == T{0}) return T{0};
        return y == static_cast<T>(-1) ? static_cast<T>(-static_cast<W>(x)) : static_cast<T>(x / y);
      });
      break;
    case StripOp::Max:
      map_lanes2<T, T>(a, b, result, lanes, [](T x, T y) { return (unordered(x) || x > y) ? x : y; });
      break;
    case StripOp::Min:
      map_lanes2<T, T>(a, b, result, lanes, [](T x, T y) { return (unordered(x) || x < y) ? x : y; });
      break;
    default:
      break;
  }
}

template <class T>
inline void run_comparison(StripOp op, const std::byte* const* operands, std::byte* result,
                           std::int64_t lanes) {
  const void* a = operands[0];
  const void* b = operands[1];
  using Flag = std::uint8_t;
  switch (op) {
    case StripOp::Less:
      map_lanes2<Flag, T>(a, b, result, lanes, [](T x, T y) { return static_cast<Flag>(x < y ? 1 : 0); });
      break;
    case StripOp::LessEqual:
      map_lanes2<Flag, T>(a, b, result, lanes, [](T x, T y) { return static_cast<Flag>(x <= y ? 1 : 0); });
      break;
    default:
      map_lanes2<Flag, T>(a, b, result, lanes, [](T x, T y) { return static_cast<Flag>(x == y ? 1 : 0); });
      break;
  }
}

inline void run_logic(StripOp op, const std::byte* const* operands, std::byte* result, std::int64_t lanes) {
  using Flag = std::uint8_t;
  const void* a = operands[0];
  const void* b = operands[1];
  switch (op) {
    case StripOp::Not:
      map_lanes<Flag, Flag>(a, result, lanes, [](Flag x) { return static_cast<Flag>(x == 0 ? 1 : 0); });
      break;
    case StripOp::And:
    case StripOp::Mul:
    case StripOp::Min:
      map_lanes2<Flag, Flag>(a, b, result, lanes, [](Flag x, Flag y) { return static_cast<Flag>(x & y); });
      break;
    default:
      map_lanes2<Flag, Flag>(a, b, result, lanes, [](Flag x, Flag y) { return static_cast<Flag>(x | y); });
      break;
  }
}

// One instruction but Load, Constant, Cast and Store. `type` is the register type of the operands.
inline void run_arithmetic(StripOp op, DType type, const std::byte* const* operands, std::byte* result,
                           std::int64_t lanes) {
  switch (op) {
    case StripOp::Select:
      with_register_type(type, [=](auto t) { select_lanes<decltype(t)>(operands, result, lanes); });
      return;
    case StripOp::Less:
    case StripOp::LessEqual:
    case StripOp::Equal:
      with_register_type(type, [=](auto t) { run_comparison<decltype(t)>(op, operands, result, lanes); });
      return;
    default:
      break;
  }
  if (type == DType::Bool) {
    run_logic(op, operands, result, lanes);
    return;
  }
  if (type == DType::F32 && run_f32(op, operands, result, lanes)) return;
  switch (op) {
    case StripOp::Pow:
      strip_power(type, operands[0], operands[1], result, lanes);
      return;
    case StripOp::Exp:
    case StripOp::Log:
    case StripOp::Sqrt:
    case StripOp::Rsqrt:
    case StripOp::Sin:
    case StripOp::Cos:
    case StripOp::Tanh:
      strip_function(op, type, operands[0], result, lanes);
      return;
    default:
      break;
  }
  switch (type) {
    case DType::F64:
      run_numbers<double>(op, operands, result, lanes);
      break;
    case DType::I32:
      run_numbers<std::int32_t>(op, operands, result, lanes);
      break;
    default:
      run_numbers<std::int64_t>(op, operands, result, lanes);
      break;
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
