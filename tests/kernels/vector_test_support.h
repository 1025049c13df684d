// What the tests of the fast strip, row, copy and attention kernels share: tensors with awkward strides,
// kernels found by op and level, and a run that poisons the scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/isa.h"
#include "kernels/kernel.h"
#include "kernels/signature_helpers.h"
#include "kernels/strip_program.h"
#include "tensor/block_formats.h"

namespace hone::test {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t product(const Sizes& sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  return all;
}

// An owned tensor, q8_0 too: its values are set by fill_normal alone, row by row of whole blocks, and its
// padding is rounded up to blocks. `padding` elements lie between the rows of the last axis and `shift` bytes
// before the first element, so that views can be strided and misaligned. Storage starts as zero bytes.
class Tensor {
 public:
  Tensor(DType dtype, Sizes sizes, std::int64_t padding = 0, std::int64_t shift = 0)
      : sizes_(std::move(sizes)), shift_(shift) {
    const std::int64_t bytes = kernels::element_bytes(dtype);
    view_.dtype = dtype;
    view_.rank = static_cast<int>(sizes_.size());
    std::int64_t stride = 1;
    for (int axis = view_.rank - 1; axis >= 0; --axis) {
      view_.shape[axis] = sizes_[static_cast<std::size_t>(axis)];
      view_.strides[axis] = stride;
      stride *= view_.shape[axis];
      if (axis == view_.rank - 1) stride += dtype == DType::Q8_0 ? (padding + 31) / 32 * 32 : padding;
    }
    const std::int64_t whole = dtype == DType::Q8_0 ? dtype_bytes(dtype, stride) : stride * bytes;
    storage_.resize(static_cast<std::size_t>(whole + shift + 64));
  }

  const TensorView& view() {
    view_.data = storage_.data() + shift_;
    return view_;
  }
  // The view with its axes in another order.
  TensorView permuted(const std::vector<int>& order) {
    TensorView result = view();
    for (std::size_t i = 0; i < order.size(); ++i) {
      result.shape[i] = view_.shape[order[i]];
      result.strides[i] = view_.strides[order[i]];
    }
    return result;
  }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(storage_.data() + shift_);
  }
  std::vector<std::byte>& storage() { return storage_; }
  const Sizes& sizes() const { return sizes_; }

  // Sets the element at a row-major index.
  void set(std::int64_t index, double value) {
    const std::int64_t at = offset(index);
    switch (view_.dtype) {
      case DType::F64:
        put(at, value);
        break;
      case DType::F32:
        put(at, static_cast<float>(value));
        break;
      case DType::F16:
        put(at, f32_to_f16(static_cast<float>(value)));
        break;
      case DType::BF16:
        put(at, f32_to_bf16(static_cast<float>(value)));
        break;
      case DType::I8:
        put(at, static_cast<std::int8_t>(value));
        break;
      case DType::U8:
        put(at, static_cast<std::uint8_t>(value));
        break;
      case DType::I16:
        put(at, static_cast<std::int16_t>(value));
        break;
      case DType::I32:
        put(at, static_cast<std::int32_t>(value));
        break;
      case DType::U32:
        put(at, static_cast<std::uint32_t>(value));
        break;
      case DType::I64:
        put(at, static_cast<std::int64_t>(value));
        break;
      case DType::U64:
        put(at, static_cast<std::uint64_t>(value));
        break;
      default:
        put(at, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
        break;
    }
  }
  // The element at a row-major index, for the types that hold reals.
  double get(std::int64_t index) const {
    const std::int64_t at = offset(index);
    switch (view_.dtype) {
      case DType::F64:
        return take<double>(at);
      case DType::F32:
        return static_cast<double>(take<float>(at));
      case DType::F16:
        return static_cast<double>(f16_to_f32(take<std::uint16_t>(at)));
      case DType::BF16:
        return static_cast<double>(bf16_to_f32(take<std::uint16_t>(at)));
      case DType::I32:
        return take<std::int32_t>(at);
      case DType::Q8_0: {
        float values[32];
        static_cast<void>(decode_row(DType::Q8_0, storage_.data() + shift_ + at / 32 * 34, 32, values));
        return static_cast<double>(values[at % 32]);
      }
      default:
        return take<std::uint8_t>(at);
    }
  }
  void fill_normal(std::mt19937_64& random, double deviation = 1.0) {
    std::normal_distribution<double> normal(0.0, deviation);
    if (view_.dtype == DType::Q8_0) {
      for (std::int64_t i = 0; i < product(sizes_); i += 32) {
        float values[32];
        for (float& value : values) value = static_cast<float>(normal(random));
        static_cast<void>(
            encode_row(DType::Q8_0, values, 32, storage_.data() + shift_ + offset(i) / 32 * 34));
      }
      return;
    }
    for (std::int64_t i = 0; i < product(sizes_); ++i) set(i, normal(random));
  }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (int axis = view_.rank - 1; axis >= 0; --axis) {
      at += index % view_.shape[axis] * view_.strides[axis];
      index /= view_.shape[axis];
    }
    return at;
  }

