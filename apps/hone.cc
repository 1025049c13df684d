// The command hone: one verb, its flags, an answer on stdout.
#include <exception>
#include <fmt/format.h>
#include <malloc.h>

#include "apps/exit_code.h"
#include "apps/interrupt.h"
#include "apps/report_error.h"
#include "apps/text_io.h"
#include "apps/verb.h"

namespace {

using hone::Verb;

// With --json, stdout carries the error as well, unless the verb's own document does.
int report(const hone::Error& error, bool json) {
  if (json && !hone::json_printed()) hone::print_json({{"error", hone::error_json(error)}});
  return hone::report_error(error, "hone");
}

// The exit code of a command whose answer is on stdout, if it got there.
int finish() {
  const hone::Status written = hone::answer_status();
  return written.ok() ? hone::kExitDone : hone::report_error(written.error(), "hone");
}

hone::Status run_guarded(const Verb& verb) {
  // The last line of defence: a third-party exception or an allocation that failed ends as an error like any
  // other.
  try {
    return verb.run();
  } catch (const std::bad_alloc&) {
    return hone::Error{hone::ErrorCode::DoesNotFit,
                       hone::Fault::User,
                       "memory",
                       "the system refuses the memory",
                       {},
                       {},
                       "hone plan MODEL shows what would fit"};
  } catch (const std::exception& exception) {
    return hone::internal_error("hone", exception.what());
  }
}

// A usage error that knows no better sends to the verb's own help.
hone::Status run_verb(const Verb& verb) {
  hone::Status status = run_guarded(verb);
  if (status.ok() || status.error().code != hone::ErrorCode::Usage || !status.error().next_step.empty()) {
    return status;
  }
  hone::Error error = std::move(status).error();
  error.next_step = fmt::format("hone {} --help", verb.command.name());
  return error;
}

int main_with_exceptions(int argc, char** argv) {
  const hone::CommandLine line(
      "hone",
      "hone turns a model checkpoint into a program for this machine, shows every step, and runs it.");
  const std::vector<Verb> verbs{hone::add_run(line),      hone::add_explain(line), hone::add_plan(line),
                                hone::add_inspect(line),  hone::add_logits(line),  hone::add_perplexity(line),
                                hone::add_tokenize(line), hone::add_render(line),  hone::add_template(line),
                                hone::add_verify(line),   hone::add_profile(line), hone::add_bench(line),
                                hone::add_quantize(line), hone::add_doctor(line),  hone::add_version(line)};
  // A --json among the arguments decides how even a wrong command line is answered.
  bool json_asked = false;
  for (int i = 1; i < argc; ++i) json_asked = json_asked || std::string_view(argv[i]) == "--json";
  hone::end_on_interrupt(
      json_asked ? hone::json_text({{"error", hone::error_json(hone::interrupted_error())}}) : "");
  const hone::ParseOutcome outcome = line.parse(argc, argv);
  if (outcome.kind == hone::ParseOutcome::Kind::HelpShown) return finish();
  if (outcome.kind == hone::ParseOutcome::Kind::Wrong) {
    return report(outcome.error, json_asked);
  }
  for (const Verb& verb : verbs) {
    if (!verb.command.chosen()) continue;
    const hone::Status status = run_verb(verb);
    return status.ok() ? finish() : report(status.error(), *verb.json);
  }
  return hone::kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  hone::open_standard_streams();
  // Fixed thresholds instead of glibc's adaptive ones: large tables are mappings of their own and freed
  // memory goes back at once, so that resident memory is what the memory statement adds up.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
  try {
    return main_with_exceptions(argc, argv);
  } catch (const std::exception&) {
    return 1;  // out of memory before a verb has begun
  }
}
