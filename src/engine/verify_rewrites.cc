#include "engine/verify_rewrites.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <set>

#include "engine/cut_graph.h"
#include "engine/rounding_model.h"
#include "graph/text.h"

namespace hone {
namespace {

constexpr double kEndless = std::numeric_limits<double>::max();  // of an error that is no number

// Values by their printed names.
std::map<std::string, ValueId> names_of(const Graph& graph) {
  std::map<std::string, ValueId> names;
  for (const GraphInput& input : graph.inputs) names[graph.value_name(input.value)] = input.value;
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.outputs) names[graph.value_name(value)] = value;
  }
  return names;
}

// Equal texts: the same computation of the same operands.
std::string form_of(const Graph& graph, const Node& node) {
  std::string out = node.op + "(";
  for (const ValueId input : node.inputs)
    out += graph.value_name(input) + type_to_string(graph.type(input)) + ",";
  out += ")" + print_attributes(node.attributes);
  for (const ValueId output : node.outputs) out += type_to_string(graph.type(output));
  if (node.body != nullptr) out += print_graph(*node.body);
  return out;
}

// The difference of two forms of one value, as multiples of what is allowed.
struct Comparison {
  double of_allowed = 0;  // at most 1
  double max_error = 0;
  double bound = 0;
};

Comparison compare_bits(const TensorData& a, const TensorData& b, double error) {
  const bool same = a.dtype == b.dtype && a.bytes == b.bytes;
  // Zeros of two signs are other bits and no error.
  const double shown = error > 0 ? error : std::numeric_limits<double>::denorm_min();
  return {same ? 0.0 : kEndless, same ? 0 : shown, 0};
}

bool alike(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// Relative to the largest element.
double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return kEndless;
  double error = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (alike(a[i], b[i])) continue;
    const double difference = std::abs(a[i] - b[i]);
    if (!std::isfinite(difference)) return kEndless;
    error = std::max(error, difference);
  }
  const double scale = largest_of(a);
  return error == 0 ? 0 : scale == 0 ? kEndless : error / scale;
}

Comparison compare_within(const std::vector<double>& a, const std::vector<double>& b,
                          const std::vector<double>& variance) {
  Comparison out;
  out.max_error = relative_error(a, b);
  double sum = 0;
  double largest = 0;
  double count = 0;
  double widest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    widest = std::max(widest, variance[i]);
    if (variance[i] > 0) ++count;
    if (alike(a[i], b[i])) continue;
    const double z = std::abs(a[i] - b[i]) / std::sqrt(variance[i]);  // infinite where nothing may differ
    if (!std::isfinite(z)) {
      largest = kEndless;
      continue;
    }
    sum += z * z;
    largest = std::max(largest, z);
  }
  count = std::max(count, 1.0);
  const double mean = std::sqrt(sum / count) / (kTypical + kSample / std::sqrt(count));
  out.of_allowed = out.max_error == kEndless ? kEndless : std::max(mean, largest / kLargest);
  const double scale = largest_of(a);
  const bool measured = out.of_allowed > 0 && out.of_allowed < kEndless;
  const double at_most = scale == 0 ? 0 : kLargest * std::sqrt(widest) / scale;
  out.bound = measured ? out.max_error / out.of_allowed : at_most;
  return out;
}

// True if `value` is q8a [..,2,K]: a quantisation in two terms writes it, by itself or in a body.
bool in_two_terms(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != value) continue;
      if (node.op == "quantize_q8a") return node.attributes.integer("terms", 1) == 2;
      return node.body != nullptr && in_two_terms(*node.body, node.body->outputs[i].value);
    }
  }
  return false;
}

// Of numbers [..,2,K] those [..,K] of both rows together.
std::vector<double> sums_of_terms(const std::vector<double>& terms, std::size_t k) {
  std::vector<double> sums(terms.size() / 2);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t first = i / k * 2 * k + i % k;
    sums[i] = terms[first] + terms[first + k];
  }
  return sums;
}

class Rewrites {
 public:
  Rewrites(const Graph& before, const Graph& after, ContractKind contract, const Yardstick& yardstick)
      : before_(before),
        after_(after),
        contract_(contract),
        yardstick_(yardstick),
        old_names_(names_of(before)),
        new_names_(names_of(after)) {}

