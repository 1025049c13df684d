// hone plan: memory and work before it runs, headers only.
#include <cstdlib>
#include <fmt/format.h>
#include <memory>

#include "apps/plural.h"
#include "apps/verb.h"
#include "engine/precision_effects.h"
#include "file/open.h"
#include "plan/print.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

struct PlanFlags : CommonFlags {
  std::int64_t batch = 1;
  bool steps = false;
};

std::string_view region_name(MemoryRegion region) {
  constexpr std::string_view kNames[] = {"static", "dynamic", "workspace", "file"};
  return kNames[static_cast<std::size_t>(region)];
}

std::string_view region_name(Region region) {
  constexpr std::string_view kNames[] = {"static", "state", "dynamic", "file"};
  return kNames[static_cast<std::size_t>(region)];
}

Json operands_json(const std::vector<Operand>& operands) {
  Json out = Json::array();
  for (const Operand& operand : operands) {
    out.push_back(
        {{"region", region_name(operand.place.region)},
         {"offset", operand.place.offset.to_string()},
         {"dtype", dtype_name(operand.spec.dtype)},
         {"shape", shape_to_string(operand.spec.shape)},
         {"strides",
          operand.spec.layout == Layout::Panel16 ? "panel16" : shape_to_string(operand.spec.strides)}});
  }
  return out;
}

Json steps_json(const Plan& plan) {
  Json out = Json::array();
  for (const Step& step : plan.steps) {
    out.push_back({{"value", step.value},
                   {"op", step.op},
                   {"kernel", step.kernel->name},
                   {"module", step.module},
                   {"inputs", operands_json(step.inputs)},
                   {"outputs", operands_json(step.outputs)}});
  }
  return out;
}

std::int64_t layer_total(const LayerMemory& layer) {
  return layer.static_bytes + layer.state_bytes + layer.dynamic_bytes + layer.workspace_bytes;
}

// What else is known of the plan: its steps, and what would make it smaller.
struct Outlook {
  StepWork prefill;
  StepWork decode;
  std::vector<Shrink> shrinks;
  std::vector<PrecisionStage> precision;
  // What --workspace and --workspace-in changed: threads and bytes of all without them.
  std::int64_t threads_without = 0;  // 0: neither was given
  std::int64_t total_without_bytes = 0;
};

Json work_json(const StepWork& work) {
  return {{"tokens", work.tokens},
          {"launches", work.launches},
          {"bytes_moved", work.bytes_moved},
          {"operations", work.operations},
          {"activation_bytes", work.activation_bytes}};
}

Json precision_json(const std::vector<PrecisionStage>& stages) {
  Json out = Json::array();
  for (const PrecisionStage& stage : stages) {
    out.push_back({{"what", stage.what},
                   {"line", stage.line},
                   {"launches", stage.work.launches},
                   {"prefill_bytes_moved", stage.work.prefill_bytes},
                   {"decode_bytes_moved", stage.work.decode_bytes},
                   {"int8_operations", stage.work.int8_operations},
                   {"f32_operations", stage.work.f32_operations},
                   {"total_bytes", stage.work.memory_bytes}});
  }
  return out;
}

Json as_json(const CompiledModel& model, const MemoryStatement& memory, const Outlook& outlook,
             const Fit* fit) {
  Json layers = Json::array();
  for (const LayerMemory& layer : memory.layers) {
    layers.push_back({{"module", layer.module},
                      {"static_bytes", layer.static_bytes},
                      {"kv_bytes", layer.state_bytes},
                      {"activation_bytes", layer.dynamic_bytes},
                      {"workspace_bytes", layer.workspace_bytes},
                      {"total_bytes", layer_total(layer)}});
  }
  Json shrinks = Json::array();
  for (const Shrink& shrink : outlook.shrinks)
    shrinks.push_back({{"what", shrink.what}, {"saves_bytes", shrink.saves_bytes}, {"cost", shrink.cost}});
  Json items = Json::array();
  for (const MemoryItem& item : memory.items) {
    items.push_back({{"name", item.name},
                     {"region", region_name(item.region)},
                     {"bytes", item.bytes},
                     {"allocation", item.allocation}});
  }
  Json out{{"total_bytes", memory.total_bytes},
           {"static_bytes", memory.static_bytes},
           {"dynamic_bytes", memory.dynamic_bytes},
           {"workspace_bytes", memory.workspace_bytes},
           {"file_bytes", memory.file_bytes},
           {"not_mapped", model.plan.not_mapped},
           {"kv_bytes", model.plan.state_bytes},
           {"activation_bytes", model.plan.dynamic_bytes},
           {"activation_formula", model.plan.dynamic_peak.to_string()},
           {"activation_lower_bound_bytes", model.plan.dynamic_lower_bound_bytes},
           {"ctx", model.context},
           {"launches", model.plan.launches()},
           {"compile_s", model.seconds},
           {"prefill", work_json(outlook.prefill)},
           {"decode", work_json(outlook.decode)},
           {"shrink", std::move(shrinks)},
           {"precision", precision_json(outlook.precision)},
           {"items", std::move(items)},
           {"layers", std::move(layers)}};
  if (outlook.threads_without > 0) {
    out["workspace"] = {{"in", model.plan.workspace == Workspace::Own ? "own" : "activations"},
                        {"threads", model.plan.target.threads},
                        {"threads_without", outlook.threads_without},
                        {"saved_bytes", outlook.total_without_bytes - memory.total_bytes}};
  }
  if (fit != nullptr) {
    out["max_batch"] = fit->max_batch;
    out["max_ctx"] = fit->max_context;
  }
  return out;
}

