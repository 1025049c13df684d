#include "engine/verify_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <set>

#include "engine/compile.h"
#include "engine/cut_graph.h"
#include "engine/rounding_model.h"
#include "engine/verify_rewrites.h"

namespace hone {
namespace {

constexpr double kNotRun = std::numeric_limits<double>::quiet_NaN();

// The sequences that are fed, by what replaces a row of the embedding in the middle of each.
struct Sequence {
  std::string_view name;
  bool repeats;   // the first token again and again
  double factor;  // of the replaced row; 1: none is replaced
};
// Huge is what outliers of trained models reach (some thousand times the others); much more overflows a cache
// of f16 where nothing normalises the values (65504; OLMo 2 at 2^20).
constexpr Sequence kSequences[] = {
    {"the tokens as they are", false, 1}, {"one token repeated", true, 1}, {"a row of zeros", false, 0},
    {"a huge row", false, 0x1p10},        {"a tiny row", false, 0x1p-40},
};
constexpr auto kSequenceCount = static_cast<std::int64_t>(std::size(kSequences));

// The graph after some number of passes.
struct Stage {
  PassReport report;  // of the pass that made it; the first has none
  Graph graph;
};

template <class T>
TensorData tensor_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  TensorData out{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

// The value that looks up the tokens: rows of a table at the input `ids`.
std::optional<ValueId> embedding_of(const Graph& graph) {
  const GraphInput* ids = graph.find_input("ids");
  if (ids == nullptr) return std::nullopt;
  for (const Node& node : graph.nodes) {
    if (node.op == "gather" && node.inputs[1] == ids->value) return node.outputs[0];
  }
  return std::nullopt;
}

std::optional<ValueId> output_named(const Graph& graph, std::string_view name) {
  for (const GraphOutput& output : graph.outputs) {
    if (output.name == name) return output.value;
  }
  return std::nullopt;
}

// True if the graph reads a weight in blocks that O0 reads in a float type.
bool rounds_weights(const Graph& graph, const Graph& o0) {
  return std::ranges::any_of(graph.inputs, [&](const GraphInput& input) {
    const GraphInput* was = o0.find_input(input.name);
    return input.kind == InputKind::Weight && was != nullptr &&
           dtype_row(graph.type(input.value).dtype).is_quantised &&
           !dtype_row(o0.type(was->value).dtype).is_quantised;
  });
}

// The tolerance of the reference data, for a graph with these types: `A` is the largest |logit| of O0.
//   int8 activations: each block of 32 is off by up to 1/254 of its largest value, which moves the logits by
//   0.7 to
//     1.6 percent a branch in the Frobenius norm; 2L branches of independent errors: 0.02 sqrt(2L), relative
//   f16 or bf16 cache or activations: one rounding in each of the 2L branches: 8 u sqrt(2L) A
//   a cache of q8_0: blocks as those of int8 activations, in two of their places a layer
//   else f32: sqrt(K) roundings a dot product: 8 u sqrt(K) sqrt(2L) A
struct Tolerance {
  bool relative_distance = false;
  double factor = 0;  // of A, or of the norm
};

//   q8_0 weights of a float checkpoint: as int8 activations, whose error they do not share
Tolerance tolerance_of(const Graph& graph, const Graph& o0, const ModelConfig& config) {
  const double branches = std::sqrt(2.0 * static_cast<double>(config.layers));
  double unit = 0x1p-24;
  const std::set<ValueId> fixed = static_values(graph);  // weights are exact in any type
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.outputs) {
      const DType dtype = graph.type(value).dtype;
      const bool narrow = (dtype == DType::F16 || dtype == DType::BF16) && !fixed.contains(value);
      if (narrow) unit = std::max(unit, unit_roundoff(dtype));
    }
  }
  const bool caches = std::ranges::any_of(graph.inputs, [&](const GraphInput& input) {
    return input.kind == InputKind::State && graph.type(input.value).dtype == DType::Q8_0;
  });
  const bool activations = caches || std::ranges::any_of(graph.values, [](const auto& value) {
                             return value.type.dtype == DType::Q8A;
                           });
  const bool weights = rounds_weights(graph, o0);
  if (activations || weights)
    return {true, 0.02 * branches * (activations && weights ? std::sqrt(2.0) : 1.0)};
  if (unit > 0x1p-24) return {false, 8 * unit * branches};
  const auto k = static_cast<double>(std::max({config.dim, config.ffn, config.heads * config.head_dim}));
  return {false, 8 * unit * std::sqrt(k) * branches};
}

// Distance of two rows of logits in the measure of the tolerance; infinite where one is no number.
double distance(std::span<const double> is, std::span<const double> of_o0, bool relative) {
  double largest = 0;
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    const double d = std::abs(is[i] - of_o0[i]);
    if (!std::isfinite(d)) return std::numeric_limits<double>::max();
    largest = std::max(largest, d);
    difference += d * d;
    norm += of_o0[i] * of_o0[i];
  }
  if (!relative) return largest;
  return norm == 0 ? (difference == 0 ? 0 : std::numeric_limits<double>::max())
                   : std::sqrt(difference / norm);
}

