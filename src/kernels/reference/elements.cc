#include "kernels/reference/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/block_formats.h"

namespace hone::kernels::reference {
namespace {

template <class T>
T read(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}
template <class T>
void write(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value,
              sizeof(T));
}

template <class T, class Out, class Convert>
void load_run(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count, Out* out,
              Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = convert(read<T>(view.data, offset + i * stride));
}
template <class T, class In, class Convert>
void store_run(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
               const In* values, Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) write<T>(view.data, offset + i * stride, convert(values[i]));
}

// f64 to f32 rounded to odd: inexact results take the neighbour with an odd last bit. A following rounding to
// at most 22 bits then gives what one direct rounding gives (Boldo and Melquiond, "Emulation of a FMA and
// correctly rounded sums: proved algorithms using rounding to odd", 2008).
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

void load_quantised(const TensorView& view, std::int64_t offset, std::int64_t count, double* out) {
  const std::int64_t block = dtype_row(view.dtype).block_elements;
  float values[kLargestBlock];
  for (std::int64_t i = 0; i < count; i += block) {
    const std::byte* at = static_cast<const std::byte*>(view.data) + dtype_bytes(view.dtype, offset + i);
    (void)decode_row(view.dtype, at, block, values);  // accepts() admits only types with a decoder
    for (std::int64_t j = 0; j < block; ++j) out[i + j] = static_cast<double>(values[j]);
  }
}

template <std::size_t Size>
void copy_run(const TensorView& from, std::int64_t from_offset, std::int64_t from_stride,
              const TensorView& to, std::int64_t to_offset, std::int64_t to_stride, std::int64_t count,
              std::size_t size) {
  const std::size_t bytes = Size != 0 ? Size : size;
  const auto step = static_cast<std::int64_t>(bytes);
  const std::byte* source = static_cast<const std::byte*>(from.data) + from_offset * step;
  std::byte* target = static_cast<std::byte*>(to.data) + to_offset * step;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(target + i * to_stride * step, source + i * from_stride * step, bytes);
  }
}

}  // namespace

bool is_real(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

bool is_plain(DType dtype) {
  switch (dtype) {
    case DType::I8:
    case DType::U8:
    case DType::I16:
    case DType::I32:
    case DType::U32:
    case DType::I64:
    case DType::Bool:
      return true;
    default:
      return is_real(dtype);
  }
}

std::string_view needs_strided(const Signature& signature) {
  for (const std::span<const OperandSpec> operands : {signature.inputs, signature.outputs}) {
    for (const OperandSpec& operand : operands) {
      if (operand.layout != Layout::Strided) return "needs operands that are not packed";
      if (operand.shape.size() > static_cast<std::size_t>(kMaxRank)) return "needs a rank of at most 6";
    }
  }
  return {};
}

std::string_view needs_plain(const Signature& signature) {
  for (const std::span<const OperandSpec> operands : {signature.inputs, signature.outputs}) {
    for (const OperandSpec& operand : operands) {
      if (!is_plain(operand.dtype))
        return "needs element types f64, f32, f16, bf16, i8..i64, u8, u32 or bool";
    }
  }
  return needs_strided(signature);
}

std::string_view needs_plain_inputs(const Signature& signature) {
  Signature inputs = signature;
  if (signature.outputs[0].dtype == DType::Q8A) inputs.outputs = {};
  const std::string_view needs = needs_plain(inputs);
  return needs.empty() ? needs_strided(signature) : needs;
}

std::int64_t element_count(const TensorView& view) {
  std::int64_t count = 1;
  for (int axis = 0; axis < view.rank; ++axis) count *= view.shape[axis];
  return count;
}

TensorView without_last(TensorView view, int axes) {
  view.rank = std::max(0, view.rank - axes);
  return view;
}

std::int64_t broadcast_offset(const TensorView& view, const TensorView& shape, std::int64_t linear) {
  std::int64_t offset = 0;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    const std::int64_t index = linear % shape.shape[axis];
    linear /= shape.shape[axis];
    const int own = axis - (shape.rank - view.rank);
    if (own >= 0 && view.shape[own] != 1) offset += index * view.strides[own];
  }
  return offset;
}

std::int64_t broadcast_stride(const TensorView& view, const TensorView& shape) {
  if (shape.rank == 0 || view.rank == 0 || last_extent(view) == 1) return 0;
  return last_stride(view);
}

