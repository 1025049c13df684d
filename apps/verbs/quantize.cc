// hone quantize: a checkpoint as GGUF, its matrices in another type, and how far its predictions are from the
// source's.
#include <fmt/format.h>
#include <memory>

#include "apps/interrupt.h"
#include "apps/plural.h"
#include "apps/progress.h"
#include "apps/verb.h"
#include "engine/compare_models.h"
#include "engine/quantize_file.h"
#include "file/open.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

struct QuantizeFlags {
  std::string model;
  std::string type;
  std::string output;
  std::string text;
  std::string ids;
  std::int64_t window = 512;
  std::int64_t threads = 0;
  bool mix = false;
  bool json = false;
};

Result<QuantizeOptions> options_of(const QuantizeFlags& flags) {
  const std::optional<DType> type = quantize_type_from_name(flags.type);
  if (!type) {
    std::string names;
    for (const DType known : quantize_types()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", dtype_name(known));
    }
    return usage_error("--to", "a file cannot be written in this type", names, flags.type);
  }
  return QuantizeOptions{*type, flags.mix};
}

// f32 activations and KV cache on both sides: what is left is the weights.
EngineOptions exact_options(const QuantizeFlags& flags, std::int64_t window) {
  EngineOptions options;
  options.level = Level::O2;
  options.threads = flags.threads;
  options.all_logits = true;
  options.context = window;
  options.chunk = std::min<std::int64_t>(window, 128);
  return options;
}

// The tokens that predictions are compared on, found before the work begins.
Result<std::vector<std::int32_t>> compared_ids(const QuantizeFlags& flags, const Checkpoint& checkpoint) {
  std::vector<std::int32_t> ids;
  if (!flags.ids.empty()) {
    ids = HONE_TRY(parse_ids("--ids", flags.ids));
  } else {
    const std::string text = HONE_TRY(read_text_file(flags.text));
    const Tokenizer tokenizer = HONE_TRY(require_tokenizer(checkpoint));
    ids = HONE_TRY(tokenizer.encode(text));
  }
  if (ids.size() >= 2) return ids;
  return Error{ErrorCode::BadInput,
               Fault::User,
               flags.ids.empty() ? "--text" : "--ids",
               "a comparison needs a token to predict",
               "at least 2 tokens",
               fmt::format("{}", ids.size()),
               {}};
}

Result<Comparison> compare(const QuantizeFlags& flags, std::span<const std::int32_t> ids) {
  const std::unique_ptr<Session> source =
      HONE_TRY(Session::open(flags.model, exact_options(flags, flags.window)));
  const std::unique_ptr<Session> written =
      HONE_TRY(Session::open(flags.output, exact_options(flags, flags.window)));
  return compare_models(*source, *written, ids, flags.window);
}

Json as_json(const QuantizeReport& report, const Comparison* comparison) {
  Json tensors = Json::array();
  for (const QuantizedTensor& tensor : report.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"from", tensor.from},
                       {"to", dtype_name(tensor.to)},
                       {"bytes_before", tensor.bytes_before},
                       {"bytes_after", tensor.bytes_after},
                       {"relative_error", tensor.relative_error}});
  }
  Json out{{"bytes_before", report.bytes_before},
           {"bytes_after", report.bytes_after},
           {"tensors", std::move(tensors)},
           {"notes", report.notes}};
  if (comparison != nullptr) {
    out["tokens"] = comparison->tokens;
    out["kl_mean"] = comparison->kl_mean;
    out["kl_largest"] = comparison->kl_largest;
    out["kl_worst_percent"] = comparison->kl_worst_percent;
    out["same_top_rate"] = comparison->same_top_rate;
    out["source_nll_mean"] = comparison->source_nll_mean;
    out["nll_mean"] = comparison->other_nll_mean;
    out["worst_sample"] = {{"first_token", comparison->worst.first},
                           {"tokens", comparison->worst.tokens},
                           {"kl_mean", comparison->worst.kl_mean}};
  }
  return out;
}