 private:
  template <class T>
  void put(std::int64_t at, T value) {
    std::memcpy(storage_.data() + shift_ + at * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
  }
  template <class T>
  T take(std::int64_t at) const {
    T value;
    std::memcpy(&value, storage_.data() + shift_ + at * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
  }

  Sizes sizes_;
  std::int64_t shift_ = 0;
  TensorView view_;
  std::vector<std::byte> storage_;
};

inline OperandSpec spec_of(const TensorView& view) {
  OperandSpec spec;
  spec.dtype = view.dtype;
  spec.layout = view.layout;
  for (int axis = 0; axis < view.rank; ++axis) {
    spec.shape.emplace_back(view.shape[axis]);
    spec.strides.emplace_back(view.strides[axis]);
  }
  return spec;
}

// A launch: op, attributes, operands.
struct Launch {
  std::string op;
  Attributes attributes;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  const StripProgram* program = nullptr;
};

// The levels that have every kernel; that of AMX takes what does not multiply in tiles from the one below.
inline constexpr Isa kVectorLevels[] = {Isa::Portable, Isa::Avx2, Isa::Avx512};

// The kernel of a level (or the reference kernel) that takes the launch; nullptr if there is none, and then
// `refusal` says what the last one asked for would need.
inline const Kernel* find_kernel(const Launch& launch, Isa isa, bool reference = false,
                                 std::string_view* refusal = nullptr) {
  std::vector<OperandSpec> inputs;
  std::vector<OperandSpec> outputs;
  for (const TensorView& view : launch.inputs) inputs.push_back(spec_of(view));
  for (const TensorView& view : launch.outputs) outputs.push_back(spec_of(view));
  const Signature signature{launch.op, &launch.attributes, inputs, outputs};
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.op != launch.op || kernel.reference != reference || (!reference && kernel.isa != isa))
      continue;
    const std::string_view answer = kernel.accepts(signature);
    if (answer.empty()) return &kernel;
    if (refusal != nullptr) *refusal = answer;
  }
  return isa == Isa::Amx && !reference ? find_kernel(launch, Isa::Avx512, false, refusal) : nullptr;
}

// The names of the kernels that this program has run.
inline std::set<std::string_view>& kernels_run() {
  static std::set<std::string_view> names;
  return names;
}

// Runs all tiles on `threads` threads, last tile first, each tile with scratch full of NaN bits.
inline void run_kernel(const Kernel& kernel, const Launch& launch, int threads = 1) {
  kernels_run().insert(kernel.name);
  Call call;
  call.attributes = &launch.attributes;
  call.program = launch.program;
  call.inputs = launch.inputs.data();
  call.outputs = launch.outputs.data();
  call.input_count = static_cast<int>(launch.inputs.size());
  call.output_count = static_cast<int>(launch.outputs.size());
  const std::int64_t scratch = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call);
  const std::int64_t tiles = kernel.tile_count(call);
  const auto work = [&](int thread) {
    std::vector<std::byte> storage(static_cast<std::size_t>(scratch) + 64);
    Call own = call;
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    own.scratch = storage.data() + (64 - address % 64) % 64;
    for (std::int64_t tile = tiles - 1 - thread; tile >= 0; tile -= threads) {
      std::fill(storage.begin(), storage.end(), std::byte{0xff});
      kernel.run(own, tile);
    }
  };
  if (threads == 1) return work(0);
  std::vector<std::thread> others;
  for (int thread = 0; thread < threads; ++thread) others.emplace_back(work, thread);
  for (std::thread& other : others) other.join();
}

inline void run_fast(const Launch& launch, Isa isa, int threads = 1) {
  std::string_view refusal = "there is none";
  const Kernel* kernel = find_kernel(launch, isa, false, &refusal);
  ASSERT_NE(kernel, nullptr) << "no " << isa_name(isa) << " kernel takes this " << launch.op << ": "
                             << refusal;
  run_kernel(*kernel, launch, threads);
}
inline void run_reference(const Launch& launch) {
  const Kernel* kernel = find_kernel(launch, Isa::Portable, true);
  ASSERT_NE(kernel, nullptr) << "no reference kernel takes this " << launch.op;
  run_kernel(*kernel, launch);
}

// The highest level that can be run here: the machine's, unless kernels of a higher one are emulated.
inline Isa& highest_level() {
  static Isa level = detect_isa();
  return level;
}

// A test that runs once per ISA level, skipped by name where the machine lacks the level.
class PerLevel : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > highest_level()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
};
inline std::string level_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

// Runs the launch at the test's level into `out` and expects the bits of the portable level; `out`'s storage
// outside the view must not change either.
inline void run_and_compare_levels(const Launch& launch, Tensor& out, Isa isa) {
  std::fill(out.storage().begin(), out.storage().end(), std::byte{0x55});
  run_fast(launch, Isa::Portable);
  const std::vector<std::byte> portable = out.storage();
  std::fill(out.storage().begin(), out.storage().end(), std::byte{0x55});
  run_fast(launch, isa);
  ASSERT_EQ(std::memcmp(portable.data(), out.storage().data(), portable.size()), 0)
      << launch.op << ": " << isa_name(isa) << " differs from portable";
}

}  // namespace hone::test
