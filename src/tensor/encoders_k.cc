// Encoders that search: q4_k, q5_k, q6_k and iq4_nl. A block is chosen to have the least sum of squared
// errors. Without knowledge of the activations that is the choice with the least expected error of x W^T:
// E |x (W - W')|^2 = E x^2 * |W - W'|^2 for x of independent entries.
//
// Each sub-block starts from several roundings of its range; for each, scale (and minimum) are the least
// squares solution for the quants, and the quants those nearest for that scale, in turns. Then the scales
// are rounded to multiples of the super-block's, its two numbers are fitted again over all 256 values, and
// every sub-block tries the neighbours of its integers. Whatever is kept has a smaller error than before.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tensor/block_coders.h"

namespace hone {
namespace {

constexpr std::int64_t kValues = 256;
constexpr std::int64_t kGroup = 32;
constexpr std::int64_t kGroups = 8;
constexpr std::int64_t kStarts = 9;  // roundings of the range that a search begins with
constexpr std::int64_t kMiddleStart = kStarts / 2;
constexpr int kTurns = 3;

// The nearest integer in [low, high]; NaN gives low.
int nearest_quant(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<int>(std::nearbyint(value));
}

float finite_or_zero(float value) {
  return std::isfinite(value) ? value : 0.0f;
}

// value = scale * quant - minimum, quant in [0, largest], scale and minimum not negative.
struct Affine {
  float scale = 0;
  float minimum = 0;
};

// Sum of squared errors of the nearest quants, which go to `quants`.
float quantise_affine(const float* x, std::int64_t count, Affine fit, int largest, int* quants) {
  const float inverse = fit.scale > 0 ? 1.0f / fit.scale : 0.0f;
  float error = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    quants[i] = nearest_quant((x[i] + fit.minimum) * inverse, 0, largest);
    const float difference = fit.scale * static_cast<float>(quants[i]) - fit.minimum - x[i];
    error += difference * difference;
  }
  return error;
}

// Least squares for given quants; a minimum below 0 is not storable and becomes 0.
Affine fit_affine(const float* x, std::int64_t count, const int* quants) {
  double q = 0;
  double qq = 0;
  double sum = 0;
  double qx = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double quant = quants[i];
    q += quant;
    qq += quant * quant;
    sum += static_cast<double>(x[i]);
    qx += quant * static_cast<double>(x[i]);
  }
  const double determinant = static_cast<double>(count) * qq - q * q;
  Affine fit;
  if (determinant > 0) {
    const double scale = (static_cast<double>(count) * qx - q * sum) / determinant;
    fit = {static_cast<float>(scale), static_cast<float>((scale * q - sum) / static_cast<double>(count))};
  }
  if (fit.minimum < 0 || determinant <= 0) fit = {qq > 0 ? static_cast<float>(qx / qq) : 0.0f, 0};
  if (!(fit.scale > 0)) fit.scale = 0;
  return fit;
}

Affine search_affine(const float* x, std::int64_t count, int largest) {
  const auto [low, high] = std::minmax_element(x, x + count);
  const float minimum = std::min(*low, 0.0f);
  const float range = *high - minimum;
  Affine best{0, -minimum};
  std::array<int, kGroup> quants{};
  float best_error = quantise_affine(x, count, best, largest, quants.data());
  for (std::int64_t start = 0; start < kStarts; ++start) {
    const float steps = static_cast<float>(largest) + 0.25f * static_cast<float>(start - kMiddleStart);
    Affine fit{range / steps, -minimum};
    for (std::int64_t turn = 0; turn < kTurns; ++turn) {
      const float error = quantise_affine(x, count, fit, largest, quants.data());
      if (error < best_error) {
        best_error = error;
        best = fit;
      }
      fit = fit_affine(x, count, quants.data());
    }
  }
  return best;
}

// A super-block of q4_k or q5_k: d and dmin, and the integers that they multiply.
struct AffineBlock {
  float d = 0;
  float d_minimum = 0;
  std::array<int, kGroups> scales{};
  std::array<int, kGroups> minima{};
  std::array<int, kValues> quants{};
  float error = std::numeric_limits<float>::infinity();
};

constexpr int kLargestPart = 63;  // six bits of a scale or minimum

float rounded_f16(float value) {
  return f16_to_f32(f32_to_f16(value));
}

