// The keys of routed experts and of multi-head latent attention.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "model/config_faults.h"
#include "model/config_json.h"

namespace hone {

// Of config.json, after its sizes and rotary keys were read; nothing for families without experts.
void read_expert_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                      ConfigFaults& faults);

// Sizes as files say them, brought near enough to their range that sums and products stay exact until
// check_experts() refuses what is outside.
constexpr std::int64_t near_range(std::int64_t size) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) + 1;
  return size < -1 ? -1 : size > kMost ? kMost : size;
}

// Ranges: a graph can be built of what passes.
void check_experts(const ModelConfig& config, ConfigFaults& faults);

}  // namespace hone
