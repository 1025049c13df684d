// The rotary keys of config.json.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/config_json.h"

namespace hone {
namespace {

using enum KeyUse;

// The members of rope_scaling and of rope_parameters.
constexpr std::array kRopeKeys{
    KeyRow{"rope_type"},
    KeyRow{"type"},
    KeyRow{"rope_theta"},
    KeyRow{"partial_rotary_factor"},
    KeyRow{"factor"},
    KeyRow{"original_max_position_embeddings"},
    KeyRow{"low_freq_factor"},
    KeyRow{"high_freq_factor"},
    KeyRow{"beta_fast"},
    KeyRow{"beta_slow"},
    KeyRow{"attention_factor"},
    KeyRow{"mscale"},
    KeyRow{"mscale_all_dim"},
    KeyRow{"truncate"},
    KeyRow{"short_factor"},
    KeyRow{"long_factor"},
    KeyRow{"short_mscale", Refused, "", "null"},
    KeyRow{"long_mscale", Refused, "", "null"},
    KeyRow{"mrope_section", Refused, "", "null"},
    KeyRow{"llama_4_scaling_beta", Refused, "", "null"},
    KeyRow{"finetuned", NoEffect},
};

// The factor on cos and sin that grows with the context: 0.1 m ln(factor) + 1.
double yarn_scale(double factor, double m) {
  return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1;
}

void read_yarn(const JsonReader& reader, RopeConfig& rope) {
  rope.beta_fast = reader.real("beta_fast").value_or(32);
  rope.beta_slow = reader.real("beta_slow").value_or(1);
  rope.truncate = reader.truth("truncate").value_or(true);
  const double m = reader.real("mscale").value_or(0);
  const double all = reader.real("mscale_all_dim").value_or(0);
  const double by_length = m != 0 && all != 0 ? yarn_scale(rope.factor, m) / yarn_scale(rope.factor, all)
                                              : yarn_scale(rope.factor, 1);
  rope.attention_factor = reader.real("attention_factor").value_or(by_length);
}

void read_long_rope(const JsonReader& reader, const ModelConfig& config, RopeConfig& rope,
                    ConfigFaults& faults) {
  rope.short_factors = reader.reals("short_factor");
  rope.long_factors = reader.reals("long_factor");
  if (rope.short_factors.empty())
    faults.add("short_factor", "the key is missing", "a list of numbers", "none");
  if (rope.long_factors.empty()) faults.add("long_factor", "the key is missing", "a list of numbers", "none");
  const double factor =
      reader.real("factor").value_or(static_cast<double>(config.context_length) / rope.original_context);
  const double by_length =
      factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(rope.original_context));
  rope.attention_factor = reader.real("attention_factor").value_or(by_length);
  rope.factor = 1;
}

// One object of rotary keys; `place`: its path in config.json.
void read_rope_object(const nlohmann::json& object, const std::string& place, ModelConfig& config,
                      RopeConfig& rope, ConfigFaults& faults) {
  for (const auto& [key, value] : object.items()) {
    sort_key(kRopeKeys, key, fmt::format("{}.{}", place, key), json_text(value), config);
  }
  const JsonReader reader(object, place + ".", faults);
  rope.theta = reader.real("rope_theta").value_or(rope.theta);
  if (const auto part = reader.real("partial_rotary_factor")) {
    rope.dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * *part);
  }
  rope.factor = reader.real("factor").value_or(1);
  // The one beside the rope's object goes before the one in it.
  if (rope.original_context == 0) {
    rope.original_context =
        reader.real("original_max_position_embeddings").value_or(static_cast<double>(config.context_length));
  }
  const std::string type = reader.text("rope_type").value_or(reader.text("type").value_or("default"));
  if (type == "linear") {
    rope.kind = RopeKind::Linear;
  } else if (type == "dynamic") {
    rope.kind = RopeKind::Dynamic;
    rope.original_context = static_cast<double>(config.context_length);
  } else if (type == "llama3") {
    rope.kind = RopeKind::Llama3;
    rope.low_frequency_factor = reader.need_real("low_freq_factor");
    rope.high_frequency_factor = reader.need_real("high_freq_factor");
  } else if (type == "yarn" && config.family != "phi3") {
    rope.kind = RopeKind::Yarn;
    read_yarn(reader, rope);
  } else if (type == "longrope" || type == "su" || type == "yarn") {  // three names of Phi-3's files
    rope.kind = RopeKind::LongRope;
    read_long_rope(reader, config, rope, faults);
  } else if (type != "default" && type != "none") {
    config.refused.push_back(fmt::format("key {}.rope_type = {}", place, type));
  }
}

}  // namespace

void read_rope_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                    ConfigFaults& faults) {
  RopeConfig& rope = config.rope;
  rope.theta = reader.real("rope_theta").value_or(rope.theta);
  rope.original_context =
      reader.real("original_max_position_embeddings").value_or(config.family == "phi3" ? 4096 : 0);
  const double part = reader.real("partial_rotary_factor").value_or(config.family == "glm4" ? 0.5 : 1);
  rope.dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * part);
  if (config.local_rope) {
    config.local_rope->theta = reader.real("rope_local_base_freq").value_or(config.local_rope->theta);
  }
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const auto found = json.find(key);
    const std::string place = reader.name(key);
    if (found == json.end() || found->is_null()) continue;
    if (!found->is_object()) {
      faults.add(place, "the value has another type", "an object", json_text(*found));
      continue;
    }
    const auto full = found->find("full_attention");
    const auto sliding = found->find("sliding_attention");
    if (full == found->end() && sliding == found->end()) {
      read_rope_object(*found, place, config, rope, faults);
      continue;
    }
    // One object for each type of layer.
    if (full == found->end() || sliding == found->end() || !full->is_object() || !sliding->is_object() ||
        found->size() != 2 || !config.local_rope) {
      faults.add(place, "the types of layers have a rope each", "full_attention and sliding_attention",
                 json_text(*found));
      continue;
    }
    read_rope_object(*full, place + ".full_attention", config, rope, faults);
    read_rope_object(*sliding, place + ".sliding_attention", config, *config.local_rope, faults);
  }
}

}  // namespace hone
