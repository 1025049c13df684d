// What a pass is: a function graph -> graph with a name, a place in the pipeline and a numeric contract.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/target.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

namespace hone {

// What a pass may do to the numbers.
enum class ContractKind : std::uint8_t {
  SameBits,
  FewerRoundings,  // a product and sum rounded once, an intermediate kept wider
  Reorders,        // another order of additions, online softmax
  RoundsToType,    // lower precision, only where the precision policy asks for it
};

struct Contract {
  ContractKind kind = ContractKind::SameBits;
  // Bound on the relative error it adds to the value it rewrites, as a formula to read: "K * 2^-24". Empty:
  // none.
  std::string_view bound;
};

std::string contract_to_string(const Contract& contract);  // "reorders, bound K * 2^-24"

// Optimisation levels: what runs at each stands in pipeline.cc.
enum class Level : std::uint8_t { O0, O1, O2, O3 };

// What a product reads its activations as. Blocks are for quantised weights.
enum class Activations : std::uint8_t {
  F32,
  Bf16,         // of weights of bf16
  Q8a,          // int8 blocks
  Q8aTwoTerms,  // and what their rounding left, rounded to int8 blocks as well
};

// Which types activations of matmuls take, and the type of the KV cache. One table
// (precision.cc) gives the default for a weight type and ISA level; --precision and --kv change it.
struct PrecisionPolicy {
  bool int8_activations = false;  // O3 default for quantised weights: q8a blocks into the int8 matmul
  bool bf16_activations = false;  // O3 default for weights of bf16 where there are tiles
  DType kv = DType::F32;
  std::optional<DType> weights = std::nullopt;  // of matrices that the checkpoint has in a float type
  bool two_terms = false;                       // of the int8 activations
  // What rules say of single modules (passes/precision_rules.h): of the products with a weight, of a state.
  std::map<std::string, Activations, std::less<>> products = {};
  std::map<std::string, DType, std::less<>> states = {};
  // Weights that rules want to run from the mapped file. No pass reads it; the plan does.
  std::set<std::string, std::less<>> mapped = {};
};

// How often a named rule of a pass has rewritten something.
struct RuleCount {
  std::string name;
  std::int64_t fired = 0;
};

std::string rules_to_string(
    const std::vector<RuleCount>& rules);  // "multiply-by-one 3, reshape-of-reshape 12"

struct PassContext {
  Target target;
  PrecisionPolicy precision;
  const Evaluator* evaluator = nullptr;     // for fold-constants; nullptr: it folds nothing
  std::vector<RuleCount>* rules = nullptr;  // where fired() counts, in the order of the first firing

  void fired(std::string_view rule, std::int64_t times = 1) const;
};

struct PassRow {
  std::string_view name;                                    // "fuse-norm"
  Status (*run)(Graph& graph, const PassContext& context);  // leaves a graph that verifies, or an error
  Contract contract;
  Level from_level;      // the first level whose pipeline holds it
  std::string_view why;  // why it stands at this place
};

// What a pass did, for explain: counted on the graph before and after.
struct GraphCounts {
  std::int64_t nodes = 0;     // constants not counted
  std::int64_t launches = 0;  // nodes that run
};
GraphCounts count_graph(const Graph& graph);

struct PassReport {
  std::string name;
  Contract contract;
  GraphCounts before;
  GraphCounts after;
  std::vector<RuleCount> rules;  // those that fired
  bool changed = false;          // the text form differs
  double milliseconds = 0;
};

}  // namespace hone
