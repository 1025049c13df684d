#include "engine/compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "exec/reference_evaluator.h"
#include "file/huggingface.h"
#include "file/output_file.h"
#include "graph/text.h"
#include "model/family.h"

namespace hone {
namespace {

std::atomic<std::int64_t> compiles{0};

// Of a tensor in its file, in bytes, so that its elements are where the processor wants them.
constexpr std::uint64_t kMappedAlignment = 4;

Error bad_option(std::string flag, std::string message, std::string expected, std::int64_t actual) {
  return Error{
      ErrorCode::Usage,          Fault::User, std::move(flag), std::move(message), std::move(expected),
      fmt::format("{}", actual), {}};
}

// The type that most bytes of the weights have: it decides the precision policy.
DType dominant_weight_type(const Graph& graph) {
  std::map<DType, std::int64_t> bytes;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind != InputKind::Weight) continue;
    const Type& type = graph.type(input.value);
    bytes[type.dtype] += type_bytes(type).as_constant().value_or(0);
  }
  DType best = DType::F32;
  std::int64_t most = -1;
  for (const auto& [dtype, sum] : bytes) {
    if (sum > most) {
      most = sum;
      best = dtype;
    }
  }
  return best;
}

// The policy under these options. Below O3 there are no int8 activations, whatever rules say.
Result<PrecisionPolicy> precision_of(const EngineOptions& options, const Graph& built, Isa isa) {
  const DType dominant = options.weights.value_or(dominant_weight_type(built));
  PrecisionPolicy policy = policy_of(options.precision, default_policy(options.level, dominant, isa));
  policy.weights = options.weights;
  if (options.kv) policy.kv = *options.kv;
  if (options.precision_rules == nullptr) return policy;
  HONE_TRY(apply_precision_rules(*options.precision_rules, built, policy));
  if (options.level < Level::O3) policy.products.clear();
  return policy;
}

// What a run prints as warnings is an error where nothing may pass.
Status check_warnings(const ModelConfig& config) {
  if (config.warnings.empty()) return {};
  return Error{ErrorCode::CheckFailed,
               Fault::File,
               "--strict",
               "the checkpoint says what hone does not know",
               "only keys and tensors that hone knows",
               fmt::format("{}", fmt::join(config.warnings, "; ")),
               "leave --strict out to run without them"};
}

// The graph as text files, one a pass: 00-built.ir, 01-fold-constants.ir, ..
class Dump {
 public:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {}

  Status write(const PassReport* report, const Graph& graph) {
    if (folder_.empty()) return {};
    std::error_code failed;
    if (next_ == 0) std::filesystem::create_directories(folder_, failed);
    if (failed) {
      return Error{ErrorCode::BadInput, Fault::User,      folder_, "the folder cannot be made",
                   "a writable path",   failed.message(), {}};
    }
    std::string name = report == nullptr ? "built" : report->name;
    std::replace(name.begin(), name.end(), ':', '-');
    const auto file = HONE_TRY(OutputFile::create(fmt::format("{}/{:02}-{}.ir", folder_, next_++, name)));
    const std::string text = print_graph(graph);
    HONE_TRY(file->append(std::as_bytes(std::span(text))));
    return file->commit();
  }

 private:
  std::string folder_;
  int next_ = 0;
};

Status check_options(const EngineOptions& options) {
  if (options.chunk < 1)
    return bad_option("--chunk", "a chunk has at least one token", "1 or more", options.chunk);
  if (options.context < 0)
    return bad_option("--ctx", "a context has at least one token", "1 or more", options.context);
  if (options.batch < 1 || options.batch > 1'000'000) {
    return bad_option("--batch", "the number of sequences is out of range", "1 to 1000000", options.batch);
  }
  return {};
}

}  // namespace

Result<ChosenTarget> choose_target(const EngineOptions& options) {
  const Isa best = detect_isa();
  Target target;
  target.isa = options.isa.value_or(best);
  target.portable_bits = options.portable_bits;
  if (target.isa > best) {
    return Error{ErrorCode::DoesNotFit,
                 Fault::User,
                 "--isa",
                 "this machine does not have the instruction set",
                 fmt::format("at most {}", isa_name(best)),
                 std::string(isa_name(target.isa)),
                 "leave --isa out to run the best level of this machine"};
  }
  const ThreadLimit limit = usable_threads();
  if (options.threads < 0 || options.threads > 1024) {
    return bad_option("--threads", "the number of threads is out of range", "1 to 1024", options.threads);
  }
  target.threads = options.threads == 0 ? limit.threads : static_cast<int>(options.threads);
  target.threads_spin = !limit.under_quota && target.threads <= limit.processors;
  return ChosenTarget{target, options.threads == 0 ? limit.source : "--threads"};
}

std::int64_t compile_count() {
  return compiles.load();
}

Result<Bindings> plan_bound(const ModelConfig& config, const EngineOptions& options) {
  HONE_TRY(check_options(options));
  const std::int64_t context =
      options.context > 0 ? options.context : std::min(config.context_length, kDefaultContext);
  if (context > config.context_length && !config.any_context) {
    return bad_option("--ctx", "the model was not trained for a context this long",
                      fmt::format("at most {}", config.context_length), context);
  }
  const std::int64_t chunk = std::min(options.chunk, context);
  return sizes_of_step(options.batch, chunk, context,
                       options.all_logits ? chunk * options.batch : options.batch);
}

