// Each kernel of the decoder's step on each level of this machine, on the shapes of a 1.5B model (D 1536, F
// 8960, H 12, K 2, E 128), beside the peak that bounds it: of_read is its share of the read bandwidth,
// of_peak of the arithmetic peak of its type. Weights and caches of one-token cases are walked through 256
// MiB of copies, so that they come from memory as in a step; activations of 512 tokens lie in the caches, as
// they do there, so that what only moves them may exceed the rate of memory.
//   op_bench [--benchmark_filter=attention] ...
#include <benchmark/benchmark.h>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <functional>
#include <string>

#include "kernel_case.h"
#include "kernels/peaks.h"
#include "tensor/block_formats.h"
#include "tensor/projection.h"

namespace hone::bench {
namespace {

constexpr std::int64_t kColdBytes = std::int64_t{256} << 20;
constexpr std::int64_t kDim = 1536;
constexpr std::int64_t kFeedForward = 8960;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kGroup = 6;
constexpr std::int64_t kHead = 128;
// Query heads that share a kv head, and their size: Qwen2 of 0.5B, and of 1.5B.
struct Heads {
  std::int64_t group, head;
};
constexpr Heads kHeads05B = {7, 64};
constexpr Heads kHeads15B = {kGroup, kHead};
constexpr std::int64_t kVocabulary = 151936;

enum class Bound { Read, F32, Int8 };

// One launch with operands of its own.
struct Problem {
  std::string stem;  // of the kernel's name
  Attributes attributes;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  std::deque<AlignedBytes> memory;
  std::deque<PackedMatrix> weights;
  double bytes = 0;  // that must be read or written
  double operations = 0;
  Bound bound = Bound::Read;

