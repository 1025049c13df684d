#include "engine/profile_run.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <tuple>

#include "base/machine.h"
#include "engine/planned_cost.h"
#include "engine/profile_memory.h"
#include "kernels/peaks.h"
#include "tensor/panel_layout.h"

namespace hone {
namespace {

double seconds_of(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

// "layers.3.attn" -> "layers.*.attn"
std::string in_every_layer(const std::string& module) {
  const std::string layer = layer_of(module);
  return layer.starts_with("layers.") ? "layers.*" + module.substr(layer.size()) : module;
}

const Operand* panel_weight(const Step& step) {
  for (const Operand& operand : step.inputs) {
    if (operand.spec.is_weight) return &operand;
  }
  return nullptr;
}

// Products are of int8 where the activations come as int8, or a kernel makes them so for its own
// block-quantised weights.
bool multiplies_int8(const Step& step, bool int8_activations) {
  for (const Operand& operand : step.inputs) {
    if (operand.spec.dtype == DType::Q8A) return true;
  }
  const Operand* weight = panel_weight(step);
  return int8_activations && weight != nullptr && dtype_row(weight->spec.dtype).is_quantised;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// A launch of the plan, summed over the steps of one phase.
struct StepCost {
  double bytes = 0;
  double written = 0;
  double operations = 0;
  double tiles = 0;
  double tokens = 0;     // of the steps
  double tile_room = 0;  // tokens that their tiles have room for
};

// Of one launch of the plan, for all steps.
struct StepFacts {
  bool int8 = false;
  bool bf16 = false;  // the products read bf16
  // Tokens of one tile; 0 where the number of tiles does not depend on the tokens, or the launch computes too
  // little for the shape of its tiles to matter.
  std::int64_t tile_tokens = 0;
  std::int64_t columns = 0;
  double column_fill = 1;
  double weight_bits = 0;
  double weight_bytes = 0;
  bool reads_state = false;
};

Result<std::int64_t> tiles_of(const Step& step, const Bindings& bindings) {
  const std::vector<TensorView> views = HONE_TRY(operand_views(step, bindings));
  return step.kernel->tile_count(call_of(step, views));
}

// Operations per byte from which on a launch computes more than it moves.
constexpr std::int64_t kComputing = 4;

// A step so long that how its tokens are cut does not depend on their number any more.
constexpr std::int64_t kLongStep = 4096;
// The longest tile that is looked for.
constexpr std::int64_t kLongestTile = 1024;

Bindings long_step(std::int64_t tokens, std::int64_t rows) {
  return sizes_of_step(1, tokens, tokens, rows);
}

// Whether the launch computes more than it moves, where there are tokens enough. A gather does not.
Result<bool> computes(const Step& step) {
  const Bindings sizes = long_step(kLongStep, kLongStep);
  return HONE_TRY(step.operations.evaluate(sizes)) / kComputing >= HONE_TRY(step.bytes_moved.evaluate(sizes));
}

// The tokens that one tile takes in a long step, found by asking the kernel: its number of tiles is a
// function of the shapes alone. 0: tiles do not cut tokens.
Result<std::int64_t> tokens_of_a_tile(const Step& step) {
  std::int64_t tiles = HONE_TRY(tiles_of(step, long_step(kLongStep, 1)));
  if (HONE_TRY(tiles_of(step, long_step(2 * kLongStep, 1))) == tiles) return 0;
  std::int64_t began = 0;  // where a tile came in
  for (std::int64_t tokens = kLongStep + 1; tokens <= kLongStep + 2 * kLongestTile; ++tokens) {
    const std::int64_t now = HONE_TRY(tiles_of(step, long_step(tokens, 1)));
    if (now == tiles) continue;
    if (began > 0) return tokens - began;
    began = tokens;
    tiles = now;
  }
  return 0;
}

Result<StepFacts> facts_of(const Plan& plan, const Step& step, bool int8_activations) {
  StepFacts facts;
  facts.int8 = multiplies_int8(step, int8_activations);
  facts.bf16 = panel_weight(step) != nullptr && step.inputs[0].spec.dtype == DType::BF16;
  for (const Operand& operand : step.inputs) {
    facts.reads_state = facts.reads_state || operand.place.region == Region::State;
  }
  if (!HONE_TRY(computes(step))) return facts;
  facts.tile_tokens = HONE_TRY(tokens_of_a_tile(step));
  const Operand* weight = panel_weight(step);
  if (weight == nullptr) return facts;
  const DTypeRow& row = dtype_row(weight->spec.dtype);
  const Shape& shape = weight->spec.shape;
  facts.columns = HONE_TRY(shape[shape.size() - 2].evaluate(plan.bound));
  const std::int64_t panels = (facts.columns + kPanelColumns - 1) / kPanelColumns;
  facts.column_fill = static_cast<double>(facts.columns) / static_cast<double>(panels * kPanelColumns);
  facts.weight_bits = 8 * static_cast<double>(row.block_bytes) / static_cast<double>(row.block_elements);
  for (const Operand& operand : step.inputs) {
    if (!operand.spec.is_weight) continue;
    facts.weight_bytes += static_cast<double>(
        HONE_TRY(type_bytes({operand.spec.dtype, operand.spec.shape}).evaluate(plan.bound)));
  }
  return facts;
}

class Joiner {
 public:
  Joiner(const Session& session, const Recorder& recorder, Profile& out)
      : plan_(session.model().plan),
        recorder_(recorder),
        int8_(session.model().precision.int8_activations),
        out_(out) {}

  Status join() {
    for (const Step& step : plan_.steps) facts_.push_back(HONE_TRY(facts_of(plan_, step, int8_)));
    for (auto& costs : costs_) costs.resize(plan_.steps.size());
    for (const StepRecord& step : recorder_.steps()) HONE_TRY(add_step(step));
    out_.wall_s = seconds_of(recorder_.wall_ns());
    for (const Phase phase : kPhases) fill_phase(phase);
    for (const Phase phase : {Phase::Prefill, Phase::Decode}) {
      fill_sums(phase, out_.ops, true, [](const Step& step) { return step.op; });
      fill_sums(phase, out_.layers, false, [](const Step& step) { return layer_of(step.module); });
      fill_sums(phase, out_.kernels, true, [](const Step& step) { return std::string(step.kernel->name); });
      fill_kinds(phase);
    }
    std::ranges::stable_sort(out_.kinds, std::greater(),
                             [](const LaunchKind& k) { return k.measure.seconds; });
    for (LaunchKind& kind : out_.kinds) kind.diagnosis = diagnose(kind.measure, out_.limits);
    return fill_memory();
  }

 private:
  static std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

  Status add_step(const StepRecord& record) {
    PhaseProfile& phase = out_.phases[at(record.phase)];
    ++phase.steps;
    phase.tokens += record.all_tokens;
    const Bindings bindings = bindings_of(record);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      StepCost& cost = costs_[at(record.phase)][i];
      cost.bytes += static_cast<double>(HONE_TRY(step.bytes_moved.evaluate(bindings)));
      cost.written += static_cast<double>(HONE_TRY(step.bytes_written.evaluate(bindings)));
      cost.operations += static_cast<double>(HONE_TRY(step.operations.evaluate(bindings)));
      cost.tiles += static_cast<double>(HONE_TRY(tiles_of(step, bindings)));
      const std::int64_t tile = facts_[i].tile_tokens;
      const std::int64_t tokens = record.all_tokens;
      cost.tokens += static_cast<double>(tokens);
      cost.tile_room += static_cast<double>(tile > 0 ? (tokens + tile - 1) / tile * tile : tokens);
    }
    return {};
  }

  double peak_of(std::size_t i) const { return products_peak(out_.limits, facts_[i].int8, facts_[i].bf16); }

  double busy_seconds(Phase phase, std::size_t i) const {
    std::int64_t sum = 0;
    for (int thread = 0; thread < recorder_.threads(); ++thread) sum += recorder_.busy_ns(phase, i, thread);
    return seconds_of(sum);
  }

  void add(LaunchSum& sum, Phase phase, std::size_t i) const {
    const LaunchTotal& total = recorder_.launch(phase, i);
    const StepCost& cost = costs_[at(phase)][i];
    sum.launches += total.count;
    sum.seconds += seconds_of(total.nanoseconds);
    sum.busy_seconds += busy_seconds(phase, i);
    sum.bytes_read += cost.bytes - cost.written;
    sum.bytes_written += cost.written;
    sum.operations += cost.operations;
    if (peak_of(i) > 0) sum.peak_seconds += cost.operations / peak_of(i);
  }

  void fill_phase(Phase phase) {
    PhaseProfile& out = out_.phases[at(phase)];
    out.wall_s = seconds_of(recorder_.wall_ns(phase));
    for (std::size_t part = 0; part < kParts; ++part) {
      out.parts_s[part] = seconds_of(recorder_.part_ns(phase, static_cast<Part>(part)));
    }
    out.all.name = phase_name(phase);
    out.all.phase = phase;
    if (phase == Phase::Start) return;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) add(out.all, phase, i);
    for (int thread = 0; thread < recorder_.threads(); ++thread) {
      ThreadTime time;
      for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
        time.busy_s += seconds_of(recorder_.busy_ns(phase, i, thread));
      }
      // The caller sets launches up; the others wait for that too.
      time.waiting_s = thread == 0 ? out.parts_s[static_cast<std::size_t>(Part::Barrier)]
                                   : std::max(0.0, out.all.seconds - time.busy_s);
      time.outside_s = std::max(0.0, out.wall_s - time.busy_s - time.waiting_s);
      out.threads.push_back(time);
    }
  }

