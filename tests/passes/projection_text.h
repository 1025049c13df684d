// What the tests of the passes that make projections share.
#pragma once

#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pass_test.h"
#include "tensor/projection.h"

namespace hone::test {

// The printed graph without the bodies of its nodes.
inline std::string without_bodies(std::string_view printed) {
  std::string out;
  while (!printed.empty()) {
    const std::size_t end = std::min(printed.find('\n'), printed.size() - 1);
    const std::string_view line = printed.substr(0, end + 1);
    printed.remove_prefix(end + 1);
    if (line.starts_with("   ") || line == "  }\n") continue;
    const std::size_t body = line.find(" body \"");
    out += line.substr(0, body);
    if (body != std::string_view::npos) out += '\n';
  }
  return out;
}

// Of one node a line: what `printed` has behind its inputs, weights and states, without bodies and modules.
inline std::string nodes_of(std::string_view printed) {
  std::string out;
  std::string rest = without_bodies(printed);
  while (!rest.empty()) {
    const std::size_t end =
        std::min(rest.find('\n'), rest.size() - 1) + 1;  // an error's text has no line break
    std::string line = rest.substr(0, end);
    rest.erase(0, end);
    if (!line.starts_with("  %")) continue;
    if (const std::size_t module = line.find(" @\""); module != std::string::npos)
      line = line.substr(0, module) + '\n';
    out += line.substr(2);
  }
  return out;
}

// A body of one node in place of what the pass that makes the node would give it: passes look at the op
// alone.
inline std::string body_of(std::string_view op, std::string_view symbols,
                           const std::vector<std::string>& input_types, std::string_view result) {
  std::string out = fmt::format(" body \"{}\" symbols({}) {{\n", op, symbols);
  for (std::size_t i = 0; i < input_types.size(); ++i)
    out += fmt::format("    input %{} \"{}\": {}\n", i, i, input_types[i]);
  return out + fmt::format("    %{}: {}\n    output \"0\" %{}\n  }}", input_types.size(), result,
                           input_types.size());
}

// The attribute of these sections as it is printed.
inline std::string sections(const std::vector<ProjectionSection>& sections) {
  std::vector<std::int64_t> fields(sections.size() * kProjectionFields);
  std::memcpy(fields.data(), sections.data(), fields.size() * sizeof(std::int64_t));
  return fmt::format("sections = ints[{}]", fmt::join(fields, ", "));
}

inline std::string unchanged(std::string_view in) {
  return print_graph(parse(in));
}

}  // namespace hone::test
