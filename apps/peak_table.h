// This machine's measured peaks, as rows of a table and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "apps/verb.h"
#include "base/machine_facts.h"
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
// "4600 GFLOP/s"; of 0 the reason: "not on this machine", "refused" by the kernel, or "not on this level".
std::string amx_peak_text(double rate, std::string_view unit, AmxPermission permission);

// {read_bytes_per_s, read_working_set_bytes_per_s, working_set_bytes, fma_flops_per_s, bf16_flops_per_s,
// int8_ops_per_s, amx_bf16_flops_per_s, amx_int8_ops_per_s}; null where the machine, or the level, has none.
Json peak_or_null(double rate);
Json measured_peaks_json(const Peaks& peaks);

}  // namespace hone