Affine part_of(const AffineBlock& block, std::int64_t group) {
  const auto g = static_cast<std::size_t>(group);
  return {block.d * static_cast<float>(block.scales[g]),
          block.d_minimum * static_cast<float>(block.minima[g])};
}

// The integers of every group: the nearest ones and their neighbours, by error.
void choose_parts(const float* x, const std::array<Affine, kGroups>& wanted, int largest,
                  AffineBlock& block) {
  block.error = 0;
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const auto g = static_cast<std::size_t>(group);
    const float* values = x + group * kGroup;
    const int scale = block.d > 0 ? nearest_quant(wanted[g].scale / block.d, 0, kLargestPart) : 0;
    const int minimum =
        block.d_minimum > 0 ? nearest_quant(wanted[g].minimum / block.d_minimum, 0, kLargestPart) : 0;
    float least = std::numeric_limits<float>::infinity();
    std::array<int, kGroup> quants{};
    for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, kLargestPart); ++s) {
      for (int m = std::max(minimum - 1, 0); m <= std::min(minimum + 1, kLargestPart); ++m) {
        const Affine fit{block.d * static_cast<float>(s), block.d_minimum * static_cast<float>(m)};
        const float error = quantise_affine(values, kGroup, fit, largest, quants.data());
        if (!(error < least)) continue;
        least = error;
        block.scales[g] = s;
        block.minima[g] = m;
      }
    }
    block.error +=
        quantise_affine(values, kGroup, part_of(block, group), largest, block.quants.data() + group * kGroup);
  }
}

// Least squares for d and dmin over the whole block, its integers given.
void fit_super(const float* x, AffineBlock& block) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double ax = 0;
  double bx = 0;
  for (std::int64_t i = 0; i < kValues; ++i) {
    const auto g = static_cast<std::size_t>(i / kGroup);
    const double a = block.scales[g] * block.quants[static_cast<std::size_t>(i)];
    const double b = -block.minima[g];
    const auto value = static_cast<double>(x[i]);
    aa += a * a;
    ab += a * b;
    bb += b * b;
    ax += a * value;
    bx += b * value;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 1e-9 * aa * bb) {
    block.d = rounded_f16(static_cast<float>((ax * bb - bx * ab) / determinant));
    block.d_minimum = rounded_f16(static_cast<float>((bx * aa - ax * ab) / determinant));
  } else if (aa > 0) {
    block.d = rounded_f16(static_cast<float>(ax / aa));
  }
  if (!(block.d > 0)) block.d = 0;
  if (!(block.d_minimum > 0)) block.d_minimum = 0;
}

AffineBlock search_block(const float* x, int largest) {
  std::array<Affine, kGroups> wanted{};
  float scale = 0;
  float minimum = 0;
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const auto g = static_cast<std::size_t>(group);
    wanted[g] = search_affine(x + group * kGroup, kGroup, largest);
    scale = std::max(scale, wanted[g].scale);
    minimum = std::max(minimum, wanted[g].minimum);
  }
  AffineBlock block;
  block.d = rounded_f16(scale / kLargestPart);
  block.d_minimum = rounded_f16(minimum / kLargestPart);
  choose_parts(x, wanted, largest, block);
  AffineBlock best = block;
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
    fit_super(x, block);
    choose_parts(x, wanted, largest, block);
    if (block.error < best.error) best = block;
  }
  return best;
}

// d, dmin and the twelve bytes of six-bit scales and minima; see blocks_k.cc for the layout.
void store_affine_head(const AffineBlock& block, std::uint8_t* out) {
  store_f16(block.d, out);
  store_f16(block.d_minimum, out + 2);
  std::uint8_t* scales = out + 4;
  for (std::size_t g = 0; g < 4; ++g) {
    const int high_scale = block.scales[g + 4];
    const int high_minimum = block.minima[g + 4];
    scales[g] = static_cast<std::uint8_t>(block.scales[g] | (high_scale >> 4) << 6);
    scales[4 + g] = static_cast<std::uint8_t>(block.minima[g] | (high_minimum >> 4) << 6);
    scales[8 + g] = static_cast<std::uint8_t>((high_scale & 15) | (high_minimum & 15) << 4);
  }
}

