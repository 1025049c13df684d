// A level without matrix tiles.
#pragma once

#include "kernels/fast/dot_format.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

HONE_INLINE int tiled_rows(int) {
  return 0;
}
template <DType kWeight>
HONE_INLINE void multiply_in_tiles(const BlockQ8A*, std::int64_t, const std::byte*, const PanelShape&,
                                   std::int64_t, int, std::int64_t, float*) {}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
