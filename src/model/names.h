// What a part of a model is called in each style of checkpoint. `{}` stands for the layer; `.weight` or
// `.bias` follows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/config.h"

namespace hone {

struct PartName {
  std::string_view part;  // hone's own name: "q_proj"
  std::string_view gguf;
  std::string_view hugging_face;
};

// The names that most families share; a family's own table goes before it.
std::span<const PartName> common_names();

// "blk.3.attn_q" of "q_proj" in layer 3; empty if no table has the part in this style.
std::string tensor_stem(std::span<const PartName> family_names, FileStyle style, std::string_view part,
                        std::int64_t layer);

// The same in the config's own style and behind its prefixes:
// "language_model.model.layers.3.self_attn.q_proj".
std::string tensor_stem(std::span<const PartName> family_names, const ModelConfig& config,
                        std::string_view part, std::int64_t layer);

// True of "model.layers.61.eh_proj.weight" and, in GGUF, of "blk.61.nextn.eh_proj.weight" where the model has
// 61 layers and prediction_layers is 1 or more.
bool is_of_prediction_layer(const ModelConfig& config, std::string_view tensor);

// True of a tensor of one of config.other_models.
bool is_of_other_model(const ModelConfig& config, std::string_view tensor);

}  // namespace hone
