#include "apps/generation_flags.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/plural.h"
#include "apps/text_io.h"

namespace hone {
namespace {

struct RealRow {
  const char* flag;
  std::string_view option;
  const char* key;  // in JSON
  const char* help;
  double SamplerOptions::* member;
  double off;
};
constexpr std::array kReals{
    RealRow{"--temperature", "temperature", "temperature", "0 is greedy", &SamplerOptions::temperature, 0},
    RealRow{"--top-p", "top-p", "top_p", "keep the most likely that sum to p; 1 is off",
            &SamplerOptions::top_p, 1},
    RealRow{"--min-p", "min-p", "min_p", "drop below p times the most likely; 0 is off",
            &SamplerOptions::min_p, 0},
    RealRow{"--typical-p", "typical-p", "typical_p",
            "keep those of the most typical likelihood that sum to p; 1 is off", &SamplerOptions::typical_p,
            1},
    RealRow{"--repeat-penalty", "repeat-penalty", "repeat_penalty",
            "makes tokens of prompt and answer less likely; 1 is off", &SamplerOptions::repeat_penalty, 1},
    RealRow{"--presence-penalty", "presence-penalty", "presence_penalty",
            "taken from the logits of the answer's tokens; 0 is off", &SamplerOptions::presence_penalty, 0},
    RealRow{"--frequency-penalty", "frequency-penalty", "frequency_penalty",
            "the same, for each time that they occur; 0 is off", &SamplerOptions::frequency_penalty, 0},
};

}  // namespace

void GenerationFlags::add_to(const Command& verb) {
  add("max-tokens", verb.option("-n,--max-tokens", values_.max_tokens, "most tokens to make")
                        .show_default()
                        .within(1, kNoLimit));
  add_sampling(verb);
  verb.option("--stop", values_.stop, "a text that ends the answer; may be given again");
  verb.flag("--ignore-end", ignore_end_, "go on after an end token");
}

void GenerationFlags::add_to_measurement(const Command& verb, std::int64_t tokens, const char* help) {
  measured_ = true;
  ignore_end_ = true;
  values_.max_tokens = tokens;
  add("max-tokens",
      verb.option("-n,--max-tokens", values_.max_tokens, help).show_default().within(1, kNoLimit));
  add_sampling(verb);
}

void GenerationFlags::add_sampling(const Command& verb) {
  SamplerOptions& sampler = values_.sampler;
  // Where no flag is given, the checkpoint's recommendation counts before these.
  for (const RealRow& row : kReals) {
    add(row.option, verb.option(row.flag, sampler.*row.member, row.help).show_default());
  }
  add("top-k", verb.option("--top-k", sampler.top_k, "keep the k most likely; 0 is off")
                   .show_default()
                   .within(0, kNoLimit, "0 is off"));
  verb.option("--seed", sampler.seed, "of the draws").show_default();
}

Status GenerationFlags::check() const {
  const auto fault = find_fault(values_.sampler);
  if (!fault) return {};
  return Error{ErrorCode::Usage,
               Fault::User,
               fmt::format("--{}", fault->option),
               "the number is out of range",
               std::string(fault->expected),
               fmt::format("{}", fault->actual),
               {}};
}

Status GenerationFlags::apply(const GenerationDefaults& defaults, bool strict) {
  HONE_TRY(check());
  defaults_ = defaults;
  merged_ = values_;
  merged_.ignore_end_tokens = ignore_end_;
  for (const RealRow& row : kReals) {
    if (!given(row.option)) merged_.sampler.*row.member = defaults.sampler.*row.member;
  }
  if (!given("top-k")) merged_.sampler.top_k = defaults.sampler.top_k;
  if (!measured_ && !given("max-tokens") && defaults.max_tokens) merged_.max_tokens = *defaults.max_tokens;
  if (defaults.ignored.empty()) return {};
  const std::string list = fmt::format("{}", fmt::join(defaults.ignored, ", "));
  if (strict) {
    return Error{ErrorCode::CheckFailed,
                 Fault::Hone,
                 "--strict",
                 "the checkpoint recommends a way of generating that hone does not have",
                 "only what hone does",
                 list,
                 "leave --strict out to run without"};
  }
  print_note(fmt::format("note: recommended by the checkpoint and not done: {}\n", list));
  return {};
}

bool GenerationFlags::given(std::string_view option) const {
  const auto at = std::ranges::find(flags_, option, &Given::option);
  return at != flags_.end() && at->flag.given();
}

std::string GenerationFlags::source(std::string_view option) const {
  if (given(option)) return fmt::format("--{}", option);
  return std::string(defaults_.source_of(option));
}

std::string GenerationFlags::report() const {
  const SamplerOptions& sampler = merged_.sampler;
  std::vector<std::string> parts;
  const auto add_part = [&](std::string_view option, std::string text) {
    const std::string from = source(option);
    parts.push_back(from.empty() ? std::move(text) : fmt::format("{} ({})", text, from));
  };
  if (sampler.temperature == 0) add_part("temperature", "greedy");
  for (const RealRow& row : kReals) {
    const double value = sampler.*row.member;
    if (value != row.off) add_part(row.option, fmt::format("{} {}", row.option, value));
  }
  if (sampler.top_k != 0) add_part("top-k", fmt::format("top-k {}", sampler.top_k));
  if (sampler.temperature != 0) parts.push_back(fmt::format("seed {}", sampler.seed));
  add_part("max-tokens", "at most " + counted(merged_.max_tokens, "token"));
  if (!defaults_.end_ids.empty())
    parts.push_back(fmt::format("ends at {}", fmt::join(defaults_.end_ids, " ")));
  return fmt::format("sampling: {}\n", fmt::join(parts, ", "));
}

nlohmann::ordered_json GenerationFlags::report_json() const {
  const SamplerOptions& sampler = merged_.sampler;
  nlohmann::ordered_json out;
  nlohmann::ordered_json from = nlohmann::ordered_json::object();
  const auto add_value = [&](std::string_view option, const char* key, const nlohmann::ordered_json& value) {
    out[key] = value;
    std::string where = source(option);
    if (!where.empty()) from[key] = std::move(where);
  };
  for (const RealRow& row : kReals) add_value(row.option, row.key, sampler.*row.member);
  add_value("top-k", "top_k", sampler.top_k);
  out["seed"] = sampler.seed;
  add_value("max-tokens", "max_tokens", merged_.max_tokens);
  out["end_ids"] = defaults_.end_ids;
  out["from"] = std::move(from);
  return out;
}

}  // namespace hone
