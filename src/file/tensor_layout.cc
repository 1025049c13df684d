#include "file/tensor_layout.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace hone {

std::vector<std::uint32_t> order_by_offset(std::span<const TensorEntry> tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(
      order, {}, [tensors](std::uint32_t i) { return std::tuple(tensors[i].offset, tensors[i].bytes, i); });
  return order;
}

std::optional<Overlap> find_overlap(std::span<const TensorEntry> tensors,
                                    std::span<const std::uint32_t> order) {
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorEntry& before = tensors[order[i - 1]];
    if (before.offset + before.bytes > tensors[order[i]].offset) return Overlap{order[i - 1], order[i]};
  }
  return std::nullopt;
}

}  // namespace hone
