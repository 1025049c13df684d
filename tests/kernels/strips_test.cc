// fused_elementwise: every op on every type against the reference kernel, which computes in double and rounds
// once.
#include <cmath>

#include "vector_test_support.h"

namespace hone::test {
namespace {

class StripsTest : public PerLevel {};
INSTANTIATE_TEST_SUITE_P(Levels, StripsTest, testing::ValuesIn(kVectorLevels), level_name);

constexpr DType kAllTypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I8,  DType::U8,
                               DType::I16, DType::I32, DType::U32, DType::I64,  DType::Bool};

StripInstruction load_input(int input, DType dtype, int result) {
  return {StripOp::Load, dtype, result, input, -1, -1, 0};
}
StripInstruction store_output(int from, DType dtype, int output) {
  return {StripOp::Store, dtype, -1, from, output, -1, 0};
}
// One op on `arity` inputs; the result takes the register of its first operand.
StripProgram program_of(StripOp op, int arity, DType operand, DType result) {
  StripProgram program;
  for (int i = 0; i < arity; ++i) {
    const bool condition = op == StripOp::Select && i == 0;
    program.instructions.push_back(load_input(i, condition ? DType::Bool : operand, i));
  }
  program.instructions.push_back({op, result, 0, 0, arity > 1 ? 1 : -1, arity > 2 ? 2 : -1, 0});
  program.instructions.push_back(store_output(0, result, 0));
  program.register_count = arity;
  return program;
}

// Values that show rounding, wrapping and special cases; with `nice` only what the functions take.
double value_at(std::int64_t i, std::int64_t salt, DType dtype) {
  constexpr double kReals[] = {0.0,       -0.0,     1.0,     -1.0,   0.1,  -7.3,  3e-5,
                               1e-40,     -2.5e-42, 65504.0, 1e5,    3e38, -1e30, INFINITY,
                               -INFINITY, NAN,      0.6249,  0.6251, 88.5, -87.4, 1e-3};
  constexpr double kIntegers[] = {0, 1, 2, 3, 5, 7, 100, 127, 11};
  const std::int64_t pick = i * 7 + salt * 13 + i / 23;
  if (dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16) {
    return pick % 3 == 0 ? std::sin(static_cast<double>(pick)) * 9.0 : kReals[pick % std::ssize(kReals)];
  }
  if (dtype == DType::Bool) return static_cast<double>(pick % 2);
  const double sign = (dtype == DType::U8 || dtype == DType::U32 || pick % 2 == 0) ? 1.0 : -1.0;
  const double scale = dtype == DType::I32 && pick % 5 == 0 ? 16777216.0 : 1.0;
  return sign * scale * kIntegers[pick % std::ssize(kIntegers)];
}
void fill_values(Tensor& x, std::int64_t salt) {
  for (std::int64_t i = 0; i < product(x.sizes()); ++i) x.set(i, value_at(i, salt, x.view().dtype));
}

// Units in the last place of the expected value's f32, f16 or bf16 binade.
double ulps_between(double actual, double expected, DType dtype) {
  if (std::isnan(actual) || std::isnan(expected))
    return std::isnan(actual) && std::isnan(expected) ? 0.0 : INFINITY;
  if (actual == expected) return std::signbit(actual) == std::signbit(expected) ? 0.0 : INFINITY;
  const int digits = dtype == DType::F16 ? 11 : dtype == DType::BF16 ? 8 : dtype == DType::F32 ? 24 : 53;
  const int smallest = dtype == DType::F16 ? -14 : dtype == DType::F64 ? -1022 : -126;
  const int exponent = std::max(std::isinf(expected) ? std::ilogb(actual) : std::ilogb(expected), smallest);
  return std::abs(actual - expected) / std::ldexp(1.0, exponent - digits + 1);
}

// Runs at the test's level, at the portable level and on the reference kernel; `ulps` = 0 asks for equal
// values.
void check(Launch launch, Tensor& out, Isa isa, double ulps, const std::string& what) {
  const DType dtype = out.view().dtype;
  run_fast(launch, Isa::Portable);
  Tensor portable = out;
  std::fill(out.storage().begin(), out.storage().end(), std::byte{0});
  run_fast(launch, isa);
  Tensor expected(dtype, out.sizes());
  launch.outputs[0] = expected.view();
  run_reference(launch);
  for (std::int64_t i = 0; i < product(out.sizes()); ++i) {
    ASSERT_EQ(ulps_between(out.get(i), portable.get(i), dtype), 0.0) << what << ": levels differ at " << i;
    ASSERT_LE(ulps_between(out.get(i), expected.get(i), dtype), ulps)
        << what << " at " << i << ": " << out.get(i) << " for " << expected.get(i);
  }
}

struct OpCase {
  StripOp op;
  const char* name;
  int arity;
  double ulps;  // beyond the reference kernel's value
  bool real_only = false;
};
// rsqrt is rounded twice, the root's half ulp counting half or, across a binade, once: below 1.5 ulp in all.
// exp is good to 1 ulp and tanh to 2, and the reference's own rounding adds a half; ulps are counted whole.
constexpr OpCase kNumberOps[] = {{StripOp::Neg, "neg", 1, 0},         {StripOp::Abs, "abs", 1, 0},
                                 {StripOp::Add, "add", 2, 0},         {StripOp::Sub, "sub", 2, 0},
                                 {StripOp::Mul, "mul", 2, 0},         {StripOp::Max, "max", 2, 0},
                                 {StripOp::Min, "min", 2, 0},         {StripOp::Select, "select", 3, 0},
                                 {StripOp::Cast, "cast", 1, 0},       {StripOp::Div, "div", 2, 0, true},
                                 {StripOp::Sqrt, "sqrt", 1, 0, true}, {StripOp::Rsqrt, "rsqrt", 1, 1, true},
                                 {StripOp::Exp, "exp", 1, 1, true},   {StripOp::Tanh, "tanh", 1, 2, true},
                                 {StripOp::Log, "log", 1, 0, true},   {StripOp::Sin, "sin", 1, 0, true},
                                 {StripOp::Cos, "cos", 1, 0, true},   {StripOp::Pow, "pow", 2, 0, true}};

TEST_P(StripsTest, EveryOpOnEveryType) {
  for (const DType dtype : kAllTypes) {
    const bool real = dtype_row(dtype).is_float;
    for (const OpCase& op : kNumberOps) {
      if (dtype == DType::Bool && op.op != StripOp::Select && op.op != StripOp::Cast) continue;
      if (op.real_only && !real) continue;
      const std::string what = std::string(op.name) + " " + std::string(dtype_name(dtype));
      const StripProgram program = program_of(op.op, op.arity, dtype, dtype);
      Tensor condition(DType::Bool, {517});
      Tensor a(dtype, {517}, 0, kernels::element_bytes(dtype));
      Tensor b(dtype, {517});
      Tensor out(dtype, {517});
      fill_values(condition, 3);
      fill_values(a, 1);
      fill_values(b, 2);
      Launch launch{"fused_elementwise", {}, {a.view(), b.view()}, {out.view()}, &program};
      if (op.arity == 1) launch.inputs.pop_back();
      if (op.arity == 3) launch.inputs.insert(launch.inputs.begin(), condition.view());
      check(launch, out, GetParam(), dtype == DType::F64 ? 0 : op.ulps, what);
    }
  }
}

TEST_P(StripsTest, ComparisonsAndLogic) {
  constexpr StripOp kComparisons[] = {StripOp::Less, StripOp::LessEqual, StripOp::Equal};
  for (const DType dtype : kAllTypes) {
    for (const StripOp op : kComparisons) {
      const StripProgram program = program_of(op, 2, dtype, DType::Bool);
      Tensor a(dtype, {300});
      Tensor b(dtype, {300});
      Tensor out(DType::Bool, {300});
      fill_values(a, 1);
      fill_values(b, 1);
      for (std::int64_t i = 0; i < 300; i += 2) b.set(i, value_at(i, 2, dtype));
      check({"fused_elementwise", {}, {a.view(), b.view()}, {out.view()}, &program}, out, GetParam(), 0,
            std::string(dtype_name(dtype)) + " comparison " + std::to_string(static_cast<int>(op)));
    }
  }
  for (const StripOp op : {StripOp::And, StripOp::Or, StripOp::Not}) {
    const int arity = op == StripOp::Not ? 1 : 2;
    const StripProgram program = program_of(op, arity, DType::Bool, DType::Bool);
    Tensor a(DType::Bool, {33});
    Tensor b(DType::Bool, {33});
    Tensor out(DType::Bool, {33});
    fill_values(a, 1);
    for (std::int64_t i = 0; i < 33; i += 3) b.set(i, 1);
    Launch launch{"fused_elementwise", {}, {a.view(), b.view()}, {out.view()}, &program};
    if (arity == 1) launch.inputs.pop_back();
    check(launch, out, GetParam(), 0, "logic " + std::to_string(static_cast<int>(op)));
  }
}

TEST_P(StripsTest, CastsBetweenAllTypes) {
  for (const DType from : kAllTypes) {
    for (const DType to : kAllTypes) {
      const StripProgram program = program_of(StripOp::Cast, 1, from, to);
      Tensor a(from, {403}, 0, kernels::element_bytes(from));
      Tensor out(to, {403}, 0, kernels::element_bytes(to));
      fill_values(a, 5);
      if (from == DType::F64) {
        a.set(0, 1.0 + 0x1p-11 + 0x1p-40);  // above the middle of two f16, on it once rounded to f32
        a.set(1, 1.0 + 0x1p-8 + 0x1p-40);   // the same for bf16
        a.set(2, 300.7);
        a.set(3, -300.7);
        a.set(4, 70000.0);
      }
      check({"fused_elementwise", {}, {a.view()}, {out.view()}, &program}, out, GetParam(), 0,
            std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
    }
  }
}

TEST_P(StripsTest, SizesAroundStripsAndTiles) {
  const StripProgram program = program_of(StripOp::Add, 2, DType::F32, DType::F32);
  for (const std::int64_t n : {0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097, 8192, 8193}) {
    Tensor a(DType::F32, {n}, 0, 4);
    Tensor b(DType::F32, {n}, 0, 8);
    Tensor out(DType::F32, {n}, 0, 12);
    fill_values(a, 1);
    fill_values(b, 2);
    check({"fused_elementwise", {}, {a.view(), b.view()}, {out.view()}, &program}, out, GetParam(), 0,
          std::to_string(n));
  }
}

TEST_P(StripsTest, BroadcastAndStridedViews) {
  const StripProgram program = program_of(StripOp::Sub, 2, DType::F32, DType::F32);
  const Sizes full = {2, 3, 5, 37};
  const Sizes shapes[] = {{2, 3, 5, 37}, {37},         {1},           {5, 1},
                          {3, 1, 1},     {2, 1, 5, 1}, {1, 1, 1, 37}, {3, 5, 37}};
  for (const Sizes& left : shapes) {
    for (const Sizes& right : shapes) {
      Tensor a(DType::F32, left, 1, 4);
      Tensor b(DType::F32, right, 2);
      Tensor out(DType::F32, full);
      fill_values(a, 1);
      fill_values(b, 2);
      check({"fused_elementwise", {}, {a.view(), b.view()}, {out.view()}, &program}, out, GetParam(), 0,
            "broadcast");
    }
  }
  std::vector<int> order = {0, 1, 2};
  do {
    for (const DType dtype : {DType::F32, DType::F16}) {
      Tensor a(dtype, {7, 19, 21}, 3);
      fill_values(a, 4);
      const TensorView x = a.permuted(order);
      Tensor b(DType::F32, {x.shape[0], x.shape[1], x.shape[2]});
      Tensor out(DType::F32, b.sizes());
      fill_values(b, 2);
      check({"fused_elementwise", {}, {x, b.view()}, {out.view()}, &program}, out, GetParam(), 0, "permuted");
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// silu(gate) * up with two outputs, constants and a register written twice.
StripProgram silu_program() {
  StripProgram program;
  program.instructions = {load_input(0, DType::F32, 0),
                          {StripOp::Neg, DType::F32, 1, 0, -1, -1, 0},
                          {StripOp::Exp, DType::F32, 1, 1, -1, -1, 0},
                          {StripOp::Constant, DType::F32, 2, -1, -1, -1, 1.0},
                          {StripOp::Add, DType::F32, 1, 2, 1, -1, 0},
                          {StripOp::Div, DType::F32, 1, 0, 1, -1, 0},
                          store_output(1, DType::F32, 1),
                          load_input(1, DType::F32, 2),
                          {StripOp::Mul, DType::F32, 0, 1, 2, -1, 0},
                          store_output(0, DType::F16, 0)};
  program.register_count = 3;
  return program;
}

// A lane's bits are the same alone, in a strip, and on any number of threads.
TEST_P(StripsTest, LanesAreIndependent) {
  const StripProgram program = silu_program();
  std::mt19937_64 random(9);
  const std::int64_t n = 9001;
  Tensor gate(DType::F32, {n});
  Tensor up(DType::BF16, {n});
  Tensor product_out(DType::F16, {n});
  Tensor silu(DType::F32, {n});
  gate.fill_normal(random, 4.0);
  up.fill_normal(random);
  const Launch launch{
      "fused_elementwise", {}, {gate.view(), up.view()}, {product_out.view(), silu.view()}, &program};
  run_fast(launch, Isa::Portable);
  const std::vector<std::byte> portable = product_out.storage();
  for (int threads = 1; threads <= 4; ++threads) {
    std::fill(product_out.storage().begin(), product_out.storage().end(), std::byte{0});
    run_fast(launch, GetParam(), threads);
    ASSERT_EQ(product_out.storage(), portable) << threads << " threads";
  }
  for (std::int64_t i = 0; i < n; i += 37) {
    const double z = gate.get(i);
    const double exact = z / (1.0 + std::exp(-z));
    // exp's error counts at most once in the quotient (1 ulp = 2^-23), the sum and the quotient are rounded.
    ASSERT_LE(std::abs(silu.get(i) - exact), std::abs(exact) * (2 + 1 + 1.01) * 0x1p-24) << z;
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{18}}) {
      if (i + length > n) continue;
      Tensor alone(DType::F16, {length});
      Tensor alone_silu(DType::F32, {length});
      Launch part = launch;
      part.inputs[0].shape[0] = length;
      part.inputs[0].data = gate.data<float>() + i;
      part.inputs[1].shape[0] = length;
      part.inputs[1].data = up.data<std::uint16_t>() + i;
      part.outputs = {alone.view(), alone_silu.view()};
      run_fast(part, GetParam());
      ASSERT_EQ(std::memcmp(alone_silu.data<float>(), silu.data<float>() + i, length * sizeof(float)), 0)
          << i;
      ASSERT_EQ(std::memcmp(alone.data<std::uint16_t>(), product_out.data<std::uint16_t>() + i, length * 2),
                0)
          << i;
    }
  }
}

// tanh over its whole range in steps of less than 2^-14 of the value; the header promises 2 ulp of the exact
// value.
TEST_P(StripsTest, TanhIsWithinTwoUlps) {
  const StripProgram program = program_of(StripOp::Tanh, 1, DType::F32, DType::F32);
  Tensor x(DType::F32, {1 << 17});
  Tensor out(DType::F32, {1 << 17});
  for (std::int64_t i = 0; i < 1 << 17; ++i) {
    const double magnitude = std::exp2(static_cast<double>(i / 2) * (30.0 / 65536.0) - 25.0);
    x.set(i, i % 2 == 0 ? magnitude : -magnitude);
  }
  run_fast({"fused_elementwise", {}, {x.view()}, {out.view()}, &program}, GetParam());
  for (std::int64_t i = 0; i < 1 << 17; ++i) {
    ASSERT_LE(ulps_between(out.get(i), std::tanh(x.get(i)), DType::F32), 2.0) << x.get(i);
    ASSERT_LE(std::abs(out.get(i)), 1.0);
  }
}

}  // namespace
}  // namespace hone::test