  template <class NameOf>
  void fill_sums(Phase phase, std::vector<LaunchSum>& rows, bool by_time, const NameOf& name_of) const {
    const std::size_t first = rows.size();
    std::map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (recorder_.launch(phase, i).count == 0) continue;
      const std::string name = name_of(plan_.steps[i]);
      const auto [found, added] = index.emplace(name, rows.size());
      if (added) {
        rows.emplace_back();
        rows.back().name = name;
        rows.back().phase = phase;
      }
      add(rows[found->second], phase, i);
    }
    if (!by_time) return;
    std::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                     [](const LaunchSum& a, const LaunchSum& b) { return a.seconds > b.seconds; });
  }

  void fill_kinds(Phase phase) const {
    std::map<std::tuple<std::string, std::string, std::string_view>, std::vector<std::size_t>> kinds;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (recorder_.launch(phase, i).count == 0) continue;
      const Step& step = plan_.steps[i];
      kinds[{step.op, in_every_layer(step.module), step.kernel->name}].push_back(i);
    }
    for (const auto& [key, members] : kinds) {
      LaunchKind kind{std::get<0>(key), std::get<1>(key), std::string(std::get<2>(key)), {}, {}};
      kind.measure = measure_of(phase, members);
      out_.kinds.push_back(std::move(kind));
    }
  }

  LaunchMeasure measure_of(Phase phase, const std::vector<std::size_t>& members) const {
    LaunchSum sum;
    StepCost cost;
    double weight_bytes = 0;
    for (const std::size_t i : members) {
      add(sum, phase, i);
      const StepCost& one = costs_[at(phase)][i];
      cost.tiles += one.tiles;
      cost.tokens += one.tokens;
      cost.tile_room += one.tile_room;
      weight_bytes += facts_[i].weight_bytes * static_cast<double>(recorder_.launch(phase, i).count);
    }
    // They do the same in each layer, so the facts of one are those of all.
    const StepFacts& facts = facts_[members.front()];
    LaunchMeasure m;
    m.phase = phase;
    m.launches = sum.launches;
    m.seconds = sum.seconds;
    m.busy_seconds = sum.busy_seconds;
    m.threads = recorder_.threads();
    m.bytes = sum.bytes_read + sum.bytes_written;
    m.operations = sum.operations;
    m.int8 = facts.int8;
    m.bf16 = facts.bf16;
    const auto launches = static_cast<double>(std::max<std::int64_t>(1, sum.launches));
    m.tiles = cost.tiles / launches;
    m.tokens = std::llround(cost.tokens / launches);
    m.tile_tokens = std::max<std::int64_t>(1, facts.tile_tokens);
    // Where steps have one token each, no other number of them can be chosen.
    if (m.tokens > 1 && cost.tile_room > 0) m.token_fill = cost.tokens / cost.tile_room;
    m.columns = facts.columns;
    m.column_fill = facts.column_fill;
    m.weight_bits = facts.weight_bits;
    // Of stacked experts only those that were chosen are read.
    m.weight_share = m.bytes > 0 ? std::min(1.0, weight_bytes / m.bytes) : 0;
    m.reads_state = facts.reads_state;
    return m;
  }

  Status fill_memory() {
    for (const Recorder::Loaded& loaded : recorder_.loaded())
      out_.samples.push_back({loaded.at_ns, loaded.bytes, 0, 0});
    RegionUse statics{"static", plan_.static_bytes, plan_.static_bytes, plan_.static_bytes};
    RegionUse dynamic{"dynamic", plan_.dynamic_bytes + plan_.state_bytes, 0, 0};
    RegionUse workspace{"workspace", plan_.workspace_bytes, 0, 0};
    out_.state_bytes = plan_.state_bytes;
    for (const StepRecord& step : recorder_.steps()) {
      const std::vector<MemorySample> in_use = HONE_TRY(memory_in_use(plan_, bindings_of(step)));
      MemorySample most{step.begin_ns, plan_.static_bytes, 0, 0};
      for (const MemorySample& sample : in_use) {
        most.dynamic_bytes = std::max(most.dynamic_bytes, sample.dynamic_bytes);
        most.workspace_bytes = std::max(most.workspace_bytes, sample.workspace_bytes);
      }
      out_.samples.push_back(most);
      dynamic.peak_bytes = std::max(dynamic.peak_bytes, most.dynamic_bytes);
      workspace.peak_bytes = std::max(workspace.peak_bytes, most.workspace_bytes);
      dynamic.current_bytes = in_use.empty() ? 0 : in_use.back().dynamic_bytes;
      out_.state_in_use_bytes = HONE_TRY(state_in_use(plan_, bindings_of(step)));
    }
    out_.memory = {statics, dynamic, workspace};
    return {};
  }

  const Plan& plan_;
  const Recorder& recorder_;
  bool int8_;
  Profile& out_;
  std::vector<StepFacts> facts_;                             // [launch]
  std::array<std::vector<StepCost>, kPhases.size()> costs_;  // [phase, launch]
};

}  // namespace

