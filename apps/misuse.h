// Arguments that are no verb and no flag, and what was probably meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hone {

// Looks at the first of `arguments` before they are read. "help", "help VERB" and "--version" become what the
// parser knows. Error: no verb of `verbs`; a misspelt one hears the nearest, a path what should stand before
// it.
std::optional<Error> prepare_verb(std::string_view program, const std::vector<std::string>& verbs,
                                  std::vector<std::string>& arguments);

struct KnownFlags {
  std::vector<std::string> names;  // "--prompt", "-p"
  bool takes_prompt = false;       // -p is a text
};

// Error: a long flag of `command` ("hone run") with one dash, which the parser would take for -p with a
// value.
std::optional<Error> check_dashes(std::string_view command, const KnownFlags& known,
                                  const std::vector<std::string>& arguments);

// `rest`: what no flag and no operand of `command` took, in the order in which it was typed.
std::optional<Error> check_leftover(std::string_view command, const KnownFlags& known,
                                    const std::vector<std::string>& rest);

}  // namespace hone
