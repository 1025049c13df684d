// One computation, a norm and attention over grouped heads with a cache, in every spelling that exporters
// give it: all reach the same fused form, and compute what their primitives do.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/cost.h"
#include "run_graph.h"

namespace hone::test {
namespace {

enum class KeysTurned : std::uint8_t { ByFlag, ByPermute, ByPermuteBeforeGroups };
enum class Scale : std::uint8_t { OnQueries, OnScores, AsDivisor, BehindTheMask };
enum class Mask : std::uint8_t { Where, WhereNot, Added };
enum class Groups : std::uint8_t { InAxes, ByBroadcast, ByRepeat };
enum class Norm : std::uint8_t { MeanOfSquares, SumOverCount, PowerOverRoot };

struct Spelling {
  KeysTurned keys;
  Scale scale;
  Mask mask;
  Groups groups;
  Norm norm;
};

constexpr std::int64_t kHeads = 6;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kHead = 32;
constexpr std::int64_t kDim = kHeads * kHead;

// Builds the graph of one spelling.
class Speller {
 public:
  explicit Speller(const Spelling& spelling) : s_(spelling), b_("spelling", "BTC") {}

  Result<Graph> graph() {
    const ValueId x = b_.input("x", {DType::F32, {B, T, Dim(kDim)}});
    const ValueId rows = b_.input("kn", {DType::F32, {B, T, Dim(kKvHeads), Dim(kHead)}});
    const ValueId value_rows = b_.input("vn", {DType::F32, {B, T, Dim(kKvHeads), Dim(kHead)}});
    positions_ = b_.input("positions", {DType::I32, {B, T}});
    const Shape cache{B, C, Dim(kKvHeads), Dim(kHead)};
    const ValueId keys = b_.node("state_append", {b_.state("k", {DType::F32, cache}), rows, positions_});
    const ValueId values =
        b_.node("state_append", {b_.state("v", {DType::F32, cache}), value_rows, positions_});
    const ValueId normed = norm(x, b_.weight("w", {DType::F32, {Dim(kDim)}}));
    const ValueId y = attention(normed, keys, values);
    b_.output("y", b_.node("neg", {y}));
    b_.update("k", keys);
    b_.update("v", values);
    return std::move(b_).finish();
  }

 private:
  const Dim B = Dim::symbol('B');
  const Dim T = Dim::symbol('T');
  const Dim C = Dim::symbol('C');

  ValueId norm(ValueId x, ValueId w) {
    ValueId mean = -1;
    switch (s_.norm) {
      case Norm::MeanOfSquares:
        mean = b_.reduce("reduce_mean", b_.mul(x, x), -1);
        break;
      case Norm::SumOverCount:
        mean = b_.div(b_.reduce("reduce_sum", b_.mul(x, x), -1), b_.scalar(static_cast<double>(kDim)));
        break;
      case Norm::PowerOverRoot:
        mean = b_.reduce("reduce_mean", b_.node("pow", {x, b_.scalar(2)}), -1);
        break;
    }
    const ValueId shifted = b_.add(mean, b_.scalar(1e-5));
    const ValueId normed = s_.norm == Norm::PowerOverRoot ? b_.div(x, b_.node("sqrt", {shifted}))
                                                          : b_.mul(x, b_.node("rsqrt", {shifted}));
    return b_.mul(normed, w);
  }

  bool flat() const { return s_.groups == Groups::ByRepeat; }

  // [B,C,K,E] -> [B,K,G or 1,C,E] or [B,H,C,E], with the last two axes turned if `turned`.
  ValueId heads_of(ValueId cache, bool turned) {
    const Dim groups(kHeads / kKvHeads);
    const bool early = turned && s_.keys == KeysTurned::ByPermuteBeforeGroups;
    const Dim last_but_one = early ? Dim(kHead) : C;
    const Dim last = early ? C : Dim(kHead);
    ValueId heads = b_.permute(
        cache, early ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3});
    heads = b_.reshape(heads, {B, Dim(kKvHeads), Dim(1), last_but_one, last});
    if (s_.groups != Groups::InAxes) {
      const Shape repeated{B, Dim(kKvHeads), groups, last_but_one, last};
      heads = b_.node("broadcast", {heads}, {{"shape", repeated}});
      if (flat()) heads = b_.reshape(heads, {B, Dim(kHeads), last_but_one, last});
    }
    if (!turned || early) return heads;
    return b_.permute(
        heads, flat() ? std::vector<std::int64_t>{0, 1, 3, 2} : std::vector<std::int64_t>{0, 1, 2, 4, 3});
  }

  ValueId scaled(ValueId value) { return b_.mul(value, b_.scalar(0.25)); }

  ValueId masked(ValueId scores) {
    const Shape of_tokens = flat() ? Shape{B, Dim(1), T, Dim(1)} : Shape{B, Dim(1), Dim(1), T, Dim(1)};
    const ValueId key = b_.iota({C}, 0);
    const ValueId token = b_.reshape(positions_, of_tokens);
    const ValueId hidden = b_.scalar(-std::numeric_limits<double>::infinity());
    switch (s_.mask) {
      case Mask::Where:
        return b_.select(b_.node("less_equal", {key, token}), scores, hidden);
      case Mask::WhereNot:
        return b_.select(b_.node("less", {token, key}), hidden, scores);
      default:
        return b_.add(scores, b_.select(b_.node("less_equal", {key, token}), b_.scalar(0), hidden));
    }
  }

