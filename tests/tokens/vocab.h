// The vocabularies that the build unpacks.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "file/open.h"
#include "tokens/tokenizer.h"

namespace hone {

// One read per program: the views in the metadata point into the mapped file.
inline const Checkpoint& vocab_checkpoint(const std::string& name) {
  static std::map<std::string, Checkpoint> loaded;
  auto at = loaded.find(name);
  if (at == loaded.end()) {
    auto checkpoint = open_checkpoint(std::string(HONE_VOCAB_DIR "/") + name + "-vocab.gguf");
    at = loaded.emplace(name, checkpoint.ok() ? std::move(checkpoint).value() : Checkpoint{}).first;
  }
  return at->second;
}

inline const Tokenizer& vocab_tokenizer(const std::string& name) {
  static std::map<std::string, Result<Tokenizer>> built;
  auto at = built.find(name);
  if (at == built.end())
    at = built.emplace(name, Tokenizer::from_metadata(vocab_checkpoint(name).metadata)).first;
  return at->second.value();
}

}  // namespace hone
