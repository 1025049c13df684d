// hone profile: a prompt and some decode steps, measured: by part, op, layer, kernel, thread and region.
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <unistd.h>

#include "apps/check_ids.h"
#include "apps/generation_flags.h"
#include "apps/interrupt.h"
#include "apps/model_notes.h"
#include "apps/plural.h"
#include "apps/profile_report.h"
#include "apps/progress.h"
#include "apps/prompt_flags.h"
#include "file/output_file.h"

namespace hone {
namespace {

struct ProfileFlags : CommonFlags {
  std::string trace;
  std::string against;
  bool skip_peaks = false;
  PromptFlags prompt;
  GenerationFlags generation;
};

constexpr std::int64_t kDecodeSteps = 32;
constexpr std::size_t kTracePiece = std::size_t{1} << 20;

Status write_trace_file(OutputFile& file, const Plan& plan, const Recorder& recorder) {
  const std::vector<MemorySample> samples = HONE_TRY(memory_samples(plan, recorder));
  const std::vector<std::string> names = launch_names(plan);
  std::string piece;
  Status status;
  const auto flush = [&] {
    if (status.ok()) status = file.append(std::as_bytes(std::span(piece)));
    piece.clear();
  };
  write_trace(recorder, names, samples, [&](std::string_view text) {
    piece += text;
    if (piece.size() >= kTracePiece) flush();
  });
  flush();
  HONE_TRY(std::move(status));
  return file.commit();
}

struct Measured {
  std::unique_ptr<Session> session;
  std::int64_t prompt_tokens = 0;
};

// All that the recorder measures. Notes on the model come after it.
Result<Measured> measure(ProfileFlags& flags, const EngineOptions& options, const Prompt& prompt,
                         Recorder& recorder) {
  Progress progress("loading");
  Measured out;
  out.session = HONE_TRY(Session::prepare(flags.model, options, &recorder));
  Session& session = *out.session;
  PartClock clock(&recorder);
  HONE_TRY(flags.generation.apply(session.generation_defaults(), options.strict));
  const std::vector<std::int32_t> ids = HONE_TRY(flags.prompt.ids(prompt, flags.model, session.tokenizer()));
  HONE_TRY(check_vocabulary(session, ids));
  HONE_TRY(check_length(session, std::ssize(ids)));
  out.prompt_tokens = std::ssize(ids);
  clock.mark(Part::Prompt);
  GenerateOptions generation = flags.generation.options();
  reserve_recording(recorder, session, out.prompt_tokens, generation.max_tokens, !flags.trace.empty());
  const auto show = progress.callback();
  HONE_TRY(session.load([&](std::int64_t done, std::int64_t total) {
    recorder.add_loaded(done);
    if (show) show(done, total);
  }));
  progress.done();
  // The last token of an answer needs no step of its own.
  ++generation.max_tokens;
  HONE_TRY(generate(session, ids, 0, generation));
  recorder.finish();
  return out;
}

void note_short(const ProfileFlags& flags, const Profile& profile, const Session& session) {
  const std::int64_t steps = profile.phase(Phase::Decode).steps;
  if (steps >= flags.generation.options().max_tokens) return;
  print_note(fmt::format("note: the context of {} is full after {}\n",
                         counted(session.model().context, "token"), counted(steps, "decode step")));
}

Status run(ProfileFlags& flags) {
  const EngineOptions options = HONE_TRY(flags.engine_options());
  HONE_TRY(flags.generation.check());
  if (!flags.prompt.given() && isatty(STDIN_FILENO) == 1) {
    return usage_error("hone profile", "no prompt given", "-p TEXT, -f FILE, --ids 1,2,3 or a pipe",
                       "none of them");
  }
  const Prompt prompt = HONE_TRY(flags.prompt.read());
  Json other;
  if (!flags.against.empty()) other = HONE_TRY(read_profile(flags.against));
  std::unique_ptr<OutputFile> trace;
  std::optional<RemovedOnInterrupt> partial;
  if (!flags.trace.empty()) partial.emplace(flags.trace + ".partial");
  if (!flags.trace.empty()) trace = HONE_TRY(OutputFile::create(flags.trace));

  Recorder recorder;
  const Measured measured = HONE_TRY(measure(flags, options, prompt, recorder));
  Session& session = *measured.session;
  ProfileContext context;
  context.peak_bytes = session.peak_bytes();
  print_model_notes(session.model());
  MachineLimits limits;
  if (flags.skip_peaks) {
    context.no_limits = "--no-peaks";
  } else if (const Result<MachineLimits> found = measure_limits(session); found.ok()) {
    limits = *found;
  } else {
    context.no_limits = fmt::format("{}: {}", found.error().message, found.error().actual);
  }
  const Profile profile = HONE_TRY(profile_of(session, recorder, limits));
  const Plan& plan = session.model().plan;
  context.model = flags.model;
  context.recording_bytes = recorder.bytes();
  context.prompt_tokens = measured.prompt_tokens;
  context.threads = plan.target.threads;
  context.isa = isa_name(plan.target.isa);
  context.level = flags.level;
  context.predicted_bytes = session.memory().total_bytes;
  context.begin_ns = recorder.begin_ns();
  note_short(flags, profile, session);
  if (trace != nullptr) HONE_TRY(write_trace_file(*trace, plan, recorder));

  Json document = profile_json(profile, context);
  std::vector<ComparedNumber> compared;
  if (!flags.against.empty()) compared = compare_profiles(other, document);
  if (flags.json) {
    if (!flags.against.empty()) document["against"] = comparison_json(compared);
    print_json(document);
  } else {
    print_answer(profile_text(profile, context));
    if (!flags.against.empty()) print_answer(comparison_text(compared, other, document));
  }
  return {};
}

}  // namespace

Verb add_profile(const CommandLine& line) {
  const Command verb = line.add_verb(
      "profile", "a run measured: by op, layer, kernel and thread; what the top five are bound by");
  auto flags = std::make_shared<ProfileFlags>();
  flags->add_to(verb);
  flags->prompt.add_to(verb);
  flags->generation.add_to_measurement(verb, kDecodeSteps, "decode steps to measure");
  verb.option("--trace", flags->trace, "a file: the timeline as a Chrome trace, for ui.perfetto.dev");
  verb.option("--against", flags->against, "a file: an earlier answer with --json, to stand beside this run");
  verb.flag("--no-peaks", flags->skip_peaks, "measures nothing of the machine, so there is no diagnosis");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
