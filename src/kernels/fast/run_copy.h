// Copies between two views of one shape, element by element, of 1, 2, 4 or 8 bytes each.
#pragma once

#include <cstdint>

#include "kernels/fast/axes.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

template <class T>
inline void copy_run_of(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride,
                        std::int64_t count) {
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
}

// Strides in elements of `bytes` bytes.
inline void copy_run(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride,
                     std::int64_t count, std::int64_t bytes) {
  if (from_stride == 1 && to_stride == 1) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(count * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      copy_run_of<std::uint8_t>(from, from_stride, to, to_stride, count);
      break;
    case 2:
      copy_run_of<std::uint16_t>(from, from_stride, to, to_stride, count);
      break;
    case 4:
      copy_run_of<std::uint32_t>(from, from_stride, to, to_stride, count);
      break;
    default:
      copy_run_of<std::uint64_t>(from, from_stride, to, to_stride, count);
      break;
  }
}

// Elements [begin, end) in row-major order of the shape that `axes` describes.
inline void copy_elements(const Axes& axes, const TensorView& from, const TensorView& to, std::int64_t bytes,
                          std::int64_t begin, std::int64_t end) {
  const int inner = axes.last[axes.count - 1];
  const std::int64_t from_stride = stride_along(from, inner, axes.rank);
  const std::int64_t to_stride = stride_along(to, inner, axes.rank);
  while (begin < end) {
    const Run source = run_at(axes, from, begin);
    const Run target = run_at(axes, to, begin);
    const std::int64_t count = smaller(source.length, end - begin);
    copy_run(static_cast<const char*>(from.data) + source.offset * bytes, from_stride,
             static_cast<char*>(to.data) + target.offset * bytes, to_stride, count, bytes);
    begin += count;
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