  TensorView tensor(DType dtype, const std::vector<std::int64_t>& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    memory.push_back(aligned_bytes(dtype_bytes(dtype, elements)));
    if (dtype_row(dtype).is_float) {
      const std::vector<float> values(static_cast<std::size_t>(elements), 0.25F);
      static_cast<void>(encode_row(dtype, values.data(), elements, memory.back().get()));
    }
    return strided_view(dtype, shape, memory.back().get());
  }
  const TensorView& weight(DType dtype, std::int64_t n, std::int64_t k) {
    weights.push_back(random_panels(dtype, n, k, weights.size()));
    bytes += static_cast<double>(weights.back().byte_count);
    return weights.back().view;
  }
  TensorView positions(std::int64_t first, std::int64_t tokens) {
    const TensorView view = tensor(DType::I32, {1, tokens});
    for (std::int64_t t = 0; t < tokens; ++t)
      static_cast<std::int32_t*>(view.data)[t] = static_cast<std::int32_t>(first + t);
    return view;
  }
};

// Gate and up of the feed-forward part in one launch, as a decoder's O3 has them.
Problem gated_projection(DType weight, std::int64_t tokens) {
  Problem p;
  p.stem = "projection.q8a";
  p.bound = tokens == 1 ? Bound::Read : Bound::Int8;
  p.inputs.push_back(p.tensor(DType::Q8A, {1, tokens, kDim}));
  p.inputs.push_back(p.weight(weight, kFeedForward, kDim));
  p.inputs.push_back(p.weight(weight, kFeedForward, kDim));
  p.outputs.push_back(p.tensor(DType::F32, {1, tokens, kFeedForward}));
  ProjectionSection section;
  section.weight = 1;
  section.gate = 2;
  section.activation = static_cast<std::int64_t>(ProjectionActivation::Silu);
  std::vector<std::int64_t> fields(kProjectionFields);
  std::memcpy(fields.data(), &section, sizeof(section));
  p.attributes.set("sections", std::move(fields));
  p.operations = 4.0 * static_cast<double>(tokens * kFeedForward * kDim);
  return p;
}

Problem gated_mlp(DType weight, std::int64_t tokens) {
  Problem p;
  p.stem = "swiglu_mlp.q8a";
  p.bound = tokens == 1 ? Bound::Read : Bound::Int8;
  p.inputs.push_back(p.tensor(DType::Q8A, {tokens, kDim}));
  p.inputs.push_back(p.weight(weight, kFeedForward, kDim));
  p.inputs.push_back(p.weight(weight, kFeedForward, kDim));
  p.outputs.push_back(p.tensor(DType::F32, {tokens, kFeedForward}));
  p.operations = 4.0 * static_cast<double>(tokens * kFeedForward * kDim);
  return p;
}

// The last `tokens` of a context over a cache of it. Each row sees the positions up to its own.
Problem attention(Heads heads_of, DType cache, std::int64_t tokens, std::int64_t context) {
  const auto [group, head] = heads_of;
  Problem p;
  p.stem = "attention.online";
  p.bound = tokens == 1 ? Bound::Read : Bound::F32;
  p.attributes.set("scale", 0.088);
  TensorView q = p.tensor(DType::F32, {1, tokens, kKvHeads, group, head});
  // Stored [B,T,K,G,E], read as [B,K,G,T,E].
  TensorView heads = q;
  constexpr int kAxes[] = {0, 2, 3, 1, 4};
  for (int axis = 0; axis < 5; ++axis) {
    heads.shape[axis] = q.shape[kAxes[axis]];
    heads.strides[axis] = q.strides[kAxes[axis]];
  }
  p.inputs = {heads, p.tensor(cache, {1, context, kKvHeads, head}),
              p.tensor(cache, {1, context, kKvHeads, head}), p.positions(context - tokens, tokens)};
  p.outputs = {p.tensor(DType::F32, {1, tokens, kKvHeads, group, head})};
  const std::int64_t visible = tokens * (context - tokens) + tokens * (tokens + 1) / 2;
  p.operations = 4.0 * static_cast<double>(visible * kKvHeads * group * head);
  p.bytes = 2.0 * static_cast<double>(dtype_bytes(cache, context * kKvHeads * head));
  return p;
}

Problem rms_norm(std::int64_t tokens) {
  Problem p;
  p.stem = "rms_norm.f32";
  p.attributes.set("eps", 1e-6);
  p.inputs = {p.tensor(DType::F32, {tokens, kDim}), p.tensor(DType::F32, {kDim})};
  p.outputs = {p.tensor(DType::F32, {tokens, kDim})};
  p.bytes = 8.0 * static_cast<double>(tokens * kDim);
  return p;
}

Problem quantize(std::int64_t tokens) {
  Problem p;
  p.stem = "quantize_q8a";
  p.inputs = {p.tensor(DType::F32, {tokens, kDim})};
  p.outputs = {p.tensor(DType::Q8A, {tokens, kDim})};
  p.bytes = static_cast<double>(4 * tokens * kDim + dtype_bytes(DType::Q8A, tokens * kDim));
  return p;
}

Problem softmax(std::int64_t rows, std::int64_t columns) {
  Problem p;
  p.stem = "softmax.f32";
  p.inputs = {p.tensor(DType::F32, {rows, columns})};
  p.outputs = {p.tensor(DType::F32, {rows, columns})};
  p.bytes = 8.0 * static_cast<double>(rows * columns);
  return p;
}

Problem rope(std::int64_t tokens) {
  Problem p;
  p.stem = "rope.f32";
  p.attributes.set("interleaved", std::int64_t{0});
  p.inputs = {p.tensor(DType::F32, {1, tokens, kKvHeads * kGroup, kHead}),
              p.tensor(DType::F32, {1, tokens, kHead / 2}), p.tensor(DType::F32, {1, tokens, kHead / 2})};
  p.outputs = {p.tensor(DType::F32, {1, tokens, kKvHeads * kGroup, kHead})};
  p.bytes = 8.0 * static_cast<double>(tokens * kKvHeads * kGroup * kHead);
  return p;
}

// Rows of the token embedding, far apart.
Problem gather(DType table, std::int64_t tokens) {
  Problem p;
  p.stem = "gather";
  p.attributes.set("axis", std::int64_t{0});
  const TensorView ids = p.positions(0, tokens);
  for (std::int64_t t = 0; t < tokens; ++t)
    static_cast<std::int32_t*>(ids.data)[t] = static_cast<std::int32_t>(t * 7919 % kVocabulary);
  p.inputs = {p.tensor(table, {kVocabulary, kDim}), ids};
  p.outputs = {p.tensor(DType::F32, {1, tokens, kDim})};
  p.bytes = static_cast<double>(4 * tokens * kDim + dtype_bytes(table, tokens * kDim));
  return p;
}

struct Shared {
  ThreadPool* pool = nullptr;
  const std::deque<std::pair<Isa, Peaks>>* peaks = nullptr;  // of each level

