// hone version: which program this is.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "apps/verb.h"
#include "base/isa.h"

namespace hone {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = __VERSION__;
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif

Status show_version(bool json) {
  std::vector<std::string_view> levels;
  for (const Isa isa : kIsaLevels) levels.push_back(isa_name(isa));
  if (json) {
    print_json({{"version", HONE_VERSION}, {"compiler", kCompiler}, {"isa_levels", levels}});
  } else {
    print_answer(fmt::format("hone {}\ncompiled by {}; instruction sets {}\n", HONE_VERSION, kCompiler,
                             fmt::join(levels, ", ")));
  }
  return {};
}

}  // namespace

Verb add_version(const CommandLine& line) {
  const Command verb =
      line.add_verb("version", "version, compiler and instruction sets; --version is the same");
  auto json = std::make_shared<bool>(false);
  verb.flag("--json", *json, "answer as one JSON document");
  return {verb, json.get(), [json] { return show_version(*json); }};
}

}  // namespace hone