void load_reals(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                double* out) {
  const auto widen = [](auto value) { return static_cast<double>(value); };
  switch (view.dtype) {
    case DType::F64:
      return load_run<double>(view, offset, stride, count, out, widen);
    case DType::F32:
      return load_run<float>(view, offset, stride, count, out, widen);
    case DType::F16:
      return load_run<std::uint16_t>(view, offset, stride, count, out, [](std::uint16_t bits) {
        return static_cast<double>(f16_to_f32(bits));
      });
    case DType::BF16:
      return load_run<std::uint16_t>(view, offset, stride, count, out, [](std::uint16_t bits) {
        return static_cast<double>(bf16_to_f32(bits));
      });
    case DType::F8E4M3:
    case DType::F8E5M2:
      return load_run<std::uint8_t>(view, offset, stride, count, out, [&view](std::uint8_t bits) {
        float value = 0;
        (void)decode_row(view.dtype, &bits, 1, &value);
        return static_cast<double>(value);
      });
    default:
      break;
  }
  if (dtype_row(view.dtype).is_quantised) return load_quantised(view, offset, count, out);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t value = 0;
    load_integers(view, offset + i * stride, 1, 1, &value);
    out[i] = static_cast<double>(value);
  }
}

void load_integers(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                   std::int64_t* out) {
  const auto widen = [](auto value) { return static_cast<std::int64_t>(value); };
  switch (view.dtype) {
    case DType::I8:
      return load_run<std::int8_t>(view, offset, stride, count, out, widen);
    case DType::U8:
      return load_run<std::uint8_t>(view, offset, stride, count, out, widen);
    case DType::I16:
      return load_run<std::int16_t>(view, offset, stride, count, out, widen);
    case DType::I32:
      return load_run<std::int32_t>(view, offset, stride, count, out, widen);
    case DType::U32:
      return load_run<std::uint32_t>(view, offset, stride, count, out, widen);
    case DType::I64:
      return load_run<std::int64_t>(view, offset, stride, count, out, widen);
    case DType::Bool:
      return load_run<std::uint8_t>(view, offset, stride, count, out,
                                    [](std::uint8_t value) { return static_cast<std::int64_t>(value != 0); });
    default:
      return;
  }
}

namespace {

// Whole blocks of q8a, or q8_0 with a scale of NaN where a value is not finite, of values rounded to f32.
void store_blocks(const TensorView& view, std::int64_t offset, std::int64_t count, const double* values) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t i = 0; i + kBlock <= count; i += kBlock) {
    float rounded[kBlock];
    for (std::int64_t j = 0; j < kBlock; ++j) rounded[j] = static_cast<float>(values[i + j]);
    std::byte* const to = static_cast<std::byte*>(view.data) + dtype_bytes(view.dtype, offset + i);
    if (view.dtype == DType::Q8_0 &&
        !std::all_of(rounded, rounded + kBlock, [](float value) { return std::isfinite(value); })) {
      constexpr std::uint16_t kNan = 0x7e00;
      std::memset(to, 0, static_cast<std::size_t>(dtype_bytes(DType::Q8_0, kBlock)));
      std::memcpy(to, &kNan, sizeof(kNan));
      continue;
    }
    (void)encode_row(view.dtype, rounded, kBlock, to);  // has an encoder
  }
}

}  // namespace

void store_reals(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                 const double* values) {
  switch (view.dtype) {
    case DType::F64:
      return store_run<double>(view, offset, stride, count, values, [](double value) { return value; });
    case DType::F32:
      return store_run<float>(view, offset, stride, count, values,
                              [](double value) { return static_cast<float>(value); });
    case DType::F16:
      return store_run<std::uint16_t>(view, offset, stride, count, values,
                                      [](double value) { return f32_to_f16(round_to_odd(value)); });
    case DType::BF16:
      return store_run<std::uint16_t>(view, offset, stride, count, values,
                                      [](double value) { return f32_to_bf16(round_to_odd(value)); });
    case DType::Q8A:
    case DType::Q8_0:
      return store_blocks(view, offset, count, values);
    default:
      break;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = truncate_to(values[i], view.dtype);
    store_integers(view, offset + i * stride, 1, 1, &value);
  }
}

