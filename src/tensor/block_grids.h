// The codebooks of the iq formats (ggml-common.h, there as bytes). One word an entry: its values are fields
// from the lowest bits up.
//   2 bits: eight magnitudes, 0, 1, 2 = 8, 25, 43 (iq2), or -1, 0, 1 (iq1)
//   3 bits: four magnitudes, i = 4 + 8i but 62 for 7 (iq3_xxs), or 1 + 2i (iq3_s)
#pragma once

#include <cstdint>

namespace hone {

extern const std::uint16_t kGridIq2Xxs[256];
extern const std::uint16_t kGridIq2Xs[512];
extern const std::uint16_t kGridIq2S[1024];
extern const std::uint16_t kGridIq3Xxs[256];
extern const std::uint16_t kGridIq3S[512];
extern const std::uint16_t kGridIq1S[2048];  // of iq1_m too

}  // namespace hone
