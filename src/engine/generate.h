// The generation loop of one sequence: prefill, then one token at a time until a stop rule holds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.h"
#include "tokens/sampler.h"

namespace hone {

struct GenerateOptions {
  std::int64_t max_tokens = 512;
  SamplerOptions sampler;
  std::vector<std::string> stop;   // texts that end the answer; not part of it
  bool ignore_end_tokens = false;  // go on after an end-of-generation token
};

enum class Finish : std::uint8_t { Stop, Length };

struct Generation {
  std::vector<std::int32_t> ids;  // without the end token
  std::string text;
  Finish finish = Finish::Length;
  std::int64_t prompt_tokens = 0;  // that were run: without `past`
  double first_token_s = 0;        // from the call to the first id
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;       // 0 if fewer than two ids were made
  std::int64_t launches_per_token = 0;  // of the last step, counted by the executor
};

// Called with each piece of text as it becomes certain; false ends the generation (Finish::Stop).
using TextCallback = std::function<bool(std::string_view text)>;

// Continues `prompt`, of whose tokens the session's state holds the first `past` already. Stops at an
// end-of-generation token (the tokenizer's and those of Session::generation_defaults) or a stop text (Stop),
// or at max_tokens or the end of the context (Length). Errors: no token after `past`; a prompt longer than
// the context; those of the sampler.
Result<Generation> generate(Session& session, std::span<const std::int32_t> prompt, std::int64_t past,
                            const GenerateOptions& options, const TextCallback& on_text = {});

}  // namespace hone
