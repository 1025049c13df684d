// The measured peaks as rows and as JSON, of machines that this one may not be.
#include "apps/peak_table.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(PeakTable, AnAmxPeakOrWhyThereIsNone) {
  EXPECT_EQ(amx_peak_text(4.6e12, "GFLOP/s", AmxPermission::Granted), "4600 GFLOP/s");
  EXPECT_EQ(amx_peak_text(0, "GOP/s", AmxPermission::Granted), "not on this level");
  EXPECT_EQ(amx_peak_text(0, "GOP/s", AmxPermission::Refused), "refused");
  EXPECT_EQ(amx_peak_text(0, "GOP/s", AmxPermission::Absent), "not on this machine");
}

TEST(PeakTable, EachAmxPeakHasARowWithTheShareReached) {
  Peaks peaks;
  peaks.amx_bf16_flops_per_s = 4.6e12;
  peaks.amx_int8_ops_per_s = 9.2e12;
  const std::string table = peak_table(peaks, Reached{0, 2.3e12});
  EXPECT_NE(table.find("AMX bf16                        4600 GFLOP/s    50.0 %\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("AMX int8                          9200 GOP/s    25.0 %\n"), std::string::npos)
      << table;
}

TEST(PeakTable, WhatAMachineHasNotIsNull) {
  Peaks peaks;
  peaks.amx_int8_ops_per_s = 9.2e12;
  const Json json = measured_peaks_json(peaks);
  EXPECT_TRUE(json.at("amx_bf16_flops_per_s").is_null());
  EXPECT_EQ(json.at("amx_int8_ops_per_s"), 9.2e12);
}

}  // namespace
}  // namespace hone
