// Random matmul, gated MLP, expert_matmul, gather and quantize_q8a launches.
//
// Bounds are those of sums of products in any order: a chain of c roundings errs by at most c u |x| |w|, by
// Cauchy and Schwarz the product of the norms of the row and the column; u = 2^-24.
#include <numbers>

#include "random_blocks.h"
#include "random_launches.h"

namespace hone::test {
namespace {

constexpr std::int64_t kMostProducts = 400000;
constexpr std::int64_t kRowTile = 96;
constexpr std::int64_t kColumnTile = 32;
constexpr std::int64_t kDepthTile = 256;

std::shared_ptr<Weights> random_weights(Draw& draw, DType dtype, std::int64_t n, std::int64_t k) {
  if (dtype_row(dtype).is_quantised || dtype_row(dtype).block_bytes == 1)
    return std::make_shared<Weights>(dtype, n, k, random_blocks(dtype, n * k, draw.random));
  if (dtype == DType::F64) {
    std::vector<double> values(static_cast<std::size_t>(n * k));
    for (double& value : values) value = std::normal_distribution<double>()(draw.random);
    std::vector<std::byte> bytes(values.size() * 8);
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return std::make_shared<Weights>(dtype, n, k, std::move(bytes));
  }
  return std::make_shared<Weights>(dtype, n, k, draw.random);
}

// Types that kernels of x of type `x` read.
DType weight_type(const Draw& draw, DType x) {
  if (x == DType::BF16) return DType::BF16;
  static const std::vector<DType> numbers = [] {
    std::vector<DType> types;
    for (const DType dtype : weight_types()) {
      if (panel_has_dot_numbers(dtype)) types.push_back(dtype);
    }
    return types;
  }();
  return draw.in_turn(x == DType::Q8A ? std::span<const DType>(numbers) : weight_types());
}

struct Depths {
  std::int64_t rows, n, k;
};
Depths random_depths(Draw& draw, DType dtype, DType x, std::int64_t times = 1) {
  const std::int64_t block =
      std::max<std::int64_t>(x == DType::F32 ? 1 : 32, dtype_row(dtype).block_elements);
  Depths s{};
  do {
    s = {draw.size(kRowTile), draw.size(kColumnTile), draw.size(kDepthTile / block) * block};
    if (draw.up_to(9) == 0) s.n = draw.size(128);
  } while (s.rows * s.n * s.k * times > kMostProducts);
  return s;
}

// Rows of x with the values that the kernel reads in them.
struct Rows {
  TensorView view;
  std::vector<float> values;  // [rows,K]
  std::int64_t k = 0;

