#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "graph/cost.h"
#include "graph/op_row.h"
#include "graph/rewrite.h"
#include "plan/choose_kernel.h"
#include "plan/last_reads.h"
#include "plan/offsets.h"
#include "plan/plan.h"
#include "plan/strided_view.h"
#include "plan/strip_builder.h"
#include "tensor/panel_layout.h"

namespace hone {
namespace {

// Where a value lies: which buffer, and how in it.
struct Location {
  Region region = Region::Dynamic;
  int buffer = -1;  // index into statics, states or the dynamic buffers
  StridedView view;
};

struct DynamicBuffer {
  ValueId value = -1;  // -1: the scratch of a step
  ValueId holds = -1;  // whose elements lie in it now: of `value`, or of one that has taken its place
  Dim bytes;
  int first = 0;
  int last = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options)
      : graph_(graph),
        options_(options),
        uses_(graph),
        last_reads_(graph, uses_),
        locations_(graph.values.size()) {
    plan_.target = options.target;
    plan_.level = options.level;
    plan_.bound = options.bound;
    plan_.workspace = options.workspace;
  }

  Result<Plan> run() {
    choose_layouts();
    HONE_TRY(place_inputs());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      HONE_TRY(plan_node(graph_.nodes[n], static_cast<int>(n)));
    HONE_TRY(report_missing());
    HONE_TRY(place_outputs());
    HONE_TRY(size_workspace());
    HONE_TRY(place_dynamic());
    return std::move(plan_);
  }

 private:
  // --- weights
  // -----------------------------------------------------------------------------------------------------

  static bool packable(const Type& type) {
    // [N,K], or [X,N,K] with one matrix per expert.
    const std::size_t rank = type.shape.size();
    if (rank != 2 && rank != 3) return false;
    for (const Dim& dim : type.shape) {
      if (!dim.is_constant()) return false;
    }
    return panel_supports(type.dtype, *type.shape[rank - 1].as_constant());
  }

