// Vec16: every function gives the bits of the portable level; the portable fma and the half conversions are
// right; the error of exp is what math16.h says.
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "tensor/block_formats.h"
#include "vec16_probe.h"
#include "vector_test_support.h"

namespace hone::test {
namespace {

using kernels::RunVec16Probe;
using kernels::Vec16Probe;

RunVec16Probe probe_of(Isa isa) {
  if (isa == Isa::Avx512) return kernels::avx512::run_vec16_probe;
  return isa == Isa::Avx2 ? kernels::avx2::run_vec16_probe : kernels::portable::run_vec16_probe;
}

struct Lanes {
  float a[16], b[16], c[16];
  std::uint16_t halves[16];
  int count = 16;
};

// Three kinds of lanes in turn: any bits at all; a product near the addend, often with few bits, so that ties
// happen; products around the smallest subnormal.
Lanes random_lanes(std::mt19937_64& random, int kind) {
  const auto bits = [&] { return static_cast<std::uint32_t>(random()); };
  const auto with_exponent = [](std::uint32_t value, std::uint32_t exponent) {
    return (value & 0x807fffffU) | exponent << 23;
  };
  Lanes lanes;
  lanes.count = static_cast<int>(random() % 17);
  for (int i = 0; i < 16; ++i) {
    std::uint32_t a = bits();
    std::uint32_t b = bits();
    std::uint32_t c = bits();
    if (kind % 3 == 1) {
      const std::uint32_t of_a = 100 + bits() % 56;
      const std::uint32_t of_b = 100 + bits() % 56;
      a = with_exponent(a, of_a);
      b = with_exponent(b, of_b);
      c = with_exponent(c, of_a + of_b - 127 + bits() % 60 - 30);
      if (bits() % 2 == 0) {
        a &= ~0xfffU;
        b &= ~0xffU;
      }
    } else if (kind % 3 == 2) {
      a = with_exponent(a, 60 + bits() % 10);
      b = with_exponent(b, 50 + bits() % 12);
      c &= 0x80ffffffU;
    }
    lanes.a[i] = std::bit_cast<float>(a);
    lanes.b[i] = std::bit_cast<float>(b);
    lanes.c[i] = std::bit_cast<float>(c);
    lanes.halves[i] = static_cast<std::uint16_t>(bits());
  }
  return lanes;
}

// NaN payloads and signs are not part of the law.
bool same_float(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}
bool same_half(std::uint16_t x, std::uint16_t y, int infinity) {
  return x == y || ((x & 0x7fff) > infinity && (y & 0x7fff) > infinity);
}

class Vec16Levels : public PerLevel {};

TEST_P(Vec16Levels, EveryFunctionHasTheBitsOfThePortableLevel) {
  std::mt19937_64 random(17);
  for (int trial = 0; trial < 60000; ++trial) {
    const Lanes in = random_lanes(random, trial);
    Vec16Probe expected;
    Vec16Probe actual;
    std::memset(&expected, 0x55, sizeof(expected));
    std::memset(&actual, 0x55, sizeof(actual));
    kernels::portable::run_vec16_probe(in.a, in.b, in.c, in.halves, in.count, &expected);
    probe_of(GetParam())(in.a, in.b, in.c, in.halves, in.count, &actual);
    for (int f = 0; f < 16; ++f) {
      for (int i = 0; i < 16; ++i) {
        ASSERT_TRUE(same_float(expected.results[f][i], actual.results[f][i]))
            << "result " << f << " of " << in.a[i] << ", " << in.b[i] << ", " << in.c[i] << ": "
            << expected.results[f][i] << " and " << actual.results[f][i];
      }
    }
    ASSERT_EQ(std::memcmp(expected.integers, actual.integers, sizeof(expected.integers)), 0);
    ASSERT_EQ(std::memcmp(expected.masks, actual.masks, sizeof(expected.masks)), 0);
    for (int i = 0; i < 64; ++i) {
      const int infinity = i / 16 % 2 == 0 ? 0x7c00 : 0x7f80;
      ASSERT_TRUE(same_half(expected.halves[i / 16][i % 16], actual.halves[i / 16][i % 16], infinity))
          << in.a[i % 16] << " " << in.b[i % 16];
    }
    bool any_nan = false;
    for (const float value : in.a) any_nan = any_nan || std::isnan(value);
    if (any_nan) continue;
    ASSERT_TRUE(same_float(expected.sum, actual.sum));
    ASSERT_TRUE(same_float(expected.max_lane, actual.max_lane));
  }
}

TEST_P(Vec16Levels, FmaRoundsOnceAndHalvesConvertAsTheSoftwareDoes) {
  std::mt19937_64 random(29);
  for (int trial = 0; trial < 30000; ++trial) {
    const Lanes in = random_lanes(random, trial);
    Vec16Probe out;
    probe_of(GetParam())(in.a, in.b, in.c, in.halves, in.count, &out);
    for (int i = 0; i < 16; ++i) {
      ASSERT_TRUE(same_float(out.results[4][i], std::fma(in.a[i], in.b[i], in.c[i])))
          << in.a[i] << " * " << in.b[i] << " + " << in.c[i];
      ASSERT_TRUE(same_float(out.results[8][i], f16_to_f32(in.halves[i])));
      ASSERT_TRUE(same_float(out.results[9][i], bf16_to_f32(in.halves[i])));
      ASSERT_TRUE(same_half(out.halves[0][i], f32_to_f16(in.a[i]), 0x7c00)) << in.a[i];
      ASSERT_TRUE(same_half(out.halves[1][i], f32_to_bf16(in.b[i]), 0x7f80)) << in.b[i];
    }
  }
}

// The distance in units of the last place of the f32 nearest to the true value.
double error_in_ulp(float actual, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(actual) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST_P(Vec16Levels, ExpIsWithinTheStatedError) {
  double worst = 0;
  Lanes in;
  for (std::int64_t step = 0; step < 200000; ++step) {
    for (int i = 0; i < 16; ++i) {
      in.a[i] = in.b[i] = 1;
      in.halves[i] = 0;
      in.c[i] = static_cast<float>(-104.5 + 193.2 * static_cast<double>(step * 16 + i) / 3.2e6);
    }
    Vec16Probe out;
    probe_of(GetParam())(in.a, in.b, in.c, in.halves, 16, &out);
    for (int i = 0; i < 16; ++i) {
      worst = std::max(worst, error_in_ulp(out.results[10][i], std::exp(static_cast<double>(in.c[i]))));
    }
  }
  EXPECT_LE(worst, 1.05);
  EXPECT_GT(worst, 0.5) << "no f32 function is that good: the measurement is wrong";
  const float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {infinity, -infinity, NAN, 0.0F, 88.8F, 1e30F, -1e30F, -0.0F};
  for (int i = 0; i < 8; ++i) in.c[i] = special[i];
  Vec16Probe out;
  probe_of(GetParam())(in.a, in.b, in.c, in.halves, 16, &out);
  const float expected[] = {infinity, 0, NAN, 1, infinity, infinity, 0, 1};
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(same_float(out.results[10][i], expected[i])) << special[i];
}

// One lane holds 2^24 and the others 1: the tree of vec16.h adds 1 to 2^24 once (lost: a tie to even), pairs
// elsewhere.
TEST_P(Vec16Levels, SumHasTheStatedTree) {
  Lanes in;
  for (int i = 0; i < 16; ++i) {
    in.a[i] = in.b[i] = in.c[i] = 1;
    in.halves[i] = 0;
  }
  in.a[0] = 0x1p24F;
  Vec16Probe out;
  probe_of(GetParam())(in.a, in.b, in.c, in.halves, 16, &out);
  // 2^24 + l8 = 2^24 (tie); + (l4 + l12) = 2^24 + 2; + 4 of lanes 2, 6, 10, 14; + 8 of the odd lanes.
  EXPECT_EQ(out.sum, 0x1p24F + 14.0F);
  in.a[0] = 1;
  in.a[12] = 0x1p24F;  // l4 + l12 = 2^24 (tie); (l0 + l8) + that = 2^24 + 2; and so on
  probe_of(GetParam())(in.a, in.b, in.c, in.halves, 16, &out);
  EXPECT_EQ(out.sum, 0x1p24F + 14.0F);
}

INSTANTIATE_TEST_SUITE_P(Levels, Vec16Levels, testing::ValuesIn(kVectorLevels), level_name);

}  // namespace
}  // namespace hone::test
