// copy, concat and state_append: bytes arrive where they should and nowhere else.
#include "vector_test_support.h"

namespace hone::test {
namespace {

class MovesTest : public PerLevel {};
INSTANTIATE_TEST_SUITE_P(Levels, MovesTest, testing::ValuesIn(kVectorLevels), level_name);

constexpr DType kTypes[] = {DType::U8, DType::F16, DType::F32, DType::F64};

void number_bytes(Tensor& x) {
  for (std::size_t i = 0; i < x.storage().size(); ++i)
    x.storage()[i] = static_cast<std::byte>(i * 7 + i / 251);
}

// Expects out == x element by element, both read through their strides.
void expect_copied(const TensorView& x, const TensorView& out) {
  const std::int64_t bytes = kernels::element_bytes(x.dtype);
  std::int64_t elements = 1;
  for (int axis = 0; axis < out.rank; ++axis) elements *= out.shape[axis];
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t index = i;
    for (int axis = out.rank - 1; axis >= 0; --axis) {
      const std::int64_t at = index % out.shape[axis];
      index /= out.shape[axis];
      if (x.shape[axis] != 1) from += at * x.strides[axis];
      to += at * out.strides[axis];
    }
    ASSERT_EQ(std::memcmp(static_cast<std::byte*>(x.data) + from * bytes,
                          static_cast<std::byte*>(out.data) + to * bytes, static_cast<std::size_t>(bytes)),
              0)
        << "element " << i;
  }
}

TEST_P(MovesTest, CopyOfEveryPermutation) {
  for (const DType dtype : kTypes) {
    Tensor x(dtype, {3, 17, 1, 40}, 2, kernels::element_bytes(dtype));
    number_bytes(x);
    std::vector<int> order = {0, 1, 2, 3};
    do {
      const TensorView from = x.permuted(order);
      Tensor out(dtype, {from.shape[0], from.shape[1], from.shape[2], from.shape[3]}, 0,
                 kernels::element_bytes(dtype));
      run_and_compare_levels({"copy", {}, {from}, {out.view()}}, out, GetParam());
      expect_copied(from, out.view());
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_P(MovesTest, CopyOfBroadcastsAndSizes) {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 100, 16383, 16384, 40000}) {
    Tensor x(DType::F32, {1, n});
    number_bytes(x);
    Tensor out(DType::F32, {2, n});
    run_and_compare_levels({"copy", {}, {x.view()}, {out.view()}}, out, GetParam());
    expect_copied(x.view(), out.view());
  }
  Tensor column(DType::F32, {300, 1});
  number_bytes(column);
  Tensor out(DType::F32, {300, 70});
  run_and_compare_levels({"copy", {}, {column.view()}, {out.view()}}, out, GetParam());
  expect_copied(column.view(), out.view());
}

// Parts of every width, one of them a broadcast, one permuted, along each axis.
TEST_P(MovesTest, ConcatAlongEveryAxis) {
  for (const DType dtype : kTypes) {
    const std::int64_t bytes = kernels::element_bytes(dtype);
    for (int axis = 0; axis < 3; ++axis) {
      Sizes sizes[] = {{5, 3, 40}, {5, 3, 40}, {5, 3, 40}};
      constexpr std::int64_t kExtents[] = {1, 7, 400};
      for (std::size_t i = 0; i < 3; ++i) sizes[i][static_cast<std::size_t>(axis)] = kExtents[i];
      Tensor first(dtype, sizes[0], 1, bytes);
      Tensor second(dtype, {sizes[1][2], sizes[1][1], sizes[1][0]}, 2);
      Tensor third(dtype, sizes[2], 0, bytes);
      for (Tensor* x : {&first, &second, &third}) number_bytes(*x);
      TensorView repeated = third.view();
      repeated.strides[(axis + 1) % 3] = 0;
      const std::vector<TensorView> parts{first.view(), second.permuted({2, 1, 0}), repeated};
      Sizes whole = sizes[0];
      whole[static_cast<std::size_t>(axis)] = 408;
      Tensor out(dtype, whole, 3, bytes);
      const Attributes attributes{{"axis", std::int64_t{axis == 2 ? -1 : axis}}};
      run_and_compare_levels({"concat", attributes, parts, {out.view()}}, out, GetParam());
      std::int64_t before = 0;
      for (const TensorView& part : parts) {
        TensorView place = out.view();
        place.data = static_cast<std::byte*>(place.data) + before * place.strides[axis] * bytes;
        place.shape[axis] = part.shape[axis];
        expect_copied(part, place);
        before += part.shape[axis];
      }
      Tensor expected(dtype, whole, 3, bytes);
      std::fill(expected.storage().begin(), expected.storage().end(), std::byte{0x55});
      std::fill(out.storage().begin(), out.storage().end(), std::byte{0x55});
      run_fast({"concat", attributes, parts, {out.view()}}, GetParam(), 3);
      run_reference({"concat", attributes, parts, {expected.view()}});
      ASSERT_EQ(out.storage(), expected.storage());
    }
  }
}

TEST_P(MovesTest, StateAppendWritesItsPositionsOnly) {
  const std::int64_t batch = 3;
  const std::int64_t context = 9;
  for (const DType dtype : kTypes) {
    for (const std::int64_t tokens : {1, 2, 5}) {
      const std::int64_t bytes = kernels::element_bytes(dtype);
      Tensor state(dtype, {batch, context, 2, 6}, 1, bytes);
      Tensor source(dtype, {batch, 2, tokens, 6});
      const TensorView added = source.permuted({0, 2, 1, 3});
      Tensor positions(DType::I32, {batch, tokens});
      number_bytes(source);
      for (std::byte& byte : state.storage()) byte = std::byte{0xee};
      for (std::int64_t i = 0; i < batch * tokens; ++i) {
        const std::int64_t b = i / tokens;
        positions.set(i,
                      b == 1 && i % tokens == 0 ? -1.0 : static_cast<double>((i % tokens * 2 + b) % context));
      }
      std::vector<std::byte> expected = state.storage();
      for (std::int64_t i = 0; i < batch * tokens; ++i) {
        const auto position = static_cast<std::int64_t>(positions.get(i));
        if (position < 0) continue;
        for (std::int64_t e = 0; e < 12; ++e) {
          const std::int64_t from = i / tokens * added.strides[0] + i % tokens * added.strides[1] +
                                    e / 6 * added.strides[2] + e % 6 * added.strides[3];
          const std::int64_t to = state.offset(((i / tokens * context + position) * 2 + e / 6) * 6 + e % 6);
          std::memcpy(expected.data() + bytes + to * bytes, source.storage().data() + from * bytes,
                      static_cast<std::size_t>(bytes));
        }
      }
      run_fast({"state_append", {}, {state.view(), added, positions.view()}, {state.view()}}, GetParam());
      ASSERT_EQ(std::memcmp(expected.data(), state.storage().data(), expected.size()), 0)
          << dtype_name(dtype) << " " << tokens;
      // The same rows as one step of all sequences, from the last to the first token of each.
      for (std::byte& byte : state.storage()) byte = std::byte{0xee};
      Tensor flat(dtype, {1, batch * tokens, 2, 6});
      Tensor flat_positions(DType::I32, {1, batch * tokens});
      Tensor sequence(DType::I32, {1, batch * tokens});
      for (std::int64_t i = 0; i < batch * tokens; ++i) {
        const std::int64_t t = tokens - 1 - i % tokens;
        const std::int64_t b = i / tokens;
        flat_positions.set(i, positions.get(b * tokens + t));
        sequence.set(i, static_cast<double>(b));
        for (std::int64_t e = 0; e < 12; ++e) {
          const std::int64_t from = b * added.strides[0] + t * added.strides[1] + e / 6 * added.strides[2] +
                                    e % 6 * added.strides[3];
          std::memcpy(flat.storage().data() + (i * 12 + e) * bytes, source.storage().data() + from * bytes,
                      static_cast<std::size_t>(bytes));
        }
      }
      const Launch launch{"state_append",
                          {},
                          {state.view(), flat.view(), flat_positions.view(), sequence.view()},
                          {state.view()}};
      run_fast(launch, GetParam());
      ASSERT_EQ(std::memcmp(expected.data(), state.storage().data(), expected.size()), 0)
          << dtype_name(dtype) << " " << tokens << ", flattened";
    }
  }
}

}  // namespace
}  // namespace hone::test