  // Panel16 for each weight matrix whose every reader has a fast kernel that takes it so; the file's layout
  // otherwise.
  void choose_layouts() {
    for (const GraphInput& input : graph_.inputs) {
      if (input.kind != InputKind::Weight || options_.level == Level::O0) continue;
      if (is_to_be_mapped(input)) {
        mapped_.emplace(input.value, input.name);
        continue;
      }
      if (packable(graph_.type(input.value)) && !uses_.users[static_cast<std::size_t>(input.value)].empty()) {
        panels_.insert(input.value);
      }
    }
    for (bool settled = false; !settled;) {
      settled = true;
      for (const Node& node : graph_.nodes) {
        const bool reads_weights = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
          return panels_.contains(v) || mapped_.contains(v);
        });
        if (!reads_weights) continue;
        const KernelChoice choice = tentative_choice(node);
        if (choice.kernel != nullptr && !choice.kernel->reference) continue;
        // Those of the file are packed first, and only then all are left as they are.
        if (pack_instead(node)) {
          settled = false;
          continue;
        }
        for (const ValueId input : node.inputs) panels_.erase(input);
        settled = false;
      }
    }
  }

  // Errors are not for here: what cannot be mapped is packed, and named.
  bool is_to_be_mapped(const GraphInput& input) {
    if (options_.mapped == nullptr || !options_.mapped->contains(input.name)) return false;
    const Type& type = graph_.type(input.value);
    if (type.shape.size() < 2 || uses_.users[static_cast<std::size_t>(input.value)].empty()) return false;
    if (type.shape.size() == 2 && packable(type)) return true;
    plan_.not_mapped.push_back(
        fmt::format("{} {}: {}", input.name, type_to_string(type),
                    type.shape.size() == 3 ? "experts are read in panels" : "its rows are no whole blocks"));
    return false;
  }

  // The weights of the file that `node` reads become panels; false if it reads none.
  bool pack_instead(const Node& node) {
    bool any = false;
    for (const ValueId input : node.inputs) {
      const auto found = mapped_.find(input);
      if (found == mapped_.end()) continue;
      plan_.not_mapped.push_back(fmt::format("{} {}: no fast kernel of {} reads it from the file",
                                             found->second, type_to_string(graph_.type(input)), node.op));
      panels_.insert(input);
      mapped_.erase(found);
      any = true;
    }
    return any;
  }

  OperandSpec contiguous_spec(ValueId value) const {
    const Type& type = graph_.type(value);
    const bool panel = panels_.contains(value);
    OperandSpec spec{type.dtype,
                     panel ? Layout::Panel16 : Layout::Strided,
                     type.shape,
                     {},
                     panel || mapped_.contains(value)};
    if (!panel) spec.strides = contiguous_strides(type.shape);
    return spec;
  }

  KernelChoice tentative_choice(const Node& node) const {
    std::vector<OperandSpec> inputs;
    std::vector<OperandSpec> outputs;
    inputs.reserve(node.inputs.size());
    outputs.reserve(node.outputs.size());
    for (const ValueId value : node.inputs) inputs.push_back(contiguous_spec(value));
    for (const ValueId value : node.outputs) outputs.push_back(contiguous_spec(value));
    return choose_kernel({kernel_op(node), &node.attributes, inputs, outputs}, options_.target,
                         options_.level);
  }

  // Elementwise nodes run as strip programs, but at O0, where each has its reference kernel, and where a cast
  // reads blocks.
  std::string_view kernel_op(const Node& node) const {
    const OpRow* row = find_op(node.op);
    const bool blocks = !node.inputs.empty() && dtype_row(graph_.type(node.inputs[0]).dtype).is_quantised;
    const bool strips =
        row != nullptr && row->op_class == OpClass::Elementwise && !blocks && options_.level != Level::O0;
    return strips ? std::string_view("fused_elementwise") : std::string_view(node.op);
  }

  // --- buffers
  // -----------------------------------------------------------------------------------------------------

  int add_static(StaticBuffer buffer) {
    buffer.offset = plan_.static_bytes;
    plan_.static_bytes += (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    plan_.statics.push_back(std::move(buffer));
    return static_cast<int>(plan_.statics.size()) - 1;
  }

  Location& locate(ValueId value) { return locations_[static_cast<std::size_t>(value)]; }

  StridedView whole(ValueId value) const {
    const Shape& shape = graph_.type(value).shape;
    return {shape, contiguous_strides(shape), Dim(0)};
  }

  void place_new(ValueId value, int step) {
    locate(value) = {Region::Dynamic, static_cast<int>(buffers_.size()), whole(value)};
    buffers_.push_back({value, value, type_bytes(graph_.type(value)), step, step});
  }

  Status place_inputs() {
    for (const GraphInput& input : graph_.inputs) {
      const Type& type = graph_.type(input.value);
      if (input.kind == InputKind::Weight) {
        HONE_TRY(place_weight(input));
      } else if (input.kind == InputKind::State) {
        HONE_TRY(place_state(input));
      } else {
        // Inputs are there before the first step and stay until the last: a step may be run again.
        place_new(input.value, 0);
        ports_.push_back({true, {input.name, type, {}}, input.value});
      }
    }
    return {};
  }

  Status place_weight(const GraphInput& input) {
    if (uses_.users[static_cast<std::size_t>(input.value)].empty()) return {};
    const Type& type = graph_.type(input.value);
    const int reader = uses_.users[static_cast<std::size_t>(input.value)].front();
    if (mapped_.contains(input.value)) {
      const std::int64_t bytes = HONE_TRY(type_bytes(type).evaluate(plan_.bound));
      locate(input.value) = {Region::File, static_cast<int>(plan_.mapped.size()), whole(input.value)};
      plan_.mapped.push_back(
          {input.name, graph_.nodes[static_cast<std::size_t>(reader)].module, type, bytes});
      plan_.mapped_bytes += bytes;
      return {};
    }
    StaticBuffer buffer{input.name, {}, type, Layout::Strided, 0, 0, {}};
    buffer.module = graph_.nodes[static_cast<std::size_t>(reader)].module;
    if (panels_.contains(input.value)) {
      buffer.layout = Layout::Panel16;
      const std::size_t rank = type.shape.size();
      const std::int64_t matrices = rank == 3 ? *type.shape[0].as_constant() : 1;
      buffer.bytes = matrices * panel_bytes(type.dtype, *type.shape[rank - 2].as_constant(),
                                            *type.shape[rank - 1].as_constant());
    } else {
      buffer.bytes = HONE_TRY(type_bytes(type).evaluate(plan_.bound));
    }
    locate(input.value) = {Region::Static, add_static(std::move(buffer)), whole(input.value)};
    return {};
  }

  // A state is stored with its context axis at its capacity; a step sees the first C rows of it.
  Status place_state(const GraphInput& input) {
    StateBuffer buffer{input.name, graph_.type(input.value), plan_.state_bytes, 0};
    for (Dim& dim : buffer.type.shape) dim = Dim(HONE_TRY(dim.evaluate(plan_.bound)));
    buffer.bytes = HONE_TRY(type_bytes(buffer.type).evaluate(plan_.bound));
    plan_.state_bytes += (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    StridedView view{graph_.type(input.value).shape, contiguous_strides(buffer.type.shape), Dim(0)};
    plan_.states.push_back(std::move(buffer));
    locate(input.value) = {Region::State, static_cast<int>(plan_.states.size()) - 1, std::move(view)};
    return {};
  }

  Status place_constant(const Node& node) {
    const ValueId value = node.outputs[0];
    const Type& type = graph_.type(value);
    StaticBuffer buffer{{}, node.module, type, Layout::Strided, 0, 0, {}};
    buffer.bytes = HONE_TRY(type_bytes(type).evaluate(plan_.bound));
    if (options_.runnable) buffer.values = *node.attributes.get<std::vector<double>>("values");
    locate(value) = {Region::Static, add_static(std::move(buffer)), whole(value)};
    return {};
  }

  // --- steps
  // -------------------------------------------------------------------------------------------------------

  Operand operand(ValueId value, int step) {
    const Location& at = locate(value);
    const Type& type = graph_.type(value);
    Operand out;
    out.place.region = at.region;
    out.spec = {type.dtype, Layout::Strided, at.view.shape, at.view.strides, false};
    if (at.region == Region::File) {
      out.spec.is_weight = true;
      out.place.mapped = at.buffer;
    }
    if (panels_.contains(value)) {
      out.spec.layout = Layout::Panel16;
      out.spec.strides.clear();
      out.spec.is_weight = true;
    }
    if (at.region == Region::Dynamic) {
      DynamicBuffer& buffer = buffers_[static_cast<std::size_t>(at.buffer)];
      buffer.last = std::max(buffer.last, step);
    }
    out.place.offset = byte_offset(type.dtype, at.view.offset);
    return out;
  }

  static Dim byte_offset(DType dtype, const Dim& elements) {
    const DTypeRow& row = dtype_row(dtype);
    return row.block_elements == 1 ? elements * Dim(row.block_bytes) : Dim(0);  // blocks are never sliced
  }

  // The offset of a buffer is known only after all lifetimes are; until then operands remember which buffer.
  struct Pending {
    int step;
    bool output;
    int index;
    Region region;
    int buffer;
  };

  void remember(int step, bool output, int index, ValueId value) {
    pending_.push_back({step, output, index, locate(value).region, locate(value).buffer});
  }

  Status plan_node(const Node& node, int index) {
    if (node.op == "constant") return place_constant(node);
    const OpRow* row = find_op(node.op);
    if (row != nullptr && row->op_class == OpClass::View) return plan_view(node);
    const int step = static_cast<int>(plan_.steps.size());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      int aliased = aliased_input(node, i);
      if (aliased < 0) aliased = overwritten_input(node, i, index);
      if (aliased < 0) {
        place_new(node.outputs[i], step);
      } else {
        locate(node.outputs[i]) = locate(node.inputs[static_cast<std::size_t>(aliased)]);
      }
    }
    return add_step(node.op == "state_assign" ? assignment(node) : node, step);
  }

  // A state_assign, whose result lies where the state does, as the copy that it is.
  static Node assignment(const Node& node) {
    Node copy = node;
    copy.op = "copy";
    copy.inputs = {node.inputs[1]};
    return copy;
  }

  // The input whose place output `output` takes, since this node, number `index`, is the last to read what
  // lies there.
  int overwritten_input(const Node& node, std::size_t output, int index) {
    const OpRow* row = find_op(node.op);
    if (options_.level < Level::O2 || row == nullptr || row->overwrites == nullptr) return -1;
    const int input = row->overwrites(node, output);
    if (input < 0) return -1;
    const ValueId value = node.inputs[static_cast<std::size_t>(input)];
    const Location& at = locate(value);
    if (at.region != Region::Dynamic || !(graph_.type(value) == graph_.type(node.outputs[output]))) return -1;
    DynamicBuffer& buffer = buffers_[static_cast<std::size_t>(at.buffer)];
    if (buffer.holds != value || last_reads_.of(value) != index) return -1;
    buffer.holds = node.outputs[output];
    return input;
  }

  Status plan_view(const Node& node) {
    const ValueId from = node.inputs[0];
    const ValueId to = node.outputs[0];
    std::optional<StridedView> view = apply_view(node, locate(from).view, graph_.type(to).shape);
    if (view) {
      locate(to) = locate(from);
      locate(to).view = std::move(*view);
      return {};
    }
    // A reshape that no strides can express: the elements are copied into their order first.
    const int step = static_cast<int>(plan_.steps.size());
    Node copy;
    copy.op = "copy";
    copy.inputs = {from};
    copy.outputs = {to};
    copy.module = node.module;
    place_new(to, step);
    Location& at = locate(to);
    const StridedView result = at.view;
    at.view = {graph_.type(from).shape, contiguous_strides(graph_.type(from).shape), Dim(0)};
    HONE_TRY(add_step(copy, step));
    locate(to).view = result;
    return {};
  }

  Status add_step(const Node& node, int step) {
    Step made;
    made.op = node.op;
    made.module = node.module;
    made.value = graph_.value_name(node.outputs[0]);
    made.attributes = node.attributes;
    std::vector<OperandSpec> inputs;
    std::vector<OperandSpec> outputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      made.inputs.push_back(operand(node.inputs[i], step));
      inputs.push_back(made.inputs.back().spec);
      remember(step, false, static_cast<int>(i), node.inputs[i]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      made.outputs.push_back(operand(node.outputs[i], step));
      outputs.push_back(made.outputs.back().spec);
      remember(step, true, static_cast<int>(i), node.outputs[i]);
    }
    const std::string_view op = kernel_op(node);
    if (op == "fused_elementwise") {
      made.program = std::make_shared<const StripProgram>(HONE_TRY(build_strip_program(graph_, uses_, node)));
    }
    const Signature signature{op, &made.attributes, inputs, outputs};
    const KernelChoice choice = choose_kernel(signature, options_.target, options_.level);
    if (choice.kernel == nullptr) {
      missing_.push_back(fmt::format("{}{}{}: {}{}", node.op, node.module.empty() ? "" : " of ", node.module,
                                     signature_text(signature),
                                     choice.refusals.empty() ? "" : fmt::format(" ({})", choice.refusals)));
    }
    if (choice.kernel != nullptr && choice.kernel->reference && options_.level > Level::O0) {
      note_fallback(op, signature, choice);
    }
    made.kernel = choice.kernel;
    made.bytes_moved =
        node.op == "copy" ? type_bytes(graph_.type(node.inputs[0])) * Dim(2) : bytes_moved(graph_, node);
    made.bytes_written =
        node.op == "copy" ? type_bytes(graph_.type(node.inputs[0])) : bytes_written(graph_, node);
    made.operations = operations(graph_, node);
    plan_.steps.push_back(std::move(made));
    return {};
  }

  // Why an op runs on its reference kernel; the first node of each op speaks for the others.
  void note_fallback(std::string_view op, const Signature& signature, const KernelChoice& choice) {
    if (std::find(fallen_back_.begin(), fallen_back_.end(), op) != fallen_back_.end()) return;
    fallen_back_.emplace_back(op);
    std::string& reasons = plan_.fallback_reasons;
    if (!reasons.empty()) reasons += "; ";
    if (choice.refusals.empty()) {
      reasons += fmt::format("{} has no fast kernel", op);
    } else {
      reasons += fmt::format("{} of {}: {}", op, signature_text(signature), choice.refusals);
    }
  }

  Status report_missing() const {
    if (missing_.empty()) return {};
    return Error{ErrorCode::BadModel,
                 Fault::Hone,
                 fmt::format("{} of {} launches", missing_.size(), plan_.steps.size()),
                 "no kernel computes these nodes",
                 "a kernel for each",
                 fmt::format("{}", fmt::join(missing_, "; ")),
                 "use a checkpoint in another format, or report this"};
  }

  // --- addresses
  // ---------------------------------------------------------------------------------------------------

  Status place_outputs() {
    const int last = std::max(0, static_cast<int>(plan_.steps.size()) - 1);
    for (const GraphOutput& output : graph_.outputs) {
      const Location& at = locate(output.value);
      if (at.region != Region::Dynamic || !is_contiguous(at.view)) {
        return internal_error(output.name, "an output of the graph is not a contiguous value of the step");
      }
      buffers_[static_cast<std::size_t>(at.buffer)].last = last;
      ports_.push_back({false, {output.name, graph_.type(output.value), {}}, output.value});
    }
    for (const PendingPort& port : ports_) {
      if (port.is_input) buffers_[static_cast<std::size_t>(locate(port.value).buffer)].last = last;
    }
    return {};
  }

  Status place_dynamic() {
    std::vector<Lifetime> lifetimes;
    lifetimes.reserve(buffers_.size());
    for (const DynamicBuffer& buffer : buffers_)
      lifetimes.push_back({buffer.bytes, buffer.first, buffer.last});
    OffsetPlan offsets = HONE_TRY(plan_offsets(lifetimes, plan_.bound, options_.runnable));
    plan_.dynamic_bytes = offsets.peak_bytes;
    plan_.dynamic_peak = offsets.peak;
    plan_.dynamic_lower_bound_bytes = offsets.lower_bound_bytes;
    plan_.placement_order = offsets.order;
    const auto base = [&](Region region, int buffer) -> Dim {
      const auto i = static_cast<std::size_t>(buffer);
      if (region == Region::Static) return Dim(plan_.statics[i].offset);
      if (region == Region::File) return Dim(0);
      if (region == Region::State) return Dim(plan_.states[i].offset);
      return offsets.offsets[i];
    };
    for (const Pending& item : pending_) {
      Step& step = plan_.steps[static_cast<std::size_t>(item.step)];
      Operand& operand = (item.output ? step.outputs : step.inputs)[static_cast<std::size_t>(item.index)];
      operand.place.offset = operand.place.offset + base(item.region, item.buffer);
    }
    for (PendingPort& port : ports_) {
      port.port.place = {Region::Dynamic, base(Region::Dynamic, locate(port.value).buffer)};
      (port.is_input ? plan_.inputs : plan_.outputs).push_back(std::move(port.port));
    }
    for (const auto& [step, buffer] : scratch_) {
      plan_.steps[static_cast<std::size_t>(step)].scratch_offset =
          offsets.offsets[static_cast<std::size_t>(buffer)];
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const DynamicBuffer& buffer = buffers_[i];
      if (buffer.value < 0) {
        plan_.lives.push_back({"scratch", plan_.steps[static_cast<std::size_t>(buffer.first)].module,
                               buffer.bytes, offsets.offsets[i], buffer.first, buffer.last});
        continue;
      }
      const int producer = uses_.producer[static_cast<std::size_t>(buffer.value)];
      plan_.lives.push_back(
          {graph_.value_name(buffer.value),
           producer < 0 ? std::string("input") : graph_.nodes[static_cast<std::size_t>(producer)].module,
           buffer.bytes, offsets.offsets[i], buffer.first, buffer.last});
    }
    return {};
  }

  static std::int64_t aligned(std::int64_t bytes) {
    return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  }

  Status size_workspace() {
    for (Step& step : plan_.steps) {
      if (step.kernel->scratch_bytes == nullptr) continue;
      std::vector<TensorView> views;
      for (const std::vector<Operand>* list : {&step.inputs, &step.outputs}) {
        for (const Operand& item : *list) views.push_back(HONE_TRY(resolve(item.spec)));
      }
      Call call;
      call.attributes = &step.attributes;
      call.program = step.program.get();
      call.inputs = views.data();
      call.input_count = static_cast<int>(step.inputs.size());
      call.outputs = views.data() + step.inputs.size();
      call.output_count = static_cast<int>(step.outputs.size());
      step.scratch_bytes = step.kernel->scratch_bytes(call);
      // Threads lie behind one another.
      if (plan_.workspace == Workspace::Activations) step.scratch_bytes = aligned(step.scratch_bytes);
      plan_.scratch_bytes_per_thread = std::max(plan_.scratch_bytes_per_thread, step.scratch_bytes);
    }
    plan_.scratch_bytes_per_thread = aligned(plan_.scratch_bytes_per_thread);
    if (plan_.workspace == Workspace::Own) {
      plan_.workspace_bytes = plan_.scratch_bytes_per_thread * plan_.target.threads;
      return {};
    }
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const std::int64_t bytes = plan_.steps[i].scratch_bytes * plan_.target.threads;
      if (bytes == 0) continue;
      const int step = static_cast<int>(i);
      scratch_.emplace_back(step, static_cast<int>(buffers_.size()));
      buffers_.push_back({-1, -1, Dim(bytes), step, step});
    }
    return {};
  }

  Result<TensorView> resolve(const OperandSpec& spec) const {
    TensorView view;
    view.dtype = spec.dtype;
    view.layout = spec.layout;
    view.rank = static_cast<int>(spec.shape.size());
    if (view.rank > kMaxRank)
      return internal_error("plan", fmt::format("a tensor has more than {} axes", kMaxRank));
    for (std::size_t i = 0; i < spec.shape.size(); ++i) {
      view.shape[i] = HONE_TRY(spec.shape[i].evaluate(plan_.bound));
      if (i < spec.strides.size()) view.strides[i] = HONE_TRY(spec.strides[i].evaluate(plan_.bound));
    }
    return view;
  }

  struct PendingPort {
    bool is_input;
    Port port;
    ValueId value;
  };

  const Graph& graph_;
  const PlanOptions& options_;
  UseMap uses_;
  LastReads last_reads_;
  std::vector<Location> locations_;        // per value
  std::set<ValueId> panels_;               // weights in Panel16
  std::map<ValueId, std::string> mapped_;  // weights of the file, with their names
  std::vector<DynamicBuffer> buffers_;
  std::vector<std::pair<int, int>> scratch_;  // step, its buffer: where the workspace lies among them
  std::vector<Pending> pending_;
  std::vector<PendingPort> ports_;
  std::vector<std::string> missing_;
  std::vector<std::string> fallen_back_;
  Plan plan_;
};

}  // namespace

std::int64_t Plan::fallbacks() const {
  if (level == Level::O0) return 0;
  return std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.kernel->reference; });
}

std::string Plan::fallback_line() const {
  if (fallbacks() == 0) return {};
  return fmt::format("{} of {} launches on fast kernels, the rest on reference kernels because {}",
                     launches() - fallbacks(), launches(), fallback_reasons);
}

Result<Plan> make_plan(const Graph& graph, const PlanOptions& options) {
  return Planner(graph, options).run();
}

}  // namespace hone
