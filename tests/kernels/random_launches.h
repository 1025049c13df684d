// Random launches of every op: operands of random sizes, layouts and types, and by how much a fast kernel may
// differ from the reference kernel.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "matmul_test_support.h"

namespace hone::test {

// A launch with what owns its operands' memory. Outputs start as zeros or as bytes of no meaning.
struct RandomLaunch {
  Launch launch;
  std::vector<std::shared_ptr<void>> owners = {};
  // By how much element `index` (row-major) of output number `output` may differ from `reference`, before
  // both are rounded to blocks where the output is q8a. Absent: it must be equal.
  std::function<double(std::size_t output, std::int64_t index, double reference)> bound = nullptr;
  // Instead of `bound`: the launch has run, its outputs lie in its own memory.
  std::function<void()> check = nullptr;
  std::string what = {};
};

// Draws sizes and values. What a generator makes depends on the seed alone.
class Draw {
 public:
  Draw(std::uint64_t seed, std::int64_t launch_number) : random(seed), number(launch_number) {}

  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  }
  std::int64_t between(std::int64_t least, std::int64_t most) { return least + up_to(most - least); }
  bool coin() { return up_to(1) == 1; }
  template <class T>
  const T& of(std::span<const T> choices) {
    return choices[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(choices.size()) - 1))];
  }
  template <class T>
  const T& in_turn(std::span<const T> choices) const {
    return choices[static_cast<std::size_t>(number) % choices.size()];
  }
  // 0 .. 2 * tile: a few, about an edge of a tile, or anything.
  std::int64_t size(std::int64_t tile) {
    const std::int64_t kind = up_to(3);
    if (kind == 0) return up_to(std::min<std::int64_t>(3, 2 * tile));
    if (kind == 1) return std::max<std::int64_t>(0, between(1, 2) * tile - between(-1, 1) - 1);
    return up_to(2 * tile);
  }
  std::int64_t at_least_one(std::int64_t tile) { return std::max<std::int64_t>(1, size(tile)); }

  std::mt19937_64 random;
  std::int64_t number;  // of the launch: what must all come in turn is chosen by it
};

// An owned tensor of normal values; now and then its rows stand apart.
inline std::shared_ptr<Tensor> normal_tensor(Draw& draw, DType dtype, Sizes sizes, double deviation = 1.0) {
  auto tensor = std::make_shared<Tensor>(dtype, std::move(sizes), draw.up_to(3) == 0 ? draw.up_to(5) : 0);
  tensor->fill_normal(draw.random, deviation);
  return tensor;
}

// An owned tensor of q8a; every row of the last axis is followed by `padding` blocks.
struct Blocks {
  Blocks(const Sizes& sizes, std::int64_t padding)
      : blocks(static_cast<std::size_t>(
            sizes.back() == 0 ? 0 : product(sizes) / sizes.back() * (sizes.back() / 32 + padding))) {
    view.dtype = DType::Q8A;
    view.rank = static_cast<int>(sizes.size());
    std::int64_t stride = 1;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      view.shape[axis] = sizes[static_cast<std::size_t>(axis)];
      view.strides[axis] = stride;
      stride *= view.shape[axis];
      if (axis == view.rank - 1) stride += padding * 32;
    }
    view.data = blocks.data();
  }
  std::vector<BlockQ8A> blocks;
  TensorView view;
};

// One op: its random launches. `stem` is the kernel's name without its level ("matmul.q8a.panel16"): a hint
// at what the kernel takes, so that few launches are drawn in vain.
struct Generator {
  std::string_view op;
  RandomLaunch (*make)(Draw& draw, std::string_view stem);
};

inline bool takes_q8a(std::string_view stem) {
  return stem.find(".q8a") != std::string_view::npos;
}

inline DType x_type_of(std::string_view stem) {
  if (stem.find(".bf16") != std::string_view::npos) return DType::BF16;
  return takes_q8a(stem) ? DType::Q8A : DType::F32;
}

std::span<const Generator> matmul_generators();
std::span<const Generator> projection_generators();
std::span<const Generator> attention_generators();
std::span<const Generator> row_generators();
std::span<const Generator> move_generators();

}  // namespace hone::test