void store_group_nibbles(const std::array<int, kValues>& quants, std::uint8_t* out) {
  for (std::int64_t i = 0; i < kValues / 2; ++i) {
    const auto low = static_cast<std::size_t>(i / kGroup * 2 * kGroup + i % kGroup);
    out[i] = static_cast<std::uint8_t>((quants[low] & 15) | (quants[low + kGroup] & 15) << 4);
  }
}

void encode_q4_k(const float* values, std::uint8_t* out) {
  const AffineBlock block = search_block(values, 15);
  store_affine_head(block, out);
  store_group_nibbles(block.quants, out + 16);
}

void encode_q5_k(const float* values, std::uint8_t* out) {
  const AffineBlock block = search_block(values, 31);
  store_affine_head(block, out);
  std::fill(out + 16, out + 48, std::uint8_t{0});
  for (std::int64_t i = 0; i < kValues; ++i) {
    const int bit = block.quants[static_cast<std::size_t>(i)] >> 4;
    out[16 + i % kGroup] = static_cast<std::uint8_t>(out[16 + i % kGroup] | bit << (i / kGroup));
  }
  store_group_nibbles(block.quants, out + 48);
}

constexpr std::int64_t kPart = 16;  // values under one scale of q6_k
constexpr std::int64_t kParts = kValues / kPart;

// value = scale * quant, quant in [-32, 31].
float quantise_q6(const float* x, float scale, int* quants) {
  const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
  float error = 0;
  for (std::int64_t i = 0; i < kPart; ++i) {
    quants[i] = nearest_quant(x[i] * inverse, -32, 31);
    const float difference = scale * static_cast<float>(quants[i]) - x[i];
    error += difference * difference;
  }
  return error;
}

float search_q6(const float* x) {
  float largest = 0;
  for (std::int64_t i = 0; i < kPart; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  float best = 0;
  std::array<int, kPart> quants{};
  float best_error = quantise_q6(x, 0, quants.data());
  for (std::int64_t start = 0; start < 2 * kStarts; ++start) {
    // Either end of the range may meet the value of largest magnitude.
    const float steps = start < kStarts ? -32.0f - 0.25f * static_cast<float>(start - kMiddleStart)
                                        : 31.0f + 0.25f * static_cast<float>(start - kStarts - kMiddleStart);
    float scale = largest / steps;
    for (std::int64_t turn = 0; turn < 2; ++turn) {
      const float error = quantise_q6(x, scale, quants.data());
      if (error < best_error) {
        best_error = error;
        best = scale;
      }
      double qx = 0;
      double qq = 0;
      for (std::int64_t i = 0; i < kPart; ++i) {
        const double quant = quants[static_cast<std::size_t>(i)];
        qx += quant * static_cast<double>(x[i]);
        qq += quant * quant;
      }
      scale = qq > 0 ? static_cast<float>(qx / qq) : 0.0f;
    }
  }
  return best;
}

struct Q6Block {
  float d = 0;
  std::array<int, kParts> scales{};
  std::array<int, kValues> quants{};
  float error = 0;
};

void choose_q6_parts(const float* x, const std::array<float, kParts>& wanted, Q6Block& block) {
  block.error = 0;
  for (std::int64_t part = 0; part < kParts; ++part) {
    const auto p = static_cast<std::size_t>(part);
    const int scale = block.d != 0 ? nearest_quant(wanted[p] / block.d, -128, 127) : 0;
    float least = std::numeric_limits<float>::infinity();
    for (int s = std::max(scale - 1, -128); s <= std::min(scale + 1, 127); ++s) {
      std::array<int, kPart> quants{};
      const float error = quantise_q6(x + part * kPart, block.d * static_cast<float>(s), quants.data());
      if (!(error < least)) continue;
      least = error;
      block.scales[p] = s;
      std::copy(quants.begin(), quants.end(), block.quants.begin() + part * kPart);
    }
    block.error += std::isfinite(least) ? least : 0.0f;
  }
}

void encode_q6_k(const float* values, std::uint8_t* out) {
  std::array<float, kParts> wanted{};
  float largest = 0;
  for (std::int64_t part = 0; part < kParts; ++part) {
    const float scale = search_q6(values + part * kPart);
    wanted[static_cast<std::size_t>(part)] = scale;
    if (std::fabs(scale) > std::fabs(largest)) largest = scale;
  }
  Q6Block best;
  best.d = rounded_f16(largest / -128.0f);
  choose_q6_parts(values, wanted, best);
  Q6Block block = best;
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
    double qx = 0;
    double qq = 0;
    for (std::size_t i = 0; i < kValues; ++i) {
      const double whole = block.scales[i / kPart] * block.quants[i];
      qx += whole * static_cast<double>(values[i]);
      qq += whole * whole;
    }
    block.d = qq > 0 ? rounded_f16(static_cast<float>(qx / qq)) : 0.0f;
    choose_q6_parts(values, wanted, block);
    if (block.error < best.error) best = block;
  }
  std::fill(out, out + 192, std::uint8_t{0});
  for (std::int64_t i = 0; i < kValues; ++i) {
    const int quant = best.quants[static_cast<std::size_t>(i)] + 32;
    const std::int64_t half = i / 128;
    const std::int64_t group = i / kGroup % 4;
    std::uint8_t& low = out[half * 64 + group % 2 * kGroup + i % kGroup];
    std::uint8_t& high = out[128 + half * kGroup + i % kGroup];
    low = static_cast<std::uint8_t>(low | (quant & 15) << (group / 2 * 4));
    high = static_cast<std::uint8_t>(high | (quant >> 4) << (group * 2));
  }
  for (std::size_t p = 0; p < kParts; ++p) {
    out[192 + p] = static_cast<std::uint8_t>(static_cast<std::int8_t>(best.scales[p]));
  }
  store_f16(best.d, out + 208);
}

