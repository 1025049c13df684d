// A Hugging Face folder: config.json, generation_config.json, and the weights as model.safetensors or as
// shards that model.safetensors.index.json names.
#pragma once

#include <string>

#include "base/result.h"
#include "file/checkpoint.h"

namespace hone {

// A folder may lack what its user does not need: without config.json `config` is null, without weights
// `tensors` is empty. Errors (BadModel): a folder that holds none of a model's files; one whose only weights
// are pickles, with how to convert them; (BadFile) those of the parsers; shards that the index names and that
// are missing, all of them; a tensor that its shard lacks; a tensor that two shards have.
Result<Checkpoint> read_huggingface(const std::string& folder);

// The same folder with only this file of weights: a model.safetensors, or one shard.
Result<Checkpoint> read_huggingface_file(const std::string& folder, std::shared_ptr<MappedFile> file);

// An error (BadModel) if the checkpoint has no tensors or, in a Hugging Face folder, no config.json: names
// what a verb that runs the model needs.
Status require_model(const Checkpoint& checkpoint);

// What the checkpoint calls its architecture: general.architecture, or config.json's architectures[0] or
// model_type; "unknown" where there is none.
std::string architecture_name(const Checkpoint& checkpoint);

}  // namespace hone