  double norm(std::int64_t row) const {
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += value(row, i) * value(row, i);
    return std::sqrt(sum);
  }
  double value(std::int64_t row, std::int64_t i) const {
    return static_cast<double>(values[static_cast<std::size_t>(row * k + i)]);
  }
};

Rows random_x(Draw& draw, RandomLaunch& to, std::int64_t rows, std::int64_t k, DType x_type) {
  std::vector<float> values = normal_values(draw.random, rows * k);
  const std::int64_t padding = draw.up_to(3) == 0 ? draw.up_to(3) : 0;
  if (x_type == DType::Q8A) {
    auto x = std::make_shared<Blocks>(Sizes{rows, k}, padding);
    for (std::int64_t i = 0; i < rows * k; i += 32) {
      const BlockQ8A block = encode_q8a_block(values.data() + i);
      x->blocks[static_cast<std::size_t>(i / k * (k / 32 + padding) + i % k / 32)] = block;
      for (std::int64_t j = 0; j < 32; ++j)
        values[static_cast<std::size_t>(i + j)] = block.scale * static_cast<float>(block.quants[j]);
    }
    to.owners.push_back(x);
    return {x->view, std::move(values), k};
  }
  auto x = std::make_shared<Tensor>(x_type, Sizes{rows, k}, padding);
  for (std::int64_t i = 0; i < rows * k; ++i) {
    float& value = values[static_cast<std::size_t>(i)];
    if (x_type == DType::BF16) value = bf16_to_f32(f32_to_bf16(value));
    x->set(i, static_cast<double>(value));
  }
  to.owners.push_back(x);
  return {x->view(), std::move(values), k};
}

// The norm of column n of W^T. In int8 the terms of a block are products with parts of q4_1's offset form, at
// most three times the block's largest weight.
double column_norm(const Weights& w, std::int64_t n, bool int8) {
  const std::int64_t k = w.view().shape[1];
  double sum = 0;
  for (std::int64_t block = 0; block < k; block += 32) {
    double largest = 0;
    for (std::int64_t i = block; i < std::min(k, block + 32); ++i) {
      const auto value = static_cast<double>(w.value(n, i));
      largest = std::max(largest, std::fabs(value));
      if (!int8) sum += value * value;
    }
    if (int8) sum += 32 * 9 * largest * largest;
  }
  return std::sqrt(sum);
}

// By how much the products of rows and columns may err: factors of |x| |w|, the reference kernel's rounding
// and that of a decoded weight included.
struct ProductBound {
  std::vector<double> rows, columns;
  double operator()(std::int64_t row, std::int64_t n) const {
    return rows[static_cast<std::size_t>(row)] * columns[static_cast<std::size_t>(n)];
  }
};
ProductBound product_bound(const Rows& x, std::int64_t rows, const Weights& w, bool int8) {
  const double roundings = static_cast<double>(int8 ? x.k / 16 + 8 : x.k + 4);
  ProductBound bound;
  for (std::int64_t r = 0; r < rows; ++r)
    bound.rows.push_back(1.01 * roundings * kUnitRoundoff * x.norm(r) + 1e-30);
  for (std::int64_t n = 0; n < w.view().shape[0]; ++n) bound.columns.push_back(column_norm(w, n, int8));
  return bound;
}

std::string describe(DType dtype, const Depths& s, DType x) {
  return std::string(dtype_name(x)) + " x " + std::string(dtype_name(dtype)) + " [" + std::to_string(s.rows) +
         "," + std::to_string(s.k) + "] x [" + std::to_string(s.n) + "]^T";
}

// a [..,M,K] x b [..,K,N], both with any strides.
RandomLaunch strided_matmul(Draw& draw) {
  static constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16};
  Depths s = random_depths(draw, DType::F32, DType::F32, 2);
  const bool transposed = draw.coin();
  const std::int64_t lead = draw.between(1, 2);
  auto a = normal_tensor(draw, DType::F32, {lead, s.rows, s.k});
  auto b = normal_tensor(draw, draw.in_turn(std::span<const DType>(kTypes)),
                         transposed ? Sizes{lead, s.n, s.k} : Sizes{lead, s.k, s.n});
  auto out = normal_tensor(draw, DType::F32, {lead, s.rows, s.n});
  RandomLaunch made;
  made.owners = {a, b, out};
  made.launch = {
      "matmul", {{"transpose_b", std::int64_t{transposed}}}, {a->view(), b->view()}, {out->view()}};
  made.what = describe(b->view().dtype, s, DType::F32) + (transposed ? "" : ", b not transposed");
  double a_norm = 0;
  double b_norm = 0;
  for (std::int64_t i = 0; i < lead * s.rows; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k) sum += a->get(i * s.k + k) * a->get(i * s.k + k);
    a_norm = std::max(a_norm, std::sqrt(sum));
  }
  for (std::int64_t i = 0; i < lead * s.n; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k) {
      const double value = b->get(transposed ? i * s.k + k : (i / s.n * s.k + k) * s.n + i % s.n);
      sum += value * value;
    }
    b_norm = std::max(b_norm, std::sqrt(sum));
  }
  const double bound = 1.01 * static_cast<double>(s.k + 2) * kUnitRoundoff * a_norm * b_norm;
  made.bound = [bound](std::size_t, std::int64_t, double) { return bound; };
  return made;
}

RandomLaunch random_matmul(Draw& draw, std::string_view stem) {
  if (stem.find("strided") != std::string_view::npos) return strided_matmul(draw);
  const DType x_type = x_type_of(stem);
  const bool int8 = x_type == DType::Q8A;
  const DType dtype = weight_type(draw, x_type);
  const Depths s = random_depths(draw, dtype, x_type);
  RandomLaunch made;
  const Rows x = random_x(draw, made, s.rows, s.k, x_type);
  const auto w = random_weights(draw, dtype, s.n, s.k);
  auto out = normal_tensor(draw, DType::F32, {s.rows, s.n});
  made.owners.insert(made.owners.end(), {w, out});
  made.launch = matmul_launch(x.view, w->view(), out->view());
  made.what = describe(dtype, s, x_type);
  made.bound = [bound = product_bound(x, s.rows, *w, int8), n = s.n](std::size_t, std::int64_t i, double) {
    return bound(i / n, i % n);
  };
  return made;
}

