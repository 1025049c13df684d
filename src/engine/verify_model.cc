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
#include "engine/verify_ends.h"
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

struct EndToEnd {
  double error = 0;
  double bound = 0;
  ScaleOfLogits scale;
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
    check.end_to_end_error = check.end_to_end_bound = check.scale_error = check.scale_bound = kNotRun;
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
    const Tolerance tolerance = tolerance_after(stage);
    const std::int64_t vocabulary = std::ssize(is) / (kSequenceCount * tokens_);
    EndToEnd out;
    double worst = -1;
    for (std::int64_t b = 0; b < kSequenceCount; ++b) {
      const auto begin = static_cast<std::size_t>(b * tokens_ * vocabulary);
      const auto count = static_cast<std::size_t>(decided[static_cast<std::size_t>(b)] * vocabulary);
      if (count == 0) continue;
      // The tokens in front of a replaced row have the numbers that they have in the first sequence, and
      // those of a repeated token the same ones again and again.
      const bool new_numbers = !kSequences[b].repeats;
      const std::int64_t first = kSequences[b].factor == 1 ? 0 : tokens_ / 2;
      for (std::int64_t t = first; new_numbers && t < decided[static_cast<std::size_t>(b)]; ++t) {
        const auto at = static_cast<std::size_t>((b * tokens_ + t) * vocabulary);
        const auto width = static_cast<std::size_t>(vocabulary);
        out.scale.add(std::span(is).subspan(at, width), std::span(was).subspan(at, width));
      }
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
    if (out.scale.is_known() && !(std::abs(out.scale.mean()) <= out.scale.bound())) out.ok = false;
    if (stage > 0) note_end(stage, out);
    return out;
  }

  void note_end(std::size_t stage, const EndToEnd& end) {
    PassCheck& check = report_.passes[stage - 1];
    check.end_to_end_error = end.error;
    check.end_to_end_bound = end.bound;
    if (!end.scale.is_known()) return;
    check.scale_error = end.scale.mean();
    check.scale_bound = end.scale.bound();
  }

  // That of the types which the last pass left that may round to one.
  Tolerance tolerance_after(std::size_t stage) const {
    while (stage > 0 && stages_[stage].report.contract.kind != ContractKind::RoundsToType) --stage;
    return tolerance_of(stages_[stage].graph, stages_[0].graph, config_);
  }

  // How many of the changing passes come before each place where the tolerance becomes another one, and all
  // of them. A wider tolerance may hide a fault, so each of these prefixes is held to be right by itself.
  std::vector<std::size_t> landmarks() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i + 1 < changing_.size(); ++i) {
      if (!(tolerance_after(changing_[i]) == tolerance_after(changing_[i + 1]))) out.push_back(i + 1);
    }
    out.push_back(changing_.size());
    return out;
  }

  // The first landmark that is wrong, and the search for the first pass behind the last one that is right; or
  // all prefixes, if none is.
  Status check_ends() {
    const std::size_t n = changing_.size();
    report_.most_bisection_runs = n < 2 ? 0 : static_cast<int>(std::bit_width(n - 1));
    if (n == 0) return {};
    std::size_t good = 0;
    for (const std::size_t landmark : landmarks()) {
      if (!HONE_TRY(run_end_to_end(changing_[landmark - 1])).ok) return bisect(good, landmark);
      good = landmark;
    }
    bool right = true;
    for (const std::size_t stage : changing_) {
      if (!std::isnan(report_.passes[stage - 1].end_to_end_error)) continue;  // a landmark
      const EndToEnd end = HONE_TRY(run_end_to_end(stage));
      if (right && !end.ok) mark(stage);
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

  // After `good` of the changing passes the logits are right, after `bad` they are not.
  Status bisect(std::size_t good, std::size_t bad) {
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      ++report_.bisection_runs;
      (HONE_TRY(run_end_to_end(changing_[middle - 1])).ok ? good : bad) = middle;
    }
    const std::size_t guilty = changing_[bad - 1];
    mark(guilty);
    const PassCheck& check = report_.passes[guilty - 1];
    report_.guilty = check.name;
    if (std::abs(check.scale_error) > check.scale_bound) {
      report_.notes.push_back(fmt::format(
          "after {} all logits are off by the factor 1 {} {:.2g}, where {:.2g} is usual", check.name,
          check.scale_error < 0 ? '-' : '+', std::abs(check.scale_error), check.scale_bound));
    }
    // The first of the passes was only held to be wrong: without it the level's kernels are left.
    if (bad == 1 && check.local_ok && !HONE_TRY(run_end_to_end(0)).ok) {
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