struct EndToEnd {
  double error = 0;
  double bound = 0;
  bool ok = true;
};

class ModelVerifier {
 public:
  ModelVerifier(const Checkpoint& checkpoint, const EngineOptions& options, std::span<const std::int32_t> ids,
                const VerifyProgress& progress)
      : checkpoint_(checkpoint),
        options_(options),
        ids_(ids.begin(), ids.end()),
        tokens_(std::ssize(ids)),
        progress_(progress),
        yardstick_{checkpoint, {}, {}} {}

  Result<VerifyReport> run() {
    HONE_TRY(make_stages());
    HONE_TRY(check_ids());
    HONE_TRY(record());
    for (std::size_t i = 1; i < stages_.size(); ++i) HONE_TRY(check_pass(i));
    HONE_TRY(check_ends());
    finish();
    return std::move(report_);
  }

 private:
  void tell(const std::string& what) const {
    if (progress_) progress_(what);
  }

  Status make_stages() {
    const auto keep = [&](const PassReport* report, const Graph& graph) -> Status {
      stages_.push_back({report == nullptr ? PassReport{} : *report, graph});
      return {};
    };
    OptimisedModel model = HONE_TRY(optimise(checkpoint_, options_, keep));
    config_ = std::move(model.config);
    const std::int64_t rows = kSequenceCount * tokens_;
    yardstick_.plan.target = model.target;
    yardstick_.plan.level = options_.level;
    yardstick_.plan.bound = sizes_of_step(kSequenceCount, tokens_, tokens_, rows);
    report_.sequences = static_cast<int>(kSequenceCount);
    report_.tokens = tokens_;
    return {};
  }