std::vector<double> products(const Rows& x, std::int64_t rows, const Weights& w) {
  const std::int64_t n = w.view().shape[0];
  std::vector<double> sums(static_cast<std::size_t>(rows * n), 0.0);
  for (std::int64_t i = 0; i < rows * n; ++i) {
    for (std::int64_t k = 0; k < x.k; ++k)
      sums[static_cast<std::size_t>(i)] += x.value(i / n, k) * static_cast<double>(w.value(i % n, k));
  }
  return sums;
}

// The gate's product errs by its bound, its function by as much times its slope, at most 1.13, and by the
// roundings that quantised_input_test.cc derives, at most 12.1 of the gate; then one product.
RandomLaunch gated_mlp(Draw& draw, std::string_view stem) {
  const DType x_type = x_type_of(stem);
  const bool int8 = x_type == DType::Q8A;
  const DType dtype = weight_type(draw, x_type);
  const Depths s = random_depths(draw, dtype, x_type, 4);
  RandomLaunch made;
  const Rows x = random_x(draw, made, s.rows, s.k, x_type);
  const auto gate = random_weights(draw, dtype, s.n, s.k);
  const auto up = random_weights(draw, dtype, s.n, s.k);
  auto out = normal_tensor(draw, DType::F32, {s.rows, s.n});
  made.owners.insert(made.owners.end(), {gate, up, out});
  const bool silu = stem.find("swiglu") != std::string_view::npos;
  made.launch = {silu ? "swiglu_mlp" : "geglu_mlp", {}, {x.view, gate->view(), up->view()}, {out->view()}};
  made.what = describe(dtype, s, x_type);
  made.bound = [silu, n = s.n, gates = products(x, s.rows, *gate), ups = products(x, s.rows, *up),
                gate_bound = product_bound(x, s.rows, *gate, int8),
                up_bound = product_bound(x, s.rows, *up, int8)](std::size_t, std::int64_t i, double) {
    const double z = gates[static_cast<std::size_t>(i)];
    const double inner = std::sqrt(2 * std::numbers::inv_pi) * (z + 0.044715 * z * z * z);
    const double activated = silu ? z / (1 + std::exp(-z)) : z / 2 * (1 + std::tanh(inner));
    const double other = std::fabs(ups[static_cast<std::size_t>(i)]);
    const double activated_error = 1.13 * gate_bound(i / n, i % n) + 12.1 * kUnitRoundoff * std::fabs(z);
    const double other_error = up_bound(i / n, i % n);
    const double size = (std::fabs(activated) + activated_error) * (other + other_error);
    return activated_error * other + std::fabs(activated) * other_error + activated_error * other_error +
           2.1 * kUnitRoundoff * size;
  };
  return made;
}

// X matrices [N,K] behind one another, each in panels.
struct ExpertPanels {
  std::vector<std::shared_ptr<Weights>> each;
  std::vector<std::byte> packed;
  TensorView view;
};

