// The chain of one run: the passes of the table, those of plugins at the places they ask for, moved as the
// user says, and the rules that an order has to keep.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "passes/pass.h"
#include "passes/plugin.h"

namespace hone {

// --passes=NAME:before:OTHER, NAME:after:OTHER
struct PassMove {
  std::string name;
  bool after = false;
  std::string other;
};

// One pass of a chain. `row` of a plugin's has no function, and its texts are the plugin's.
struct ChainPass {
  PassRow row;
  std::shared_ptr<const PluginPass> plugin;  // nullptr: of the table
};

// `pass` needs `first` in front of it, where both run.
struct OrderRule {
  std::string_view pass;
  std::string_view first;
  std::string_view why;
};
std::span<const OrderRule> order_rules();

struct PipelineOptions;

// All passes in their order, those that `options` switches off or leaves to higher levels among them. Errors
// (User): a name in `disabled`, `moves` or `stop_after` that no pass has; a plugin's place beside no pass; an
// order that breaks a rule, named.
Result<std::vector<ChainPass>> make_chain(const PipelineOptions& options);

// Whether `pass` runs under `options`.
bool runs(const ChainPass& pass, const PipelineOptions& options);

}  // namespace hone
