// top_k, take_along_axis and expert_matmul of every ISA level.
#include <gtest/gtest.h>
#include <numeric>

#include "matmul_test_support.h"

namespace hone::test {
namespace {

class Experts : public PerLevel {
 protected:
  std::mt19937_64 random_{17};
};
INSTANTIATE_TEST_SUITE_P(Levels, Experts, testing::ValuesIn(kIsaLevels), level_name);

Launch top_k_launch(const TensorView& x, const TensorView& out) {
  return Launch{"top_k", Attributes{{"k", out.shape[out.rank - 1]}}, {x}, {out}};
}

// Few values, so that there are ties; now and then NaN, infinities and zeros of both signs.
TEST_P(Experts, TopKIsAStableSort) {
  for (const std::int64_t width : {1, 2, 7, 64, 200}) {
    for (const std::int64_t k : {std::int64_t{1}, std::min<std::int64_t>(width, 8), width}) {
      constexpr std::int64_t kRows = 37;
      Tensor x(DType::F32, {kRows, width}, 3, 4);
      Tensor out(DType::I32, {kRows, k}, 1, 4);
      constexpr double kAwkward[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
      for (std::int64_t i = 0; i < kRows * width; ++i) {
        x.set(i, i % 11 == 0 ? kAwkward[i / 11 % 5] : static_cast<double>(random_() % 9) - 4.0);
      }
      const Launch launch = top_k_launch(x.view(), out.view());
      run_and_compare_levels(launch, out, GetParam());
      for (std::int64_t row = 0; row < kRows; ++row) {
        std::vector<std::int64_t> order(static_cast<std::size_t>(width));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          const double left = x.get(row * width + a);
          const double right = x.get(row * width + b);
          return std::isnan(left) ? !std::isnan(right) : left > right;
        });
        for (std::int64_t j = 0; j < k; ++j) {
          ASSERT_EQ(out.get(row * k + j), static_cast<double>(order[static_cast<std::size_t>(j)]))
              << "width " << width << " row " << row << " place " << j;
        }
      }
    }
  }
}

TEST_P(Experts, TopKAndTakeAgreeWithTheReferenceKernels) {
  Tensor x(DType::F32, {3, 5, 12}, 2, 4);
  x.fill_normal(random_);
  for (std::int64_t i = 0; i < 3 * 5 * 12; i += 4) x.set(i, 1.0);
  Tensor chosen(DType::I32, {3, 5, 4});
  Tensor expected(DType::I32, {3, 5, 4});
  run_fast(top_k_launch(x.view(), chosen.view()), GetParam());
  run_reference(top_k_launch(x.view(), expected.view()));
  ASSERT_EQ(chosen.storage(), expected.storage());
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::Bool}) {
    Tensor from(dtype, {3, 5, 12}, 1);
    for (std::int64_t i = 0; i < 3 * 5 * 12; ++i) from.set(i, static_cast<double>(i % 7) - 3.0);
    Tensor taken(dtype, {3, 5, 4}, 3);
    Tensor wanted(dtype, {3, 5, 4}, 3);
    const Attributes last{{"axis", std::int64_t{-1}}};
    const Launch launch{"take_along_axis", last, {from.view(), chosen.view()}, {taken.view()}};
    run_and_compare_levels(launch, taken, GetParam());
    std::fill(wanted.storage().begin(), wanted.storage().end(), std::byte{0x55});
    run_reference(Launch{"take_along_axis", last, {from.view(), chosen.view()}, {wanted.view()}});
    ASSERT_EQ(taken.storage(), wanted.storage());
    for (std::int64_t i = 0; i < 3 * 5 * 4; ++i) {
      const std::int64_t at = i / 4 * 12 + static_cast<std::int64_t>(chosen.get(i));
      ASSERT_EQ(taken.get(i), from.get(at));
    }
  }
}

