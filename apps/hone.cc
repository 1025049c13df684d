// The command hone: one verb, its flags, an answer on stdout.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <exception>

#include "apps/exit_code.h"
#include "apps/report_error.h"
#include "apps/verb.h"

namespace {

using hone::Verb;

// With --json, stdout carries the error as well.
int report(const hone::Error& error, bool json) {
  if (json) {
    hone::print_json({{"error",
                       {{"code", hone::error_code_name(error.code)},
                        {"fault", hone::fault_name(error.fault)},
                        {"where", error.where},
                        {"message", error.message},
                        {"expected", error.expected},
                        {"actual", error.actual},
                        {"try", error.next_step}}}});
  }
  return hone::report_error(error, "hone");
}

hone::Status run_verb(const Verb& verb) {
  // The last line of defence: a third-party exception or an allocation that failed ends as an error like any other.
  try {
    return verb.run();
  } catch (const std::bad_alloc&) {
    return hone::Error{hone::ErrorCode::DoesNotFit, hone::Fault::User, "memory", "the system refuses the memory", {}, {},
                       "hone plan MODEL shows what would fit"};
  } catch (const std::exception& exception) {
    return hone::internal_error("hone", exception.what());
  }
}

int main_with_exceptions(int argc, char** argv) {
  CLI::App app{"hone turns a model checkpoint into a program for this machine, shows every step, and runs it.", "hone"};
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "this text");
  const std::vector<Verb> verbs{hone::add_run(app),      hone::add_explain(app),  hone::add_plan(app),
                                hone::add_inspect(app),  hone::add_logits(app),   hone::add_perplexity(app),
                                hone::add_tokenize(app), hone::add_render(app),   hone::add_template(app),
                                hone::add_bench(app)};
  // A --json among the arguments decides how even a wrong command line is answered.
  bool json_asked = false;
  for (int i = 1; i < argc; ++i) json_asked = json_asked || std::string_view(argv[i]) == "--json";
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return report({hone::ErrorCode::Usage, hone::Fault::User, "command line", error.what(), {}, {}, "hone --help, hone VERB --help"},
                  json_asked);
  }
  for (const Verb& verb : verbs) {
    if (!verb.command->parsed()) continue;
    const hone::Status status = run_verb(verb);
    return status.ok() ? hone::kExitDone : report(status.error(), *verb.json);
  }
  return hone::kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return main_with_exceptions(argc, argv);
  } catch (const std::exception&) {
    return 1;  // out of memory before a verb has begun
  }
}