  Status check_ids() const {
    for (const std::int32_t id : ids_) {
      if (id >= 0 && id < config_.vocabulary) continue;
      return Error{ErrorCode::BadInput,
                   Fault::User,
                   fmt::format("token {}", id),
                   "a token id is outside the vocabulary",
                   fmt::format("0 to {}", config_.vocabulary - 1),
                   fmt::format("{}", id),
                   {}};
    }
    if (tokens_ >= 1 && (tokens_ <= config_.context_length || config_.any_context)) return {};
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "--ids",
                 "the sequence does not fit the model's context",
                 fmt::format("1 to {} tokens", config_.context_length),
                 fmt::format("{} tokens", tokens_),
                 {}};
  }

  // --- O0 --------------------------------------------------------------------------------------------------

  NamedTensors step_inputs(const Graph& graph) const {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> rows;
    std::vector<std::int32_t> sequence;
    for (std::int64_t i = 0; i < kSequenceCount * tokens_; ++i) {
      sequence.push_back(static_cast<std::int32_t>(i / tokens_));
      const bool repeats = kSequences[i / tokens_].repeats;
      ids.push_back(ids_[repeats ? 0 : static_cast<std::size_t>(i % tokens_)]);
      positions.push_back(static_cast<std::int32_t>(i % tokens_));
      rows.push_back(static_cast<std::int32_t>(i));
    }
    // Of each sequence, or in a flattened graph of each token.
    const auto lengths_of = [this](std::int64_t count) {
      const std::vector<std::int32_t> lengths(static_cast<std::size_t>(count),
                                              static_cast<std::int32_t>(tokens_));
      return tensor_of(DType::I32, {count}, lengths);
    };
    std::map<std::string_view, TensorData> by_name{
        {"ids", tensor_of(DType::I32, {kSequenceCount, tokens_}, ids)},
        {"positions", tensor_of(DType::I32, {kSequenceCount, tokens_}, positions)},
        {"sequence", tensor_of(DType::I32, {kSequenceCount, tokens_}, sequence)},
        {"rows", tensor_of(DType::I32, {kSequenceCount * tokens_}, rows)}};
    NamedTensors out;
    for (const GraphInput& input : graph.inputs) {
      const bool of_sequences = graph.type(input.value).shape.size() == 1;
      by_name["lengths"] = lengths_of(of_sequences ? kSequenceCount : kSequenceCount * tokens_);
      const auto found = by_name.find(input.name);
      if (input.kind == InputKind::Input && found != by_name.end())
        out[graph.value_name(input.value)] = found->second;
    }
    return out;
  }

  // Replaces a row of f32 [B,T,D] in each sequence that asks for it.
  void replace_rows(TensorData& rows) const {
    const std::int64_t width = rows.shape.back();
    std::vector<float> values(rows.bytes.size() / sizeof(float));
    std::memcpy(values.data(), rows.bytes.data(), rows.bytes.size());
    for (std::int64_t b = 0; b < kSequenceCount; ++b) {
      if (kSequences[b].factor == 1) continue;
      const auto begin = values.begin() + (b * tokens_ + tokens_ / 2) * width;
      for (auto x = begin; x < begin + width; ++x) *x *= static_cast<float>(kSequences[b].factor);
    }
    std::memcpy(rows.bytes.data(), values.data(), rows.bytes.size());
  }

  // Every value of O0, by name.
  Status record() {
    tell("O0");
    const Graph& graph = stages_[0].graph;
    PlanOptions reference = yardstick_.plan;
    reference.level = Level::O0;
    NamedTensors& recorded = yardstick_.recorded;
    // Those that a pass has brought in as well.
    for (const Stage& stage : stages_) recorded.merge(step_inputs(stage.graph));
    const std::optional<ValueId> embedding = embedding_of(graph);
    if (embedding && graph.type(*embedding).dtype == DType::F32) {
      embedding_ = graph.value_name(*embedding);
      const Cut look_up = cut_graph(graph, {&*embedding, 1}, [](ValueId) { return false; });
      recorded.merge(HONE_TRY(run_graph(look_up.graph, checkpoint_, reference, recorded)));
      replace_rows(recorded[embedding_]);
    } else {
      report_.notes.emplace_back("the model looks up no tokens at `ids`: no row could be replaced");
    }
    const std::set<ValueId> fixed = static_values(graph);
    std::vector<ValueId> targets;
    for (const Node& node : graph.nodes) {
      for (const ValueId value : node.outputs) {
        if (!fixed.contains(value) && graph.value_name(value) != embedding_) targets.push_back(value);
      }
    }
    const Cut all =
        cut_graph(graph, targets, [&](ValueId value) { return graph.value_name(value) == embedding_; });
    recorded.merge(HONE_TRY(run_graph(all.graph, checkpoint_, reference, recorded)));
    return {};
  }

  // --- passes ----------------------------------------------------------------------------------------------

  Status check_pass(std::size_t index) {
    const PassReport& pass = stages_[index].report;
    PassCheck check;
    check.name = pass.name;
    check.contract = pass.contract;
    check.changed = pass.changed;
    check.end_to_end_error = check.end_to_end_bound = kNotRun;
    pieces_.emplace_back();
    if (pass.changed) {
      tell(pass.name);
      pieces_.back() = HONE_TRY(
          check_rewrites(stages_[index - 1].graph, stages_[index].graph, pass.contract.kind, yardstick_));
      check.rewritten = pieces_.back().rewritten;
      check.max_error = pieces_.back().max_error;
      check.bound = pieces_.back().bound;
      check.ok = check.local_ok = pieces_.back().ok;
      changing_.push_back(index);
    }
    report_.passes.push_back(std::move(check));
    return {};
  }

  // The logits [B*T,V] of a stage, and which experts each token took.
  Result<NamedTensors> run_stage(const Graph& graph) const {
    const std::optional<ValueId> logits = output_named(graph, "logits");
    if (!logits) return internal_error("verify", "the graph has no output `logits`");
    std::vector<ValueId> targets{*logits};
    for (const Node& node : graph.nodes) {
      if (node.op == "top_k") targets.push_back(node.outputs[0]);
    }
    const Cut cut =
        cut_graph(graph, targets, [&](ValueId value) { return graph.value_name(value) == embedding_; });
    return run_graph(cut.graph, checkpoint_, yardstick_.plan, yardstick_.recorded);
  }

  // Where the router's choice differs from O0's, a token is another one: rounding decides between experts
  // that are as good as equal. What comes after it in its sequence sees it. The tokens of each sequence that
  // are left.
  Result<std::vector<std::int64_t>> decided_tokens(const Graph& graph, const NamedTensors& results) const {
    std::vector<std::int64_t> decided(static_cast<std::size_t>(kSequenceCount), tokens_);
    for (const Node& node : graph.nodes) {
      if (node.op != "top_k") continue;
      const auto o0 = yardstick_.recorded.find(graph.value_name(node.outputs[0]));
      const auto now = results.find(graph.value_name(node.outputs[0]));
      if (o0 == yardstick_.recorded.end() || now == results.end()) continue;
      const std::vector<double> a = HONE_TRY(to_doubles(o0->second));
      const std::vector<double> b = HONE_TRY(to_doubles(now->second));
      const std::int64_t a_token = std::ssize(a) / (kSequenceCount * tokens_);
      if (a.size() != b.size() || a_token == 0) continue;
      for (std::int64_t i = 0; i < std::ssize(a); i += a_token) {
        const std::multiset<double> x(a.begin() + i, a.begin() + i + a_token);
        const std::multiset<double> y(b.begin() + i, b.begin() + i + a_token);
        const std::int64_t token = i / a_token;
        std::int64_t& left = decided[static_cast<std::size_t>(token / tokens_)];
        if (x != y) left = std::min(left, token % tokens_);
      }
    }
    return decided;
  }

  Result<EndToEnd> run_end_to_end(std::size_t stage) {
    tell(
        fmt::format("end to end after {}", stage == 0 ? std::string("no pass") : stages_[stage].report.name));
    const Graph& graph = stages_[stage].graph;
    const NamedTensors results = HONE_TRY(run_stage(graph));
    const std::string name = graph.value_name(output_named(graph, "logits").value_or(-1));
    const Graph& o0 = stages_[0].graph;
    const std::string o0_name = o0.value_name(output_named(o0, "logits").value_or(-1));
    const std::vector<double> is = HONE_TRY(to_doubles(results.find(name)->second));
    const std::vector<double> was = HONE_TRY(to_doubles(yardstick_.recorded.find(o0_name)->second));
    const std::vector<std::int64_t> decided = HONE_TRY(decided_tokens(graph, results));
    const Tolerance tolerance = tolerance_of(graph, o0, config_);
    const std::int64_t vocabulary = std::ssize(is) / (kSequenceCount * tokens_);
    EndToEnd out;
    double worst = -1;
    for (std::int64_t b = 0; b < kSequenceCount; ++b) {
      const auto begin = static_cast<std::size_t>(b * tokens_ * vocabulary);
      const auto count = static_cast<std::size_t>(decided[static_cast<std::size_t>(b)] * vocabulary);
      if (count == 0) continue;
      const auto rows = std::span(was).subspan(begin, count);
      double largest = 0;
      for (const double logit : rows) largest = std::max(largest, std::abs(logit));
      const double error = distance(std::span(is).subspan(begin, count), rows, tolerance.relative_distance);
      const double bound = tolerance.factor * (tolerance.relative_distance ? 1 : largest);
      if (!(error <= bound)) out.ok = false;
      const double ratio = bound > 0 ? error / bound : error > 0 ? std::numeric_limits<double>::max() : 0;
      if (ratio <= worst) continue;
      worst = ratio;
      out.error = error;
      out.bound = bound;
    }
    if (stage > 0) note_end(stage, out);
    return out;
  }

  void note_end(std::size_t stage, const EndToEnd& end) {
    PassCheck& check = report_.passes[stage - 1];
    check.end_to_end_error = end.error;
    check.end_to_end_bound = end.bound;
  }

  // The whole chain, and then all of its beginnings, or the search for the first one that is wrong.
  Status check_ends() {
    const std::size_t n = changing_.size();
    report_.most_bisection_runs = n < 2 ? 0 : static_cast<int>(std::bit_width(n - 1));
    if (n == 0) return {};
    const EndToEnd whole = HONE_TRY(run_end_to_end(changing_.back()));
    if (whole.ok) {
      // A narrower type later on may widen the tolerance over a fault: the first prefix that is wrong counts.
      bool right = true;
      for (std::size_t i = 0; i + 1 < n; ++i) {
        const EndToEnd end = HONE_TRY(run_end_to_end(changing_[i]));
        if (right && !end.ok) mark(changing_[i]);
        right = right && end.ok;
      }
      const bool hidden = right && std::any_of(report_.passes.begin(), report_.passes.end(),
                                               [](const PassCheck& check) { return !check.local_ok; });
      if (hidden) {
        report_.notes.emplace_back(
            "the logits are within the tolerance with the fault: no bisection can find it; the check of each "
            "rewritten value did");
      }
      return {};
    }
    // Invariant: after `good` of the passes the logits are right, after `bad` they are not.
    std::size_t good = 0;
    std::size_t bad = n;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      ++report_.bisection_runs;
      (HONE_TRY(run_end_to_end(changing_[middle - 1])).ok ? good : bad) = middle;
    }
    const std::size_t guilty = changing_[bad - 1];
    mark(guilty);
    report_.guilty = report_.passes[guilty - 1].name;
    // The first of the passes was only held to be wrong: without it the level's kernels are left.
    if (bad == 1 && report_.passes[guilty - 1].local_ok && !HONE_TRY(run_end_to_end(0)).ok) {
      report_.guilty = "kernels";
      report_.passes[guilty - 1].ok = true;
    }
    report_.ok = false;
    return {};
  }

  void mark(std::size_t stage) { report_.passes[stage - 1].ok = false; }

  void finish() {
    for (std::size_t i = 0; i < report_.passes.size(); ++i) {
      const PassCheck& check = report_.passes[i];
      if (check.ok) continue;
      report_.ok = false;
      if (report_.guilty.empty()) report_.guilty = check.name;
    }
    for (std::size_t i = 0; i < report_.passes.size(); ++i) {
      if (report_.passes[i].name != report_.guilty) continue;
      report_.value = pieces_[i].value;
      report_.before = pieces_[i].before;
      report_.after = pieces_[i].after;
    }
  }

  const Checkpoint& checkpoint_;
  const EngineOptions& options_;
  std::vector<std::int32_t> ids_;
  std::int64_t tokens_;
  const VerifyProgress& progress_;
  Yardstick yardstick_;
  ModelConfig config_;
  std::vector<Stage> stages_;
  std::string embedding_;              // the name of its value; empty: none
  std::vector<std::size_t> changing_;  // stages whose pass changed the graph
  std::vector<RewriteCheck> pieces_;   // one a pass
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> verify_model(const Checkpoint& checkpoint, const EngineOptions& options,
                                  std::span<const std::int32_t> ids, const VerifyProgress& progress) {
  return ModelVerifier(checkpoint, options, ids, progress).run();
}

}  // namespace hone
