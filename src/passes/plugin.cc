#include "passes/plugin.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <fmt/format.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "hone/hone_pass.h"

namespace hone {
namespace {

// The child's answer: one of these letters, then text.
constexpr char kAnswer = 'a';
constexpr char kRefusal = 'r';

Error plugin_error(const std::string& where, std::string message, std::string expected, std::string actual,
                   std::string next_step) {
  return Error{ErrorCode::BadInput, Fault::File,         where, std::move(message), std::move(expected),
               std::move(actual),   std::move(next_step)};
}

constexpr std::string_view kHeader = "include/hone/hone_pass.h says what a plugin has to have";

int refuse(int fd, std::string_view text) {
  write_all(fd, kRefusal + std::string(text));
  return EXIT_SUCCESS;
}

using Entry = const hone_pass* (*)(int);

// In the child: opens the library and hands its function on.
int with_entry(int fd, const std::string& file, const std::function<int(Entry)>& work) {
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return refuse(fd, dlerror());
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "hone_plugin_pass"));
  if (entry == nullptr) return refuse(fd, "the library has no function hone_plugin_pass");
  try {
    return work(entry);
  } catch (const std::exception& thrown) {
    return refuse(fd, fmt::format("an exception left it: {}", thrown.what()));
  } catch (...) {
    return refuse(fd, "an exception left it");
  }
}

// The pass's fields, each on a line: what a parent can read without trusting a pointer.
std::string fields_of(const hone_pass& pass) {
  std::string out = fmt::format("{}\n", pass.abi);
  if (pass.abi != HONE_PASS_ABI) return out + "\n\n\n\n\n\n";
  for (const char* text : {pass.name, pass.contract, pass.bound, pass.place, pass.why}) {
    std::string line = text == nullptr ? "" : text;
    std::replace(line.begin(), line.end(), '\n', ' ');
    out += line + "\n";
  }
  return out + fmt::format("{}\n", pass.run == nullptr ? -1 : pass.from_level);
}

// The answer of a child that ended well, or the plugin's fault.
Result<std::string> answer_of(const ChildEnd& end, const std::string& where, const ChildLimits& limits,
                              std::string_view next_step) {
  if (!end.good() || end.output.empty()) {
    return plugin_error(
        where, end.timed_out || end.too_large ? "the plugin's pass was stopped" : "the plugin crashed",
        "an answer", end.good() ? "none" : end.how(limits), std::string(next_step));
  }
  if (end.output[0] == kAnswer) return end.output.substr(1);
  return plugin_error(where, "the plugin cannot do it", "an answer", end.output.substr(1),
                      std::string(next_step));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool valid_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

struct ContractName {
  std::string_view text;
  ContractKind kind;
};
constexpr std::array kContractNames{
    ContractName{"same bits", ContractKind::SameBits},
    ContractName{"fewer roundings", ContractKind::FewerRoundings},
    ContractName{"reorders", ContractKind::Reorders},
    ContractName{"rounds to type", ContractKind::RoundsToType},
};

// From the lines of fields_of.
Result<PluginPass> read_pass(const std::string& file, int index, std::span<const std::string> fields) {
  const std::string where = fmt::format("{}, pass {}", file, index);
  const auto wrong = [&](std::string message, std::string expected, std::string actual) {
    return plugin_error(where, std::move(message), std::move(expected), std::move(actual),
                        std::string(kHeader));
  };
  if (fields[0] != std::to_string(HONE_PASS_ABI)) {
    return wrong("the plugin was built for another form of hone_pass.h", fmt::format("abi {}", HONE_PASS_ABI),
                 "abi " + fields[0]);
  }
  PluginPass pass;
  pass.file = file;
  pass.index = index;
  if (!valid_name(fields[1]))
    return wrong("a pass has a name", "lower case letters, digits and '-'", "'" + fields[1] + "'");
  pass.name = std::string(kPluginPrefix) + fields[1];
  const auto* const named = std::find_if(kContractNames.begin(), kContractNames.end(),
                                         [&](const ContractName& row) { return row.text == fields[2]; });
  if (named == kContractNames.end()) {
    return wrong(fmt::format("{} has no such contract", pass.name),
                 "same bits, fewer roundings, reorders or rounds to type", "'" + fields[2] + "'");
  }
  pass.kind = named->kind;
  pass.bound = fields[3];
  pass.after = fields[4].starts_with("after ");
  if (!pass.after && !fields[4].starts_with("before ")) {
    return wrong(fmt::format("{} says no place", pass.name), "'before PASS' or 'after PASS'",
                 "'" + fields[4] + "'");
  }
  pass.neighbour = fields[4].substr(fields[4].find(' ') + 1);
  pass.why = fields[5];
  if (fields[6].size() != 1 || fields[6] > "3" || fields[6] < "0") {
    return wrong(fmt::format("{} has no function or no level", pass.name), "`run`, and `from_level` 0 to 3",
                 fields[6] == "-1" ? "run = NULL" : "level " + fields[6]);
  }
  pass.from_level = static_cast<Level>(fields[6][0] - '0');
  return pass;
}

constexpr int kMostPasses = 1000;
constexpr std::size_t kFields = 7;

// What a graph shows to the outside, as text.
std::string interface_of(const Graph& graph) {
  std::string out;
  for (const GraphInput& input : graph.inputs) {
    out += fmt::format("input {} {} {}\n", static_cast<int>(input.kind), input.name,
                       type_to_string(graph.type(input.value)));
  }
  for (const GraphOutput& output : graph.outputs) {
    out += fmt::format("output {} {}\n", output.name, type_to_string(graph.type(output.value)));
  }
  for (const GraphOutput& update : graph.state_updates) out += fmt::format("update {}\n", update.name);
  return out;
}

// The first line that only one of two texts has at its place.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = split(a, '\n');
  const std::vector<std::string> right = split(b, '\n');
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string x = i < left.size() ? left[i] : "nothing";
    const std::string y = i < right.size() ? right[i] : "nothing";
    if (x != y) return {x, y};
  }
  return {};
}

