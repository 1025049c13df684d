// The matmul family against the machine's peaks. One-row cases walk over matrices of 256 MiB in all, far
// beyond the caches, and report their share of the read rate; many-row cases report their share of the
// arithmetic peak.
//   matmul_bench [--benchmark_filter=q8_0] ...
#include <array>
#include <benchmark/benchmark.h>
#include <deque>
#include <fmt/format.h>
#include <string>

#include "kernel_case.h"
#include "kernels/peaks.h"
#include "tensor/block_formats.h"

namespace hone::bench {
namespace {

constexpr std::int64_t kColdBytes = std::int64_t{256} << 20;

struct MatmulCase {
  Isa isa;
  DType weight;
  bool int8;
  std::int64_t rows, n, k;
};

struct Shared {
  ThreadPool* pool = nullptr;
  Peaks peaks;
};

// One weight matrix for many rows; for one row as many as fill kColdBytes.
void run_matmul(benchmark::State& state, const Shared& shared, const MatmulCase& c) {
  const Kernel* kernel = find_kernel(c.int8 ? "matmul.q8a" : "matmul.f32.panel16", c.isa);
  std::deque<PackedMatrix> weights;
  std::int64_t bytes = 0;
  do {
    weights.push_back(random_panels(c.weight, c.n, c.k, weights.size()));
    bytes += weights.back().byte_count;
  } while (c.rows == 1 && bytes < kColdBytes);
  const DType x_type = c.int8 ? DType::Q8A : DType::F32;
  const AlignedBytes x = aligned_bytes(dtype_bytes(x_type, c.rows * c.k));
  const std::vector<float> values(static_cast<std::size_t>(c.rows * c.k), 0.25F);
  static_cast<void>(encode_row(x_type, values.data(), c.rows * c.k, x.get()));
  const AlignedBytes out = aligned_bytes(c.rows * c.n * 4);
  Attributes attributes{{"transpose_b", std::int64_t{1}}};
  const TensorView output = strided_view(DType::F32, {c.rows, c.n}, out.get());
  std::deque<std::array<TensorView, 2>> inputs;
  std::deque<Launch> launches;
  for (const PackedMatrix& w : weights) {
    inputs.push_back({strided_view(x_type, {c.rows, c.k}, x.get()), w.view});
    Call call;
    call.attributes = &attributes;
    call.inputs = inputs.back().data();
    call.input_count = 2;
    call.outputs = &output;
    call.output_count = 1;
    launches.emplace_back(*kernel, call, *shared.pool);
  }
  for (auto _ : state) {
    for (Launch& launch : launches) launch.run();
  }
  const auto calls = static_cast<double>(state.iterations() * static_cast<std::int64_t>(launches.size()));
  const double operations = calls * 2.0 * static_cast<double>(c.rows * c.n * c.k);
  const double read = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  const double peak = c.int8 ? shared.peaks.int8_ops_per_s : shared.peaks.fma_flops_per_s;
  using benchmark::Counter;
  state.counters["Gop/s"] = Counter(operations * 1e-9, Counter::kIsRate);
  state.counters["GB/s"] = Counter(read * 1e-9, Counter::kIsRate);
  if (c.rows == 1) {
    state.counters["of_read"] = Counter(read / shared.peaks.read_bytes_per_s, Counter::kIsRate);
  } else if (peak > 0) {
    state.counters["of_peak"] = Counter(operations / peak, Counter::kIsRate);
  }
}

void add_cases(const Shared& shared, Isa best) {
  for (const Isa isa : kIsaLevels) {
    if (isa > best) continue;
    for (const bool int8 : {true, false}) {
      for (const DType weight :
           {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::BF16, DType::F16, DType::F32}) {
        if (int8 && dtype_row(weight).block_elements == 1) continue;
        for (const std::int64_t rows : {1, 4, 48, 512}) {
          const MatmulCase c{isa, weight, int8, rows, 2048, 2048};
          if (isa == Isa::Portable && rows > 4) continue;
          const std::string name = fmt::format("matmul/{}/{}/{}/rows:{}", isa_name(isa), int8 ? "q8a" : "f32",
                                               dtype_name(weight), rows);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [shared, c](benchmark::State& state) { run_matmul(state, shared, c); })
              ->UseRealTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

void run_launch(benchmark::State& state, const Shared& shared) {
  for (auto _ : state) shared.pool->run(2, [](void*, std::int64_t, std::int64_t, int) {}, nullptr);
}

int run_all(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto pool = ThreadPool::create(2);
  if (!pool.ok()) return 1;
  const Isa best = detect_isa();
  const auto peaks = measure_peaks(**pool, best);
  if (!peaks.ok()) return 1;
  fmt::print("{} threads, {}: read {:.1f} GB/s, f32 FMA {:.0f} Gop/s, int8 dot {:.0f} Gop/s\n",
             (*pool)->threads(), isa_name(best), peaks->read_bytes_per_s * 1e-9,
             peaks->fma_flops_per_s * 1e-9, peaks->int8_ops_per_s * 1e-9);
  const Shared shared{pool->get(), *peaks};
  benchmark::RegisterBenchmark("launch/tiles:2", [shared](benchmark::State& state) {
    run_launch(state, shared);
  })->UseRealTime();
  add_cases(shared, best);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) {
  return hone::bench::run_all(argc, argv);
}
