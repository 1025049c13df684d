#include "apps/misuse.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"

namespace hone {
namespace {

Error misuse(std::string_view where, std::string message, std::string expected, std::string actual,
             std::string next_step) {
  return Error{ErrorCode::Usage,    Fault::User,       std::string(where),  std::move(message),
               std::move(expected), std::move(actual), std::move(next_step)};
}

// A beginning counts as near, and one letter is near to nothing.
std::string_view nearest_of(std::string_view name, const std::vector<std::string>& names) {
  if (name.size() < 3) return {};
  for (const std::string& candidate : names) {
    if (name.size() > 3 && candidate.starts_with(name)) return candidate;
  }
  std::vector<std::string_view> views;
  for (const std::string& candidate : names) {
    if (candidate.size() > 2) views.push_back(candidate);
  }
  return nearest_name(name, views);
}

bool is_flag(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '-';
}

Error unknown_flag(std::string_view command, const std::vector<std::string>& names,
                   std::string_view argument) {
  const std::string_view typed = argument.substr(0, argument.find('='));
  const std::string_view near = nearest_of(typed, names);
  return misuse(command, "no flag has this name", near.empty() ? "" : fmt::format("nearest: {}", near),
                std::string(typed), fmt::format("{} --help", command));
}

}  // namespace

std::optional<Error> prepare_verb(std::string_view program, const std::vector<std::string>& verbs,
                                  std::vector<std::string>& arguments) {
  const auto is_verb = [&](const std::string& name) { return std::ranges::find(verbs, name) != verbs.end(); };
  const std::string help = fmt::format("{} --help", program);
  const std::string list = fmt::format("{}", fmt::join(verbs, ", "));
  if (arguments.empty()) return misuse(program, "a verb is missing", list, {}, help);
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    if (arguments.empty() || is_flag(arguments[0])) {
      arguments = {"--help"};
      return {};
    }
    arguments.resize(1);
    if (is_verb(arguments[0])) arguments.emplace_back("--help");
  }
  if (arguments[0] == "--version" && is_verb("version")) arguments[0] = "version";
  const std::string& first = arguments[0];
  if (is_verb(first) || first == "-h" || first == "--help") return {};
  if (is_flag(first)) {
    if (!nearest_of(first, {"--help", "--version"}).empty()) {
      return unknown_flag(program, {"--help", "--version"}, first);
    }
    return misuse(program, "a verb is missing", list, first, help);
  }
  if (first.find_first_of("./") != std::string::npos) {
    return misuse(program, "a verb is missing before the path", list, first,
                  fmt::format("{} run {}", program, first));
  }
  const std::string_view near = nearest_of(first, verbs);
  return misuse(program, "no verb has this name",
                near.empty() ? list : fmt::format("nearest: {}; one of {}", near, list),
                first.empty() ? "''" : first, help);
}

std::optional<Error> check_dashes(std::string_view command, const KnownFlags& known,
                                  const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return {};
    if (!is_flag(argument) || argument[1] == '-') continue;
    const std::string longer = "-" + argument.substr(0, argument.find('='));
    if (longer.size() > 3 && std::ranges::find(known.names, longer) != known.names.end()) {
      return unknown_flag(command, known.names, argument);
    }
  }
  return {};
}

std::optional<Error> check_leftover(std::string_view command, const KnownFlags& known,
                                    const std::vector<std::string>& rest) {
  const auto flag = std::ranges::find_if(rest, is_flag);
  if (flag != rest.end()) return unknown_flag(command, known.names, *flag);
  if (rest.empty()) return {};
  const std::string help = fmt::format("{} --help", command);
  return misuse(
      command, rest.size() == 1 ? "this argument is one too many" : "these arguments are too many", {},
      fmt::format("{}", fmt::join(rest, " ")),
      known.takes_prompt ? fmt::format("-p \"{}\" for a prompt; {}", fmt::join(rest, " "), help) : help);
}

}  // namespace hone