std::string place_of(const PluginPass& pass) {
  return fmt::format("pass {} of {}", pass.name, pass.file);
}

std::string how_to_go_on(const PluginPass& pass) {
  return fmt::format("correct the plugin, or switch the pass off with --passes=-{}", pass.name);
}

// In the child: the pass's answer, as a letter and text.
int answer_in_child(int fd, const PluginPass& pass, const std::string& graph) {
  return with_entry(fd, pass.file, [&](Entry entry) {
    const hone_pass* row = entry(pass.index);
    std::string text;
    const auto take = [](void* to, const char* answer) { *static_cast<std::string*>(to) = answer; };
    const int failed = row->run(graph.c_str(), take, &text);
    if (failed != 0) return refuse(fd, text.empty() ? fmt::format("it returned {}", failed) : text);
    return write_all(fd, kAnswer + text) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}

}  // namespace

Result<std::vector<std::shared_ptr<const PluginPass>>> load_plugin(const std::string& file,
                                                                   const ChildLimits& limits) {
  const auto list = [&](int fd) {
    return with_entry(fd, file, [&](Entry entry) {
      std::string text(1, kAnswer);
      for (int index = 0; index < kMostPasses; ++index) {
        const hone_pass* pass = entry(index);
        if (pass == nullptr) break;
        text += fields_of(*pass);
      }
      return write_all(fd, text) ? EXIT_SUCCESS : EXIT_FAILURE;
    });
  };
  const ChildEnd end = HONE_TRY(run_in_child(list, limits));
  const std::string answer = HONE_TRY(answer_of(end, "--plugin " + file, limits, kHeader));
  const std::vector<std::string> lines = split(answer, '\n');
  std::vector<std::shared_ptr<const PluginPass>> passes;
  for (std::size_t at = 0; at + kFields <= lines.size(); at += kFields) {
    PluginPass pass =
        HONE_TRY(read_pass(file, static_cast<int>(at / kFields), std::span(lines).subspan(at, kFields)));
    pass.limits = limits;
    passes.push_back(std::make_shared<const PluginPass>(std::move(pass)));
  }
  if (!passes.empty()) return passes;
  return plugin_error("--plugin " + file, "the plugin has no pass", "a pass of number 0", "none",
                      std::string(kHeader));
}

Status run_plugin_pass(Graph& graph, const PluginPass& pass) {
  const std::string text = print_graph(graph);
  const std::string where = place_of(pass);
  const ChildEnd end =
      HONE_TRY(run_in_child([&](int fd) { return answer_in_child(fd, pass, text); }, pass.limits));
  const std::string answer = HONE_TRY(answer_of(end, where, pass.limits, how_to_go_on(pass)));
  Result<Graph> parsed = parse_graph(answer);
  if (!parsed.ok()) {
    const Error& error = parsed.error();
    return plugin_error(fmt::format("{}: {}", where, error.where), error.message, error.expected,
                        error.actual, how_to_go_on(pass));
  }
  const Status checked = verify(*parsed, pass.name);
  if (!checked.ok()) {
    const Error& error = checked.error();
    return plugin_error(fmt::format("{}: {}", where, error.where),
                        "the graph breaks a rule of the IR: " + error.message, error.expected, error.actual,
                        how_to_go_on(pass));
  }
  const auto [before, after] = first_difference(interface_of(graph), interface_of(*parsed));
  if (before != after) {
    return plugin_error(where, "a pass keeps the inputs, outputs and states of the graph", before, after,
                        how_to_go_on(pass));
  }
  // A number that a value had before is not given a second time.
  if (parsed->values.size() < graph.values.size()) parsed->values.resize(graph.values.size());
  graph = std::move(*parsed);
  return {};
}

}  // namespace hone
