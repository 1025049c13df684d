// Registers of the strip machine, and their way from and to memory. A register holds up to kStripLength
// elements of one of f64, f32, i32, i64, bool, padded to a multiple of 16 lanes, so that every instruction
// works on whole groups of 16.
#pragma once

#include <cstdint>

#include "kernels/fast/axes.h"
#include "kernels/fast/vec16.h"
#include "kernels/strip_program.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr std::int64_t kLanes = 16;

// The register type that holds values of `dtype` exactly (u64 as i64, modulo 2^64).
inline DType register_type(DType dtype) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16:
    case DType::F32:
      return DType::F32;
    case DType::I8:
    case DType::U8:
    case DType::I16:
    case DType::I32:
      return DType::I32;
    case DType::U32:
    case DType::I64:
    case DType::U64:
      return DType::I64;
    case DType::Bool:
      return DType::Bool;
    default:
      return DType::F64;
  }
}

// An element of a bool register, 0 or 1; a type of its own, so that overloads see it.
enum class Bit : std::uint8_t { Off, On };

template <class To, class From>
HONE_INLINE To convert(From value) {
  if constexpr (__is_same(To, Bit)) {
    return value != From{} ? Bit::On : Bit::Off;
  } else if constexpr (__is_same(From, Bit)) {
    return static_cast<To>(value == Bit::On ? 1 : 0);
  } else if constexpr (static_cast<To>(0.5F) == 0 && static_cast<From>(0.5F) != 0) {
    // Real to integer: toward zero; NaN gives 0, what is out of range the nearest end of the range.
    constexpr From kEnd = sizeof(To) == 4 ? static_cast<From>(0x1p31) : static_cast<From>(0x1p63);
    constexpr To kLargest = static_cast<To>(sizeof(To) == 4 ? INT32_MAX : INT64_MAX);
    constexpr To kSmallest = static_cast<To>(sizeof(To) == 4 ? INT32_MIN : INT64_MIN);
    if (!(value >= -kEnd)) return value < 0 ? kSmallest : To{0};
    return value >= kEnd ? kLargest : static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Calls use(T{}) with the element type T of a register type.
template <class Use>
HONE_INLINE void with_register_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::F64:
      use(double{});
      break;
    case DType::F32:
      use(float{});
      break;
    case DType::I32:
      use(std::int32_t{});
      break;
    case DType::I64:
      use(std::int64_t{});
      break;
    default:
      use(Bit{});
      break;
  }
}

// result[i] = f(a[i]) for `count` lanes, a multiple of 16. Each group is computed whole before it is written,
// so that a register may be written by the instruction that reads it last.
template <class R, class A, class F>
HONE_INLINE void map_lanes(const void* a, void* result, std::int64_t count, F f) {
  const A* x = static_cast<const A*>(a);
  R* out = static_cast<R*>(result);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    R group[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) group[lane] = f(x[i + lane]);
    __builtin_memcpy(out + i, group, sizeof(group));
  }
}

// Converts a register. `from` and `to` must not overlap.
inline void convert_register(DType from_type, const void* from, DType to_type, void* to, std::int64_t count) {
  with_register_type(from_type, [=](auto source) {
    with_register_type(to_type, [=](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      map_lanes<To, From>(from, to, count, [](From value) { return convert<To>(value); });
    });
  });
}

enum class Overflow { Wrap, Saturate };

// Brings the integers of a register into the range of a narrower type.
template <class Narrow, class Register>
HONE_INLINE void fit_integers(Overflow overflow, void* values, std::int64_t count) {
  constexpr bool kSigned = static_cast<Narrow>(-1) < Narrow{0};
  constexpr int kBits = static_cast<int>(sizeof(Narrow)) * 8 - (kSigned ? 1 : 0);
  constexpr Register kLargest = static_cast<Register>((std::int64_t{1} << kBits) - 1);
  constexpr Register kSmallest = kSigned ? static_cast<Register>(-kLargest - 1) : Register{0};
  if (overflow == Overflow::Wrap) {
    map_lanes<Register, Register>(values, values, count,
                                  [](Register x) { return static_cast<Register>(static_cast<Narrow>(x)); });
  } else {
    map_lanes<Register, Register>(values, values, count, [](Register x) {
      const Register above = x < kSmallest ? kSmallest : x;
      return above > kLargest ? kLargest : above;
    });
  }
}

// f64, i32 or i64 to f32, rounded to odd (vec16_portable.h has the same trick): what a rounding to f16 or
// bf16 then makes of it is the value rounded once. i64 beyond 2^53 is rounded to f64 first.
inline void narrow_to_odd(DType from_type, const void* from, void* to, std::int64_t count) {
  double wide[kLanes];
  const std::int64_t bytes = from_type == DType::I32 ? 4 : 8;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t lane = i % kLanes;
    if (lane == 0) {
      convert_register(from_type, static_cast<const char*>(from) + i * bytes, DType::F64, wide, kLanes);
    }
    float value = static_cast<float>(wide[lane]);
    const double back = static_cast<double>(value);
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    if (back != wide[lane] && back == back && (bits & 1) == 0) {
      bits = __builtin_fabs(back) < __builtin_fabs(wide[lane]) ? bits + 1 : bits - 1;
    }
    __builtin_memcpy(static_cast<char*>(to) + i * 4, &bits, 4);
  }
}