std::string work_text(const char* name, const StepWork& work) {
  return fmt::format("{:<10}{:>8}{:>10}{:>14}{:>14}{:>14}\n", name, work.tokens, work.launches,
                     human_bytes(work.bytes_moved),
                     fmt::format("{:.2f} GOP", static_cast<double>(work.operations) * 1e-9),
                     human_bytes(work.activation_bytes));
}

// What the precision asked for costs and buys: fast as it is, then each stage against the one above it.
std::string precision_text(const std::vector<PrecisionStage>& stages) {
  if (stages.size() < 2) return {};
  const auto change = [](std::int64_t from, std::int64_t to) {
    if (from == to) return std::string("-");
    return fmt::format("{}{}", to < from ? "-" : "+", human_bytes(to < from ? from - to : to - from));
  };
  const auto operations = [](std::int64_t count) {
    return fmt::format("{:.2f} GOP", static_cast<double>(count) * 1e-9);
  };
  std::string out = fmt::format("\n{:<36}{:>9}{:>13}{:>13}{:>13}{:>13}{:>13}\n", "precision", "launches",
                                "prefill", "decode", "int8", "f32", "memory");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const PrecisionWork& now = stages[i].work;
    const PrecisionWork& before = stages[i == 0 ? 0 : i - 1].work;
    const auto bytes = [&](std::int64_t PrecisionWork::* field) {
      return i == 0 ? human_bytes(now.*field) : change(before.*field, now.*field);
    };
    const std::string launches =
        i == 0 ? fmt::format("{}", now.launches) : fmt::format("{:+}", now.launches - before.launches);
    const std::string name =
        stages[i].line == 0 ? stages[i].what : fmt::format("{}: {}", stages[i].line, stages[i].what);
    out += fmt::format("{:<36}{:>9}{:>13}{:>13}{:>13}{:>13}{:>13}\n", name, launches,
                       bytes(&PrecisionWork::prefill_bytes), bytes(&PrecisionWork::decode_bytes),
                       operations(now.int8_operations), operations(now.f32_operations),
                       bytes(&PrecisionWork::memory_bytes));
  }
  return out + "bytes of a step and memory against the line above; operations of products in a chunk\n";
}

std::string outlook_text(const Outlook& outlook) {
  std::string out = fmt::format("\n{:<10}{:>8}{:>10}{:>14}{:>14}{:>14}\n", "phase", "tokens", "launches",
                                "bytes moved", "operations", "activations");
  out += work_text("prefill", outlook.prefill);
  out += work_text("decode", outlook.decode);
  out += precision_text(outlook.precision);
  if (outlook.shrinks.empty()) return out;
  out += fmt::format("\n{:<28}{:>12}  {}\n", "what would shrink it", "saves", "and costs");
  for (const Shrink& shrink : outlook.shrinks)
    out += fmt::format("{:<28}{:>12}  {}\n", shrink.what, human_bytes(shrink.saves_bytes), shrink.cost);
  return out;
}

