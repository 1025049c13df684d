// hone bench: prefill and decode rates beside this machine's measured peaks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "apps/interrupt.h"
#include "apps/plural.h"
#include "apps/verb.h"
#include "engine/quantize_file.h"
#include "engine/random_model.h"
#include "engine/session.h"
#include "kernels/peaks.h"

namespace hone {
namespace {

constexpr const char* kRandomTypes = "f32, f16, bf16, q8_0, q6_k, q5_0, q4_k, q4_1, q4_0";

struct BenchFlags : CommonFlags {
  std::string shape;
  std::string type = "q8_0";
  std::string output_type;
  bool mix = false;
  std::string save;
  std::int64_t prompt = 512;
  std::int64_t generate = 64;
  std::int64_t repetitions = 3;
};

Result<RandomWeights> weights_of(const BenchFlags& flags) {
  const auto parse = [](const char* flag, const std::string& name) -> Result<DType> {
    const std::optional<DType> type = quantize_type_from_name(name);
    if (!type) return Error{ErrorCode::Usage, Fault::User, flag, "no such type", kRandomTypes, name, {}};
    return *type;
  };
  RandomWeights weights;
  weights.type = HONE_TRY(parse("--type", flags.type));
  weights.mix = flags.mix;
  if (!flags.output_type.empty()) weights.output = HONE_TRY(parse("--output-type", flags.output_type));
  return weights;
}

// A file that goes away with it, unless the user wants to keep it.
class ModelFile {
 public:
  static Result<std::unique_ptr<ModelFile>> make(const BenchFlags& flags) {
    std::unique_ptr<ModelFile> file(new ModelFile);
    if (flags.shape.empty()) {
      file->path_ = flags.model;
      return file;
    }
    const ModelShape shape = HONE_TRY(find_shape(flags.shape));
    const RandomWeights weights = HONE_TRY(weights_of(flags));
    file->temporary_ = flags.save.empty();
    file->path_ = flags.save;
    if (file->temporary_) {
      std::error_code failed;
      const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
      if (failed) {
        return Error{ErrorCode::BadFile,
                     Fault::User,
                     "TMPDIR",
                     "there is no folder for a file that goes away again",
                     "a folder",
                     failed.message(),
                     "set TMPDIR, or keep the model: --save FILE"};
      }
      file->path_ = (folder / fmt::format("hone-bench-{}.gguf", getpid())).string();
      file->removed_.emplace(file->path_);
    }
    const RemovedOnInterrupt partial(file->path_ + ".partial");
    print_note(
        fmt::format("writing random weights of {} in {} to {}\n", shape.name, flags.type, file->path_));
    HONE_TRY(write_random_model(shape, weights, 1, file->path_));
    return file;
  }
  ~ModelFile() {
    if (temporary_) std::remove(path_.c_str());
  }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  ModelFile() = default;
  std::string path_;
  bool temporary_ = false;
  std::optional<RemovedOnInterrupt> removed_;
};

struct Rates {
  double prefill_tokens_per_s = 0;  // medians over the repetitions
  double decode_tokens_per_s = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Result<Rates> measure(Session& session, const BenchFlags& flags) {
  using Clock = std::chrono::steady_clock;
  const auto vocabulary =
      static_cast<std::int32_t>(std::min<std::int64_t>(session.model().config.vocabulary, 30000));
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(flags.prompt));
  for (std::int64_t i = 0; i < flags.prompt; ++i)
    ids.push_back(static_cast<std::int32_t>((i * 7919 + 13) % vocabulary));
  std::vector<double> prefill;
  std::vector<double> decode;
  for (std::int64_t r = 0; r <= flags.repetitions; ++r) {
    const Clock::time_point begin = Clock::now();
    HONE_TRY(session.prefill(ids, 0));
    const Clock::time_point middle = Clock::now();
    for (std::int64_t i = 0; i < flags.generate; ++i) {
      const std::int64_t position = flags.prompt + i;
      const std::vector<std::int32_t> next{static_cast<std::int32_t>((i * 31 + 7) % vocabulary)};
      const Session::Row row{0, 0};
      HONE_TRY(session.step({&next, 1}, {&position, 1}, {&row, 1}));
    }
    const Clock::time_point end = Clock::now();
    if (r == 0) continue;  // warm-up
    prefill.push_back(static_cast<double>(flags.prompt) /
                      std::chrono::duration<double>(middle - begin).count());
    decode.push_back(static_cast<double>(flags.generate) /
                     std::chrono::duration<double>(end - middle).count());
  }
  return Rates{median(prefill), median(decode)};
}

// Bytes of the weights that one decode step reads, and operations of one token of a long prompt, from the
// plan.
struct StepCost {
  double decode_bytes = 0;
  double prefill_operations_per_token = 0;
};

Result<StepCost> step_cost(const Plan& plan, std::int64_t prompt) {
  StepCost cost;
  const std::int64_t chunk = std::min(prompt, plan.bound.find('T').value_or(1));
  const Bindings one{{'B', 1}, {'T', 1}, {'C', prompt}, {'R', 1}};
  const Bindings many{{'B', 1}, {'T', chunk}, {'C', chunk}, {'R', 1}};
  for (const Step& step : plan.steps) {
    cost.decode_bytes += static_cast<double>(HONE_TRY(step.bytes_moved.evaluate(one)));
    cost.prefill_operations_per_token +=
        static_cast<double>(HONE_TRY(step.operations.evaluate(many))) / static_cast<double>(chunk);
  }
  return cost;
}

// Without --ctx, the context is what -p and -n add up to.
Error too_long(const BenchFlags& flags, std::string expected) {
  return usage_error("-p, -n", "prompt and generated tokens are more than a context holds",
                     std::move(expected), fmt::format("{} + {}", flags.prompt, flags.generate));
}

Status run(BenchFlags& flags) {
  EngineOptions options = HONE_TRY(flags.engine_options());
  if (flags.generate > kNoLimit - flags.prompt)
    return too_long(flags, fmt::format("at most {} together", kNoLimit));
  if (options.context == 0) options.context = flags.prompt + flags.generate;
  const std::unique_ptr<ModelFile> file = HONE_TRY(ModelFile::make(flags));
  Result<std::unique_ptr<Session>> opened = Session::open(file->path(), options);
  if (!opened.ok() && opened.error().where == "--ctx" && flags.context == 0) {
    return too_long(flags, opened.error().expected);
  }
  const std::unique_ptr<Session> session = HONE_TRY(std::move(opened));
  const Plan& plan = session->model().plan;
  const Peaks peaks = HONE_TRY(measure_peaks(session->executor().pool(), plan.target.isa));
  const Rates rates = HONE_TRY(measure(*session, flags));
  const StepCost cost = HONE_TRY(step_cost(plan, flags.prompt));
  const bool int8 = session->model().precision.int8_activations;
  const double peak = int8 ? peaks.int8_ops_per_s : peaks.fma_flops_per_s;
  const double prefill_of_peak =
      peak > 0 ? rates.prefill_tokens_per_s * cost.prefill_operations_per_token / peak : 0;
  const double decode_of_bandwidth =
      peaks.read_bytes_per_s > 0 ? rates.decode_tokens_per_s * cost.decode_bytes / peaks.read_bytes_per_s : 0;
  if (flags.json) {
    print_json({{"prefill_tokens_per_s", rates.prefill_tokens_per_s},
                {"decode_tokens_per_s", rates.decode_tokens_per_s},
                {"prefill_of_peak", prefill_of_peak},
                {"decode_of_bandwidth", decode_of_bandwidth},
                {"decode_bytes", cost.decode_bytes},
                {"threads", plan.target.threads},
                {"isa", isa_name(plan.target.isa)},
                {"peaks",
                 {{"read_bytes_per_s", peaks.read_bytes_per_s},
                  {"fma_flops_per_s", peaks.fma_flops_per_s},
                  {"int8_ops_per_s", peaks.int8_ops_per_s}}}});
    return {};
  }
  print_answer(fmt::format(
      "decode  {:>9.1f} tokens/s   {:>5.1f} % of the read bandwidth ({:.1f} GB/s over {} a token)\n"
      "prefill {:>9.1f} tokens/s   {:>5.1f} % of the {} peak ({:.0f} GOP/s), {}\n"
      "{}, {}; medians of {}; f32 peak {:.0f} GFLOP/s\n",
      rates.decode_tokens_per_s, 100 * decode_of_bandwidth, peaks.read_bytes_per_s / 1e9,
      human_bytes(static_cast<std::int64_t>(cost.decode_bytes)), rates.prefill_tokens_per_s,
      100 * prefill_of_peak, int8 ? "int8 dot" : "f32", peak / 1e9, counted(flags.prompt, "token"),
      counted(plan.target.threads, "thread"), isa_name(plan.target.isa), flags.repetitions,
      peaks.fma_flops_per_s / 1e9));
  return {};
}

}  // namespace

Verb add_bench(const CommandLine& line) {
  const Command verb =
      line.add_verb("bench", "prefill and decode rates beside this machine's measured peaks");
  auto flags = std::make_shared<BenchFlags>();
  flags->add_to(verb);
  const Flag model = verb.find("MODEL").required(false);
  const Flag shape = verb.option("--shape", flags->shape,
                                 "a random-weight model of this shape: qwen2-0.5b, smollm2-135m ..");
  shape.excludes(model);
  const Flag type = verb.option("--type", flags->type, kRandomTypes).show_default();
  const Flag output_type =
      verb.option("--output-type", flags->output_type, "type of the matrix that makes logits, if another");
  const Flag mix =
      verb.flag("--mix", flags->mix, "sensitive matrices in a wider type, as quantize --mix (q4_k: Q4_K_M)");
  const Flag save = verb.option("--save", flags->save, "keep the random-weight model in this file");
  verb.option("-p,--prompt", flags->prompt, "prompt tokens").show_default().within(1, kNoLimit);
  verb.option("-n,--generate", flags->generate, "tokens to make").show_default().within(1, kNoLimit);
  verb.option("-r,--repetitions", flags->repetitions, "after one warm-up; medians are shown")
      .show_default()
      .within(1, kNoLimit);
  return {verb, &flags->json, [flags, type, output_type, mix, save]() -> Status {
            if (flags->shape.empty() && save.given()) return goes_with("--save", "--shape");
            if (flags->shape.empty() && type.given()) return goes_with("--type", "--shape");
            if (flags->shape.empty() && output_type.given()) return goes_with("--output-type", "--shape");
            if (flags->shape.empty() && mix.given()) return goes_with("--mix", "--shape");
            if (flags->model.empty() && flags->shape.empty()) {
              return usage_error("hone bench", "nothing to measure", "MODEL or --shape NAME", "neither");
            }
            return run(*flags);
          }};
}

}  // namespace hone
