// What the verbs of hone share: how a verb is declared, the common flags, the answer's ways out.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/command_line.h"
#include "apps/text_io.h"
#include "apps/units.h"
#include "base/result.h"
#include "base/target.h"
#include "engine/options.h"

namespace hone {

using Json = nlohmann::ordered_json;

// The flags of cli.md's section "Everywhere" that are built, as text until they are checked.
struct CommonFlags {
  std::string model;
  std::int64_t threads = 0;
  std::string memory;  // "8G"
  std::string level = "O3";
  std::string passes;  // "-fuse-rope,-cse"
  std::vector<std::string> plugins;
  std::string stop_after;
  std::string dump;                  // a folder
  std::string workspace;             // "2M"
  std::string workspace_in = "own";  // own, activations
  std::string precision = "fast";    // fast, balanced, exact or a file of rules
  std::string kv;
  std::string weights;
  std::string isa;  // also HONE_ISA
  std::string bits = "isa";
  std::int64_t context = 0;
  std::int64_t chunk = 512;
  bool no_pack = false;
  bool strict = false;
  bool json = false;

  // Adds MODEL and the flags to a verb. `model_only`: no flags of compiling and running.
  void add_to(const Command& verb, bool model_only = false);
  // Checked. Errors (Usage) name the flag.
  Result<EngineOptions> engine_options() const;
};

// "isa" or "portable", as --bits has it.
std::string_view bits_name(const Target& target);

// The level that --isa, or HONE_ISA where the flag is empty, asks for; nullopt: none.
Result<std::optional<Isa>> asked_isa(const std::string& flag);

// A verb: its command of the parser, whether it answers in JSON, and what it does.
struct Verb {
  Command command;
  const bool* json = nullptr;
  std::function<Status()> run;
};

// One per source file in apps/verbs. Flags live as long as the returned function.
Verb add_run(const CommandLine& line);
Verb add_logits(const CommandLine& line);
Verb add_perplexity(const CommandLine& line);
Verb add_tokenize(const CommandLine& line);
Verb add_render(const CommandLine& line);
Verb add_template(const CommandLine& line);
Verb add_inspect(const CommandLine& line);
Verb add_explain(const CommandLine& line);
Verb add_plan(const CommandLine& line);
Verb add_verify(const CommandLine& line);
Verb add_profile(const CommandLine& line);
Verb add_bench(const CommandLine& line);
Verb add_quantize(const CommandLine& line);
Verb add_doctor(const CommandLine& line);
Verb add_version(const CommandLine& line);

// Indented, with a line end; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& document);
void print_json(const Json& document);
// Whether a document has been printed.
bool json_printed();
// The member `error` of a document.
Json error_json(const Error& error);

// Of a flag's value; the caller names the verb's help.
Error usage_error(std::string flag, std::string message, std::string expected, std::string actual);

// `flag` does something only beside `other`.
Error goes_with(std::string_view flag, std::string_view other);

// "8G", "512MiB", "64kb", "1048576": bytes. K, M, G, T are powers of 1024.
inline constexpr const char* kBytesForm = "a whole number of at least 1, with k, m, g or t: 8G, 512MiB";
Result<std::int64_t> parse_bytes(const std::string& flag, const std::string& text);
// "1,2,3"
Result<std::vector<std::int32_t>> parse_ids(const std::string& flag, const std::string& text);

}  // namespace hone
