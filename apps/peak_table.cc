#include "apps/peak_table.h"

#include <fmt/format.h>

#include "apps/units.h"

namespace hone {
namespace {

std::string share(double reached, double peak) {
  return reached > 0 && peak > 0 ? fmt::format("{:.1f} %", 100 * reached / peak) : "";
}

}  // namespace

std::string dot_peak_text(double flops_per_s) {
  return flops_per_s > 0 ? fmt::format("{:.0f} GFLOP/s", flops_per_s / 1e9) : "not on this level";
}

std::string amx_peak_text(double rate, std::string_view unit, AmxPermission permission) {
  if (rate > 0) return fmt::format("{:.0f} {}", rate / 1e9, unit);
  if (permission == AmxPermission::Absent) return "not on this machine";
  return permission == AmxPermission::Refused ? "refused" : "not on this level";
}

std::string peak_table(const Peaks& peaks, const Reached& reached) {
  const bool shares = reached.decode_bytes_per_s > 0 || reached.prefill_ops_per_s > 0;
  std::string out =
      fmt::format("{:<24}{:>20}{}\n", "peak of this machine", "measured", shares ? "   reached" : "");
  const auto row = [&](const std::string& name, const std::string& rate, const std::string& reached_share) {
    out += fmt::format("{:<24}{:>20}{}\n", name, rate,
                       reached_share.empty() ? "" : fmt::format("{:>10}", reached_share));
  };
  const auto read = [&](std::int64_t bytes, double rate) {
    row("read, " + human_bytes(bytes), fmt::format("{:.1f} GB/s", rate / 1e9),
        share(reached.decode_bytes_per_s, rate));
  };
  if (peaks.working_set_bytes < kReadBytes) read(peaks.working_set_bytes, peaks.read_working_set_bytes_per_s);
  read(kReadBytes, peaks.read_bytes_per_s);
  const auto arithmetic = [&](const char* name, double rate, const std::string& shown) {
    row(name, shown, share(reached.prefill_ops_per_s, rate));
  };
  arithmetic("f32 FMA", peaks.fma_flops_per_s, dot_peak_text(peaks.fma_flops_per_s));
  arithmetic("bf16 dot", peaks.bf16_flops_per_s, dot_peak_text(peaks.bf16_flops_per_s));
  arithmetic("int8 dot", peaks.int8_ops_per_s,
             peaks.int8_ops_per_s > 0 ? fmt::format("{:.0f} GOP/s", peaks.int8_ops_per_s / 1e9)
                                      : "not on this level");
  const AmxPermission amx = request_amx();
  arithmetic("AMX bf16", peaks.amx_bf16_flops_per_s,
             amx_peak_text(peaks.amx_bf16_flops_per_s, "GFLOP/s", amx));
  arithmetic("AMX int8", peaks.amx_int8_ops_per_s, amx_peak_text(peaks.amx_int8_ops_per_s, "GOP/s", amx));
  return out;
}

Json peak_or_null(double rate) {
  return rate > 0 ? Json(rate) : Json(nullptr);
}

Json measured_peaks_json(const Peaks& peaks) {
  return {{"read_bytes_per_s", peaks.read_bytes_per_s},
          {"read_working_set_bytes_per_s", peaks.read_working_set_bytes_per_s},
          {"working_set_bytes", peaks.working_set_bytes},
          {"fma_flops_per_s", peaks.fma_flops_per_s},
          {"bf16_flops_per_s", peak_or_null(peaks.bf16_flops_per_s)},
          {"int8_ops_per_s", peaks.int8_ops_per_s},
          {"amx_bf16_flops_per_s", peak_or_null(peaks.amx_bf16_flops_per_s)},
          {"amx_int8_ops_per_s", peak_or_null(peaks.amx_int8_ops_per_s)}};
}

}  // namespace hone
