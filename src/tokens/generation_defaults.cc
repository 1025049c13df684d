#include "tokens/generation_defaults.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace hone {

namespace {

using nlohmann::json;

constexpr std::string_view kFile = "generation_config.json";

// A number of SamplerOptions: its flag, its keys in both formats (empty: none), its place.
struct RealRow {
  std::string_view option;
  const char* json_key;
  std::string_view gguf_key;
  double SamplerOptions::* member;
};
constexpr std::array kReals{
    RealRow{"temperature", "temperature", "general.sampling.temp", &SamplerOptions::temperature},
    RealRow{"top-p", "top_p", "general.sampling.top_p", &SamplerOptions::top_p},
    RealRow{"min-p", "min_p", "general.sampling.min_p", &SamplerOptions::min_p},
    RealRow{"typical-p", "typical_p", "", &SamplerOptions::typical_p},
    RealRow{"repeat-penalty", "repetition_penalty", "general.sampling.penalty_repeat",
            &SamplerOptions::repeat_penalty},
};
constexpr std::string_view kTopKGguf = "general.sampling.top_k";
constexpr std::string_view kGgufPrefix = "general.sampling.";

// Keys that change what is generated and that hone does not have, with the value that asks for nothing.
struct UnusedRow {
  const char* key;
  double off;
};
constexpr std::array kUnused{
    UnusedRow{"num_beams", 1},
    UnusedRow{"num_beam_groups", 1},
    UnusedRow{"penalty_alpha", 0},
    UnusedRow{"no_repeat_ngram_size", 0},
    UnusedRow{"encoder_no_repeat_ngram_size", 0},
    UnusedRow{"encoder_repetition_penalty", 1},
    UnusedRow{"epsilon_cutoff", 0},
    UnusedRow{"eta_cutoff", 0},
    UnusedRow{"guidance_scale", 1},
    UnusedRow{"min_length", 0},
    UnusedRow{"min_new_tokens", 0},
    UnusedRow{"bad_words_ids", 0},
    UnusedRow{"force_words_ids", 0},
    UnusedRow{"suppress_tokens", 0},
    UnusedRow{"begin_suppress_tokens", 0},
    UnusedRow{"sequence_bias", 0},
    UnusedRow{"stop_strings", 0},
    UnusedRow{"forced_bos_token_id", -1},
    UnusedRow{"forced_eos_token_id", -1},
    UnusedRow{"exponential_decay_length_penalty", 0},
};

Error bad_value(std::string where, std::string_view expected, std::string actual) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               std::move(where),
               "a default for generating is a number in its range",
               std::string(expected),
               std::move(actual),
               "mend the value, or remove the key"};
}

// The member, unless it is missing or null.
const json* member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

class JsonReader {
 public:
  JsonReader(const json& object, std::string file) : object_(object), file_(std::move(file)) {}

  Result<std::optional<double>> real(const char* key) const {
    const json* value = member(object_, key);
    if (value == nullptr) return std::optional<double>{};
    if (!value->is_number()) return bad_value(place(key), "a number", text(*value));
    return std::optional<double>(value->get<double>());
  }

  Result<std::optional<std::int64_t>> integer(const char* key) const {
    const json* value = member(object_, key);
    if (value == nullptr) return std::optional<std::int64_t>{};
    const auto number = as_integer(*value);
    if (!number) return bad_value(place(key), "a whole number", text(*value));
    return number;
  }

  Result<bool> boolean(const char* key) const {
    const json* value = member(object_, key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return bad_value(place(key), "true or false", text(*value));
    return value->get<bool>();
  }

  // One id, or a list of them; negative ones, which no token has, are left out.
  Result<std::vector<std::int32_t>> ids(const char* key) const {
    std::vector<std::int32_t> out;
    const json* value = member(object_, key);
    if (value == nullptr) return out;
    const json one = json::array({*value});
    const json& list = value->is_array() ? *value : one;
    out.reserve(list.size());
    for (const json& each : list) {
      const auto id = as_integer(each);
      if (!id || *id > std::numeric_limits<std::int32_t>::max()) {
        return bad_value(place(key), "a token id, or a list of them", text(each));
      }
      if (*id >= 0) out.push_back(static_cast<std::int32_t>(*id));
    }
    return out;
  }

  std::string place(std::string_view key) const { return fmt::format("{}: {}", file_, key); }

  static std::string text(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
  }

 private:
  static std::optional<std::int64_t> as_integer(const json& value) {
    if (!value.is_number_integer()) return std::nullopt;
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return std::nullopt;
    }
    return value.get<std::int64_t>();
  }

  const json& object_;
  std::string file_;
};

void add_source(GenerationDefaults& out, std::string_view option, std::string key) {
  out.sources.push_back({std::string(option), std::move(key)});
}

