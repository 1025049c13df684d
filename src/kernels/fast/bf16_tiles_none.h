// A level without matrix tiles.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kFewestBf16TileRows = INT_MAX;
HONE_INLINE void multiply_bf16_tiles(const std::uint16_t*, std::int64_t, const std::byte*, std::int64_t,
                                     std::int64_t, int, std::int64_t, float*) {}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
