// What this machine can do at most, measured: the numbers that kernels are held against.
#pragma once

#include <cstdint>

#include "base/isa.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace hone {

// Far beyond all caches.
inline constexpr std::int64_t kReadBytes = std::int64_t{1} << 30;

// 0: this level has no such instruction.
struct Peaks {
  double read_bytes_per_s = 0;  // sequential reads of kReadBytes by all threads
  // The same of working_set_bytes, which may lie in a cache in part; with a working set of kReadBytes or
  // more, or none, equal to it.
  double read_working_set_bytes_per_s = 0;
  std::int64_t working_set_bytes = kReadBytes;
  double fma_flops_per_s = 0;   // independent f32 multiply-adds in registers, two operations each
  double bf16_flops_per_s = 0;  // bf16 pairs added to f32 (VDPBF16PS), two operations for each product
  double int8_ops_per_s = 0;    // u8 x i8 multiply-adds in registers, two operations each; on AVX2 VPMADDUBSW
                                // and VPADDW, on AVX-512 VPDPBUSD
  // AMX, from Avx512 up, where the processor has it and the kernel grants tile data; two operations each.
  double amx_bf16_flops_per_s = 0;  // TDPBF16PS: products of 16x32 and 32x16 bf16, added to f32
  double amx_int8_ops_per_s = 0;    // TDPBSSD: products of 16x64 and 64x16 i8, added to i32
};

// The best of several trials on all threads of `pool`, with the instructions of `isa` (which the machine must
// have; Portable measures the read rates only). `working_set` is what a step of a model reads, in bytes; 0:
// none.
Result<Peaks> measure_peaks(ThreadPool& pool, Isa isa, std::int64_t working_set = 0);

}  // namespace hone
