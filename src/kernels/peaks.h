// What this machine can do at most, measured: the numbers that kernels are held against.
#pragma once

#include <cstdint>

#include "base/isa.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace hone {

struct Peaks {
  double read_bytes_per_s = 0;  // sequential reads of a working set of kReadBytes by all threads
  double fma_flops_per_s = 0;   // independent f32 multiply-adds in registers, two operations each
  double int8_ops_per_s = 0;    // u8 x i8 multiply-adds in registers, two operations each; on AVX2 VPMADDUBSW
                                // and VPADDW, on AVX-512 VPDPBUSD
};

inline constexpr std::int64_t kReadBytes = std::int64_t{1} << 30;

// The best of several trials on all threads of `pool`, with the instructions of `isa` (which the machine must
// have; Portable measures the read rate only).
Result<Peaks> measure_peaks(ThreadPool& pool, Isa isa);

}  // namespace hone
