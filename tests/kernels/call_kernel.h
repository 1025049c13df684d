// Runs one kernel by name on tensors made in a test: signature, scratch and tiles as the planner and executor
// do it.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "tensor/block_formats.h"

namespace hone::test {

// A tensor that owns its bytes; views of it share them.
struct Tensor {
  std::vector<std::byte> bytes;
  TensorView view;

  // Contiguous, of zeros. A block-quantised type has strides in elements too.
  Tensor(DType dtype, std::vector<std::int64_t> shape) {
    view.dtype = dtype;
    view.rank = static_cast<int>(shape.size());
    std::int64_t count = 1;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      view.shape[axis] = shape[static_cast<std::size_t>(axis)];
      view.strides[axis] = count;
      count *= view.shape[axis];
    }
    bytes.resize(static_cast<std::size_t>(dtype_bytes(dtype, count)));
    view.data = bytes.data();
  }
  Tensor(const Tensor& other) : bytes(other.bytes), view(other.view) { view.data = bytes.data(); }
  Tensor& operator=(const Tensor&) = delete;

  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
    return out;
  }
};

template <class T>
Tensor make(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  EXPECT_EQ(tensor.bytes.size(), values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}
inline Tensor f32(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return make(DType::F32, std::move(shape), values);
}
inline Tensor i32(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values) {
  return make(DType::I32, std::move(shape), values);
}
// The values encoded as `dtype`, rows along the last axis.
inline Tensor encoded(DType dtype, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  Tensor tensor(dtype, std::move(shape));
  EXPECT_TRUE(
      encode_row(dtype, values.data(), static_cast<std::int64_t>(values.size()), tensor.bytes.data()).ok());
  return tensor;
}

inline const Kernel* find_kernel(std::string_view name) {
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

inline OperandSpec spec_of(const TensorView& view) {
  OperandSpec spec;
  spec.dtype = view.dtype;
  spec.layout = view.layout;
  for (int axis = 0; axis < view.rank; ++axis) {
    spec.shape.emplace_back(view.shape[axis]);
    if (view.layout == Layout::Strided) spec.strides.emplace_back(view.strides[axis]);
  }
  return spec;
}

// What the kernel answers to the signature of these operands; empty if it takes them.
inline std::string refusal(const Kernel& kernel, const Attributes& attributes,
                           const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
  std::vector<OperandSpec> in;
  std::vector<OperandSpec> out;
  for (const TensorView& view : inputs) in.push_back(spec_of(view));
  for (const TensorView& view : outputs) out.push_back(spec_of(view));
  return std::string(kernel.accepts(Signature{kernel.op, &attributes, in, out}));
}

// Runs all tiles, from the last to the first: their order must not matter.
inline void run_kernel(std::string_view name, const Attributes& attributes,
                       const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
                       const StripProgram* program = nullptr) {
  const Kernel* kernel = find_kernel(name);
  ASSERT_NE(kernel, nullptr) << name;
  ASSERT_EQ(refusal(*kernel, attributes, inputs, outputs), "") << name;
  Call call{&attributes,
            program,
            inputs.data(),
            outputs.data(),
            static_cast<int>(inputs.size()),
            static_cast<int>(outputs.size()),
            nullptr};
  const std::int64_t size = kernel->scratch_bytes == nullptr ? 0 : kernel->scratch_bytes(call);
  const std::size_t padded = static_cast<std::size_t>((size + 63) / 64 * 64);
  std::vector<std::byte> scratch(padded + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  call.scratch = scratch.data() + (64 - address % 64) % 64;
  for (std::int64_t tile = kernel->tile_count(call) - 1; tile >= 0; --tile) {
    std::memset(call.scratch, 0xff, static_cast<std::size_t>(size));  // NaN: what a tile has not written
    kernel->run(call, tile);
  }
}

// The one output, of dtype f32.
inline std::vector<float> run_f32(std::string_view name, const std::vector<TensorView>& inputs,
                                  std::vector<std::int64_t> shape, const Attributes& attributes = {}) {
  Tensor out(DType::F32, std::move(shape));
  run_kernel(name, attributes, inputs, {out.view});
  return out.values<float>();
}

inline constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace hone::test
