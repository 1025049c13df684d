// The flags that say how an answer is made, over what the checkpoint recommends.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line.h"
#include "base/result.h"
#include "engine/generate.h"
#include "tokens/generation_defaults.h"

namespace hone {

// Lives as long as the command line that it was added to, at one address.
class GenerationFlags {
 public:
  void add_to(const Command& verb);
  // Without those that may end an answer early, and without the checkpoint's number of tokens: the answer is
  // as long as `-n` says, `tokens` unless it is given.
  void add_to_measurement(const Command& verb, std::int64_t tokens, const char* help);

  // Takes the checkpoint's values where no flag is given. Errors: those of `check`; with `strict`,
  // CheckFailed for a recommendation that hone cannot follow, else a note on stderr.
  Status apply(const GenerationDefaults& defaults, bool strict);
  const GenerateOptions& options() const { return merged_; }
  // Usage errors that need no model.
  Status check() const;

  // One line: every setting that is on, and which flag or key set it.
  std::string report() const;
  nlohmann::ordered_json report_json() const;

 private:
  struct Given {
    std::string_view option;  // "top-k"
    Flag flag;
  };
  void add_sampling(const Command& verb);
  void add(std::string_view option, Flag flag) { flags_.push_back({option, std::move(flag)}); }
  bool given(std::string_view option) const;
  // "--top-k", "generation_config.json: top_k", or nothing.
  std::string source(std::string_view option) const;

  GenerateOptions values_;  // what the flags wrote
  GenerateOptions merged_;
  GenerationDefaults defaults_;
  std::vector<Given> flags_;
  bool ignore_end_ = false;
  bool measured_ = false;
};

}  // namespace hone
