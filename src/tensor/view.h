// Non-owning views of tensors, as kernels receive them. Plain data, no member functions: kernel sources are
// compiled once per ISA level, and a member function emitted there as a weak symbol could be linked into
// portable code.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace hone {

inline constexpr int kMaxRank = 6;

// How the elements of a tensor lie in memory.
enum class Layout : std::uint8_t {
  Strided,  // element (i0, i1, ..) at sum(i * stride), strides in elements; block-quantised types: each row
            // of the last axis is contiguous blocks, the strides of the other axes are in elements too
            // (multiples of a block)
  Panel16,  // a weight matrix [N,K] packed in panels of 16 output columns: tensor/panel_layout.h
};

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::F32;
  Layout layout = Layout::Strided;
  int rank = 0;
  std::int64_t shape[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};  // in elements; 0 along a broadcast axis
};

}  // namespace hone