  Result<RewriteCheck> run() {
    find_pairs();
    find_inner();
    RewriteCheck check;
    check.rewritten = static_cast<int>(pairs_.size());
    if (pairs_.empty()) return check;
    HONE_TRY(compute());
    const Comparison* worst = nullptr;
    const Pair* shown = nullptr;
    std::size_t shown_size = 0;
    std::vector<Comparison> results;
    results.reserve(pairs_.size());
    for (const Pair& pair : pairs_) results.push_back(HONE_TRY(compare(pair)));
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const bool fails = results[i].of_allowed > 1;
      check.ok = check.ok && !fails;
      const bool is_worst = worst == nullptr || results[i].of_allowed > worst->of_allowed;
      if (is_worst) worst = &results[i];
      const std::size_t size = fails ? nodes_of(pairs_[i]) : 0;
      if (fails ? shown_size == 0 || size < shown_size : is_worst && shown_size == 0) {
        shown = &pairs_[i];
        shown_size = size;
      }
    }
    check.max_error = worst->max_error;
    check.bound = worst->bound;
    show(*shown, check);
    return check;
  }

 private:
  // One value in both graphs.
  struct Pair {
    ValueId old_value = -1;
    ValueId new_value = -1;
  };
  // A side: what is computed of one graph, and what it was fed.
  struct Side {
    Cut cut;
    NamedTensors feeds;
    NamedTensors results;
    std::map<std::string, Spread> spreads;
  };

  bool in_both(const std::string& name) const {
    return old_names_.contains(name) && new_names_.contains(name);
  }

  void find_pairs() {
    std::map<std::string, std::string> old_forms;
    for (const Node& node : before_.nodes) {
      for (const ValueId value : node.outputs) old_forms[before_.value_name(value)] = form_of(before_, node);
    }
    std::set<std::pair<ValueId, ValueId>> found;
    const auto add = [&](ValueId a, ValueId b) {
      const DType dtype = before_.type(a).dtype;
      const bool fixed = dtype_row(dtype).is_quantised && dtype != DType::Q8A;  // a view of weights
      if (!fixed && found.emplace(a, b).second) pairs_.push_back({a, b});
    };
    for (const Node& node : after_.nodes) {
      const std::string form = form_of(after_, node);
      for (const ValueId value : node.outputs) {
        const auto old = old_forms.find(after_.value_name(value));
        if (old != old_forms.end() && old->second != form) add(old_names_[old->first], value);
      }
    }
    // An output that another value serves now.
    for (const GraphOutput& output : after_.outputs) {
      for (const GraphOutput& was : before_.outputs) {
        const bool other =
            was.name == output.name && before_.value_name(was.value) != after_.value_name(output.value);
        if (other) add(was.value, output.value);
      }
    }
  }

  // What one launch writes and reads again for another of its results (a sum and the norm of it): fed to the
  // old form, it would be O0's number there and the launch's own in the new form.
  void find_inner() {
    std::set<std::string> found;
    for (const Node& node : after_.nodes) {
      std::vector<std::string> results;
      for (const ValueId output : node.outputs) {
        if (in_both(after_.value_name(output))) results.push_back(after_.value_name(output));
      }
      for (const std::string& name : results) {
        for (const std::string& read : fed_names(piece(before_, old_names_[name]).graph)) {
          if (std::ranges::find(results, read) != results.end()) found.insert(read);
        }
        if (results.size() < 2) break;
      }
    }
    inner_ = std::move(found);
  }

  // Whether a cut ends at this value.
  bool is_given(const std::string& name) const { return in_both(name) && !inner_.contains(name); }

  // Numbers of O0 under this name that fit the type.
  const TensorData* recorded(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const auto found = yardstick_.recorded.find(name);
    const bool fits =
        found != yardstick_.recorded.end() && element_count(found->second.shape) == element_count(shape);
    return fits ? &found->second : nullptr;
  }

  Result<TensorData> fitted(const TensorData& numbers, const Type& type) const {
    TensorData out = HONE_TRY(converted(numbers, type.dtype));
    out.shape = HONE_TRY(extents_of(type, yardstick_.plan.bound));
    return out;
  }

  // What O0 does not have, as a value of a type that an earlier pass brought in: computed by the old graph
  // from what O0 has.
  Status compute_missing(const std::vector<std::string>& names) {
    std::vector<ValueId> targets;
    for (const std::string& name : names) {
      if (!old_names_.contains(name)) continue;  // an input that the pass has brought in
      const ValueId value = old_names_[name];
      const std::vector<std::int64_t> shape =
          HONE_TRY(extents_of(before_.type(value), yardstick_.plan.bound));
      if (recorded(name, shape) == nullptr && !computed_.contains(name)) targets.push_back(value);
    }
    if (targets.empty()) return {};
    const auto given = [&](ValueId value) {
      const Result<std::vector<std::int64_t>> shape = extents_of(before_.type(value), yardstick_.plan.bound);
      return shape.ok() && recorded(before_.value_name(value), *shape) != nullptr;
    };
    const Cut cut = cut_graph(before_, targets, given);
    NamedTensors feeds;
    for (const GraphInput& input : cut.graph.inputs) {
      if (input.kind != InputKind::Input) continue;
      const Type& type = cut.graph.type(input.value);
      const std::vector<std::int64_t> shape = HONE_TRY(extents_of(type, yardstick_.plan.bound));
      const TensorData* numbers = recorded(input.name, shape);
      if (numbers == nullptr) return internal_error(input.name, "O0 has no such value");
      feeds[input.name] = HONE_TRY(fitted(*numbers, type));
    }
    computed_.merge(HONE_TRY(run_graph(cut.graph, yardstick_.checkpoint, yardstick_.plan, feeds)));
    return {};
  }

  Result<const TensorData*> numbers_of(const std::string& name) const {
    const auto found = computed_.find(name);
    if (found != computed_.end()) return &found->second;
    const auto of_o0 = yardstick_.recorded.find(name);
    if (of_o0 != yardstick_.recorded.end()) return &of_o0->second;
    return internal_error(name, "verify has no numbers for this operand");
  }

  Side cut_side(const Graph& graph, const std::vector<ValueId>& targets) const {
    Side side;
    side.cut = cut_graph(graph, targets, [&](ValueId value) { return is_given(graph.value_name(value)); });
    return side;
  }

  static std::vector<std::string> fed_names(const Graph& graph) {
    std::vector<std::string> names;
    for (const GraphInput& input : graph.inputs) {
      if (input.kind == InputKind::Input) names.push_back(input.name);
    }
    return names;
  }

  Status feed(Side& side) {
    for (const GraphInput& input : side.cut.graph.inputs) {
      if (input.kind != InputKind::Input) continue;
      const TensorData* numbers = HONE_TRY(numbers_of(input.name));
      const Type& type = side.cut.graph.type(input.value);
      // Both sides start from the old graph's type of the value.
      const Type& old_type = old_names_.contains(input.name) ? before_.type(old_names_[input.name]) : type;
      const TensorData was = HONE_TRY(fitted(*numbers, old_type));
      side.feeds[input.name] = HONE_TRY(fitted(was, type));
    }
    side.results = HONE_TRY(run_graph(side.cut.graph, yardstick_.checkpoint, yardstick_.plan, side.feeds));
    return {};
  }

  // How far an operand is from what the old form reads, where it has a narrower type here.
  Result<std::map<std::string, std::vector<double>>> rounded_operands(const Side& side) {
    std::map<std::string, std::vector<double>> out;
    for (const auto& [name, tensor] : side.feeds) {
      if (!old_names_.contains(name)) continue;
      const Type& old_type = before_.type(old_names_[name]);
      if (old_type.dtype == tensor.dtype) continue;
      const TensorData* numbers = HONE_TRY(numbers_of(name));
      const TensorData was = HONE_TRY(fitted(*numbers, old_type));
      std::vector<double> error = HONE_TRY(to_doubles(tensor));
      const std::vector<double> exact = HONE_TRY(to_doubles(was));
      for (std::size_t i = 0; i < error.size(); ++i) error[i] = std::abs(error[i] - exact[i]);
      out[name] = std::move(error);
    }
    HONE_TRY(add_rounded_weights(side, out));
    return out;
  }

  // The same of weights that one graph reads in a narrower type.
  Status add_rounded_weights(const Side& side, std::map<std::string, std::vector<double>>& out) {
    for (const GraphInput& input : side.cut.graph.inputs) {
      const GraphInput* was = before_.find_input(input.name);
      if (input.kind != InputKind::Weight || was == nullptr) continue;
      const Type& type = side.cut.graph.type(input.value);
      const Type& old_type = before_.type(was->value);
      if (old_type.dtype == type.dtype || !dtype_row(type.dtype).is_quantised) continue;
      const Checkpoint& checkpoint = yardstick_.checkpoint;
      const Bindings& bindings = yardstick_.plan.bound;
      std::vector<double> error = HONE_TRY(weight_values(checkpoint, input, type, bindings));
      const std::vector<double> exact = HONE_TRY(weight_values(checkpoint, *was, old_type, bindings));
      for (std::size_t i = 0; i < error.size(); ++i) error[i] = std::abs(error[i] - exact[i]);
      out[input.name] = std::move(error);
    }
    return {};
  }

  // The expected deviations, from the numbers of a run of the primitive form on reference kernels.
  Status model(Side& side) {
    const Graph primitive = without_bodies(side.cut.graph);
    Graph exposed = primitive;
    expose_all(exposed);
    PlanOptions reference = yardstick_.plan;
    reference.level = Level::O0;
    const NamedTensors values = HONE_TRY(run_graph(exposed, yardstick_.checkpoint, reference, side.feeds));
    const auto rounded = HONE_TRY(rounded_operands(side));
    side.spreads = HONE_TRY(rounding_spreads(primitive, side.feeds, values, yardstick_.checkpoint,
                                             yardstick_.plan.bound, rounded));
    return {};
  }

  Status compute() {
    std::vector<ValueId> old_targets;
    std::vector<ValueId> new_targets;
    for (const Pair& pair : pairs_) {
      old_targets.push_back(pair.old_value);
      new_targets.push_back(pair.new_value);
    }
    old_ = cut_side(before_, old_targets);
    new_ = cut_side(after_, new_targets);
    HONE_TRY(compute_missing(fed_names(old_.cut.graph)));
    HONE_TRY(compute_missing(fed_names(new_.cut.graph)));
    HONE_TRY(feed(old_));
    HONE_TRY(feed(new_));
    if (contract_ == ContractKind::SameBits) return {};
    HONE_TRY(model(old_));
    return contract_ == ContractKind::RoundsToType ? model(new_) : Status{};
  }

  Result<Comparison> compare(const Pair& pair) {
    const std::string old_name = before_.value_name(pair.old_value);
    const std::string new_name = after_.value_name(pair.new_value);
    const TensorData& was = old_.results[old_name];
    const TensorData& is = new_.results[new_name];
    const std::vector<double> a = HONE_TRY(to_doubles(was));
    const std::vector<double> b = HONE_TRY(to_doubles(is));
    if (contract_ == ContractKind::SameBits) return compare_bits(was, is, relative_error(a, b));
    if (a.size() != b.size()) return Comparison{kEndless, kEndless, 0};
    const std::vector<double>& from_old = old_.spreads[old_name].deviation;
    const bool both = contract_ == ContractKind::RoundsToType;
    const std::vector<double>& from_new = both ? new_.spreads[new_name].deviation : from_old;
    std::vector<double> variance(a.size(), 0.0);
    for (const std::vector<double>* part : {&from_old, &from_new}) {
      for (std::size_t i = 0; i < part->size(); ++i) variance[i] += (*part)[i] * (*part)[i];
    }
    if (!in_two_terms(before_, pair.old_value) || !in_two_terms(after_, pair.new_value))
      return compare_within(a, b, variance);
    // The rounding of the first term decides what the second is: their sum is the value.
    const auto k = static_cast<std::size_t>(was.shape.back());
    return compare_within(sums_of_terms(a, k), sums_of_terms(b, k), sums_of_terms(variance, k));
  }

  Cut piece(const Graph& graph, ValueId value) const {
    const ValueId targets[] = {value};
    return cut_graph(graph, targets, [&](ValueId v) { return is_given(graph.value_name(v)); });
  }
  std::size_t nodes_of(const Pair& pair) const {
    return piece(before_, pair.old_value).nodes + piece(after_, pair.new_value).nodes;
  }
  void show(const Pair& pair, RewriteCheck& check) const {
    check.value = after_.value_name(pair.new_value);
    check.before = print_graph(piece(before_, pair.old_value).graph);
    check.after = print_graph(piece(after_, pair.new_value).graph);
  }

  const Graph& before_;
  const Graph& after_;
  ContractKind contract_;
  const Yardstick& yardstick_;
  std::map<std::string, ValueId> old_names_;
  std::map<std::string, ValueId> new_names_;
  std::vector<Pair> pairs_;
  std::set<std::string> inner_;
  NamedTensors computed_;
  Side old_;
  Side new_;
};

}  // namespace

Result<RewriteCheck> check_rewrites(const Graph& before, const Graph& after, ContractKind contract,
                                    const Yardstick& yardstick) {
  return Rewrites(before, after, contract, yardstick).run();
}

}  // namespace hone