void store_row(const TensorView& view, int rank, std::int64_t row, std::int64_t count, const double* values) {
  if (view.dtype != DType::Q8A || view.rank == rank) {
    return store_reals(view, offset_of(without_last(view, 1), row), last_stride(view), count, values);
  }
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t i = 0; i < count; i += kBlock) {
    float left[kBlock];
    for (std::int64_t j = 0; j < kBlock; ++j) left[j] = static_cast<float>(values[i + j]);
    for (std::int64_t term = 0; term < 2; ++term) {
      const BlockQ8A block = encode_q8a_block(left);
      const std::int64_t to = offset_of(without_last(view, 1), row * 2 + term) + i;
      std::memcpy(static_cast<std::byte*>(view.data) + dtype_bytes(DType::Q8A, to), &block, sizeof(block));
      for (std::int64_t j = 0; j < kBlock; ++j) left[j] -= block.scale * static_cast<float>(block.quants[j]);
    }
  }
}

void store_integers(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                    const std::int64_t* values) {
  switch (view.dtype) {
    case DType::I8:
    case DType::U8:
      return store_run<std::uint8_t>(view, offset, stride, count, values,
                                     [](std::int64_t value) { return static_cast<std::uint8_t>(value); });
    case DType::I16:
      return store_run<std::uint16_t>(view, offset, stride, count, values,
                                      [](std::int64_t value) { return static_cast<std::uint16_t>(value); });
    case DType::I32:
    case DType::U32:
      return store_run<std::uint32_t>(view, offset, stride, count, values,
                                      [](std::int64_t value) { return static_cast<std::uint32_t>(value); });
    case DType::I64:
      return store_run<std::int64_t>(view, offset, stride, count, values,
                                     [](std::int64_t value) { return value; });
    case DType::Bool:
      return store_run<std::uint8_t>(view, offset, stride, count, values, [](std::int64_t value) {
        return static_cast<std::uint8_t>(value != 0 ? 1 : 0);
      });
    default:
      return;
  }
}

double round_to(double value, DType dtype) {
  switch (dtype) {
    case DType::F32:
      return static_cast<double>(static_cast<float>(value));
    case DType::F16:
      return static_cast<double>(f16_to_f32(f32_to_f16(round_to_odd(value))));
    case DType::BF16:
      return static_cast<double>(bf16_to_f32(f32_to_bf16(round_to_odd(value))));
    default:
      return value;
  }
}

std::int64_t wrap_to(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::I8:
      return static_cast<std::int8_t>(value);
    case DType::U8:
      return static_cast<std::uint8_t>(value);
    case DType::I16:
      return static_cast<std::int16_t>(value);
    case DType::I32:
      return static_cast<std::int32_t>(value);
    case DType::U32:
      return static_cast<std::uint32_t>(value);
    case DType::Bool:
      return value != 0 ? 1 : 0;
    default:
      return value;
  }
}

std::int64_t truncate_to(double value, DType dtype) {
  if (dtype == DType::Bool) return value != 0 ? 1 : 0;  // NaN is not 0
  if (std::isnan(value)) return 0;
  const bool is_unsigned = dtype == DType::U8 || dtype == DType::U32;
  const int bits = static_cast<int>(dtype_row(dtype).block_bytes) * 8 - (is_unsigned ? 0 : 1);
  const double limit = std::ldexp(1.0, bits);  // one above the largest
  const double lowest = is_unsigned ? 0.0 : -limit;
  if (value >= limit) {
    return bits == 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  }
  if (value <= lowest) return is_unsigned ? 0 : static_cast<std::int64_t>(lowest);
  return static_cast<std::int64_t>(value);
}

void copy_elements(const TensorView& from, const TensorView& to, std::int64_t begin, std::int64_t end) {
  const auto size = static_cast<std::size_t>(dtype_row(from.dtype).block_bytes);
  while (begin < end) {
    const std::int64_t count = std::min({end - begin, last_extent(from) - begin % last_extent(from),
                                         last_extent(to) - begin % last_extent(to)});
    const auto run = size == 4 ? copy_run<4> : (size == 2 ? copy_run<2> : copy_run<0>);
    run(from, offset_of(from, begin), last_stride(from), to, offset_of(to, begin), last_stride(to), count,
        size);
    begin += count;
  }
}

TensorView in_blocks(TensorView view) {
  const std::int64_t block = dtype_row(view.dtype).block_elements;
  if (block == 1 || view.rank == 0) return view;
  view.shape[view.rank - 1] /= block;
  for (int axis = 0; axis + 1 < view.rank; ++axis) view.strides[axis] /= block;
  return view;
}

}  // namespace hone::kernels::reference
