// The flags that give a prompt: as text, from a file, as token ids, with or without the chat template.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/verb.h"
#include "tokens/tokenizer.h"

namespace hone {

// A prompt as it was given, read before the model is loaded: ids, or a text that is not empty.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::string text;
};

// Lives as long as the command line that it was added to, at one address.
class PromptFlags {
 public:
  void add_to(const Command& verb);

  // Whether a flag gives one; else it is stdin's.
  bool given() const;
  bool raw() const { return raw_; }
  const std::string& system() const { return system_; }
  // Errors (BadInput): an empty prompt; a file that cannot be read.
  Result<Prompt> read() const;
  // The system message, if there is one.
  Json first_messages() const;
  // Errors: those of the chat template; (BadModel) `model` has no tokenizer.
  Result<std::vector<std::int32_t>> ids(const Prompt& prompt, const std::string& model,
                                        const Tokenizer* tokenizer) const;

 private:
  std::string text_;
  std::string file_;
  std::string ids_;
  std::string system_;
  bool raw_ = false;
  std::optional<Flag> text_option_;
  std::optional<Flag> ids_option_;
};

}  // namespace hone
