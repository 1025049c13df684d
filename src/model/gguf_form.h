// A Hugging Face checkpoint in the form that GGUF gives the same model: other names, other keys, and a few
// tensors that GGUF holds differently.
//
//   model.layers.3.self_attn.q_proj.weight   ->  blk.3.attn_q.weight, rows of a head from halves to pairs
//   (llama) model.layers.3.input_layernorm.weight    ->  blk.3.attn_norm.weight, 1 + w (gemma)
//   model.layers.3.mlp.experts.*.up_proj     ->  blk.3.ffn_up_exps.weight, one tensor of three axes
//   config.json's rope_scaling of type llama3 ->  rope_freqs.weight, what each frequency is divided by
//
// The differences follow from what each family says of its two styles (Family::describe), not from names of
// models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "file/checkpoint.h"
#include "file/gguf_writer.h"
#include "model/config.h"

namespace hone {

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  // One behind the other along the first axis; their dtypes are one. Empty: `values` is the tensor.
  std::vector<const TensorEntry*> parts;
  std::vector<float> values;
  // > 0: rows come in heads of so many, and row i + R/2 of a head follows row i (halves to pairs).
  std::int64_t paired_rows = 0;
  double offset = 0;  // added to every value
};

struct GgufForm {
  std::string architecture;  // general.architecture
  std::vector<GgufTensor> tensors;
};

// `config` is read_config(checkpoint)'s, of style HuggingFace. Errors (BadModel): what GGUF has no key or no
// architecture for, what the config refuses, and every tensor that has no name in GGUF, all at once.
Result<GgufForm> gguf_form(const Checkpoint& checkpoint, const ModelConfig& config);

// The tensors of a GGUF file, as they are.
std::vector<GgufTensor> as_gguf_tensors(const Checkpoint& checkpoint);

// general.architecture and the `ARCH.` keys. What the config asks for and GGUF cannot say is an error of
// gguf_form().
void add_gguf_config(const ModelConfig& config, const GgufForm& form, GgufWriter& writer);

// What of the maths no GGUF key can say, "rope of type dynamic" each.
std::vector<std::string> not_in_gguf(const ModelConfig& config, const ModelConfig& target);

}  // namespace hone
