#include "apps/verb.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <sstream>

#include "apps/pass_flags.h"
#include "apps/report_error.h"
#include "base/nearest_name.h"
#include "base/thread_pool.h"

namespace hone {
namespace {

bool document_printed = false;

Status parse_level(const std::string& text, EngineOptions& options) {
  constexpr std::string_view kNames[] = {"O0", "O1", "O2", "O3"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (text == kNames[i]) {
      options.level = static_cast<Level>(i);
      return {};
    }
  }
  return usage_error("--level", "no such level", "O0, O1, O2 or O3", text);
}

// fast, balanced, exact; anything else names a file of rules.
Status read_precision(const std::string& text, EngineOptions& options) {
  constexpr std::string_view kNames[] = {"fast", "balanced", "exact"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (text != kNames[i]) continue;
    options.precision = static_cast<Precision>(i);
    return {};
  }
  std::error_code unknown;
  if (!std::filesystem::exists(text, unknown)) {
    Error error = usage_error("--precision", "no such precision, and no file of this name",
                              "fast, balanced, exact, or a file of rules", text);
    if (const std::string_view near = nearest_name(text, kNames); !near.empty())
      error.next_step = fmt::format("did you mean '{}'?", near);
    return error;
  }
  const std::string rules = HONE_TRY(read_text_file(text));
  options.precision_rules =
      std::make_shared<const PrecisionRules>(HONE_TRY(parse_precision_rules(rules, text)));
  return {};
}

}  // namespace

void CommonFlags::add_to(const Command& verb, bool model_only) {
  verb.option("MODEL", model, "a GGUF file or a Hugging Face folder").required().may_be_empty();
  verb.flag("--json", json, "answer as one JSON document");
  if (model_only) return;
  static const std::string help_of_memory = fmt::format("hard budget of bytes: {}", kBytesForm);
  verb.option("--threads", threads, "threads; default min(affinity, CPU quota)")
      .within(0, ThreadPool::kMaxThreads, kZeroIsDefault);
  verb.option("--memory", memory, help_of_memory.c_str());
  verb.option("--level", level, "O0 primitive graph, O1 fast kernels, O2 fusion, O3 precision policy")
      .show_default();
  static const std::string help_of_passes = fmt::format("switch passes off, add, move: {}", kPassesForm);
  verb.option("--passes", passes, help_of_passes.c_str());
  verb.option("--plugin", plugins, "a shared library with passes (hone_pass.h); may be given again");
  verb.option("--stop-after", stop_after, "the last pass to run");
  verb.option("--dump", dump, "a folder: the graph as text after every pass");
  verb.option("--workspace", workspace,
              "most bytes of scratch of all threads; what does not fit costs threads");
  verb.option("--workspace-in", workspace_in, "own (an arena) or activations: where scratch lies")
      .show_default();
  verb.option("--precision", precision, "fast, balanced, exact, or a file of rules by module").show_default();
  verb.option("--kv", kv, "type of the KV cache: f32, f16, bf16 or q8_0; default by the precision policy");
  verb.option("--weights", weights,
              "q8_0: matrices that the file has in a float type are rounded as they are loaded");
  verb.option("--isa", isa, "portable, avx2, avx512 or amx; default the best of this machine, or HONE_ISA");
  verb.option("--bits", bits, "isa: one set of bits per instruction set; portable: the same on all of them")
      .show_default();
  verb.option("--ctx", context, "tokens per sequence; default min(the model's, 4096)")
      .within(0, kNoLimit, kZeroIsDefault);
  verb.option("--chunk", chunk, "prompt tokens per step").show_default().within(1, kNoLimit);
  verb.flag("--no-pack", no_pack,
            "weights run from the mapped file, without a packed copy, where kernels can");
  verb.flag("--strict", strict, "a launch on a reference kernel is an error");
}

Result<std::optional<Isa>> asked_isa(const std::string& flag) {
  const char* environment = std::getenv("HONE_ISA");
  const std::string text = !flag.empty() ? flag : environment != nullptr ? environment : "";
  if (text.empty()) return std::optional<Isa>();
  const std::optional<Isa> isa = isa_from_name(text);
  if (isa) return isa;
  return usage_error(flag.empty() ? "HONE_ISA" : "--isa", "no such instruction set",
                     "portable, avx2, avx512 or amx", text);
}

std::string_view bits_name(const Target& target) {
  return target.portable_bits ? "portable" : "isa";
}

Result<EngineOptions> CommonFlags::engine_options() const {
  EngineOptions options;
  HONE_TRY(parse_level(level, options));
  HONE_TRY(read_pass_flags(plugins, passes, options));
  HONE_TRY(read_precision(precision, options));
  if (!kv.empty()) {
    if (kv != "f32" && kv != "f16" && kv != "bf16" && kv != "q8_0")
      return usage_error("--kv", "no such cache type", "f32, f16, bf16 or q8_0", kv);
    options.kv = dtype_from_name(kv);
  }
  if (!weights.empty()) {
    if (weights != "q8_0")
      return usage_error("--weights", "weights cannot be loaded as this type", "q8_0", weights);
    options.weights = DType::Q8_0;
  }
  options.isa = HONE_TRY(asked_isa(isa));
  if (bits != "isa" && bits != "portable")
    return usage_error("--bits", "no such set of bits", "isa or portable", bits);
  options.portable_bits = bits == "portable";
  if (!memory.empty()) options.memory = HONE_TRY(parse_bytes("--memory", memory));
  if (!workspace.empty()) options.workspace = HONE_TRY(parse_bytes("--workspace", workspace));
  if (workspace_in != "own" && workspace_in != "activations")
    return usage_error("--workspace-in", "scratch has no such place", "own or activations", workspace_in);
  options.workspace_in = workspace_in == "own" ? Workspace::Own : Workspace::Activations;
  options.threads = threads;
  options.context = context;
  options.chunk = chunk;
  options.strict = strict;
  options.no_pack = no_pack;
  options.stop_after = stop_after;
  options.dump = dump;
  return options;
}

Error goes_with(std::string_view flag, std::string_view other) {
  return usage_error(std::string(flag), fmt::format("the flag goes with {}", other),
                     fmt::format("{} {}", flag, other), fmt::format("{} alone", flag));
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_json(const Json& document) {
  document_printed = true;
  print_answer(json_text(document));
}

bool json_printed() {
  return document_printed;
}

Json error_json(const Error& error) {
  return {{"code", error_code_name(error.code)},
          {"fault", fault_name(error.fault)},
          {"where", error.where},
          {"message", error.message},
          {"expected", error.expected},
          {"actual", error.actual},
          {"try", error.next_step}};
}

Error usage_error(std::string flag, std::string message, std::string expected, std::string actual) {
  return Error{ErrorCode::Usage,  Fault::User, std::move(flag), std::move(message), std::move(expected),
               std::move(actual), {}};
}

Result<std::int64_t> parse_bytes(const std::string& flag, const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string suffix = text.substr(digits);
  std::ranges::transform(suffix, suffix.begin(),
                         [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  const std::size_t power = suffix.empty() ? std::string::npos : std::string_view("kmgt").find(suffix[0]);
  const std::string unit = power == std::string::npos ? suffix : suffix.substr(1);
  const bool known_unit = unit.empty() || unit == "b" || (unit == "ib" && power != std::string::npos);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (digits == 0 || !known_unit || (error == std::errc() && number < 1)) {
    return usage_error(flag, "the value is not a number of bytes", kBytesForm, text);
  }
  const int shift = power == std::string::npos ? 0 : 10 * (static_cast<int>(power) + 1);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (error != std::errc() || number > (kMost >> shift)) {
    return usage_error(flag, "the number of bytes is too large", fmt::format("at most {} bytes", kMost),
                       text);
  }
  return number << shift;
}

Result<std::vector<std::int32_t>> parse_ids(const std::string& flag, const std::string& text) {
  std::vector<std::int32_t> ids;
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    while (!part.empty() && part.front() == ' ') part.erase(0, 1);
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (error != std::errc() || end != part.data() + part.size()) {
      return usage_error(flag, "token ids are whole numbers with commas between", "1,2,3", text);
    }
    ids.push_back(id);
  }
  if (text.ends_with(','))
    return usage_error(flag, "token ids are whole numbers with commas between", "1,2,3", text);
  if (ids.empty()) return usage_error(flag, "no token ids", "1,2,3", text);
  return ids;
}

}  // namespace hone
