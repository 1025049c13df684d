#include "passes/pipeline.h"

#include <array>
#include <chrono>
#include <fmt/format.h>

#include "base/nearest_name.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "passes/assign_precision.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/flatten_tokens.h"
#include "passes/fold_constants.h"
#include "passes/fold_norm.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_elementwise.h"
#include "passes/fuse_epilogue.h"
#include "passes/fuse_mlp.h"
#include "passes/fuse_norm.h"
#include "passes/fuse_post_norm.h"
#include "passes/fuse_quantise.h"
#include "passes/fuse_rope.h"
#include "passes/fuse_softmax.h"
#include "passes/merge_projections.h"
#include "passes/quantise_weights.h"
#include "passes/simplify.h"
#include "passes/widen_weights.h"

namespace hone {
namespace {

using enum ContractKind;

// u = 2^-24 below is the rounding of one f32 operation.
constexpr std::array kPipeline{
    PassRow{"widen-weights",
            widen_weights,
            {SameBits, ""},
            Level::O1,
            "first: the fusions look for weights, not for casts of them"},
    PassRow{"quantise-weights",
            quantise_weights,
            {RoundsToType, "1/254 of each block's largest weight"},
            Level::O0,
            "before assign-precision, which gives quantised weights int8 activations; at every level, for a "
            "type that "
            "was asked for holds at every level"},
    PassRow{"fold-constants",
            fold_constants,
            {SameBits, ""},
            Level::O1,
            "before simplify: what it leaves as constants is what those rules look for"},
    PassRow{"simplify",
            simplify,
            {SameBits, ""},
            Level::O1,
            "before cse, which then sees equal views as equal nodes"},
    PassRow{"cse",
            eliminate_common_subexpressions,
            {SameBits, ""},
            Level::O1,
            "before the fusions: a value computed twice would have one user each where it has two"},
    // The sum of C positive terms in another order: C*u on each side; exp, difference and quotient 4*u.
    PassRow{"fuse-softmax",
            fuse_softmax,
            {Reorders, "2*(C + 4) * 2^-24"},
            Level::O2,
            "before fuse-attention, which looks for a softmax between two products"},
    // A score off by d scales its weight by e^d; d <= E*u*|q||k|*scale, and 2*softcap*u of the tanh on each
    // side.
    PassRow{"fuse-attention",
            fuse_attention,
            {Reorders, "2*(C + E*scale*|q||k| + 4*softcap + 8) * 2^-24 of max|v|"},
            Level::O2,
            "the largest pattern first: the smaller ones after it would take its scale and mask"},
    PassRow{"fuse-norm",
            fuse_norm,
            {Reorders, "(D + 8) * 2^-24"},
            Level::O2,
            "before fuse-elementwise, which would take its products"},
    PassRow{"fuse-rope",
            fuse_rope,
            {FewerRoundings, "3 * 2^-24 of the pair's norm"},
            Level::O2,
            "before fuse-elementwise, which would take its products"},
    PassRow{"fuse-mlp",
            fuse_mlp,
            {FewerRoundings, "8 * 2^-24"},
            Level::O2,
            "before assign-precision, which then quantises one x for both products"},
    PassRow{"assign-precision",
            assign_precision,
            {RoundsToType, "2^-11 of each cached element (f16), 2^-8 of a block's largest (int8)"},
            Level::O0,
            "after the named fusions, whose nodes have kernels for the new types; before fuse-elementwise, "
            "which takes "
            "its casts; at every level, for a cache type that was asked for holds at every level"},
    PassRow{"fuse-quantise",
            fuse_quantise,
            {SameBits, ""},
            Level::O2,
            "after assign-precision, which makes the quantisations"},
    PassRow{"fuse-epilogue",
            fuse_epilogue,
            {SameBits, ""},
            Level::O2,
            "after assign-precision, whose casts and quantisations it takes; before fuse-elementwise, which "
            "would take "
            "the additions"},
    PassRow{"merge-projections",
            merge_projections,
            {SameBits, ""},
            Level::O2,
            "after fuse-epilogue, whose projections it joins as they are"},
    // On each side: x*w once, its product with the row's factor once, the factor from K/512 + 9 additions and
    // 3 operations.
    PassRow{"fold-norm",
            fold_norm,
            {Reorders, "(K/512 + 14) * 2^-24; int8 rounds before the row's factor instead of after"},
            Level::O2,
            "after merge-projections: every product that reads the norm is a projection then"},
    PassRow{"fuse-post-norm",
            fuse_post_norm,
            {SameBits, ""},
            Level::O2,
            "after fold-norm, which takes a norm away where a projection makes its x"},
    PassRow{"fuse-elementwise",
            fuse_elementwise,
            {SameBits, ""},
            Level::O2,
            "last of the fusions: it takes what no named pattern has claimed"},
    PassRow{"flatten-tokens",
            flatten_tokens,
            {SameBits, ""},
            Level::O2,
            "after the fusions, which look for tokens and sequences as axes of their own"},
    PassRow{"dce",
            eliminate_dead_code,
            {SameBits, ""},
            Level::O1,
            "last: removes what all the others have left without readers"},
};

}  // namespace

std::span<const PassRow> pipeline() {
  return kPipeline;
}

Error unknown_passes(std::span<const std::string> names, std::string_view flag,
                     std::span<const ChainPass> chain) {
  std::vector<std::string_view> known;
  std::string list;
  for (const ChainPass& pass : chain) {
    known.push_back(pass.row.name);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", pass.row.name);
  }
  std::string actual;
  std::string hints;
  for (const std::string& name : names) {
    actual += fmt::format("{}'{}'", actual.empty() ? "" : ", ", name);
    const std::string_view near = nearest_name(name, known);
    if (!near.empty()) hints += fmt::format("{}did you mean '{}'?", hints.empty() ? "" : " ", near);
  }
  return Error{ErrorCode::Usage, Fault::User,       std::string(flag), "no pass has this name",
               "one of " + list, std::move(actual), std::move(hints)};
}

Result<const PassRow*> find_pass(std::string_view name) {
  for (const PassRow& row : kPipeline) {
    if (row.name == name) return &row;
  }
  const std::string names[] = {std::string(name)};
  std::vector<ChainPass> table;
  table.reserve(std::size(kPipeline));
  for (const PassRow& row : kPipeline) table.push_back({row, nullptr});
  return unknown_passes(names, "--passes", table);
}

Status run_pass(Graph& graph, const PassRow& row, const PipelineOptions& options,
                const PassContext& context) {
  return run_pass(graph, ChainPass{row, nullptr}, options, context);
}

Status run_pass(Graph& graph, const ChainPass& pass, const PipelineOptions& options,
                const PassContext& context) {
  const PassRow& row = pass.row;
  PassReport report;
  report.name = row.name;
  report.contract = row.contract;
  report.before = count_graph(graph);
  const std::string text_before = options.observe ? print_graph(graph) : std::string();
  PassContext counting = context;
  counting.rules = &report.rules;
  const auto start = std::chrono::steady_clock::now();
  Status status = pass.plugin ? run_plugin_pass(graph, *pass.plugin) : row.run(graph, counting);
  report.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!status.ok()) {
    if (pass.plugin) return status;
    Error error = std::move(status).error();
    error.where = fmt::format("pass {}: {}", row.name, error.where);
    return error;
  }
  if (options.verify && !pass.plugin) HONE_TRY(verify(graph, row.name));
  report.after = count_graph(graph);
  if (!options.observe) return {};
  report.changed = print_graph(graph) != text_before;
  return options.observe(report, graph);
}

Status run_pipeline(Graph& graph, const PipelineOptions& options, const PassContext& context) {
  const std::vector<ChainPass> chain = HONE_TRY(make_chain(options));
  for (const ChainPass& pass : chain) {
    if (runs(pass, options)) HONE_TRY(run_pass(graph, pass, options, context));
    if (pass.row.name == options.stop_after) break;
  }
  return {};
}

}  // namespace hone
