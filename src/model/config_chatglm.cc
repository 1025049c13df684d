// config.json of ChatGLM3 and GLM-4-9B in their original form, with keys of their own.
#include <array>
#include <nlohmann/json.hpp>

#include "model/config_json.h"

namespace hone {
namespace {

using enum KeyUse;

constexpr std::array kChatglmKeys{
    KeyRow{"model_type"},
    KeyRow{"hidden_size"},
    KeyRow{"num_layers"},
    KeyRow{"num_attention_heads"},
    KeyRow{"multi_query_attention"},
    KeyRow{"multi_query_group_num"},
    KeyRow{"kv_channels"},
    KeyRow{"ffn_hidden_size"},
    KeyRow{"padded_vocab_size"},
    KeyRow{"seq_length"},
    KeyRow{"layernorm_epsilon"},
    KeyRow{"add_qkv_bias"},
    KeyRow{"add_bias_linear"},
    KeyRow{"rope_ratio"},
    KeyRow{"tie_word_embeddings"},

    KeyRow{"rmsnorm", Refused, "", "true"},
    KeyRow{"post_layer_norm", Refused, "", "true"},
    KeyRow{"original_rope", Refused, "", "true"},
    KeyRow{"apply_residual_connection_post_layernorm", Refused, "", "false"},
    KeyRow{"pre_seq_len", Refused, "", "null"},
    KeyRow{"quantization_bit", Refused, "", "0"},
    KeyRow{"quantization_config", Refused, "", "null"},

    KeyRow{"apply_query_key_layer_scaling", NoEffect},  // scales and unscales
    KeyRow{"architectures", NoEffect},
    KeyRow{"_name_or_path", NoEffect},
    KeyRow{"attention_dropout", NoEffect},
    KeyRow{"attention_softmax_in_fp32", NoEffect},
    KeyRow{"auto_map", NoEffect},
    KeyRow{"bias_dropout_fusion", NoEffect},
    KeyRow{"bos_token_id", NoEffect},
    KeyRow{"classifier_dropout", NoEffect},
    KeyRow{"dtype", NoEffect},
    KeyRow{"eos_token_id", NoEffect},
    KeyRow{"fp32_residual_connection", NoEffect},
    KeyRow{"hidden_dropout", NoEffect},
    KeyRow{"initializer_range", NoEffect},
    KeyRow{"interleaved_qkv", Refused, "", "false"},
    KeyRow{"pad_token_id", NoEffect},
    KeyRow{"prefix_projection", NoEffect},
    KeyRow{"torch_dtype", NoEffect},
    KeyRow{"transformers_version", NoEffect},
    KeyRow{"use_cache", NoEffect},
    KeyRow{"vocab_size", NoEffect},  // of the tokenizer: padded_vocab_size is the tensors'
};

}  // namespace

void read_chatglm_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config) {
  for (const auto& [key, value] : json.items()) sort_key(kChatglmKeys, key, key, json_text(value), config);
  config.dim = reader.need_integer("hidden_size");
  config.layers = reader.need_integer("num_layers");
  config.heads = reader.need_integer("num_attention_heads");
  config.ffn = reader.need_integer("ffn_hidden_size");
  config.vocabulary = reader.need_integer("padded_vocab_size");
  config.context_length = reader.need_integer("seq_length");
  config.norm_eps = reader.need_real("layernorm_epsilon");
  const bool grouped = reader.truth("multi_query_attention").value_or(false);
  config.kv_heads = grouped ? reader.need_integer("multi_query_group_num") : config.heads;
  config.head_dim =
      reader.integer("kv_channels").value_or(config.dim / std::max<std::int64_t>(config.heads, 1));
  config.rope.dim = config.head_dim / 2;
  config.rope.theta = 10000 * reader.real("rope_ratio").value_or(1);
  const bool everywhere = reader.truth("add_bias_linear").value_or(false);
  const bool qkv = everywhere || reader.truth("add_qkv_bias").value_or(false);
  config.qkv_bias = qkv ? Bias::Required : Bias::None;
  config.o_bias = config.feed_forward_bias = everywhere ? Bias::Required : Bias::None;
  if (const auto tied = reader.truth("tie_word_embeddings")) config.tied = tied;
}

}  // namespace hone