// X matrices [N,K]: each packed alone, and all of them one behind the other.
class ExpertWeights {
 public:
  ExpertWeights(DType dtype, std::int64_t experts, std::int64_t n, std::int64_t k, std::mt19937_64& random) {
    const std::int64_t bytes = panel_bytes(dtype, n, k);
    packed_.resize(static_cast<std::size_t>(experts * bytes) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(packed_.data());
    std::byte* start = packed_.data() + (64 - address % 64) % 64;
    for (std::int64_t x = 0; x < experts; ++x) {
      each_.push_back(std::make_unique<Weights>(dtype, n, k, random));
      std::memcpy(start + x * bytes, each_.back()->view().data, static_cast<std::size_t>(bytes));
      rows_.insert(rows_.end(), each_.back()->rows().begin(), each_.back()->rows().end());
    }
    view_ = each_[0]->view();
    view_.data = start;
    view_.rank = 3;
    view_.shape[0] = experts;
    view_.shape[1] = n;
    view_.shape[2] = k;
  }
  const TensorView& view() const { return view_; }
  const Weights& matrix(std::int64_t expert) const { return *each_[static_cast<std::size_t>(expert)]; }
  TensorView strided() {
    TensorView view = view_;
    view.layout = Layout::Strided;
    view.data = rows_.data();
    view.strides[0] = view.shape[1] * view.shape[2];
    view.strides[1] = view.shape[2];
    view.strides[2] = 1;
    return view;
  }

 private:
  std::vector<std::unique_ptr<Weights>> each_;
  std::vector<std::byte> packed_;
  std::vector<std::byte> rows_;
  TensorView view_;
};

struct Case {
  std::int64_t tokens, chosen, experts, n, k;
  bool shared;  // one row of x per token
};

// Few rows and many; more than a tile of rows for one expert; an expert that nobody chose.
constexpr Case kCases[] = {{1, 2, 4, 33, 64, true},
                           {3, 4, 9, 80, 96, false},
                           {16, 1, 3, 16, 32, true},
                           {29, 3, 5, 130, 320, true},
                           {70, 2, 2, 17, 64, false}};

// Each row must have the bits of a matmul of that row alone with its expert's matrix.
TEST_P(Experts, RowsHaveTheBitsOfTheirOwnMatmul) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    for (const bool int8 : {false, true}) {
      if (int8 && !dtype_row(dtype).is_quantised) continue;
      for (const Case& c : kCases) {
        const ExpertWeights w(dtype, c.experts, c.n, c.k, random_);
        const std::int64_t rows = c.tokens * c.chosen;
        const std::int64_t x_rows = c.shared ? c.tokens : rows;
        const std::vector<float> values = normal_values(random_, x_rows * c.k);
        Activations quantised(x_rows, c.k, values);
        Tensor plain(DType::F32, {x_rows, c.k});
        std::memcpy(plain.data<float>(), values.data(), values.size() * sizeof(float));
        TensorView x = int8 ? quantised.view() : plain.view();
        x.rank = 3;
        x.shape[0] = c.tokens;
        x.shape[1] = c.shared ? 1 : c.chosen;
        x.shape[2] = c.k;
        x.strides[0] = c.k * x.shape[1];
        x.strides[1] = c.k;
        x.strides[2] = 1;
        Tensor experts(DType::I32, {c.tokens, c.chosen});
        for (std::int64_t i = 0; i < rows; ++i) {
          experts.set(
              i, static_cast<double>(random_() % static_cast<std::uint64_t>(c.experts > 3 ? 3 : c.experts)));
        }
        Tensor out(DType::F32, {c.tokens, c.chosen, c.n}, 5, 4);
        const Launch launch{"expert_matmul", {}, {x, w.view(), experts.view()}, {out.view()}};
        run_and_compare_levels(launch, out, GetParam());
        for (std::int64_t row = 0; row < rows; ++row) {
          const auto expert = static_cast<std::int64_t>(experts.get(row));
          TensorView one = int8 ? quantised.view() : plain.view();
          one = row_range(one, c.shared ? row / c.chosen : row, 1);
          Tensor alone(DType::F32, {1, c.n});
          run_fast(matmul_launch(one, w.matrix(expert).view(), alone.view()), GetParam());
          for (std::int64_t n = 0; n < c.n; ++n) {
            ASSERT_EQ(out.get(row * c.n + n), alone.get(n))
                << dtype_name(dtype) << (int8 ? " int8" : "") << " tokens " << c.tokens << " row " << row;
          }
        }
        std::fill(out.storage().begin(), out.storage().end(), std::byte{0});
        run_fast(launch, GetParam(), 3);
        const std::vector<std::byte> threads = out.storage();
        std::fill(out.storage().begin(), out.storage().end(), std::byte{0});
        run_fast(launch, GetParam());
        ASSERT_EQ(out.storage(), threads);
      }
    }
  }
}

