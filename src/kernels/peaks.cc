#include "kernels/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <memory>
#include <sys/mman.h>

#include "base/machine_facts.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kFmaRounds = 4'000'000;
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;
constexpr int kChains = 12;
constexpr std::int64_t kTileRounds = 200'000;
// Sums in tiles 0 .. 5; 6 and 7 are multiplied. A product of tiles takes 16 cycles, its sum is there after
// 52: four chains are enough. In virtual machines the rate was half for seconds at a time, with four to eight
// alike.
constexpr int kTileChains = 6;

// Keeps a vector from being optimised away. A macro: functions would need the attribute of every caller.
#define HONE_KEEP(value) asm volatile("" : : "x"(value))
// Hides a vector's value: chains that begin alike and go on alike would be computed once, and counted for
// all.
#define HONE_HIDE(value) asm volatile("" : "+x"(value))

void read_portable(const std::byte* data) {
  __m128i sum[4] = {};
  for (std::int64_t i = 0; i < kPieceBytes; i += 64) {
    for (std::int64_t j = 0; j < 4; ++j) {
      sum[j] = _mm_xor_si128(sum[j], _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i + j * 16)));
    }
  }
  for (const auto part : sum) HONE_KEEP(part);
}

[[gnu::target("avx2")]] void read_avx2(const std::byte* data) {
  __m256i sum[4] = {};
  for (std::int64_t i = 0; i < kPieceBytes; i += 128) {
    for (std::int64_t j = 0; j < 4; ++j) {
      sum[j] =
          _mm256_xor_si256(sum[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i + j * 32)));
    }
  }
  for (const auto part : sum) HONE_KEEP(part);
}

[[gnu::target("avx2,fma")]] void fma_avx2() {
  __m256 acc[kChains] = {};
#pragma GCC unroll 16
  for (__m256& chain : acc) HONE_HIDE(chain);
  __m256 a = _mm256_set1_ps(0.5F);
  HONE_HIDE(a);
  for (std::int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 16
    for (__m256& chain : acc) chain = _mm256_fmadd_ps(a, a, chain);
  }
#pragma GCC unroll 16
  for (const auto chain : acc) HONE_KEEP(chain);
}

[[gnu::target("avx512f")]] void fma_avx512() {
  __m512 acc[kChains] = {};
#pragma GCC unroll 16
  for (__m512& chain : acc) HONE_HIDE(chain);
  __m512 a = _mm512_set1_ps(0.5F);
  HONE_HIDE(a);
  for (std::int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 16
    for (__m512& chain : acc) chain = _mm512_fmadd_ps(a, a, chain);
  }
#pragma GCC unroll 16
  for (const auto chain : acc) HONE_KEEP(chain);
}

[[gnu::target("avx2")]] void int8_avx2() {
  __m256i acc[kChains] = {};
#pragma GCC unroll 16
  for (__m256i& chain : acc) HONE_HIDE(chain);
  __m256i a = _mm256_set1_epi8(1);
  HONE_HIDE(a);
  for (std::int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 16
    for (__m256i& chain : acc) {
      __m256i product;  // written as assembly: the compilers would see that all products are equal
      asm volatile("vpmaddubsw %1, %1, %0" : "=x"(product) : "x"(a));
      chain = _mm256_add_epi16(chain, product);
    }
  }
#pragma GCC unroll 16
  for (const auto chain : acc) HONE_KEEP(chain);
}

[[gnu::target("avx512f,avx512vnni")]] void int8_avx512() {
  __m512i acc[kChains] = {};
#pragma GCC unroll 16
  for (__m512i& chain : acc) HONE_HIDE(chain);
  __m512i a = _mm512_set1_epi8(1);
  HONE_HIDE(a);
  for (std::int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 16
    for (__m512i& chain : acc) chain = _mm512_dpbusd_epi32(chain, a, a);
  }
#pragma GCC unroll 16
  for (const auto chain : acc) HONE_KEEP(chain);
}

[[gnu::target("avx512f,avx512bf16")]] void bf16_avx512() {
  __m512 acc[kChains] = {};
#pragma GCC unroll 16
  for (__m512& chain : acc) HONE_HIDE(chain);
  __m512 a = _mm512_castsi512_ps(_mm512_set1_epi16(0x3f00));  // 0.5 in bf16
  HONE_HIDE(a);
  for (std::int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 16
    for (__m512& chain : acc) chain = _mm512_dpbf16_ps(chain, (__m512bh)a, (__m512bh)a);
  }
#pragma GCC unroll 16
  for (const auto chain : acc) HONE_KEEP(chain);
}

// What ldtilecfg reads: all eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileSetup {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileSetup) == 64);

// Assembly: GCC 12's tile intrinsics declare less memory than they read, and need the level's flags. No
// compiler uses tiles of its own accord, so none is lost between two statements. `data` fills the tiles that
// are multiplied.
void open_tiles(const std::byte (&data)[1024]) {
  const TileSetup setup;
  asm volatile("ldtilecfg %0" : : "m"(setup));
  asm volatile(
      "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n"
      "tilezero %%tmm3\n tilezero %%tmm4\n tilezero %%tmm5\n"
      "tileloadd (%0,%1,1), %%tmm6\n tileloadd (%0,%1,1), %%tmm7"
      :
      : "r"(&data), "r"(std::int64_t{64}), "m"(data));
}

// A thread that is switched out then has no tiles to save.
void close_tiles() {
  asm volatile("tilerelease");
}

