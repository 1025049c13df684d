// hone tokenize: text to ids, and back.
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <sstream>

#include "apps/verb.h"
#include "file/open.h"
#include "tokens/load_tokenizer.h"
#include "tokens/utf8.h"

namespace hone {
namespace {

struct TokenizeFlags : CommonFlags {
  std::string prompt;
  std::string file;
  std::string jsonl;
  std::string ids;
  bool no_special = false;
  bool decode = false;
  std::optional<Flag> prompt_option;
};

Result<std::string> input_text(const TokenizeFlags& flags) {
  if (!flags.ids.empty()) return flags.ids;
  if (!flags.file.empty()) return read_text_file(flags.file);
  if (flags.prompt_option->given()) return flags.prompt;
  return read_stdin();
}

Result<Tokenizer> load_tokenizer(const std::string& path) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(path));
  return require_tokenizer(checkpoint);
}

Error bad_line(std::size_t number, std::string expected) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               fmt::format("--jsonl, line {}", number),
               "the line is no JSON object of the form wanted",
               std::move(expected),
               {},
               {}};
}

constexpr std::int64_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int32_t>::max();

// Decoding would pass over an unknown id in silence.
Status check_known(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, std::string where) {
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 std::move(where),
                 "a token id is outside the vocabulary",
                 fmt::format("0 to {}", tokenizer.vocab_size() - 1),
                 fmt::format("{}", id),
                 {}};
  }
  return {};
}

// {"text":..} a line -> {"ids":..} a line; {"ids":..} -> {"text":..}.
Status run_lines(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  std::istringstream lines(HONE_TRY(read_text_file(flags.jsonl)));
  std::string line;
  std::size_t number = 0;
  std::string out;
  while (std::getline(lines, line, '\n')) {
    ++number;
    if (line.empty()) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (object.is_object() && object.contains("text") && object["text"].is_string()) {
      const std::vector<std::int32_t> ids = HONE_TRY(tokenizer.encode(
          object["text"].get<std::string>(), {.parse_special = true, .add_special = !flags.no_special}));
      out += Json{{"ids", ids}}.dump() + "\n";
    } else if (object.is_object() && object.contains("ids") && object["ids"].is_array()) {
      std::vector<std::int32_t> ids;
      for (const Json& id : object["ids"]) {
        if (!id.is_number_integer()) return bad_line(number, "ids that are whole numbers");
        // Clamped: any number outside is refused below with itself or the nearest of 32 bits.
        ids.push_back(static_cast<std::int32_t>(std::clamp(id.get<std::int64_t>(), kLowest, kHighest)));
      }
      HONE_TRY(check_known(tokenizer, ids, fmt::format("--jsonl, line {}", number)));
      const std::string text = tokenizer.decode(ids, {.skip_special = flags.no_special});
      out += Json{{"text", to_valid_utf8(text)}}.dump() + "\n";
    } else {
      return bad_line(number, "{\"text\": \"..\"} or {\"ids\": [..]}");
    }
  }
  print_answer(out);
  return {};
}

Status run(const TokenizeFlags& flags) {
  if (!flags.ids.empty() && !flags.decode) return goes_with("--ids", "--decode");
  const Tokenizer tokenizer = HONE_TRY(load_tokenizer(flags.model));
  if (!flags.jsonl.empty()) return run_lines(flags, tokenizer);
  if (flags.decode) {
    std::string list = HONE_TRY(input_text(flags));
    list.erase(list.find_last_not_of(" \r\n") + 1);
    const std::vector<std::int32_t> ids = HONE_TRY(parse_ids("--ids", list));
    HONE_TRY(check_known(tokenizer, ids, "--ids"));
    const std::string text = tokenizer.decode(ids, {.skip_special = flags.no_special});
    if (flags.json) {
      print_json({{"text", to_valid_utf8(text)}});
    } else {
      print_answer(text + "\n");
    }
    return {};
  }
  const std::string text = HONE_TRY(input_text(flags));
  const std::vector<std::int32_t> ids =
      HONE_TRY(tokenizer.encode(text, {.parse_special = true, .add_special = !flags.no_special}));
  if (flags.json) {
    print_json({{"ids", ids}});
  } else {
    print_answer(Json(ids).dump() + "\n");
  }
  return {};
}

}  // namespace

Verb add_tokenize(const CommandLine& line) {
  const Command verb = line.add_verb("tokenize", "text to token ids, and back with --decode");
  auto flags = std::make_shared<TokenizeFlags>();
  flags->add_to(verb, true);
  const Flag prompt = verb.option("-p,--prompt", flags->prompt, "the text").may_be_empty();
  flags->prompt_option = prompt;
  const Flag file = verb.option("-f,--file", flags->file, "the text from a file");
  const Flag jsonl =
      verb.option("--jsonl", flags->jsonl, "a file of {\"text\":..} or {\"ids\":..}, one a line");
  const Flag ids = verb.option("--ids", flags->ids, "ids to decode: 1,2,3");
  prompt.excludes(file).excludes(jsonl).excludes(ids);
  file.excludes(jsonl).excludes(ids);
  jsonl.excludes(ids);
  verb.flag("--no-special", flags->no_special,
            "add no begin and end tokens; leave special tokens out when decoding");
  verb.flag("--decode", flags->decode, "ids to text").excludes(jsonl);
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