// Heads have a matrix each, the same ones for every token: experts [J] at a stride of 0 between tokens.
TEST_P(Experts, OneListForAllTokensIsThatListForEach) {
  for (const std::int64_t tokens : {1, 2, 40}) {
    for (const std::vector<double>& list : {std::vector<double>{0, 1, 2, 3, 4}, {4, 2, 4, 0, 2}}) {
      const auto chosen = static_cast<std::int64_t>(list.size());
      const ExpertWeights w(DType::Q8_0, 5, 37, 64, random_);
      Tensor x(DType::F32, {tokens, chosen, 64});
      x.fill_normal(random_);
      Tensor each(DType::I32, {tokens, chosen});
      Tensor once(DType::I32, {chosen});
      for (std::int64_t i = 0; i < tokens * chosen; ++i)
        each.set(i, list[static_cast<std::size_t>(i % chosen)]);
      for (std::int64_t i = 0; i < chosen; ++i) once.set(i, list[static_cast<std::size_t>(i)]);
      TensorView repeated = once.view();
      repeated.rank = 2;
      repeated.shape[0] = tokens;
      repeated.shape[1] = chosen;
      repeated.strides[0] = 0;
      repeated.strides[1] = 1;
      Tensor wanted(DType::F32, {tokens, chosen, 37});
      Tensor fast(DType::F32, {tokens, chosen, 37});
      run_fast(Launch{"expert_matmul", {}, {x.view(), w.view(), each.view()}, {wanted.view()}}, GetParam());
      run_fast(Launch{"expert_matmul", {}, {x.view(), w.view(), repeated}, {fast.view()}}, GetParam());
      ASSERT_EQ(fast.storage(), wanted.storage()) << tokens << " tokens";
      Tensor reference(DType::F32, {tokens, chosen, 37});
      run_reference(Launch{"expert_matmul", {}, {x.view(), w.view(), each.view()}, {wanted.view()}});
      run_reference(Launch{"expert_matmul", {}, {x.view(), w.view(), repeated}, {reference.view()}});
      ASSERT_EQ(reference.storage(), wanted.storage()) << tokens << " tokens";
    }
  }
}

// Rows of x [tokens,J,K] that lie expert by expert.
TEST_P(Experts, RowsMayLieInAnotherOrder) {
  for (const std::int64_t tokens : {2, 30}) {
    const ExpertWeights w(DType::Q8_0, 3, 37, 64, random_);
    Tensor in_order(DType::F32, {tokens, 3, 64});
    in_order.fill_normal(random_);
    Tensor turned(DType::F32, {3, tokens, 64});
    Tensor experts(DType::I32, {tokens, 3});
    for (std::int64_t row = 0; row < tokens * 3; ++row) {
      experts.set(row, static_cast<double>(random_() % 3));
      for (std::int64_t k = 0; k < 64; ++k)
        turned.set((row % 3 * tokens + row / 3) * 64 + k, in_order.get(row * 64 + k));
    }
    TensorView x = turned.view();
    std::swap(x.shape[0], x.shape[1]);
    std::swap(x.strides[0], x.strides[1]);
    Tensor wanted(DType::F32, {tokens, 3, 37});
    Tensor out(DType::F32, {tokens, 3, 37});
    run_fast(Launch{"expert_matmul", {}, {in_order.view(), w.view(), experts.view()}, {wanted.view()}},
             GetParam());
    run_fast(Launch{"expert_matmul", {}, {x, w.view(), experts.view()}, {out.view()}}, GetParam());
    ASSERT_EQ(out.storage(), wanted.storage()) << tokens << " tokens";
  }
}

TEST_P(Experts, ReferenceReadsBothLayouts) {
  ExpertWeights w(DType::Q8_0, 3, 19, 64, random_);
  Tensor x(DType::F32, {5, 1, 64});
  x.fill_normal(random_);
  Tensor experts(DType::I32, {5, 2});
  for (std::int64_t i = 0; i < 10; ++i) experts.set(i, static_cast<double>(i % 3));
  Tensor packed(DType::F32, {5, 2, 19});
  Tensor rows(DType::F32, {5, 2, 19});
  Tensor fast(DType::F32, {5, 2, 19});
  run_reference(Launch{"expert_matmul", {}, {x.view(), w.view(), experts.view()}, {packed.view()}});
  run_reference(Launch{"expert_matmul", {}, {x.view(), w.strided(), experts.view()}, {rows.view()}});
  run_fast(Launch{"expert_matmul", {}, {x.view(), w.view(), experts.view()}, {fast.view()}}, GetParam());
  ASSERT_EQ(packed.storage(), rows.storage());
  for (std::int64_t i = 0; i < 5 * 2 * 19; ++i) {
    double exact = 0;
    double magnitude = 0;
    for (std::int64_t k = 0; k < 64; ++k) {
      const double term =
          x.get(i / 38 * 64 + k) *
          static_cast<double>(w.matrix(static_cast<std::int64_t>(experts.get(i / 19))).value(i % 19, k));
      exact += term;
      magnitude += std::fabs(term);
    }
    ASSERT_LE(std::fabs(packed.get(i) - exact), 1.01 * kUnitRoundoff * magnitude);
    ASSERT_LE(std::fabs(fast.get(i) - exact), 1.01 * 65 * kUnitRoundoff * magnitude);
  }
}

}  // namespace
}  // namespace hone::test