double Profile::parts_s(Part part) const {
  double sum = 0;
  for (const PhaseProfile& phase : phases) sum += phase.parts_s[static_cast<std::size_t>(part)];
  return sum;
}

double Profile::covered() const {
  double sum = 0;
  for (std::size_t part = 0; part < kParts; ++part) sum += parts_s(static_cast<Part>(part));
  return wall_s > 0 ? sum / wall_s : 0;
}

LaunchSum Profile::launches() const {
  LaunchSum sum = phase(Phase::Prefill).all;
  const LaunchSum& decode = phase(Phase::Decode).all;
  sum.name = "all";
  sum.launches += decode.launches;
  sum.seconds += decode.seconds;
  sum.busy_seconds += decode.busy_seconds;
  sum.bytes_read += decode.bytes_read;
  sum.bytes_written += decode.bytes_written;
  sum.operations += decode.operations;
  sum.peak_seconds += decode.peak_seconds;
  return sum;
}

double Profile::utilisation() const {
  const double wall = phase(Phase::Prefill).wall_s + phase(Phase::Decode).wall_s;
  return wall > 0 ? launches().peak_seconds / wall : 0;
}

void reserve_recording(Recorder& recorder, const Session& session, std::int64_t prompt_tokens,
                       std::int64_t decode_steps, bool trace) {
  const Plan& plan = session.model().plan;
  const std::int64_t chunk = plan.bound.find('T').value_or(1);
  // The context bounds both.
  const std::int64_t decoded = std::min(decode_steps, session.model().context);
  const auto steps = static_cast<std::size_t>(std::max<std::int64_t>(0, (prompt_tokens + chunk - 1) / chunk) +
                                              std::max<std::int64_t>(0, decoded));
  // A launch is three zones of the caller's thread; a step has at most five parts beside them, and all that
  // comes before the first step fewer than thirty-two.
  const std::size_t zones = steps * (3 * plan.steps.size() + 5) + 32;
  recorder.reserve_trace(steps, trace ? std::min(zones, kMostZones) : 0);
}

