#include "passes/chain.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "passes/pipeline.h"

namespace hone {
namespace {

constexpr std::string_view kTwice = "a value that is computed twice would be fused twice";

// Where the other order would be wrong or would lose what the table's order gains. Passes that no rule names
// may stand anywhere.
constexpr std::array kOrder{
    OrderRule{"simplify", "fold-constants", "the rules look for constants that folding leaves"},
    OrderRule{"cse", "simplify", "equal views are equal nodes only once they are simplified"},
    OrderRule{"fuse-softmax", "cse", kTwice},
    OrderRule{"fuse-attention", "cse", kTwice},
    OrderRule{"fuse-norm", "cse", kTwice},
    OrderRule{"fuse-rope", "cse", kTwice},
    OrderRule{"fuse-mlp", "cse", kTwice},
    OrderRule{"assign-precision", "fuse-attention", "only the fused attention reads every type of cache"},
    OrderRule{"assign-precision", "fuse-mlp", "the fused feed-forward has one activation to round, not two"},
    OrderRule{"assign-precision", "quantise-weights", "it gives quantised weights int8 activations"},
    OrderRule{"fuse-quantise", "assign-precision", "there is no quantisation before it"},
    OrderRule{"fuse-epilogue", "assign-precision",
              "it takes the casts and quantisations that follow a product"},
    OrderRule{"merge-projections", "fuse-epilogue", "it joins projections as they are"},
    OrderRule{"fold-norm", "merge-projections", "every product that reads the norm has to be a projection"},
    OrderRule{"fuse-post-norm", "fuse-norm", "there is no norm before it"},
    OrderRule{"fuse-post-norm", "fuse-quantise", "it takes the norm in the type that it is written in"},
    OrderRule{"fuse-elementwise", "fuse-post-norm", "it would take the addition behind the norm"},
    OrderRule{"fuse-elementwise", "fuse-epilogue", "it would take the additions behind the products"},
    OrderRule{"fuse-elementwise", "fuse-softmax", "it would take the parts of the softmax"},
    OrderRule{"fuse-elementwise", "fuse-attention", "it would take the scale and the mask of the scores"},
    OrderRule{"fuse-elementwise", "fuse-norm", "it would take the products of the norm"},
    OrderRule{"fuse-elementwise", "fuse-rope", "it would take the products of the rotation"},
    OrderRule{"fuse-elementwise", "fuse-mlp", "it would take the gate"},
    OrderRule{"fuse-elementwise", "assign-precision", "it takes the casts into its launches"},
    OrderRule{"flatten-tokens", "fuse-attention",
              "only the fused attention reads the keys of each token's own sequence"},
    OrderRule{"flatten-tokens", "fuse-rope", "it looks for tables of cosines [B,T,R/2]"},
    OrderRule{"flatten-tokens", "fuse-epilogue", "it takes a state_append of rows [B,T,..]"},
    OrderRule{"flatten-tokens", "merge-projections", "it joins projections as they are"},
    OrderRule{"flatten-tokens", "fold-norm", "it joins projections as they are"},
    OrderRule{"dce", "fuse-elementwise", "it removes what the others leave without readers"},
};

using Chain = std::vector<ChainPass>;

Chain::iterator find(Chain& chain, std::string_view name) {
  return std::find_if(chain.begin(), chain.end(),
                      [&](const ChainPass& pass) { return pass.row.name == name; });
}

ChainPass as_chain_pass(const std::shared_ptr<const PluginPass>& plugin) {
  return {PassRow{plugin->name, nullptr, {plugin->kind, plugin->bound}, plugin->from_level, plugin->why},
          plugin};
}

Error wrong_place(const PluginPass& plugin) {
  return Error{ErrorCode::BadInput,
               Fault::File,
               fmt::format("pass {} of {}", plugin.name, plugin.file),
               "the plugin asks for a place beside a pass that is not there",
               "a pass of the chain (hone explain MODEL lists it)",
               fmt::format("'{}'", plugin.neighbour),
               fmt::format("correct the plugin, or switch the pass off with --passes=-{}", plugin.name)};
}

// A plugin may stand beside another plugin's pass, whichever was named first.
Status place_plugins(Chain& chain, const PipelineOptions& options) {
  std::vector<std::shared_ptr<const PluginPass>> left(options.plugins);
  for (const auto& plugin : left) {
    if (find(chain, plugin->name) == chain.end()) continue;
    return Error{ErrorCode::Usage,        Fault::User,  "--plugin", "two passes have one name",
                 "one pass of each name", plugin->name, {}};
  }
  while (!left.empty()) {
    const std::size_t before = left.size();
    std::erase_if(left, [&](const std::shared_ptr<const PluginPass>& plugin) {
      const auto beside = find(chain, plugin->neighbour);
      if (beside == chain.end()) return false;
      chain.insert(beside + (plugin->after ? 1 : 0), as_chain_pass(plugin));
      return true;
    });
    if (left.size() == before) return wrong_place(*left.front());
  }
  return {};
}

void move_pass(Chain& chain, const PassMove& move) {
  const auto from = find(chain, move.name);
  ChainPass pass = *from;
  chain.erase(from);
  chain.insert(find(chain, move.other) + (move.after ? 1 : 0), std::move(pass));
}

Status check_order(Chain& chain, const PipelineOptions& options) {
  for (const OrderRule& rule : kOrder) {
    const auto pass = find(chain, rule.pass);
    const auto first = find(chain, rule.first);
    if (pass == chain.end() || first == chain.end() || first < pass) continue;
    if (!runs(*pass, options) || !runs(*first, options)) continue;
    return Error{
        ErrorCode::Usage,
        Fault::User,
        "--passes",
        fmt::format("{} cannot stand before {}: {}", rule.pass, rule.first, rule.why),
        fmt::format("{} before {}", rule.first, rule.pass),
        fmt::format("{} before {}", rule.pass, rule.first),
        fmt::format("leave the move out, or switch one of the two off with --passes=-{}", rule.first)};
  }
  return {};
}

}  // namespace

std::span<const OrderRule> order_rules() {
  return kOrder;
}

bool runs(const ChainPass& pass, const PipelineOptions& options) {
  return pass.row.from_level <= options.level &&
         std::find(options.disabled.begin(), options.disabled.end(), pass.row.name) == options.disabled.end();
}

Result<std::vector<ChainPass>> make_chain(const PipelineOptions& options) {
  Chain chain;
  for (const PassRow& row : pipeline()) chain.push_back({row, nullptr});
  HONE_TRY(place_plugins(chain, options));
  std::vector<std::string> unknown;
  const auto need = [&](const std::string& name) {
    if (find(chain, name) == chain.end()) unknown.push_back(name);
  };
  for (const std::string& name : options.disabled) need(name);
  for (const PassMove& move : options.moves) {
    need(move.name);
    need(move.other);
  }
  std::string flags = unknown.empty() ? "" : "--passes";
  if (!options.stop_after.empty() && find(chain, options.stop_after) == chain.end()) {
    unknown.push_back(options.stop_after);
    flags += flags.empty() ? "--stop-after" : ", --stop-after";
  }
  if (!unknown.empty()) return unknown_passes(unknown, flags, chain);
  for (const PassMove& move : options.moves) {
    if (move.name != move.other) move_pass(chain, move);
  }
  HONE_TRY(check_order(chain, options));
  return chain;
}

}  // namespace hone