// The index of the nearest of iq4_nl's sixteen values, which rise.
int nearest_iq4(float value) {
  const std::int8_t* above = std::lower_bound(
      kIq4Values, kIq4Values + 16, value, [](std::int8_t a, float b) { return static_cast<float>(a) < b; });
  const auto index = static_cast<int>(above - kIq4Values);
  if (index == 0) return 0;
  if (index == 16) return 15;
  const float down = value - static_cast<float>(kIq4Values[index - 1]);
  const float up = static_cast<float>(kIq4Values[index]) - value;
  return down <= up ? index - 1 : index;
}

float quantise_iq4(const float* x, float scale, int* quants) {
  const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
  float error = 0;
  for (std::int64_t i = 0; i < kGroup; ++i) {
    quants[i] = nearest_iq4(finite_or_zero(x[i] * inverse));
    const float difference = scale * static_cast<float>(kIq4Values[quants[i]]) - x[i];
    error += difference * difference;
  }
  return error;
}

void encode_iq4_nl(const float* values, std::uint8_t* out) {
  float largest = 0;
  for (std::int64_t i = 0; i < kGroup; ++i) {
    if (std::fabs(values[i]) > std::fabs(largest)) largest = values[i];
  }
  float best = 0;
  std::array<int, kGroup> quants{};
  float best_error = quantise_iq4(values, 0, quants.data());
  for (std::int64_t start = 0; start < 2 * kStarts; ++start) {
    const float steps = start < kStarts ? -127.0f - 3.0f * static_cast<float>(start - kMiddleStart)
                                        : 113.0f + 3.0f * static_cast<float>(start - kStarts - kMiddleStart);
    float scale = largest / steps;
    for (std::int64_t turn = 0; turn < kTurns; ++turn) {
      scale = rounded_f16(scale);
      const float error = quantise_iq4(values, scale, quants.data());
      if (error < best_error) {
        best_error = error;
        best = scale;
      }
      double qx = 0;
      double qq = 0;
      for (std::int64_t i = 0; i < kGroup; ++i) {
        const double quant = kIq4Values[quants[static_cast<std::size_t>(i)]];
        qx += quant * static_cast<double>(values[i]);
        qq += quant * quant;
      }
      scale = static_cast<float>(qx / qq);  // no value of the table is 0
    }
  }
  quantise_iq4(values, best, quants.data());
  store_f16(best, out);
  for (std::size_t i = 0; i < kGroup / 2; ++i) {
    out[2 + i] = static_cast<std::uint8_t>(quants[i] | quants[i + kGroup / 2] << 4);
  }
}

}  // namespace

BlockEncoder search_block_encoder(DType dtype) {
  switch (dtype) {
    case DType::Q4_K:
      return encode_q4_k;
    case DType::Q5_K:
      return encode_q5_k;
    case DType::Q6_K:
      return encode_q6_k;
    case DType::IQ4_NL:
      return encode_iq4_nl;
    default:
      return nullptr;
  }
}

}  // namespace hone
