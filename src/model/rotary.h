// Rotary position embedding (Su et al. 2021): the frequencies of the pairs of a head, i < R/2.
//
//   plain     f_i = theta^(-2i/R)
//   linear    f_i / factor                                              (Chen et al. 2023, arXiv 2306.15595)
//   dynamic   theta * (factor n/m - (factor - 1))^(R/(R-2)) for theta, once the sequence's length n exceeds
//             the trained length m
//   llama3    wavelengths l = 2 pi / f_i: l > m / low: f_i / factor; l < m / high: f_i; between, the blend
//             (1 - s) f_i / factor + s f_i with s = (m/l - low) / (high - low)      (arXiv 2407.21783)
//   yarn      r f_i / factor + (1 - r) f_i, r rising from 0 to 1 over the pairs between those that turn
//             beta_fast and beta_slow times within m tokens            (Peng et al. 2023, arXiv 2309.00071)
//   longrope  f_i / short_i, and f_i / long_i for n > m                (Ding et al. 2024, arXiv 2402.13753)
//
// Everything in f64: in f32 the angle alone would be off by position * 2^-24, 1e-4 at position 2000.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "model/config.h"

namespace hone {

// f64 [R/2] of the kinds that do not depend on the length (the others: as Plain).
std::vector<double> rope_frequencies(const RopeConfig& rope);

struct RotaryTable {
  ValueId cos = -1;  // f32 [B,T,R/2]
  ValueId sin = -1;
};

// What multiplies or divides the frequencies and stands in the checkpoint, as f64 [R/2] values; -1: nothing.
struct RopeTensors {
  ValueId freqs = -1;  // Llama 3's scaling in GGUF: each frequency is divided by it
  ValueId short_factors = -1;
  ValueId long_factors = -1;
};

// cos and sin of position * frequency. `positions` i32 [B,T]; `lengths` i32 [B], read only where the table
// depends on it.
RotaryTable rotary_table(GraphBuilder& build, const RopeConfig& rope, const RopeTensors& tensors,
                         ValueId positions, ValueId lengths);

// x [B,T,..,E] with the first R of its last axis turned.
ValueId rotate(GraphBuilder& build, const RopeConfig& rope, const RotaryTable& table, ValueId x);

}  // namespace hone
