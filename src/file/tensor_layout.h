// Checks of the tensor list that every format shares.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "file/checkpoint.h"

namespace hone {

// Positions in `tensors` ordered by where the data begins; tensors without bytes first among equals.
std::vector<std::uint32_t> order_by_offset(std::span<const TensorEntry> tensors);

struct Overlap {
  std::uint32_t first;   // begins earlier
  std::uint32_t second;  // begins inside it
};

// Two tensors that share a byte, if there are any. `order` is order_by_offset; every offset + bytes fits in
// 64 bits.
std::optional<Overlap> find_overlap(std::span<const TensorEntry> tensors,
                                    std::span<const std::uint32_t> order);

}  // namespace hone