  ValueId attention(ValueId x, ValueId keys, ValueId values) {
    const Shape split = flat() ? Shape{B, T, Dim(kHeads), Dim(kHead)}
                               : Shape{B, T, Dim(kKvHeads), Dim(kHeads / kKvHeads), Dim(kHead)};
    const std::vector<std::int64_t> heads_first =
        flat() ? std::vector<std::int64_t>{0, 2, 1, 3} : std::vector<std::int64_t>{0, 2, 3, 1, 4};
    const std::vector<std::int64_t> tokens_first =
        flat() ? std::vector<std::int64_t>{0, 2, 1, 3} : std::vector<std::int64_t>{0, 3, 1, 2, 4};
    ValueId q = b_.permute(b_.reshape(x, split), heads_first);
    if (s_.scale == Scale::OnQueries) q = scaled(q);
    const bool turned = s_.keys != KeysTurned::ByFlag;
    const ValueId k = heads_of(keys, turned);
    ValueId scores = turned ? b_.matmul(q, k) : b_.matmul_transposed(q, k);
    if (s_.scale == Scale::OnScores) scores = scaled(scores);
    if (s_.scale == Scale::AsDivisor) scores = b_.div(scores, b_.scalar(4));
    scores = masked(scores);
    if (s_.scale == Scale::BehindTheMask) scores = scaled(scores);
    const ValueId shifted = b_.sub(scores, b_.reduce("reduce_max", scores, -1));
    const ValueId exponential = b_.node("exp", {shifted});
    const ValueId weights = b_.div(exponential, b_.reduce("reduce_sum", exponential, -1));
    const ValueId read = b_.matmul(weights, heads_of(values, false));
    return b_.reshape(b_.permute(read, tokens_first), {B, T, Dim(kDim)});
  }

  const Spelling& s_;
  GraphBuilder b_;
  ValueId positions_ = -1;
};

std::vector<Spelling> every_spelling() {
  std::vector<Spelling> all;
  for (int code = 0; code < 3 * 4 * 3 * 3 * 3; ++code) {
    all.push_back({static_cast<KeysTurned>(code % 3), static_cast<Scale>(code / 3 % 4),
                   static_cast<Mask>(code / 12 % 3), static_cast<Groups>(code / 36 % 3),
                   static_cast<Norm>(code / 108)});
  }
  return all;
}

std::string text_of(const Spelling& spelling) {
  const Result<Graph> graph = Speller(spelling).graph();
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : describe(graph.error()));
  return graph.ok() ? print_graph(*graph) : std::string();
}

std::string code_of(const Spelling& s) {
  return "keys " + std::to_string(static_cast<int>(s.keys)) + " scale " +
         std::to_string(static_cast<int>(s.scale)) + " mask " + std::to_string(static_cast<int>(s.mask)) +
         " groups " + std::to_string(static_cast<int>(s.groups)) + " norm " +
         std::to_string(static_cast<int>(s.norm));
}

TEST(Spellings, AllReachTheSameFusedForm) {
  for (const Spelling& spelling : every_spelling()) {
    SCOPED_TRACE(code_of(spelling));
    Graph graph = parse(text_of(spelling));
    PipelineOptions options;
    options.level = Level::O2;
    options.verify = true;
    const Status status = run_pipeline(graph, options, {});
    ASSERT_TRUE(status.ok()) << describe(status.error());
    std::vector<std::string> launches;
    for (const Node& node : graph.nodes) {
      if (is_launch(node)) launches.push_back(node.op);
    }
    const std::vector<std::string> expected{"state_append", "state_append", "rms_norm", "attention", "neg"};
    ASSERT_EQ(launches, expected) << print_graph(graph);
  }
}

// One spelling of each kind, against the primitives: every eleventh of all, which has each choice of each.
TEST(Spellings, ComputeWhatTheirPrimitivesDo) {
  const std::vector<StepSizes> steps{{{{'B', 2}, {'T', 9}, {'C', 9}}, 0},
                                     {{{'B', 2}, {'T', 1}, {'C', 10}}, 9}};
  const Bindings bound{{'B', 2}, {'T', 16}, {'C', 16}};
  const std::vector<Spelling> all = every_spelling();
  for (std::size_t i = 0; i < all.size(); i += 11) {
    SCOPED_TRACE(code_of(all[i]));
    const std::string text = text_of(all[i]);
    const Result<GraphRun> reference = run_graph(text, Level::O0, Isa::Portable, bound, steps);
    const Result<GraphRun> fused = run_graph(text, Level::O2, detect_isa(), bound, steps);
    ASSERT_TRUE(reference.ok() && fused.ok());
    for (std::size_t step = 0; step < steps.size(); ++step) {
      double largest = 0;
      double error = 0;
      for (std::size_t k = 0; k < reference->outputs[step].size(); ++k) {
        const auto expected = static_cast<double>(reference->outputs[step][k]);
        largest = std::max(largest, std::abs(expected));
        error = std::max(error, std::abs(static_cast<double>(fused->outputs[step][k]) - expected));
      }
      EXPECT_GT(largest, 0.01);
      // Sums of E, C and D terms on each side, as a random walk; a factor of 8 for the worst of some thousand
      // elements.
      EXPECT_LE(error, 8 * std::sqrt(kHead + 16 + kDim) * 0x1p-24 * largest);
    }
  }
}

}  // namespace
}  // namespace hone::test
