// hone bench: prefill and decode rates beside this machine's measured peaks.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "apps/interrupt.h"
#include "apps/peak_table.h"
#include "apps/plural.h"
#include "apps/units.h"
#include "apps/verb.h"
#include "engine/planned_cost.h"
#include "engine/quantize_file.h"
#include "engine/random_model.h"
#include "engine/session.h"
#include "kernels/peaks.h"

namespace hone {
namespace {

constexpr std::int64_t kMostBatch = 4096;
constexpr const char* kRandomTypes = "f32, f16, bf16, q8_0, q6_k, q5_0, q4_k, q4_1, q4_0";

struct BenchFlags : CommonFlags {
  std::string shape;
  std::string type = "q8_0";
  std::string output_type;
  bool mix = false;
  std::string save;
  std::string batches;
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

// "1,2,4": numbers of sequences; the first is what the others are held against.
Result<std::vector<std::int64_t>> parse_batches(const std::string& text) {
  std::vector<std::int64_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t value = 0;
    const auto [next, fault] = std::from_chars(at, end, value);
    if (fault != std::errc() || value < 1 || value > kMostBatch || (next != end && *next != ','))
      return usage_error("--batch", "no list of numbers of sequences",
                         fmt::format("1,2,4 with each from 1 to {}", kMostBatch), text);
    out.push_back(value);
    if (next == end) return out;
    at = next + 1;
  }
}

struct BatchTime {
  std::int64_t sequences = 0;
  double step_s = 0;  // median over the repetitions of the mean of a run of steps
};

// Steps of one token for each of B sequences, behind a context of `prompt` tokens. What the cache holds there
// does not change the time: it is as it was reserved.
Result<std::vector<BatchTime>> measure_batches(Session& session, const BenchFlags& flags,
                                               std::span<const std::int64_t> batches) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> seconds(batches.size());
  for (std::int64_t r = 0; r <= flags.repetitions; ++r) {  // in turn, so that a disturbance meets all
    for (std::size_t b = 0; b < batches.size(); ++b) {
      const auto sequences = static_cast<std::size_t>(batches[b]);
      const std::vector<std::vector<std::int32_t>> ids(sequences, {7});
      std::vector<Session::Row> rows;
      rows.reserve(sequences);
      for (std::size_t i = 0; i < sequences; ++i) rows.push_back({static_cast<std::int64_t>(i), 0});
      const Clock::time_point begin = Clock::now();
      for (std::int64_t i = 0; i < flags.generate; ++i) {
        const std::vector<std::int64_t> past(sequences, flags.prompt + i);
        HONE_TRY(session.step(ids, past, rows));
      }
      const std::chrono::duration<double> passed = Clock::now() - begin;
      if (r > 0) seconds[b].push_back(passed.count() / static_cast<double>(flags.generate));
    }
  }
  std::vector<BatchTime> out;
  out.reserve(batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) out.push_back({batches[b], median(seconds[b])});
  return out;
}

void print_batches(const Plan& plan, const BenchFlags& flags, std::span<const BatchTime> times) {
  if (flags.json) {
    Json rows = Json::array();
    for (const BatchTime& time : times) {
      rows.push_back({{"sequences", time.sequences},
                      {"step_s", time.step_s},
                      {"of_first", time.step_s / times[0].step_s},
                      {"tokens_per_s", static_cast<double>(time.sequences) / time.step_s}});
    }
    return print_json(
        {{"batch", std::move(rows)}, {"threads", plan.target.threads}, {"isa", isa_name(plan.target.isa)}});
  }
  std::string out = fmt::format("{:>9}{:>16}{:>12}{:>14}\n", "sequences",
                                fmt::format("over {}", times[0].sequences), "step", "tokens/s");
  for (const BatchTime& time : times) {
    out += fmt::format("{:>9}{:>16}{:>12}{:>14.1f}\n", time.sequences,
                       fmt::format("{:.2f} x", time.step_s / times[0].step_s),
                       fmt::format("{:.2f} ms", 1e3 * time.step_s),
                       static_cast<double>(time.sequences) / time.step_s);
  }
  print_answer(out + fmt::format("one token of each sequence a step, behind {}; {}, {}; medians of {}\n",
                                 counted(flags.prompt, "token"), counted(plan.target.threads, "thread"),
                                 isa_name(plan.target.isa), flags.repetitions));
}

// How many times as long it takes with the same bits on every ISA level.
struct BitsPrice {
  double prefill = 1;
  double decode = 1;
  bool same_plan = true;  // the kernels are the same ones: nothing was measured
};

bool same_kernels(const Plan& a, const Plan& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const Step& x, const Step& y) { return x.kernel == y.kernel; });
}

// `session` is let go before the other one is loaded.
Result<BitsPrice> bits_price(std::unique_ptr<Session>& session, const std::string& path,
                             const BenchFlags& flags, const Rates& rates) {
  EngineOptions options = session->options();
  options.portable_bits = true;
  std::unique_ptr<Session> portable = HONE_TRY(Session::prepare(path, options));
  if (same_kernels(session->model().plan, portable->model().plan)) return BitsPrice{};
  session.reset();
  HONE_TRY(portable->load());
  const Rates other = HONE_TRY(measure(*portable, flags));
  return BitsPrice{rates.prefill_tokens_per_s / other.prefill_tokens_per_s,
                   rates.decode_tokens_per_s / other.decode_tokens_per_s, false};
}

