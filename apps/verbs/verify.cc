// hone verify: each pass against what it replaced, each prefix of the chain against O0, and the guilty pass
// by name.
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <unistd.h>

#include "apps/plural.h"
#include "apps/verb.h"
#include "engine/verify_model.h"
#include "file/open.h"
#include "model/config.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

struct VerifyFlags : CommonFlags {
  std::string ids;
  std::string prompt;
  std::optional<Flag> prompt_option;
};

// Without a prompt: some tokens from all over the vocabulary.
constexpr std::int64_t kDefaultTokens = 7;

std::vector<std::int32_t> default_ids(std::int64_t vocabulary) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 1; i <= kDefaultTokens; ++i) {
    ids.push_back(static_cast<std::int32_t>(vocabulary * i / (kDefaultTokens + 1)));
  }
  return ids;
}

Result<std::vector<std::int32_t>> ids_of(const VerifyFlags& flags, const Checkpoint& checkpoint) {
  if (!flags.ids.empty()) return parse_ids("--ids", flags.ids);
  if (!flags.prompt_option->given()) return default_ids(HONE_TRY(read_config(checkpoint)).vocabulary);
  const std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  if (!tokenizer) return no_tokenizer(flags.model);
  return tokenizer->encode(flags.prompt);
}

Json number(double value) {
  return std::isnan(value) ? Json() : Json(value);
}

Json as_json(const VerifyReport& report) {
  Json passes = Json::array();
  for (const PassCheck& check : report.passes) {
    passes.push_back({{"name", check.name},
                      {"max_error", check.max_error},
                      {"bound", check.bound},
                      {"ok", check.ok},
                      {"changed", check.changed},
                      {"rewritten", check.rewritten},
                      {"contract", contract_to_string(check.contract)},
                      {"end_to_end_error", number(check.end_to_end_error)},
                      {"end_to_end_bound", number(check.end_to_end_bound)},
                      {"scale_error", number(check.scale_error)},
                      {"scale_bound", number(check.scale_bound)}});
  }
  Json out{{"passes", std::move(passes)},
           {"ok", report.ok},
           {"guilty", report.guilty.empty() ? Json() : Json(report.guilty)},
           {"bisection_runs", report.bisection_runs},
           {"most_bisection_runs", report.most_bisection_runs},
           {"sequences", report.sequences},
           {"tokens", report.tokens}};
  if (report.ok) return out;
  out["value"] = report.value;
  out["before"] = report.before;
  out["after"] = report.after;
  return out;
}

std::string error_text(double value) {
  return value > 1e300 ? std::string("no number") : fmt::format("{:.2g}", value);
}

std::string as_text(const VerifyReport& report) {
  std::string out =
      report.ok ? std::string("every pass keeps its contract") : fmt::format("guilty: {}", report.guilty);
  out += fmt::format(", on {} of {}\n\n", counted(report.sequences, "sequence"),
                     counted(report.tokens, "token"));
  out += fmt::format("{:<24}{:>10}{:>12}{:>12}{:>13}{:>12}  {:<5}{}\n", "pass", "rewritten", "max error",
                     "bound", "end to end", "bound", "ok", "contract");
  for (const PassCheck& check : report.passes) {
    const std::string contract = contract_to_string(check.contract);
    if (!check.changed) {
      out += fmt::format("{:<24}{:>10}{:>51}{:<5}{}\n", check.name, "(unchanged)", "", "", contract);
      continue;
    }
    const bool run = !std::isnan(check.end_to_end_error);
    out += fmt::format("{:<24}{:>10}{:>12}{:>12}{:>13}{:>12}  {:<5}{}\n", check.name, check.rewritten,
                       error_text(check.max_error), error_text(check.bound),
                       run ? error_text(check.end_to_end_error) : "-",
                       run ? error_text(check.end_to_end_bound) : "-", check.ok ? "yes" : "NO", contract);
  }
  for (const std::string& note : report.notes) out += "note: " + note + "\n";
  if (report.ok) return out;
  out += fmt::format("\nbisection: {} of at most {}\n", counted(report.bisection_runs, "end-to-end run"),
                     report.most_bisection_runs);
  if (report.value.empty()) return out;
  out += fmt::format("\nthe smallest rewritten piece that fails computes {}\n\nbefore {}:\n{}\nafter:\n{}",
                     report.value, report.guilty, report.before, report.after);
  return out;
}

Status run(const VerifyFlags& flags) {
  const EngineOptions options = HONE_TRY(flags.engine_options());
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
  const std::vector<std::int32_t> ids = HONE_TRY(ids_of(flags, checkpoint));
  const bool watched = isatty(STDERR_FILENO) == 1;
  const auto tell = [&](const std::string& what) {
    if (watched) print_note(fmt::format("{}\n", what));
  };
  const VerifyReport report = HONE_TRY(verify_model(checkpoint, options, ids, tell));
  if (flags.json) {
    print_json(as_json(report));
  } else {
    print_answer(as_text(report));
  }
  if (report.ok) return {};
  return Error{ErrorCode::CheckFailed,
               report.guilty.starts_with(kPluginPrefix) ? Fault::File : Fault::Hone,
               report.guilty == "kernels" ? std::string("kernels") : fmt::format("pass {}", report.guilty),
               "the chain does not compute what O0 computes",
               "each pass within its contract, each prefix within the tolerance",
               "the report on stdout",
               report.guilty == "kernels" ? std::string("--isa, to see which level's kernels are wrong")
                                          : fmt::format("--passes=-{} runs without it", report.guilty)};
}

}  // namespace

Verb add_verify(const CommandLine& line) {
  const Command verb =
      line.add_verb("verify", "each pass against its contract, each prefix of the chain against O0");
  auto flags = std::make_shared<VerifyFlags>();
  flags->add_to(verb);
  const Flag ids =
      verb.option("--ids", flags->ids, "token ids to feed: 1,2,3; default: some of all the vocabulary");
  flags->prompt_option = verb.option("-p,--prompt", flags->prompt, "a text to feed").excludes(ids);
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