template <class Memory, class Register>
HONE_INLINE void load_elements(const void* from, std::int64_t stride, std::int64_t count, void* to) {
  const Memory* source = static_cast<const Memory*>(from);
  Register* target = static_cast<Register*>(to);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<Register>(source[i]);
  } else if (stride == 0) {
    const Register value = static_cast<Register>(source[0]);
    for (std::int64_t i = 0; i < count; ++i) target[i] = value;
  } else {
    for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<Register>(source[i * stride]);
  }
}

template <class Memory, class Register>
HONE_INLINE void store_elements(const void* from, std::int64_t count, void* to, std::int64_t stride) {
  const Register* source = static_cast<const Register*>(from);
  Memory* target = static_cast<Memory*>(to);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<Memory>(source[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) target[i * stride] = static_cast<Memory>(source[i]);
  }
}

template <bool kBfloat>
HONE_INLINE void load_halves(const void* from, std::int64_t stride, std::int64_t count, void* to) {
  const std::uint16_t* source = static_cast<const std::uint16_t*>(from);
  float* target = static_cast<float*>(to);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int lanes = static_cast<int>(smaller(kLanes, count - i));
    std::uint16_t group[kLanes] = {};
    for (int lane = 0; lane < lanes; ++lane) group[lane] = source[(i + lane) * stride];
    store_partial(target + i, kBfloat ? load_bf16(group) : load_f16(group), lanes);
  }
}

template <bool kBfloat>
HONE_INLINE void store_halves(const void* from, std::int64_t count, void* to, std::int64_t stride) {
  const float* source = static_cast<const float*>(from);
  std::uint16_t* target = static_cast<std::uint16_t*>(to);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int lanes = static_cast<int>(smaller(kLanes, count - i));
    std::uint16_t group[kLanes];
    const Vec16 values = load_partial(source + i, lanes);
    if constexpr (kBfloat) {
      store_bf16(group, values);
    } else {
      store_f16(group, values);
    }
    for (int lane = 0; lane < lanes; ++lane) target[(i + lane) * stride] = group[lane];
  }
}

// `count` elements of type `dtype` to elements of register_type(dtype).
inline void load_run(DType dtype, const void* from, std::int64_t stride, std::int64_t count, void* to) {
  switch (dtype) {
    case DType::F32:
      load_elements<float, float>(from, stride, count, to);
      break;
    case DType::F16:
      load_halves<false>(from, stride, count, to);
      break;
    case DType::BF16:
      load_halves<true>(from, stride, count, to);
      break;
    case DType::I8:
      load_elements<std::int8_t, std::int32_t>(from, stride, count, to);
      break;
    case DType::U8:
      load_elements<std::uint8_t, std::int32_t>(from, stride, count, to);
      break;
    case DType::I16:
      load_elements<std::int16_t, std::int32_t>(from, stride, count, to);
      break;
    case DType::I32:
      load_elements<std::int32_t, std::int32_t>(from, stride, count, to);
      break;
    case DType::U32:
      load_elements<std::uint32_t, std::int64_t>(from, stride, count, to);
      break;
    case DType::I64:
    case DType::U64:
      load_elements<std::int64_t, std::int64_t>(from, stride, count, to);
      break;
    case DType::Bool:
      load_elements<std::uint8_t, std::uint8_t>(from, stride, count, to);
      break;
    default:
      load_elements<double, double>(from, stride, count, to);
      break;
  }
}

// `count` elements of register_type(dtype) to elements of type `dtype`; integers keep their low bits.
inline void store_run(DType dtype, const void* from, std::int64_t count, void* to, std::int64_t stride) {
  switch (dtype) {
    case DType::F32:
      store_elements<float, float>(from, count, to, stride);
      break;
    case DType::F16:
      store_halves<false>(from, count, to, stride);
      break;
    case DType::BF16:
      store_halves<true>(from, count, to, stride);
      break;
    case DType::I8:
      store_elements<std::int8_t, std::int32_t>(from, count, to, stride);
      break;
    case DType::U8:
      store_elements<std::uint8_t, std::int32_t>(from, count, to, stride);
      break;
    case DType::I16:
      store_elements<std::int16_t, std::int32_t>(from, count, to, stride);
      break;
    case DType::I32:
      store_elements<std::int32_t, std::int32_t>(from, count, to, stride);
      break;
    case DType::U32:
      store_elements<std::uint32_t, std::int64_t>(from, count, to, stride);
      break;
    case DType::I64:
    case DType::U64:
      store_elements<std::int64_t, std::int64_t>(from, count, to, stride);
      break;
    case DType::Bool:
      store_elements<std::uint8_t, std::uint8_t>(from, count, to, stride);
      break;
    default:
      store_elements<double, double>(from, count, to, stride);
      break;
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