std::string bits_text(const Target& target, const BitsPrice& price) {
  if (target.portable_bits) return "bits of every instruction set";
  if (price.same_plan) return "--bits portable costs nothing: the kernels are the same";
  return fmt::format("--bits portable takes {:.2f} times as long in prefill, {:.2f} times in decode",
                     price.prefill, price.decode);
}

// Of all chunks of a prompt: each attends to the keys before it as well.
Result<double> operations_of_prefill(const Plan& plan, std::int64_t prompt, std::int64_t chunk) {
  double operations = 0;
  for (std::int64_t begin = 0; begin < prompt; begin += chunk) {
    const std::int64_t tokens = std::min(chunk, prompt - begin);
    const PlannedCost cost = HONE_TRY(planned_cost(plan, sizes_of_step(1, tokens, begin + tokens, 1)));
    operations += static_cast<double>(cost.operations);
  }
  return operations;
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
  std::vector<std::int64_t> batches;
  if (!flags.batches.empty()) {
    batches = HONE_TRY(parse_batches(flags.batches));
    options.batch = std::ranges::max(batches);
    options.chunk = 1;
  }
  const std::unique_ptr<ModelFile> file = HONE_TRY(ModelFile::make(flags));
  Result<std::unique_ptr<Session>> opened = Session::open(file->path(), options);
  if (!opened.ok() && opened.error().where == "--ctx" && flags.context == 0) {
    return too_long(flags, opened.error().expected);
  }
  std::unique_ptr<Session> session = HONE_TRY(std::move(opened));
  const Plan& plan = session->model().plan;
  if (!batches.empty()) {
    print_batches(plan, flags, HONE_TRY(measure_batches(*session, flags, batches)));
    return {};
  }
  const Target target = plan.target;
  const Rates rates = HONE_TRY(measure(*session, flags));
  const std::int64_t chunk = std::min(flags.prompt, plan.bound.find('T').value_or(1));
  const PlannedCost decode = HONE_TRY(planned_cost(plan, sizes_of_step(1, 1, flags.prompt, 1)));
  const double prefill_operations = HONE_TRY(operations_of_prefill(plan, flags.prompt, chunk));
  const Peaks peaks = HONE_TRY(
      measure_peaks(session->executor().pool(), plan.target.isa, static_cast<std::int64_t>(decode.bytes)));
  // bits_price() below ends the session.
  const bool int8 = session->model().precision.int8_activations;
  const bool tiles = session->model().precision.bf16_activations && peaks.amx_bf16_flops_per_s > 0;
  const Reached reached{rates.decode_tokens_per_s * decode.bytes,
                        rates.prefill_tokens_per_s * prefill_operations / static_cast<double>(flags.prompt)};
  const double peak = int8    ? peaks.int8_ops_per_s
                      : tiles ? peaks.amx_bf16_flops_per_s
                              : peaks.fma_flops_per_s;
  const double prefill_of_peak = peak > 0 ? reached.prefill_ops_per_s / peak : 0;
  const double decode_of_bandwidth = reached.decode_bytes_per_s / peaks.read_bytes_per_s;
  const BitsPrice price =
      target.portable_bits ? BitsPrice{} : HONE_TRY(bits_price(session, file->path(), flags, rates));
  if (flags.json) {
    print_json(
        {{"prefill_tokens_per_s", rates.prefill_tokens_per_s},
         {"decode_tokens_per_s", rates.decode_tokens_per_s},
         {"prefill_of_peak", prefill_of_peak},
         {"decode_of_bandwidth", decode_of_bandwidth},
         {"decode_bytes", decode.bytes},
         {"threads", target.threads},
         {"isa", isa_name(target.isa)},
         {"bits", bits_name(target)},
         {"portable_bits_price", {{"prefill", price.prefill}, {"decode", price.decode}}},
         {"decode_of_working_set_bandwidth", reached.decode_bytes_per_s / peaks.read_working_set_bytes_per_s},
         {"peaks", measured_peaks_json(peaks)}});
    return {};
  }
  print_answer(fmt::format(
      "decode  {:>9.1f} tokens/s   {:>5.1f} % of the read bandwidth ({:.1f} GB/s over {} a token)\n"
      "prefill {:>9.1f} tokens/s   {:>5.1f} % of the {} peak ({:.0f} GOP/s), {}\n"
      "{}, {}; medians of {}; {}\n\n{}",
      rates.decode_tokens_per_s, 100 * decode_of_bandwidth, peaks.read_bytes_per_s / 1e9,
      human_bytes(static_cast<std::int64_t>(decode.bytes)), rates.prefill_tokens_per_s, 100 * prefill_of_peak,
      int8    ? "int8 dot"
      : tiles ? "AMX bf16"
              : "f32",
      peak / 1e9, counted(flags.prompt, "token"), counted(target.threads, "thread"), isa_name(target.isa),
      flags.repetitions, bits_text(target, price), peak_table(peaks, reached)));
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
  const Flag batch = verb.option("--batch", flags->batches,
                                 "instead: the time of a step of so many sequences at once: 1,2,4,8,16,64");
  batch.excludes(verb.find("--chunk"));
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
