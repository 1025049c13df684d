#include "apps/verb.h"

#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <sstream>

namespace hone {
namespace {

Error usage(std::string flag, std::string message, std::string expected, std::string actual) {
  return Error{ErrorCode::Usage,    Fault::User,       std::move(flag),   std::move(message),
               std::move(expected), std::move(actual), "hone VERB --help"};
}

Status parse_level(const std::string& text, EngineOptions& options) {
  constexpr std::string_view kNames[] = {"O0", "O1", "O2", "O3"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (text == kNames[i]) {
      options.level = static_cast<Level>(i);
      return {};
    }
  }
  return usage("--level", "no such level", "O0, O1, O2 or O3", text);
}

Status parse_passes(const std::string& text, EngineOptions& options) {
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) {
    if (part.empty()) continue;
    if (part[0] != '-' || part.size() < 2) {
      return usage("--passes", "a pass is switched off with '-' before its name", "-fuse-rope", part);
    }
    options.disabled_passes.push_back(part.substr(1));
  }
  return {};
}

}  // namespace

void CommonFlags::add_to(const Command& verb, bool model_only) {
  verb.option("MODEL", model, "a GGUF file or a Hugging Face folder").required();
  verb.flag("--json", json, "answer as one JSON document");
  if (model_only) return;
  verb.option("--threads", threads, "threads; default min(affinity, CPU quota)");
  verb.option("--memory", memory, "hard budget in bytes, with K, M or G: 8G");
  verb.option("--level", level, "O0 primitive graph, O1 fast kernels, O2 fusion, O3 precision policy")
      .show_default();
  verb.option("--passes", passes, "passes to switch off: --passes=-fuse-rope,-cse");
  verb.option("--kv", kv, "type of the KV cache: f32, f16 or bf16; default by the precision policy");
  verb.option("--isa", isa, "portable, avx2 or avx512; default the best of this machine, or HONE_ISA");
  verb.option("--ctx", context, "tokens per sequence; default min(the model's, 4096)");
  verb.option("--chunk", chunk, "prompt tokens per step").show_default();
  verb.flag("--strict", strict, "a launch on a reference kernel is an error");
}

Result<std::optional<Isa>> asked_isa(const std::string& flag) {
  const char* environment = std::getenv("HONE_ISA");
  const std::string text = !flag.empty() ? flag : environment != nullptr ? environment : "";
  if (text.empty()) return std::optional<Isa>();
  const std::optional<Isa> isa = isa_from_name(text);
  if (isa) return isa;
  return usage(flag.empty() ? "HONE_ISA" : "--isa", "no such instruction set", "portable, avx2 or avx512",
               text);
}

Result<EngineOptions> CommonFlags::engine_options() const {
  EngineOptions options;
  HONE_TRY(parse_level(level, options));
  HONE_TRY(parse_passes(passes, options));
  if (!kv.empty()) {
    if (kv != "f32" && kv != "f16" && kv != "bf16")
      return usage("--kv", "no such cache type", "f32, f16 or bf16", kv);
    options.kv = dtype_from_name(kv);
  }
  options.isa = HONE_TRY(asked_isa(isa));
  if (!memory.empty()) options.memory = HONE_TRY(parse_bytes("--memory", memory));
  if (threads < 0)
    return usage("--threads", "a run has at least one thread", "1 or more, or 0 for the default",
                 fmt::format("{}", threads));
  if (context < 0)
    return usage("--ctx", "a context has at least one token", "1 or more, or 0 for the default",
                 fmt::format("{}", context));
  options.threads = threads;
  options.context = context;
  options.chunk = chunk;
  options.strict = strict;
  return options;
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_json(const Json& document) {
  print_answer(json_text(document));
}

Result<std::int64_t> parse_bytes(const std::string& flag, const std::string& text) {
  const Error bad =
      usage(flag, "this is no number of bytes", "a whole number of at least 1 with K, M, G, T or none", text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1) return bad;
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix.ends_with("iB")) suffix.remove_suffix(2);
  constexpr std::string_view kSuffixes = "KMGT";
  if (suffix.empty()) return number;
  const std::size_t power = kSuffixes.find(suffix[0]);
  if (suffix.size() != 1 || power == std::string_view::npos) return bad;
  const int shift = 10 * (static_cast<int>(power) + 1);
  if (number > (std::numeric_limits<std::int64_t>::max() >> shift)) return bad;
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
      return usage(flag, "token ids are whole numbers with commas between", "1,2,3", text);
    }
    ids.push_back(id);
  }
  if (text.ends_with(','))
    return usage(flag, "token ids are whole numbers with commas between", "1,2,3", text);
  if (ids.empty()) return usage(flag, "no token ids", "1,2,3", text);
  return ids;
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace hone