[[gnu::noinline]] void bf16_amx() {
  alignas(64) std::byte halves[1024];
  for (std::size_t i = 0; i < sizeof halves; ++i) halves[i] = i % 2 == 0 ? std::byte{0} : std::byte{0x3f};
  open_tiles(halves);
  for (std::int64_t i = 0; i < kTileRounds; ++i) {
    asm volatile(
        "tdpbf16ps %tmm7, %tmm6, %tmm0\n tdpbf16ps %tmm7, %tmm6, %tmm1\n"
        "tdpbf16ps %tmm7, %tmm6, %tmm2\n tdpbf16ps %tmm7, %tmm6, %tmm3\n"
        "tdpbf16ps %tmm7, %tmm6, %tmm4\n tdpbf16ps %tmm7, %tmm6, %tmm5");
  }
  close_tiles();
}

[[gnu::noinline]] void int8_amx() {
  alignas(64) std::byte ones[1024];
  std::memset(ones, 1, sizeof ones);
  open_tiles(ones);
  for (std::int64_t i = 0; i < kTileRounds; ++i) {
    asm volatile(
        "tdpbssd %tmm7, %tmm6, %tmm0\n tdpbssd %tmm7, %tmm6, %tmm1\n"
        "tdpbssd %tmm7, %tmm6, %tmm2\n tdpbssd %tmm7, %tmm6, %tmm3\n"
        "tdpbssd %tmm7, %tmm6, %tmm4\n tdpbssd %tmm7, %tmm6, %tmm5");
  }
  close_tiles();
}

// Seconds of the fastest of `trials` launches of `tiles` tiles.
template <class Body>
double fastest(ThreadPool& pool, int trials, std::int64_t tiles, const Body& body) {
  double best = 1e30;
  for (int trial = 0; trial < trials; ++trial) {
    const auto start = Clock::now();
    pool.run(
        tiles,
        [](void* context, std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t tile = begin; tile < end; ++tile) (*static_cast<const Body*>(context))(tile);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// Bytes per second of a launch over `bytes` at `data`; a small set is walked more often, so that it takes
// milliseconds.
double read_rate(ThreadPool& pool, Isa isa, const std::byte* data, std::int64_t bytes) {
  constexpr std::int64_t kLaunchBytes = std::int64_t{256} << 20;
  const auto read = isa == Isa::Portable ? read_portable : read_avx2;
  const std::int64_t pieces = bytes / kPieceBytes;
  const std::int64_t passes = std::max<std::int64_t>(1, kLaunchBytes / bytes);
  const double seconds =
      fastest(pool, 1, pieces * passes, [&](std::int64_t tile) { read(data + tile % pieces * kPieceBytes); });
  return static_cast<double>(pieces * passes * kPieceBytes) / seconds;
}

}  // namespace

Result<Peaks> measure_peaks(ThreadPool& pool, Isa isa, std::int64_t working_set) {
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(std::size_t{1} << 21, kReadBytes),
                                                      std::free);
  if (memory == nullptr) {
    return Error{ErrorCode::DoesNotFit, Fault::User, "peaks",           "no memory for the read measurement",
                 "1 GiB free",          {},          "free some memory"};
  }
  auto* data = static_cast<std::byte*>(memory.get());
  // In huge pages, as the weights lie (exec/arena.cc).
  madvise(data, kReadBytes, MADV_HUGEPAGE);
  std::memset(data, 1, kReadBytes);
  Peaks peaks;
  const bool smaller = working_set > 0 && working_set < kReadBytes;
  if (smaller) peaks.working_set_bytes = std::max(kPieceBytes, working_set / kPieceBytes * kPieceBytes);
  for (int trial = 0; trial < 5; ++trial) {  // in turn, for what others take of the memory's rate changes
    peaks.read_bytes_per_s = std::max(peaks.read_bytes_per_s, read_rate(pool, isa, data, kReadBytes));
    if (!smaller) continue;
    peaks.read_working_set_bytes_per_s =
        std::max(peaks.read_working_set_bytes_per_s, read_rate(pool, isa, data, peaks.working_set_bytes));
  }
  if (!smaller) peaks.read_working_set_bytes_per_s = peaks.read_bytes_per_s;
  if (isa == Isa::Portable) return peaks;
  const bool wide = isa >= Isa::Avx512;
  const auto best_rate = [&](void (*loop)(), double operations) {
    return operations * pool.threads() / fastest(pool, 5, pool.threads(), [&](std::int64_t) { loop(); });
  };
  const auto rate = [&](void (*loop)(), double operations) {
    return best_rate(loop, operations * static_cast<double>(kFmaRounds) * kChains);
  };
  peaks.fma_flops_per_s = wide ? rate(fma_avx512, 32) : rate(fma_avx2, 16);
  peaks.bf16_flops_per_s = wide ? rate(bf16_avx512, 64) : 0;
  peaks.int8_ops_per_s = wide ? rate(int8_avx512, 128) : rate(int8_avx2, 64);
  if (!wide || !has_int8_and_bf16_tiles() || request_amx() != AmxPermission::Granted) return peaks;
  const double products = static_cast<double>(kTileRounds) * kTileChains * 16 * 16;  // outputs of one each
  peaks.amx_bf16_flops_per_s = best_rate(bf16_amx, products * 32 * 2);
  peaks.amx_int8_ops_per_s = best_rate(int8_amx, products * 64 * 2);
  return peaks;
}

}  // namespace hone