RandomLaunch random_expert_matmul(Draw& draw, std::string_view stem) {
  const DType x_type = x_type_of(stem);
  const bool int8 = x_type == DType::Q8A;
  const DType dtype = weight_type(draw, x_type);
  const std::int64_t chosen = draw.between(1, 4);
  const std::int64_t experts = draw.between(1, 5);
  Depths s = random_depths(draw, dtype, x_type, chosen);
  s.k = std::max(s.k, dtype_row(dtype).block_elements);
  const bool shared = draw.coin();
  RandomLaunch made;
  const std::int64_t rows = s.rows * chosen;
  Rows x = random_x(draw, made, shared ? s.rows : rows, s.k, x_type);
  auto panels = std::make_shared<ExpertPanels>();
  const std::int64_t bytes = panel_bytes(dtype, s.n, s.k);
  panels->packed.resize(static_cast<std::size_t>(experts * bytes));
  for (std::int64_t e = 0; e < experts; ++e) {
    panels->each.push_back(random_weights(draw, dtype, s.n, s.k));
    if (bytes > 0)
      std::memcpy(panels->packed.data() + e * bytes, panels->each.back()->view().data,
                  static_cast<std::size_t>(bytes));
  }
  panels->view = panels->each[0]->view();
  panels->view.data = panels->packed.data();
  panels->view.rank = 3;
  for (const auto& [axis, size] : {std::pair{0, experts}, {1, s.n}, {2, s.k}})
    panels->view.shape[axis] = size;
  auto numbers = std::make_shared<Tensor>(DType::I32, Sizes{s.rows, chosen});
  for (std::int64_t i = 0; i < rows; ++i) numbers->set(i, static_cast<double>(draw.up_to(experts - 1)));
  auto out = normal_tensor(draw, DType::F32, {s.rows, chosen, s.n});
  made.owners.insert(made.owners.end(), {panels, numbers, out});
  TensorView three = x.view;  // [tokens, 1 or chosen, K]
  three.rank = 3;
  three.shape[0] = s.rows;
  three.shape[1] = shared ? 1 : chosen;
  three.shape[2] = s.k;
  three.strides[0] = x.view.strides[0] * three.shape[1];
  three.strides[1] = x.view.strides[0];
  three.strides[2] = 1;
  made.launch = {"expert_matmul", {}, {three, panels->view, numbers->view()}, {out->view()}};
  made.what = describe(dtype, s, x_type) + ", " + std::to_string(chosen) + " of " + std::to_string(experts) +
              " experts" + (shared ? ", one x" : "");
  std::vector<ProductBound> bounds;
  for (const auto& w : panels->each) bounds.push_back(product_bound(x, shared ? s.rows : rows, *w, int8));
  made.bound = [bounds = std::move(bounds), numbers, n = s.n, chosen, shared](std::size_t, std::int64_t i,
                                                                              double) {
    const std::int64_t row = i / n;
    const auto expert = static_cast<std::size_t>(numbers->get(row));
    return bounds[expert](shared ? row / chosen : row, i % n);
  };
  return made;
}

RandomLaunch random_gather(Draw& draw, std::string_view) {
  const DType dtype = draw.in_turn(weight_types());
  const std::int64_t block = dtype_row(dtype).block_elements;
  const std::int64_t rows = draw.at_least_one(16);
  const std::int64_t k = draw.size(kDepthTile / block) * block;
  const auto table = random_weights(draw, dtype, rows, k);
  auto ids = std::make_shared<Tensor>(DType::I32, Sizes{draw.between(1, 2), draw.size(8)});
  for (std::int64_t i = 0; i < product(ids->sizes()); ++i)
    ids->set(i, static_cast<double>(draw.up_to(rows - 1)));
  auto out = std::make_shared<Tensor>(DType::F32, Sizes{ids->sizes()[0], ids->sizes()[1], k});
  RandomLaunch made;
  made.owners = {table, ids, out};
  made.launch = {"gather", {}, {draw.coin() ? table->view() : table->strided(), ids->view()}, {out->view()}};
  made.what = std::string(dtype_name(dtype)) + " [" + std::to_string(rows) + "," + std::to_string(k) + "]";
  return made;
}

RandomLaunch random_quantize(Draw& draw, std::string_view) {
  const Sizes sizes{draw.size(kRowTile), draw.size(8) * 32};
  const bool two = draw.coin();
  auto x = normal_tensor(draw, DType::F32, sizes, 3.0);
  auto out = std::make_shared<Blocks>(two ? Sizes{sizes[0], 2, sizes[1]} : sizes, 0);
  if (product(sizes) > 0 && draw.up_to(4) == 0) x->set(draw.up_to(product(sizes) - 1), INFINITY);
  RandomLaunch made;
  made.owners = {x, out};
  made.launch = {"quantize_q8a", {}, {x->view()}, {out->view}};
  if (two) made.launch.attributes.set("terms", std::int64_t{2});
  made.what = "[" + std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "]";
  return made;
}

constexpr Generator kMatmulGenerators[] = {{"matmul", random_matmul}, {"swiglu_mlp", gated_mlp},
                                           {"geglu_mlp", gated_mlp},  {"expert_matmul", random_expert_matmul},
                                           {"gather", random_gather}, {"quantize_q8a", random_quantize}};

}  // namespace

std::span<const Generator> matmul_generators() {
  return kMatmulGenerators;
}

}  // namespace hone::test
