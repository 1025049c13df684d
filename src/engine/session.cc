#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <malloc.h>
#include <system_error>
#include <thread>

#include "base/machine.h"
#include "engine/profile_memory.h"
#include "file/open.h"
#include "graph/op_row.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

Status check_strict(const Plan& plan) {
  if (plan.fallbacks() == 0) return {};
  std::string names;
  for (const Step& step : plan.steps) {
    if (!step.kernel->reference) continue;
    if (!names.empty()) names += "; ";
    names += fmt::format("{} of {} on {}", step.op, step.module, step.kernel->name);
  }
  return Error{ErrorCode::CheckFailed,
               Fault::Hone,
               "--strict",
               plan.fallback_line(),
               "a fast kernel for each",
               std::move(names),
               "leave --strict out to run all the same"};
}

// Compiles on a thread of its own and copies the result: a thread allocates from an arena of its own, so the
// graphs that come and go leave no holes on the heap that stays, and the plan's bytes are those that the
// statement counts.
Result<CompiledModel> compile_apart(const Checkpoint& checkpoint, const EngineOptions& options) {
  // Tables that live as long as the program belong to the heap that stays.
  (void)find_op("");
  (void)all_kernels();
  std::optional<Result<CompiledModel>> compiled;
  std::exception_ptr
      thrown;  // out of memory, say: it belongs to the caller's thread, as without the other one
  const auto work = [&] {
    try {
      compiled.emplace(compile(checkpoint, options));
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  try {
    std::thread(work).join();
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::DoesNotFit,
                 Fault::User,
                 "system",
                 "the system refused a thread",
                 "one to compile the model on",
                 refused.what(),
                 "raise the limits on processes and on memory (ulimit -u, ulimit -v, pids.max)"};
  }
  if (thrown) std::rethrow_exception(thrown);
  if (!compiled->ok()) return std::move(*compiled).error();
  CompiledModel compact = compiled->value();
  for (Step& step : compact.plan.steps) {
    if (step.program != nullptr) step.program = std::make_shared<const StripProgram>(*step.program);
  }
  return compact;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::string& path, const EngineOptions& options,
                                               const LoadProgress& progress) {
  std::unique_ptr<Session> session = HONE_TRY(prepare(path, options));
  HONE_TRY(session->load(progress));
  return session;
}

Result<std::unique_ptr<Session>> Session::prepare(const std::string& path, const EngineOptions& options,
                                                  Recorder* recorder) {
  const auto begin = std::chrono::steady_clock::now();
  PartClock clock(recorder);
  std::unique_ptr<Session> session(new Session);
  touch_program_pages();
  session->recorder_ = recorder;
  session->resident_before_ = resident_memory().now;
  session->file_before_ = resident_memory().file;
  session->options_ = options;
  session->checkpoint_ = HONE_TRY(open_checkpoint(path));
  clock.mark(Part::Open);
  const Checkpoint& checkpoint = *session->checkpoint_;
  session->model_ = HONE_TRY(compile_apart(checkpoint, options));
  if (options.strict) HONE_TRY(check_strict(session->model_.plan));
  clock.mark(Part::Compile);
  session->tokenizer_ = HONE_TRY(load_tokenizer(checkpoint));
  clock.mark(Part::Tokenizer);
  const TokenizerMemory tokenizer = memory_of(session->tokenizer_);
  session->memory_ = memory_statement(session->model_.plan, checkpoint, tokenizer);
  HONE_TRY(check_budget(session->memory_, checkpoint, options, tokenizer));
  session->defaults_ = HONE_TRY(hone::generation_defaults(checkpoint));
  // The pages of the headers and what compiling left on the heap are not needed any more.
  checkpoint.drop_pages();
  malloc_trim(0);
  session->load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (recorder != nullptr) {
    const Plan& plan = session->model_.plan;
    recorder->reserve_launches(plan.steps.size(), plan.target.threads);
  }
  clock.mark(Part::Statement);
  return session;
}

Status Session::load(const LoadProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  PartClock clock(recorder_);
  executor_ = HONE_TRY(Executor::create(model_.plan, *checkpoint_, progress));
  load_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  clock.mark(Part::Weights);
  return {};
}

std::int64_t Session::peak_bytes() const {
  const ResidentMemory memory = resident_memory();
  const bool from_file = model_.plan.mapped_bytes > 0;
  return memory.peak - resident_before_ -
         (from_file ? std::max<std::int64_t>(0, memory.file - file_before_) : 0);
}

std::vector<Session::MeasuredItem> Session::measured_items() const {
  const Executor::Resident arenas = executor_ == nullptr ? Executor::Resident{} : executor_->resident();
  std::vector<MeasuredItem> out{{"weights and constants", 0, arenas.statics},
                                {"KV cache", 0, arenas.state},
                                {"activations", 0, arenas.dynamic},
                                {"kernel workspace", 0, arenas.workspace},
                                {"all else", 0, peak_bytes()}};
  MeasuredItem& rest = out.back();
  rest.predicted_bytes = memory_.total_bytes;
  for (MeasuredItem& item : out) {
    const auto said = std::ranges::find(memory_.items, item.name, &MemoryItem::name);
    if (said == memory_.items.end()) continue;
    item.predicted_bytes = said->bytes;
    rest.predicted_bytes -= said->bytes;
    rest.measured_bytes -= item.measured_bytes;
  }
  return out;
}

Session::Places Session::places_of(std::span<const std::vector<std::int32_t>> ids,
                                   std::int64_t tokens) const {
  Places places;
  places.flat = std::ranges::find(model_.plan.inputs, "sequence", &Port::name) != model_.plan.inputs.end();
  std::int64_t first = 0;
  for (const std::vector<std::int32_t>& of_sequence : ids) {
    places.first.push_back(first);
    places.room.push_back(places.flat ? std::ssize(of_sequence) : tokens);
    first += places.room.back();
  }
  return places;
}

Status Session::fill_inputs(std::span<const std::vector<std::int32_t>> ids,
                            std::span<const std::int64_t> past, std::span<const Row> rows,
                            std::span<const std::int64_t> lengths, const Places& places) {
  const auto integers = [this](std::string_view name) -> Result<std::int32_t*> {
    const std::span<std::byte> bytes = HONE_TRY(executor_->input(name));
    return reinterpret_cast<std::int32_t*>(bytes.data());
  };
  std::int32_t* id_data = HONE_TRY(integers("ids"));                                     // [B,T] or [1,N]
  std::int32_t* position_data = HONE_TRY(integers("positions"));                         // as the ids
  std::int32_t* sequence_data = places.flat ? HONE_TRY(integers("sequence")) : nullptr;  // [1,N]
  std::int32_t* row_data = HONE_TRY(integers("rows"));                                   // [R]
  for (std::size_t b = 0; b < ids.size(); ++b) {
    for (std::int64_t t = 0; t < places.room[b]; ++t) {
      const std::int64_t at = places.first[b] + t;
      const bool padding = t >= std::ssize(ids[b]);
      id_data[at] = padding ? 0 : ids[b][static_cast<std::size_t>(t)];
      position_data[at] = padding ? -1 : static_cast<std::int32_t>(past[b] + t);
      if (sequence_data != nullptr) sequence_data[at] = static_cast<std::int32_t>(b);
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    row_data[r] =
        static_cast<std::int32_t>(places.first[static_cast<std::size_t>(rows[r].sequence)] + rows[r].index);
  }
  return model_.config.depends_on_length() ? fill_lengths(ids, past, lengths, places) : Status{};
}

Status Session::fill_lengths(std::span<const std::vector<std::int32_t>> ids,
                             std::span<const std::int64_t> past, std::span<const std::int64_t> lengths,
                             const Places& places) {
  const std::span<std::byte> bytes = HONE_TRY(executor_->input("lengths"));
  auto* data = reinterpret_cast<std::int32_t*>(bytes.data());  // [B], or [1,N]
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const std::int64_t length = lengths.empty() ? past[b] + std::ssize(ids[b]) : lengths[b];
    std::int32_t* of_sequence = data + (places.flat ? places.first[b] : static_cast<std::int64_t>(b));
    std::fill_n(of_sequence, places.flat ? places.room[b] : 1, static_cast<std::int32_t>(length));
  }
  return {};
}

Result<std::span<const float>> Session::step(std::span<const std::vector<std::int32_t>> ids,
                                             std::span<const std::int64_t> past, std::span<const Row> rows,
                                             std::span<const std::int64_t> lengths) {
  StepRecord record;
  if (recorder_ != nullptr) record.begin_ns = now_nanoseconds();
  PartClock clock(recorder_);
  std::int64_t tokens = 0;
  std::int64_t all_tokens = 0;
  std::int64_t context = 1;
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const auto count = static_cast<std::int64_t>(ids[b].size());
    tokens = std::max(tokens, count);
    all_tokens += count;
    context = std::max(context, past[b] + count);
    for (const std::int32_t id : ids[b]) {
      if (id >= 0 && id < model_.config.vocabulary) continue;
      return Error{ErrorCode::BadInput,
                   Fault::User,
                   fmt::format("token {}", id),
                   "a token id is outside the vocabulary",
                   fmt::format("0 to {}", model_.config.vocabulary - 1),
                   fmt::format("{}", id),
                   {}};
    }
  }
  if (context > model_.context) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "context",
                 "the sequence is longer than the context",
                 fmt::format("at most {} tokens", model_.context),
                 fmt::format("{} tokens", context),
                 fmt::format("--ctx up to {}, or a shorter prompt", model_.config.context_length)};
  }
  if (tokens < 1)
    return Error{ErrorCode::BadInput, Fault::User, "prompt", "a step needs a token", "1 or more", "0", {}};
  record.sequences = std::ssize(ids);
  record.tokens = tokens;
  record.all_tokens = all_tokens;
  record.context = context;
  record.rows = std::ssize(rows);
  HONE_TRY(executor_->bind(bindings_of(record)));
  clock.mark(Part::Bind);
  HONE_TRY(fill_inputs(ids, past, rows, lengths, places_of(ids, tokens)));
  clock.mark(Part::Inputs);
  const std::int64_t launches = executor_->launches();
  executor_->run(recorder_);
  clock.restart();
  last_launches_ = executor_->launches() - launches;
  const std::span<const float> logits = HONE_TRY(output("logits"));
  clock.mark(Part::Outputs);
  if (recorder_ != nullptr) {
    record.end_ns = now_nanoseconds();
    recorder_->add_step(record);
  }
  return logits;
}

