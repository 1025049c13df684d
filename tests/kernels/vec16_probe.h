// Every function of Vec16 on memory, compiled once per ISA level, so that a test can compare the levels.
#pragma once

#include <cstdint>

namespace hone::kernels {

struct Vec16Probe {
  alignas(64) float results[16][16];
  alignas(64) std::int32_t integers[8][16];
  alignas(64) std::uint16_t halves[4][16];
  float sum, max_lane;
  std::uint32_t masks[4];
};

using RunVec16Probe = void (*)(const float* a, const float* b, const float* c, const std::uint16_t* halves,
                               int count, Vec16Probe* out);

namespace portable {
void run_vec16_probe(const float* a, const float* b, const float* c, const std::uint16_t* halves, int count,
                     Vec16Probe* out);
}
namespace avx2 {
void run_vec16_probe(const float* a, const float* b, const float* c, const std::uint16_t* halves, int count,
                     Vec16Probe* out);
}
namespace avx512 {
void run_vec16_probe(const float* a, const float* b, const float* c, const std::uint16_t* halves, int count,
                     Vec16Probe* out);
}

}  // namespace hone::kernels
