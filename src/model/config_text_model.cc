// A text model in a checkpoint that holds others beside it, as Gemma 3's with images (transformers'
// Gemma3ForConditionalGeneration): its keys stand in `text_config`, its tensors behind a prefix.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/config_json.h"
#include "model/names.h"

namespace hone {
namespace {

using enum KeyUse;

// The keys beside `text_config` that not every config.json has.
constexpr std::array kOuterKeys{
    KeyRow{"model_type"},
    KeyRow{"text_config"},
    KeyRow{"tie_word_embeddings", Refused, "", "true|null"},  // the text model has its own
    KeyRow{"vision_config", NoEffect},
    KeyRow{"mm_tokens_per_image", NoEffect},
    KeyRow{"boi_token_index", NoEffect},
    KeyRow{"eoi_token_index", NoEffect},
    KeyRow{"image_token_index", NoEffect},
    KeyRow{"boi_token_id", NoEffect},
    KeyRow{"eoi_token_id", NoEffect},
    KeyRow{"image_token_id", NoEffect},
};

// Where the text model's tensors are: as they are saved, as transformers names them in memory since 4.52, and
// taken out of the folder.
struct Prefixes {
  std::string_view body;
  std::string_view head;
};
constexpr std::array kPrefixes{
    Prefixes{"language_model.model.", "language_model."},
    Prefixes{"model.language_model.", ""},
    Prefixes{"model.", ""},
};

constexpr std::array<std::string_view, 4> kOtherModels{"vision_tower.", "multi_modal_projector.",
                                                       "model.vision_tower.", "model.multi_modal_projector."};

// What transformers' Gemma3TextConfig takes where a key is missing, beside what the family describes.
nlohmann::json gemma3_defaults() {
  return {{"model_type", "gemma3_text"},      {"vocab_size", 262208},    {"hidden_size", 2304},
          {"intermediate_size", 9216},        {"num_hidden_layers", 26}, {"num_attention_heads", 8},
          {"num_key_value_heads", 4},         {"head_dim", 256},         {"rms_norm_eps", 1e-6},
          {"max_position_embeddings", 131072}};
}

void sort_outer_keys(const nlohmann::json& outer, ModelConfig& config) {
  for (const auto& [key, value] : outer.items()) {
    const KeyRow* common = find_row(hugging_face_keys(), key);
    const bool is_common = find_row(kOuterKeys, key) == nullptr && common != nullptr && common->use != Used;
    sort_key(is_common ? hugging_face_keys() : std::span<const KeyRow>(kOuterKeys), key, key,
             json_text(value), config);
  }
}

void find_tensors(const Checkpoint& checkpoint, ModelConfig& config) {
  const auto* found = std::ranges::find_if(kPrefixes, [&](const Prefixes& prefixes) {
    return checkpoint.find_tensor(std::string(prefixes.body) + "embed_tokens.weight") != nullptr;
  });
  const Prefixes& prefixes = found == kPrefixes.end() ? kPrefixes.front() : *found;
  config.body_prefix = prefixes.body;
  config.head_prefix = prefixes.head;
  config.other_models.assign(kOtherModels.begin(), kOtherModels.end());
  const auto count = std::ranges::count_if(
      checkpoint.tensors, [&](const TensorEntry& tensor) { return is_of_other_model(config, tensor.name); });
  if (count == 0) return;
  config.notes.push_back(
      fmt::format("{} tensors that read images were left out (vision_tower, multi_modal_projector): hone has "
                  "the text model",
                  count));
}

}  // namespace

std::optional<nlohmann::json> text_model_keys(const Checkpoint& checkpoint, ModelConfig& config,
                                              ConfigFaults& faults) {
  if (config.architecture != "gemma3") return std::nullopt;
  const nlohmann::json& outer = *checkpoint.config;
  sort_outer_keys(outer, config);
  find_tensors(checkpoint, config);
  nlohmann::json keys = gemma3_defaults();
  const auto text = outer.find("text_config");
  if (text == outer.end() || !text->is_object()) {
    faults.add("text_config", "the keys of the text model are missing", "an object",
               text == outer.end() ? "nothing" : json_text(*text));
    return keys;
  }
  keys.update(*text);
  if (keys["model_type"] != "gemma3_text") {
    faults.add("text_config.model_type", "the text model is another one", "\"gemma3_text\"",
               json_text(keys["model_type"]));
  }
  return keys;
}

}  // namespace hone