// Ranges are the sampler's; the error names the key.
Status check_ranges(const GenerationDefaults& defaults, std::string_view folder) {
  const auto fault = find_fault(defaults.sampler);
  if (!fault) return {};
  const std::string_view key = defaults.source_of(fault->option);
  return bad_value(fmt::format("{}{}", folder, key), fault->expected, fmt::format("{}", fault->actual));
}

Status set_top_k(GenerationDefaults& out, std::int64_t value, std::string_view folder, std::string key) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
    return bad_value(fmt::format("{}{}", folder, key), "0 to 2^31 - 1", fmt::format("{}", value));
  }
  out.sampler.top_k = static_cast<std::int32_t>(value);
  add_source(out, "top-k", std::move(key));
  return {};
}

void find_unused(const json& object, GenerationDefaults& out) {
  for (const UnusedRow& row : kUnused) {
    const json* value = member(object, row.key);
    if (value == nullptr) continue;
    const bool off = value->is_number() ? value->get<double>() == row.off : value->empty();
    if (!off) out.ignored.push_back(fmt::format("{} = {}", row.key, JsonReader::text(*value)));
  }
}

Result<GenerationDefaults> from_json(const json& object, const std::string& folder) {
  GenerationDefaults out;
  const JsonReader reader(object, fmt::format("{}/{}", folder, kFile));
  const auto key_of = [](std::string_view key) { return fmt::format("{}: {}", kFile, key); };
  for (const RealRow& row : kReals) {
    const std::optional<double> value = HONE_TRY(reader.real(row.json_key));
    if (!value) continue;
    out.sampler.*row.member = *value;
    add_source(out, row.option, key_of(row.json_key));
  }
  if (const auto top_k = HONE_TRY(reader.integer("top_k"))) {
    HONE_TRY(set_top_k(out, *top_k, folder + "/", key_of("top_k")));
  }
  HONE_TRY(check_ranges(out, folder + "/"));
  if (!HONE_TRY(reader.boolean("do_sample"))) {
    out.sampler.temperature = 0;
    std::erase_if(out.sources, [](const auto& source) { return source.option == "temperature"; });
    if (member(object, "do_sample") != nullptr) add_source(out, "temperature", key_of("do_sample"));
  } else if (out.source_of("temperature").empty()) {
    out.sampler.temperature = 1;
    add_source(out, "temperature", key_of("do_sample"));
  }
  out.max_tokens = HONE_TRY(reader.integer("max_new_tokens"));
  if (out.max_tokens) {
    if (*out.max_tokens < 1) {
      return bad_value(reader.place("max_new_tokens"), "1 or more", fmt::format("{}", *out.max_tokens));
    }
    add_source(out, "max-tokens", key_of("max_new_tokens"));
  }
  out.end_ids = HONE_TRY(reader.ids("eos_token_id"));
  find_unused(object, out);
  return out;
}

Result<GenerationDefaults> from_gguf(const Metadata& metadata) {
  GenerationDefaults out;
  std::vector<std::string_view> used{kTopKGguf};
  for (const RealRow& row : kReals) {
    if (row.gguf_key.empty()) continue;
    used.push_back(row.gguf_key);
    const std::optional<double> value = HONE_TRY(metadata.optional_real(row.gguf_key));
    if (!value) continue;
    out.sampler.*row.member = *value;
    add_source(out, row.option, std::string(row.gguf_key));
  }
  if (const auto top_k = HONE_TRY(metadata.optional_integer(kTopKGguf))) {
    HONE_TRY(set_top_k(out, *top_k, {}, std::string(kTopKGguf)));
  }
  HONE_TRY(check_ranges(out, {}));
  for (const MetadataEntry& entry : metadata.entries()) {
    if (!entry.key.starts_with(kGgufPrefix)) continue;
    if (std::ranges::find(used, entry.key) == used.end()) out.ignored.emplace_back(entry.key);
  }
  return out;
}

}  // namespace

std::string_view GenerationDefaults::source_of(std::string_view option) const {
  const auto at = std::ranges::find(sources, option, &Source::option);
  return at == sources.end() ? std::string_view{} : std::string_view(at->key);
}

Result<GenerationDefaults> generation_defaults(const Checkpoint& checkpoint) {
  if (checkpoint.generation_config != nullptr) {
    return from_json(*checkpoint.generation_config, checkpoint.folder);
  }
  if (checkpoint.config != nullptr) {
    GenerationDefaults out;
    const json& config = *checkpoint.config;
    const std::string path = checkpoint.folder + "/config.json";
    out.end_ids = HONE_TRY(JsonReader(config, path).ids("eos_token_id"));
    const json* text = member(config, "text_config");
    if (member(config, "eos_token_id") == nullptr && text != nullptr && text->is_object()) {
      out.end_ids = HONE_TRY(JsonReader(*text, path + ": text_config").ids("eos_token_id"));
    }
    return out;
  }
  return from_gguf(checkpoint.metadata);
}

}  // namespace hone