  const Peaks& of(Isa isa) const {
    for (const auto& [level, found] : *peaks) {
      if (level == isa) return found;
    }
    return peaks->back().second;
  }
};

void run_case(benchmark::State& state, const Shared& shared, Isa isa, const std::function<Problem()>& make,
              bool cold) {
  std::deque<Problem> problems;
  double bytes = 0;
  do {
    problems.push_back(make());
    bytes += problems.back().bytes;
  } while (cold && bytes < kColdBytes);
  const Kernel* kernel = find_kernel(problems.front().stem, isa);
  if (kernel == nullptr) return state.SkipWithError("no such kernel on this level");
  std::deque<Launch> launches;
  for (const Problem& p : problems) {
    Call call;
    call.attributes = &p.attributes;
    call.inputs = p.inputs.data();
    call.outputs = p.outputs.data();
    call.input_count = static_cast<int>(p.inputs.size());
    call.output_count = static_cast<int>(p.outputs.size());
    launches.emplace_back(*kernel, call, *shared.pool);
  }
  for (auto _ : state) {
    for (Launch& launch : launches) launch.run();
  }
  using benchmark::Counter;
  const auto rounds = static_cast<double>(state.iterations());
  const double operations = rounds * static_cast<double>(problems.size()) * problems.front().operations;
  const Peaks& peaks = shared.of(isa);
  const Bound bound = problems.front().bound;
  state.counters["GB/s"] = Counter(rounds * bytes * 1e-9, Counter::kIsRate);
  if (operations > 0) state.counters["Gop/s"] = Counter(operations * 1e-9, Counter::kIsRate);
  const double peak = bound == Bound::Int8 ? peaks.int8_ops_per_s : peaks.fma_flops_per_s;
  if (bound == Bound::Read) {
    state.counters["of_read"] = Counter(rounds * bytes / peaks.read_bytes_per_s, Counter::kIsRate);
  } else if (peak > 0) {
    state.counters["of_peak"] = Counter(operations / peak, Counter::kIsRate);
  }
}

struct Case {
  const char* name;
  std::function<Problem()> make;
  bool cold;
  bool slow;  // not on the portable level
};

std::vector<Case> cases() {
  return {
      {"projection/gated/q8_0/tokens:1", [] { return gated_projection(DType::Q8_0, 1); }, true, false},
      {"projection/gated/q4_0/tokens:1", [] { return gated_projection(DType::Q4_0, 1); }, true, false},
      {"projection/gated/q4_k/tokens:1", [] { return gated_projection(DType::Q4_K, 1); }, true, false},
      {"projection/gated/q8_0/tokens:512", [] { return gated_projection(DType::Q8_0, 512); }, false, true},
      {"projection/gated/q4_0/tokens:512", [] { return gated_projection(DType::Q4_0, 512); }, false, true},
      {"projection/gated/q4_k/tokens:512", [] { return gated_projection(DType::Q4_K, 512); }, false, true},
      {"swiglu_mlp/q8_0/tokens:1", [] { return gated_mlp(DType::Q8_0, 1); }, true, false},
      {"swiglu_mlp/q8_0/tokens:512", [] { return gated_mlp(DType::Q8_0, 512); }, false, true},
      {"attention/0.5B/f16/tokens:512/context:512", [] { return attention(kHeads05B, DType::F16, 512, 512); },
       false, true},
      {"attention/0.5B/f16/tokens:512/context:8192",
       [] { return attention(kHeads05B, DType::F16, 512, 8192); }, false, true},
      {"attention/0.5B/q8_0/tokens:512/context:8192",
       [] { return attention(kHeads05B, DType::Q8_0, 512, 8192); }, false, true},
      {"attention/0.5B/f16/tokens:1/context:8192", [] { return attention(kHeads05B, DType::F16, 1, 8192); },
       true, false},
      {"attention/0.5B/q8_0/tokens:1/context:8192", [] { return attention(kHeads05B, DType::Q8_0, 1, 8192); },
       true, false},
      {"attention/0.5B/f32/tokens:1/context:8192", [] { return attention(kHeads05B, DType::F32, 1, 8192); },
       true, false},
      {"attention/1.5B/f16/tokens:512/context:512", [] { return attention(kHeads15B, DType::F16, 512, 512); },
       false, true},
      {"attention/1.5B/f16/tokens:512/context:8192",
       [] { return attention(kHeads15B, DType::F16, 512, 8192); }, false, true},
      {"attention/1.5B/q8_0/tokens:512/context:8192",
       [] { return attention(kHeads15B, DType::Q8_0, 512, 8192); }, false, true},
      {"attention/1.5B/f16/tokens:1/context:8192", [] { return attention(kHeads15B, DType::F16, 1, 8192); },
       true, false},
      {"attention/1.5B/q8_0/tokens:1/context:8192", [] { return attention(kHeads15B, DType::Q8_0, 1, 8192); },
       true, false},
      {"attention/1.5B/f32/tokens:1/context:8192", [] { return attention(kHeads15B, DType::F32, 1, 8192); },
       true, false},
      {"rms_norm/tokens:512", [] { return rms_norm(512); }, false, false},
      {"quantize_q8a/tokens:512", [] { return quantize(512); }, false, false},
      {"softmax/rows:6144/columns:512", [] { return softmax(6144, 512); }, false, false},
      {"rope/tokens:512", [] { return rope(512); }, false, false},
      {"gather/q8_0/tokens:512", [] { return gather(DType::Q8_0, 512); }, false, false},
      {"gather/f32/tokens:512", [] { return gather(DType::F32, 512); }, false, false},
  };
}

int run_all(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto pool = ThreadPool::create(2);
  if (!pool.ok()) return 1;
  const Isa best = detect_isa();
  std::deque<std::pair<Isa, Peaks>> peaks;
  for (const Isa isa : kIsaLevels) {
    if (isa > best) continue;
    const auto found = measure_peaks(**pool, isa);
    if (!found.ok()) return 1;
    peaks.emplace_back(isa, *found);
    fmt::print(
        "{} threads, {}: read {:.1f} GB/s, f32 FMA {:.0f} Gop/s, bf16 dot {:.0f} Gop/s, int8 dot {:.0f} "
        "Gop/s\n",
        (*pool)->threads(), isa_name(isa), found->read_bytes_per_s * 1e-9, found->fma_flops_per_s * 1e-9,
        found->bf16_flops_per_s * 1e-9, found->int8_ops_per_s * 1e-9);
  }
  const Shared shared{pool->get(), &peaks};
  for (const Case& c : cases()) {
    for (const auto& [isa, unused] : peaks) {
      if (isa == Isa::Portable && c.slow) continue;
      benchmark::RegisterBenchmark(fmt::format("{}/{}", c.name, isa_name(isa)).c_str(),
                                   [shared, c, level = isa](benchmark::State& state) {
                                     run_case(state, shared, level, c.make, c.cold);
                                   })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) {
  return hone::bench::run_all(argc, argv);
}
