#pragma once

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/text.h"

namespace hone::test {

inline Graph parse(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().where << ": " << graph.error().expected << ", not "
                  << graph.error().actual;
    return {};
  }
  return std::move(graph).value();
}

// A raw string without the line break it begins with.
inline std::string_view text(std::string_view raw) {
  return raw.starts_with('\n') ? raw.substr(1) : raw;
}

inline std::string replaced(std::string_view in, std::string_view from, std::string_view to) {
  std::string out(in);
  const std::size_t at = out.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the test's text has no '" << from << "'";
    return out;
  }
  return out.replace(at, from.size(), to);
}

}  // namespace hone::test