std::string as_text(const CompiledModel& model, const MemoryStatement& memory, const Outlook& outlook,
                    const Fit* fit) {
  const Plan& plan = model.plan;
  std::string out =
      fmt::format("{} in all ({} bytes): {}, {}, context {}, {} a step\n\n", human_bytes(memory.total_bytes),
                  memory.total_bytes, counted(plan.target.threads, "thread"), isa_name(plan.target.isa),
                  model.context, counted(plan.launches(), "launch", "launches"));
  out += fmt::format("{:<26}{:<11}{:>12}  {}\n", "item", "region", "bytes", "allocation");
  for (const MemoryItem& item : memory.items) {
    out += fmt::format("{:<26}{:<11}{:>12}  {}\n", item.name, region_name(item.region), item.bytes,
                       item.allocation);
  }
  const double distance =
      plan.dynamic_lower_bound_bytes > 0
          ? static_cast<double>(plan.dynamic_bytes) / static_cast<double>(plan.dynamic_lower_bound_bytes)
          : 1.0;
  out +=
      fmt::format("\nactivations: {} = {} bytes at the bound; {:.3f} x the lower bound of {} (placed {})\n",
                  plan.dynamic_peak.to_string(), plan.dynamic_bytes, distance, plan.dynamic_lower_bound_bytes,
                  plan.placement_order);
  if (outlook.threads_without > 0) {
    const std::int64_t saved = outlook.total_without_bytes - memory.total_bytes;
    out += fmt::format("workspace by hand: {}, {} of {}; {} bytes {} in all\n",
                       plan.workspace == Workspace::Own ? "an arena of its own" : "among the activations",
                       plan.target.threads, counted(outlook.threads_without, "thread"), std::abs(saved),
                       saved < 0 ? "more" : "less");
  }
  for (const std::string& reason : plan.not_mapped) out += fmt::format("packed, not mapped: {}\n", reason);
  if (plan.fallbacks() > 0) out += plan.fallback_line() + "\n";
  for (const std::string& warning : model.config.warnings) out += fmt::format("warning: {}\n", warning);
  for (const std::string& note : model.config.notes) out += fmt::format("note: {}\n", note);
  if (fit != nullptr) {
    out += fmt::format("in this budget: context up to {}, or {} at context {}\n", fit->max_context,
                       counted(fit->max_batch, "sequence"), model.context);
  }
  out += outlook_text(outlook);
  out += fmt::format("\n{:<16}{:>12}{:>12}{:>13}{:>12}{:>12}\n", "layer", "static", "KV cache", "activations",
                     "workspace", "total");
  for (const LayerMemory& layer : memory.layers) {
    out += fmt::format("{:<16}{:>12}{:>12}{:>13}{:>12}{:>12}\n", layer.module.empty() ? "-" : layer.module,
                       layer.static_bytes, layer.state_bytes, layer.dynamic_bytes, layer.workspace_bytes,
                       layer_total(layer));
  }
  out += "activations and workspace are shared: all layers use the same bytes\n";
  return out;
}

Status run(const PlanFlags& flags) {
  EngineOptions options = HONE_TRY(flags.engine_options());
  options.batch = flags.batch;
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
  const CompiledModel model = HONE_TRY(compile(checkpoint, options));
  const TokenizerMemory tokenizer = HONE_TRY(tokenizer_memory(checkpoint));
  const MemoryStatement memory = memory_statement(model.plan, checkpoint, tokenizer);
  Fit fit;
  if (options.memory > 0) fit = HONE_TRY(what_fits(checkpoint, options, options.memory, tokenizer));
  const Fit* shown = options.memory > 0 ? &fit : nullptr;
  if (shown != nullptr && fit.max_context == 0 && fit.max_batch == 0) {
    return Error{ErrorCode::DoesNotFit,
                 Fault::User,
                 "--memory",
                 "no context and no batch of this model fits the memory",
                 fmt::format("need {} bytes at least", fit.least_bytes),
                 fmt::format("have {} bytes", options.memory),
                 "use a smaller or more quantised model"};
  }
  Outlook outlook;
  outlook.prefill = HONE_TRY(step_work(model.plan, model.plan.bound.find('T').value_or(1)));
  outlook.decode = HONE_TRY(step_work(model.plan, 1));
  if (options.workspace > 0 || options.workspace_in != Workspace::Own) {
    EngineOptions without = options;
    without.workspace = 0;
    without.workspace_in = Workspace::Own;
    const CompiledModel other = HONE_TRY(compile(checkpoint, without));
    outlook.threads_without = other.plan.target.threads;
    outlook.total_without_bytes = memory_statement(other.plan, checkpoint, tokenizer).total_bytes;
  }
  outlook.precision = HONE_TRY(precision_stages(checkpoint, options, model.plan, tokenizer));
  outlook.shrinks = HONE_TRY(what_shrinks(checkpoint, options, model.plan, tokenizer));
  if (flags.json) {
    Json document = as_json(model, memory, outlook, shown);
    if (flags.steps) document["steps"] = steps_json(model.plan);
    print_json(document);
  } else {
    print_answer(as_text(model, memory, outlook, shown));
    if (flags.steps) print_answer("\n" + print_plan(model.plan));
  }
  return {};
}

}  // namespace

Verb add_plan(const CommandLine& line) {
  const Command verb = line.add_verb("plan", "memory and work before it runs, headers only");
  auto flags = std::make_shared<PlanFlags>();
  flags->add_to(verb);
  verb.option("--batch", flags->batch, "sequences").show_default().within(1, 1'000'000);
  verb.flag("--steps", flags->steps, "every step with its kernel, operands and offsets");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
