// Precision by hand: a file of rules, each for the modules that a pattern names.
//
//   # the last layers as they are in f32, the cache of the first in f32
//   layers.2?.mlp   activations=f32
//   layers.0        activations=q8a2 kv=f32
//
// One rule a line: a pattern, then key=value. A pattern names the modules it matches and all that is inside
// them; * stands for any characters, ? for one. Keys:
//   activations   f32, q8a or q8a2: what the products with quantised weights there read (passes/pass.h).
//   Takes
//                 effect at O3, as the policy does; a product whose kernel has no q8a2 keeps f32
//   residence     packed or mapped: mapped weights run from the file, without a copy, where kernels can
//   kv            f32, f16, bf16 or q8_0: the type of the states there. Takes effect at every level
// Of two rules for one thing the later holds. A # begins a comment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace hone {

struct PrecisionRule {
  int line = 0;  // 1 is the first
  std::string pattern;
  std::optional<Activations> activations;
  std::optional<DType> kv;
  std::optional<bool> mapped;  // residence
  std::string text;            // as it stands in the file
};

struct PrecisionRules {
  std::string path;
  std::vector<PrecisionRule> rules;
};

// The most rules and bytes that a file may have: each rule is planned once to show what it bought.
inline constexpr std::size_t kMostPrecisionRules = 256;
inline constexpr std::size_t kMostPrecisionBytes = std::size_t{1} << 16;

// Errors (BadInput, User) name the line: a rule without a key, an unknown key or value, a key given twice; a
// file that is too long, or has no rule.
Result<PrecisionRules> parse_precision_rules(std::string_view text, const std::string& path);

// True if `pattern` matches `module` or one that holds it.
bool matches_module(std::string_view pattern, std::string_view module);

// What the rules say of `graph`, a graph as a model's builder makes it, into `policy`. Errors (BadInput,
// User): a rule, or a key of it, that finds nothing it could be for.
Status apply_precision_rules(const PrecisionRules& rules, const Graph& graph, PrecisionPolicy& policy);

}  // namespace hone