Result<OptimisedModel> optimise(const Checkpoint& checkpoint, const EngineOptions& options,
                                const PassObserver& observe) {
  HONE_TRY(require_model(checkpoint));
  OptimisedModel model;
  model.config = HONE_TRY(read_config(checkpoint));
  if (options.strict) HONE_TRY(check_warnings(model.config));
  ChosenTarget chosen = HONE_TRY(choose_target(options));
  model.target = chosen.target;
  model.thread_source = std::move(chosen.thread_source);
  model.graph = HONE_TRY(build_graph(checkpoint, model.config, {.hidden_outputs = options.hidden_outputs}));

  const ReferenceEvaluator evaluator;
  PassContext context;
  context.target = model.target;
  // Policies differ between levels, so portable bits have the policy of the level that every machine has.
  const Isa policy_isa = model.target.portable_bits ? Isa::Portable : model.target.isa;
  context.precision = HONE_TRY(precision_of(options, model.graph, policy_isa));
  context.evaluator = &evaluator;
  if (options.no_pack) {
    for (const GraphInput& input : model.graph.inputs) {
      if (input.kind == InputKind::Weight) context.precision.mapped.insert(input.name);
    }
  }
  // Words are read where they lie.
  std::erase_if(context.precision.mapped, [&](const std::string& name) {
    const TensorEntry* entry = checkpoint.find_tensor(name);
    const bool odd = entry != nullptr && entry->offset % kMappedAlignment != 0;
    if (odd) model.misaligned.push_back(name);
    return odd;
  });
  model.precision = context.precision;

  PipelineOptions pipeline_options;
  pipeline_options.level = options.level;
  pipeline_options.disabled = options.disabled_passes;
  pipeline_options.moves = options.moved_passes;
  pipeline_options.plugins = options.plugins;
  pipeline_options.stop_after = options.stop_after;
  pipeline_options.verify = options.verify_passes;
  Dump dump(options.dump);
  if (observe || !options.dump.empty()) {
    HONE_TRY(dump.write(nullptr, model.graph));
    if (observe) HONE_TRY(observe(nullptr, model.graph));
    pipeline_options.observe = [&](const PassReport& report, const Graph& after) -> Status {
      model.passes.push_back(report);
      HONE_TRY(dump.write(&report, after));
      return observe ? observe(&report, after) : Status{};
    };
  }
  HONE_TRY(run_pipeline(model.graph, pipeline_options, context));
  return model;
}

Result<Plan> plan_of(const OptimisedModel& model, const EngineOptions& options, const Bindings& bound,
                     bool runnable) {
  PlanOptions asked{model.target, options.level, bound, runnable, options.workspace_in};
  if (!model.precision.mapped.empty()) asked.mapped = &model.precision.mapped;
  Plan plan = HONE_TRY(make_plan(model.graph, asked));
  for (const std::string& name : model.misaligned)
    plan.not_mapped.push_back(
        fmt::format("{}: it begins at no multiple of {} bytes", name, kMappedAlignment));
  const std::int64_t each = plan.scratch_bytes_per_thread;
  if (options.workspace == 0 || each * plan.target.threads <= options.workspace) return plan;
  asked.target.threads = static_cast<int>(options.workspace / each);
  if (asked.target.threads > 0) {
    Plan smaller = HONE_TRY(make_plan(model.graph, asked));
    smaller.not_mapped = std::move(plan.not_mapped);
    return smaller;
  }
  const auto hungriest =
      std::max_element(plan.steps.begin(), plan.steps.end(),
                       [](const Step& a, const Step& b) { return a.scratch_bytes < b.scratch_bytes; });
  return Error{ErrorCode::DoesNotFit,
               Fault::User,
               "--workspace",
               fmt::format("{} of {} needs more scratch than that on one thread", hungriest->op,
                           hungriest->module.empty() ? "the model" : hungriest->module),
               fmt::format("at least {} bytes", each),
               fmt::format("{} bytes", options.workspace),
               fmt::format("--workspace {}", each)};
}

Result<CompiledModel> compile(const Checkpoint& checkpoint, const EngineOptions& options,
                              const PassObserver& observe) {
  const auto begin = std::chrono::steady_clock::now();
  OptimisedModel optimised = HONE_TRY(optimise(checkpoint, options, observe));
  CompiledModel model;
  const Bindings bound = HONE_TRY(plan_bound(optimised.config, options));
  model.context = bound.find('C').value_or(0);
  model.plan = HONE_TRY(plan_of(optimised, options, bound));
  model.nodes = count_graph(optimised.graph).nodes;
  model.config = std::move(optimised.config);
  model.precision = optimised.precision;
  const bool fewer = model.plan.target.threads < optimised.target.threads;
  model.thread_source = fewer ? "--workspace" : std::move(optimised.thread_source);
  model.passes = std::move(optimised.passes);
  ++compiles;
  model.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return model;
}

}  // namespace hone
