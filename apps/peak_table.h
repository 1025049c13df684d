// This machine's measured peaks, as rows of a table and as JSON.
#pragma once

#include <string>

#include "apps/verb.h"
#include "kernels/peaks.h"

namespace hone {

// What a run reached; 0: not measured.
struct Reached {
  double decode_bytes_per_s = 0;
  double prefill_ops_per_s = 0;
};

// One row for each peak, with the share of it that decode (of reading) and prefill (of arithmetic) reached.
std::string peak_table(const Peaks& peaks, const Reached& reached);

// "855 GFLOP/s"; "not on this level" of 0.
std::string dot_peak_text(double flops_per_s);
// hone has no loop that measures AMX yet: a machine that has it is not said to lack it.
std::string amx_peak_text();

// {read_bytes_per_s, read_working_set_bytes_per_s, working_set_bytes, fma_flops_per_s, bf16_flops_per_s,
// int8_ops_per_s, amx_flops_per_s}; null where the machine, or the level, has none.
Json measured_peaks_json(const Peaks& peaks);

}  // namespace hone
