// hone perplexity: the negative log-likelihood of a text.
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <unistd.h>

#include "apps/check_ids.h"
#include "apps/model_notes.h"
#include "apps/plural.h"
#include "apps/progress.h"
#include "apps/verb.h"
#include "engine/likelihood.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

struct PerplexityFlags : CommonFlags {
  std::string prompt;
  std::string file;
  std::string ids;
  std::int64_t limit = 0;
  std::optional<Flag> prompt_option;
};

Result<std::string> read_text(const PerplexityFlags& flags) {
  constexpr const char* kSources = "-f FILE, -p TEXT, --ids 1,2,3 or a pipe";
  const bool asked = !flags.file.empty() || flags.prompt_option->given();
  if (!asked && isatty(STDIN_FILENO) == 1) {
    return usage_error("hone perplexity", "no text given", kSources, "none of them");
  }
  std::string text = !flags.file.empty() ? HONE_TRY(read_text_file(flags.file))
                     : asked             ? flags.prompt
                                         : HONE_TRY(read_stdin());
  if (!text.empty()) return text;
  return Error{ErrorCode::BadInput,
               Fault::User,
               "text",
               "the text is empty",
               "some text",
               "none",
               fmt::format("give a text with {}", kSources)};
}

Status run(const PerplexityFlags& flags) {
  EngineOptions options = HONE_TRY(flags.engine_options());
  options.all_logits = true;
  std::vector<std::int32_t> ids;
  std::string text;
  if (!flags.ids.empty()) {
    ids = HONE_TRY(parse_ids("--ids", flags.ids));
  } else {
    text = HONE_TRY(read_text(flags));
  }
  const std::unique_ptr<Session> session = HONE_TRY(Session::prepare(flags.model, options));
  print_model_notes(session->model());
  if (flags.ids.empty()) {
    if (session->tokenizer() == nullptr) return no_tokenizer(flags.model);
    ids = HONE_TRY(session->tokenizer()->encode(text));
  }
  if (flags.limit > 0 && static_cast<std::int64_t>(ids.size()) > flags.limit)
    ids.resize(static_cast<std::size_t>(flags.limit));
  HONE_TRY(check_vocabulary(*session, ids));
  HONE_TRY(session->load());
  Progress progress("perplexity");
  const Likelihood result = HONE_TRY(likelihood(*session, ids));
  progress.done();
  const double mean = result.nll_sum / static_cast<double>(result.tokens);
  if (flags.json) {
    print_json({{"tokens", result.tokens},
                {"nll_sum", result.nll_sum},
                {"nll_mean", mean},
                {"perplexity", std::exp(mean)},
                {"windows", result.windows}});
  } else {
    const std::string windows =
        result.windows > 1
            ? fmt::format(", in {} of {} tokens", counted(result.windows, "window"), session->model().context)
            : "";
    print_answer(
        fmt::format("perplexity {:.4f}: {} predicted{}, negative log-likelihood {:.4f}, mean {:.6f}\n",
                    std::exp(mean), counted(result.tokens, "token"), windows, result.nll_sum, mean));
  }
  return {};
}

}  // namespace

Verb add_perplexity(const CommandLine& line) {
  const Command verb =
      line.add_verb("perplexity", "negative log-likelihood of a text, in windows of the context's length");
  auto flags = std::make_shared<PerplexityFlags>();
  flags->add_to(verb);
  const Flag file =
      verb.option("-f,--file", flags->file, "the text from a file; without a text, a pipe is read");
  const Flag ids = verb.option("--ids", flags->ids, "the text as token ids: 1,2,3");
  flags->prompt_option = verb.option("-p,--prompt", flags->prompt, "the text itself").may_be_empty();
  file.excludes(ids).excludes(*flags->prompt_option);
  ids.excludes(*flags->prompt_option);
  verb.option("--limit", flags->limit, "only the first N tokens").within(0, kNoLimit, "0 for all");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