Result<MachineLimits> measure_limits(Session& session) {
  // A process that grows over its limit is killed, not refused.
  const MemoryLimit memory = usable_memory();
  if (memory.bytes < kReadBytes + kReadBytes / 8) {
    return Error{ErrorCode::DoesNotFit,
                 Fault::User,
                 "peaks",
                 "too little memory is free to measure the rate of reading",
                 fmt::format("{} bytes", kReadBytes + kReadBytes / 8),
                 fmt::format("{} bytes ({})", memory.bytes, memory.source),
                 "free some memory"};
  }
  ThreadPool& pool = session.executor().pool();
  const Plan& plan = session.model().plan;
  const PlannedCost decode = HONE_TRY(planned_cost(plan, sizes_of_step(1, 1, 1, 1)));
  const Peaks peaks = HONE_TRY(measure_peaks(pool, plan.target.isa, static_cast<std::int64_t>(decode.bytes)));
  constexpr int kTrials = 21;
  constexpr int kLaunches = 100;
  std::vector<double> trials;
  trials.reserve(kTrials);
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::int64_t begin = now_nanoseconds();
    for (int i = 0; i < kLaunches; ++i)
      pool.run(std::int64_t{8} * pool.threads(), [](void*, std::int64_t, std::int64_t, int) {}, nullptr);
    trials.push_back(seconds_of(now_nanoseconds() - begin) / kLaunches);
  }
  return MachineLimits{
      peaks.read_bytes_per_s,    peaks.fma_flops_per_s,      peaks.int8_ops_per_s,
      median(std::move(trials)), peaks.bf16_flops_per_s,     peaks.read_working_set_bytes_per_s,
      peaks.working_set_bytes,   peaks.amx_bf16_flops_per_s, peaks.amx_int8_ops_per_s};
}

Result<Profile> profile_of(const Session& session, const Recorder& recorder, const MachineLimits& limits) {
  Profile profile;
  profile.limits = limits;
  profile.dropped_zones = recorder.dropped_zones();
  HONE_TRY(Joiner(session, recorder, profile).join());
  return profile;
}

std::vector<std::string> launch_names(const Plan& plan) {
  std::vector<std::string> names;
  names.reserve(plan.steps.size());
  for (const Step& step : plan.steps) names.push_back(fmt::format("{} {}", step.op, step.module));
  return names;
}

}  // namespace hone
