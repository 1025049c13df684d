// What a checkpoint recommends for generating with it.
//
// A Hugging Face folder: generation_config.json (transformers, GenerationConfig) with temperature, top_k,
// top_p, min_p, typical_p, repetition_penalty, do_sample, eos_token_id and max_new_tokens; a missing key or
// null is "off", also where transformers has another default of its own. As there, do_sample is false where
// it is missing, and false is greedy. Without that file, eos_token_id of config.json, or of its text_config.
// A GGUF file: general.sampling.temp, .top_k, .top_p, .min_p, .penalty_repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "file/checkpoint.h"
#include "tokens/sampler.h"

namespace hone {

struct GenerationDefaults {
  SamplerOptions sampler;
  std::optional<std::int64_t> max_tokens;
  std::vector<std::int32_t> end_ids;  // beside the tokenizer's own
  // Options that the checkpoint sets, by flag name ("top-k"), and where they stand.
  struct Source {
    std::string option;
    std::string key;  // "generation_config.json: top_k"
  };
  std::vector<Source> sources;
  // Keys that ask for something that hone does not do, with their values: "num_beams = 4".
  std::vector<std::string> ignored;

  // Where `option` comes from; empty if the checkpoint does not set it.
  std::string_view source_of(std::string_view option) const;
};

// Errors (BadModel): a value of the wrong type or out of its range; file and key stand in `where`.
Result<GenerationDefaults> generation_defaults(const Checkpoint& checkpoint);

}  // namespace hone