std::string as_text(const QuantizeReport& report, const Comparison* comparison) {
  std::string out =
      fmt::format("{:<36}{:>9}{:>9}{:>14}{:>16}\n", "tensor", "from", "to", "bytes", "relative error");
  for (const QuantizedTensor& tensor : report.tensors) {
    out += fmt::format("{:<36}{:>9}{:>9}{:>14}{:>16.6f}{}\n", tensor.name, tensor.from, dtype_name(tensor.to),
                       tensor.bytes_after, tensor.relative_error,
                       tensor.narrowed_rows && tensor.relative_error > 0 ? "  rows of no whole blocks" : "");
  }
  out += fmt::format("\n{} -> {}\n", human_bytes(static_cast<std::int64_t>(report.bytes_before)),
                     human_bytes(static_cast<std::int64_t>(report.bytes_after)));
  if (comparison == nullptr) return out;
  out += fmt::format("over {}: KL divergence {:.6f} nats (worst 1%: {:.6f}, largest {:.6f})\n",
                     counted(comparison->tokens, "token"), comparison->kl_mean, comparison->kl_worst_percent,
                     comparison->kl_largest);
  out +=
      fmt::format("same likeliest token {:.2f}%; negative log-likelihood {:.6f} -> {:.6f}\n",
                  100 * comparison->same_top_rate, comparison->source_nll_mean, comparison->other_nll_mean);
  out += fmt::format("worst sample: {} from token {} on, KL divergence {:.6f}\n",
                     counted(comparison->worst.tokens, "token"), comparison->worst.first,
                     comparison->worst.kl_mean);
  return out;
}

Status run(const QuantizeFlags& flags) {
  const QuantizeOptions options = HONE_TRY(options_of(flags));
  EngineOptions engine_options;
  engine_options.threads = flags.threads;
  const ChosenTarget chosen = HONE_TRY(choose_target(engine_options));
  QuantizeReport report;
  const bool compares = !flags.text.empty() || !flags.ids.empty();
  std::vector<std::int32_t> ids;
  {
    const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
    if (compares) ids = HONE_TRY(compared_ids(flags, checkpoint));
    const std::unique_ptr<ThreadPool> pool =
        HONE_TRY(ThreadPool::create(chosen.target.threads, chosen.target.threads_spin));
    const RemovedOnInterrupt partial(flags.output + ".partial");
    Progress progress("quantize");
    const auto show = progress.callback();
    report = HONE_TRY(quantize_file(checkpoint, flags.output, options, *pool,
                                    [&show](std::uint64_t done, std::uint64_t total) {
                                      if (!show) return;  // no terminal
                                      show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(total));
                                    }));
    progress.done();
  }
  for (const std::string& note : report.notes) print_note(fmt::format("note: {}\n", note));
  Comparison comparison;
  if (compares) comparison = HONE_TRY(compare(flags, ids));
  const Comparison* shown = compares ? &comparison : nullptr;
  if (flags.json) {
    print_json(as_json(report, shown));
  } else {
    print_answer(as_text(report, shown));
  }
  return {};
}

}  // namespace

Verb add_quantize(const CommandLine& line) {
  const Command verb =
      line.add_verb("quantize", "writes a GGUF file of a model, its matrices in another type");
  auto flags = std::make_shared<QuantizeFlags>();
  verb.option("MODEL", flags->model, "a GGUF file or a Hugging Face folder").required();
  verb.option("--to", flags->type, "f32, f16, bf16, q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1, q4_0, iq4_nl")
      .required();
  verb.option("-o,--output", flags->output, "the file to write").required();
  verb.flag("--mix", flags->mix, "sensitive matrices in a wider type");
  const Flag text = verb.option("--text", flags->text, "compares the predictions on this text");
  const Flag ids = verb.option("--ids", flags->ids, "the text as token ids: 1,2,3");
  text.excludes(ids);
  const Flag window =
      verb.option("--window", flags->window, "tokens of a sample").show_default().within(2, 1'000'000);
  verb.option("--threads", flags->threads, "0: all that this process may use")
      .show_default()
      .within(0, ThreadPool::kMaxThreads, kZeroIsDefault);
  verb.flag("--json", flags->json, "one JSON document on stdout");
  return {verb, &flags->json, [flags, window]() -> Status {
            if (window.given() && flags->text.empty() && flags->ids.empty()) {
              return goes_with("--window", "--text or --ids");
            }
            return run(*flags);
          }};
}

}  // namespace hone