Result<std::span<const float>> Session::output(std::string_view name) const {
  const std::span<const std::byte> bytes = HONE_TRY(executor_->output(name));
  return std::span<const float>(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
}

Result<std::span<const float>> Session::prefill(std::span<const std::int32_t> ids, std::int64_t past) {
  if (ids.empty()) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "prompt",
                 "the prompt has no tokens",
                 "1 or more",
                 "0",
                 "give a prompt with -p, -f or --ids"};
  }
  const std::int64_t chunk = model_.plan.bound.find('T').value_or(1);
  const std::int64_t length = past + static_cast<std::int64_t>(ids.size());
  std::span<const float> logits;
  for (std::size_t at = 0; at < ids.size(); at += static_cast<std::size_t>(chunk)) {
    const std::size_t count = std::min(static_cast<std::size_t>(chunk), ids.size() - at);
    const std::span<const std::int32_t> part = ids.subspan(at, count);
    const std::vector<std::int32_t> sequence(part.begin(), part.end());
    const std::int64_t before = past + static_cast<std::int64_t>(at);
    const Row last{0, static_cast<std::int64_t>(count) - 1};
    logits = HONE_TRY(step({&sequence, 1}, {&before, 1}, {&last, 1}, {&length, 1}));
  }
  return logits;
}

}  // namespace hone
