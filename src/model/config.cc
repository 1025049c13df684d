#include "model/config.h"

#include <array>
#include <fmt/format.h>

#include "model/family.h"

namespace hone {
namespace {

// Keys that change the maths and that no family here implements; a file that sets one is refused by name.
constexpr std::array<std::string_view, 12> kUnsupportedKeys{"attention.sliding_window",
                                                            "attention.logit_softcapping",
                                                            "final_logit_softcapping",
                                                            "attn_logit_softcapping",
                                                            "attention.max_alibi_bias",
                                                            "attention.clamp_kqv",
                                                            "expert_count",
                                                            "attention.kv_lora_rank",
                                                            "residual_scale",
                                                            "logit_scale",
                                                            "embedding_scale",
                                                            "attention.scale"};

Error bad_model(const Checkpoint& checkpoint, std::string_view key, std::string message, std::string expected,
                std::string actual) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               fmt::format("{}, key {}", checkpoint.path, key),
               std::move(message),
               std::move(expected),
               std::move(actual),
               "hone inspect shows what the file says"};
}

Result<std::int64_t> positive(const Checkpoint& checkpoint, const std::string& key, std::int64_t limit) {
  const std::int64_t value = HONE_TRY(checkpoint.metadata.required_integer(key));
  if (value < 1 || value > limit) {
    return bad_model(checkpoint, key, "a size is out of range", fmt::format("1 to {}", limit),
                     fmt::format("{}", value));
  }
  return value;
}

// Nothing silent: what would change the numbers and is not implemented is named, all at once.
Status refuse_unsupported(const Checkpoint& checkpoint, const std::string& arch) {
  std::string found;
  const auto add = [&found](std::string_view text) {
    if (!found.empty()) found += ", ";
    found += text;
  };
  for (const std::string_view key : kUnsupportedKeys) {
    const std::string full = fmt::format("{}.{}", arch, key);
    if (checkpoint.metadata.find(full) != nullptr) add(full);
  }
  const std::string scaling = arch + ".rope.scaling.type";
  const std::optional<std::string_view> type = HONE_TRY(checkpoint.metadata.optional_string(scaling));
  if (type && *type != "none") add(fmt::format("{} = {}", scaling, *type));
  if (found.empty()) return {};
  return Error{ErrorCode::BadModel,
               Fault::File,
               checkpoint.path,
               "the file sets keys that change the model's arithmetic and that hone does not implement",
               "none of them",
               found,
               "use a checkpoint without them"};
}

Status check_attention(const Checkpoint& checkpoint, const std::string& arch, const ModelConfig& config) {
  if (config.heads % config.kv_heads != 0) {
    return bad_model(checkpoint, arch + ".attention.head_count_kv",
                     "query heads are shared out evenly over kv heads",
                     fmt::format("a divisor of {}", config.heads), fmt::format("{}", config.kv_heads));
  }
  if (config.rotary_dim % 2 != 0 || config.rotary_dim > config.head_dim) {
    return bad_model(checkpoint, arch + ".rope.dimension_count", "rotary dims are pairs inside a head",
                     fmt::format("an even number up to {}", config.head_dim),
                     fmt::format("{}", config.rotary_dim));
  }
  if (!(config.norm_eps > 0 && config.norm_eps < 1)) {
    return bad_model(checkpoint, arch + ".attention.layer_norm_rms_epsilon", "the norm's eps is out of range",
                     "between 0 and 1", fmt::format("{}", config.norm_eps));
  }
  if (!(config.rope_theta > 1 && config.rope_theta < 1e30)) {
    return bad_model(checkpoint, arch + ".rope.freq_base", "the rotary base is out of range",
                     "between 1 and 1e30", fmt::format("{}", config.rope_theta));
  }
  return {};
}

}  // namespace

Result<ModelConfig> read_config(const Checkpoint& checkpoint) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;  // sizes multiply to less than 2^63
  const Metadata& metadata = checkpoint.metadata;
  ModelConfig config;
  config.architecture = std::string(HONE_TRY(metadata.required_string("general.architecture")));
  const Family* family = HONE_TRY(find_family(config.architecture, checkpoint.path));
  const std::string& arch = config.architecture;
  HONE_TRY(refuse_unsupported(checkpoint, arch));

  config.dim = HONE_TRY(positive(checkpoint, arch + ".embedding_length", kLargest));
  config.layers = HONE_TRY(positive(checkpoint, arch + ".block_count", 100'000));
  if (config.layers > static_cast<std::int64_t>(checkpoint.tensors.size())) {
    return bad_model(checkpoint, arch + ".block_count", "every layer has tensors of its own",
                     fmt::format("at most {}, the number of tensors", checkpoint.tensors.size()),
                     fmt::format("{}", config.layers));
  }
  config.heads = HONE_TRY(positive(checkpoint, arch + ".attention.head_count", 1'000'000));
  config.ffn = HONE_TRY(positive(checkpoint, arch + ".feed_forward_length", kLargest));
  config.context_length = HONE_TRY(positive(checkpoint, arch + ".context_length", kLargest));
  config.norm_eps = HONE_TRY(metadata.required_real(arch + ".attention.layer_norm_rms_epsilon"));
  config.kv_heads =
      HONE_TRY(metadata.optional_integer(arch + ".attention.head_count_kv")).value_or(config.heads);
  config.head_dim =
      HONE_TRY(metadata.optional_integer(arch + ".attention.key_length")).value_or(config.dim / config.heads);
  config.rotary_dim =
      HONE_TRY(metadata.optional_integer(arch + ".rope.dimension_count")).value_or(config.head_dim);
  config.rope_theta = HONE_TRY(metadata.optional_real(arch + ".rope.freq_base")).value_or(10000.0);
  config.rope_interleaved = family->rope_interleaved;
  if (config.kv_heads < 1 || config.kv_heads > config.heads || config.head_dim < 1 ||
      config.head_dim > kLargest || config.rotary_dim < 2) {
    return bad_model(
        checkpoint, arch + ".attention.*", "the head sizes are out of range",
        "1 <= head_count_kv <= head_count, key_length >= 1, rope.dimension_count >= 2",
        fmt::format("{}, {}, {}, {}", config.kv_heads, config.heads, config.head_dim, config.rotary_dim));
  }
  HONE_TRY(check_attention(checkpoint, arch, config));

  const TensorEntry* embedding = checkpoint.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return bad_model(
        checkpoint, "token_embd.weight", "the token embedding is missing or no matrix", "[V,D]",
        embedding == nullptr ? "no such tensor" : fmt::format("{} axes", embedding->shape.size()));
  }
  config.vocabulary = embedding->shape[0];
  return config;
}

}  // namespace hone
