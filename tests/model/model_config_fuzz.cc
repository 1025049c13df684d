// Any JSON object as config.json, or, where it has "general.architecture", as the metadata of a GGUF file: an
// Error, or numbers that a graph can be built from.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "file/json_text.h"
#include "model/config.h"

namespace {

using Json = nlohmann::json;

template <class T>
std::vector<T> values_of(const Json& array) {
  std::vector<T> out;
  for (const Json& each : array) out.push_back(each.get<T>());
  return out;
}

bool all_of(const Json& array, bool (Json::*is)() const noexcept) {
  for (const Json& each : array) {
    if (!(each.*is)()) return false;
  }
  return !array.empty();
}

hone::Metadata as_metadata(const Json& object) {
  hone::Metadata out("fuzz");
  for (const auto& [key, value] : object.items()) {
    if (value.is_number_integer()) {
      out.add_integer(key, value.get<std::int64_t>());
    } else if (value.is_number_float()) {
      out.add_real(key, value.get<double>());
    } else if (value.is_boolean()) {
      out.add_bool(key, value.get<bool>());
    } else if (value.is_string()) {
      out.add_string(key, value.get<std::string>());
    } else if (value.is_array() && all_of(value, &Json::is_number_integer)) {
      out.add_integers(key, values_of<std::int64_t>(value));
    } else if (value.is_array() && all_of(value, &Json::is_number)) {
      out.add_reals(key, values_of<double>(value));
    } else if (value.is_array() && all_of(value, &Json::is_string)) {
      out.add_strings(key, values_of<std::string>(value));
    }
  }
  return out;
}

// As many as the small models have, under names that a reader asks for.
void add_tensors(hone::Checkpoint& checkpoint) {
  for (const char* name : {"token_embd.weight", "lm_head.weight", "model.layers.4.eh_proj.weight",
                           "blk.1.nextn.eh_proj.weight", "vision_tower.weight"}) {
    checkpoint.tensors.push_back({name, hone::DType::F32, "f32", {320, 64}, 0, 81920, 0});
  }
  for (int i = 0; i < 40; ++i) {
    checkpoint.tensors.push_back({"tensor." + std::to_string(i), hone::DType::F32, "f32", {64}, 0, 256, 0});
  }
  if (checkpoint.index_tensors()) std::abort();
}

void check(bool holds) {
  if (!holds) std::abort();
}

void check_numbers(const hone::ModelConfig& config) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (const std::int64_t size : {config.vocabulary, config.dim, config.layers, config.heads, config.kv_heads,
                                  config.head_dim, config.v_head_dim, config.context_length}) {
    check(size > 0 && size < kMost);
  }
  check(config.ffn >= 0 && config.ffn < kMost);
  check(config.layers <= 100'000);
  check(config.heads % config.kv_heads == 0);
  check(std::isfinite(config.norm_eps) && config.norm_eps >= 0);
  check(std::isfinite(config.attention_scale) && std::isfinite(config.embedding_scale));
  check(std::isfinite(config.attention_softcap) && std::isfinite(config.final_softcap));
  check(config.sliding_window >= 0);
  check(config.experts.count >= 0 && config.experts.per_token <= config.experts.count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = hone::parse_json_object({reinterpret_cast<const char*>(data), size}, "fuzz",
                                              {.bytes = 1U << 16U, .depth = 16});
  if (!object.ok()) return 0;
  hone::Checkpoint checkpoint;
  checkpoint.path = "fuzz";
  if (object->contains("general.architecture")) {
    checkpoint.format = "gguf";
    checkpoint.metadata = as_metadata(*object);
  } else {
    checkpoint.format = "huggingface";
    checkpoint.config = std::make_shared<const Json>(*object);
  }
  add_tensors(checkpoint);
  const auto config = hone::read_config(checkpoint);
  if (!config.ok()) {
    check(!config.error().message.empty() && !config.error().where.empty());
    return 0;
  }
  check_numbers(*config);
  return 0;
}
