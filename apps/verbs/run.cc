// hone run: a prompt in, the continuation out, streaming.
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "apps/chat.h"
#include "apps/check_ids.h"
#include "apps/generation_flags.h"
#include "apps/interrupt.h"
#include "apps/level_table.h"
#include "apps/model_notes.h"
#include "apps/plural.h"
#include "apps/progress.h"
#include "apps/prompt_flags.h"
#include "engine/generate.h"
#include "tokens/chat.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

struct RunFlags : CommonFlags {
  bool stats = false;
  PromptFlags prompt;
  GenerationFlags generation;
};

// One request: the error of an interrupt included. The state holds the first `past` of `ids`.
Result<Generation> answer(Session& session, const RunFlags& flags, std::span<const std::int32_t> ids,
                          std::int64_t past) {
  const auto stream = [&](std::string_view piece) {
    // What has been made is worth a clean end.
    watch_interrupts();
    if (!flags.json) print_answer(piece);
    return !interrupted() && answer_status().ok();
  };
  return generate(session, ids, past, flags.generation.options(), stream);
}

// The closing report: the number that matters first. `levels`: with the table of the levels.
void print_stats(const RunFlags& flags, Session& session, const Generation& made, bool levels = true) {
  const CompiledModel& model = session.model();
  const Plan& plan = model.plan;
  std::string out = fmt::format(
      "\n{:.1f} tokens/s decode, first token {:.3f} s, {:.1f} tokens/s prefill, load {:.2f} s\n",
      made.decode_tokens_per_s, made.first_token_s, made.prefill_tokens_per_s, session.load_seconds());
  out += fmt::format("{} ({}), {}{}; {} in, {} out; {} per token, {}\n",
                     counted(plan.target.threads, "thread"), model.thread_source, isa_name(plan.target.isa),
                     plan.target.portable_bits ? ", the bits of every instruction set" : "",
                     counted(made.prompt_tokens, "token"), made.ids.size(),
                     counted(made.launches_per_token, "launch", "launches"),
                     counted(compile_count(), "compile"));
  const std::int64_t peak = session.peak_bytes();
  out += fmt::format("memory: predicted {}, measured {} ({:.3f} of it)\n",
                     human_bytes(session.memory().total_bytes), human_bytes(peak),
                     static_cast<double>(peak) / static_cast<double>(session.memory().total_bytes));
  out += flags.generation.report();
  print_note(out);
  if (!levels) return;
  const Result<std::string> table = level_table(flags.model, session.options());
  if (table.ok()) print_note(*table);
}

// The answer ended for want of room, before the budget of tokens was used up.
bool context_full(const RunFlags& flags, const Generation& made) {
  return made.finish == Finish::Length && std::ssize(made.ids) < flags.generation.options().max_tokens;
}

// `chatting`: there is a conversation to forget.
void note_full_context(const Session& session, bool chatting) {
  const CompiledModel& model = session.model();
  const std::string remedy = model.config.context_length > model.context
                                 ? fmt::format("--ctx gives more room, up to {}", model.config.context_length)
                                 : "it is the largest that the model has";
  print_note(fmt::format("note: the answer stops because the context of {} is full; {}{}\n",
                         counted(model.context, "token"), chatting ? "/reset forgets the conversation; " : "",
                         remedy));
}

std::string_view finish_name(const RunFlags& flags, const Generation& made) {
  if (interrupted()) return "interrupted";
  if (made.finish == Finish::Stop) return "stop";
  return context_full(flags, made) ? "context" : "length";
}

Json run_json(const RunFlags& flags, Session& session, const Generation& made,
              std::span<const std::int32_t> ids) {
  return {{"prompt_ids", std::vector<std::int32_t>(ids.begin(), ids.end())},
          {"ids", made.ids},
          {"text", made.text},
          {"finish", finish_name(flags, made)},
          {"load_s", session.load_seconds()},
          {"first_token_s", made.first_token_s},
          {"prefill_tokens_per_s", made.prefill_tokens_per_s},
          {"decode_tokens_per_s", made.decode_tokens_per_s},
          {"predicted_bytes", session.memory().total_bytes},
          {"peak_bytes", session.peak_bytes()},
          {"threads", session.model().plan.target.threads},
          {"isa", isa_name(session.model().plan.target.isa)},
          {"bits", bits_name(session.model().plan.target)},
          {"launches_per_token", made.launches_per_token},
          {"compiles", compile_count()},
          {"sampling", flags.generation.report_json()}};
}

Status converse(const RunFlags& flags, Session& session) {
  ChatSettings settings;
  settings.model = flags.model;
  settings.system = flags.prompt.system();
  settings.raw = flags.prompt.raw();
  settings.answer = [&](std::span<const std::int32_t> ids, std::int64_t past) {
    auto made = answer(session, flags, ids, past);
    print_answer("\n");
    if (made.ok() && context_full(flags, *made)) note_full_context(session, true);
    return made;
  };
  settings.report = [&](const Generation& made) { print_stats(flags, session, made, false); };
  return chat(settings, session);
}

// What a conversation needs, before the weights are read.
Status check_chat(const RunFlags& flags, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return no_tokenizer(flags.model);
  if (flags.prompt.raw()) return {};
  Json messages = flags.prompt.first_messages();
  messages.push_back({{"role", "user"}, {"content", "Hello"}});
  HONE_TRY(render_prompt(flags.model, *tokenizer, messages));
  return {};
}

Status run(RunFlags& flags) {
  const EngineOptions options = HONE_TRY(flags.engine_options());
  HONE_TRY(flags.generation.check());
  const bool chatting = !flags.prompt.given() && isatty(STDIN_FILENO) == 1 && !flags.json;
  Prompt prompt;
  if (!chatting) prompt = HONE_TRY(flags.prompt.read());
  Progress progress("loading");
  const std::unique_ptr<Session> session = HONE_TRY(Session::prepare(flags.model, options));
  print_model_notes(session->model());
  HONE_TRY(flags.generation.apply(session->generation_defaults(), options.strict));
  // A prompt that cannot be used is refused before the weights are read.
  std::vector<std::int32_t> ids;
  if (!chatting) {
    ids = HONE_TRY(flags.prompt.ids(prompt, flags.model, session->tokenizer()));
    HONE_TRY(check_vocabulary(*session, ids));
    HONE_TRY(check_length(*session, static_cast<std::int64_t>(ids.size())));
  }
  if (chatting) HONE_TRY(check_chat(flags, session->tokenizer()));
  HONE_TRY(session->load(progress.callback()));
  progress.done();
  if (chatting) return converse(flags, *session);
  const Generation made = HONE_TRY(answer(*session, flags, ids, 0));
  const bool stopped = interrupted();
  if (flags.json) {
    Json document = run_json(flags, *session, made, ids);
    if (stopped) document["error"] = error_json(interrupted_error());
    print_json(document);
  } else if (session->tokenizer() == nullptr) {
    print_answer(fmt::format("{}\n", Json(made.ids).dump()));
  } else {
    print_answer("\n");
  }
  if (context_full(flags, made) && !stopped) note_full_context(*session, false);
  if (flags.stats) print_stats(flags, *session, made);
  if (stopped) return interrupted_error();
  return {};
}

}  // namespace

Verb add_run(const CommandLine& line) {
  const Command verb = line.add_verb("run", "generate text; without a prompt on a terminal: chat");
  auto flags = std::make_shared<RunFlags>();
  flags->add_to(verb);
  flags->prompt.add_to(verb);
  flags->generation.add_to(verb);
  verb.flag("--stats", flags->stats, "close with a report on stderr");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
