// Passes are tested text in, text out.
#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

#include "graph/graph.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "passes/pipeline.h"

namespace hone::test {

inline Graph parse(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().where << ": " << graph.error().expected << ", not "
                  << graph.error().actual;
    return {};
  }
  const Status status = verify(*graph, "reading the test's text");
  if (!status.ok()) {
    const Error& error = status.error();
    ADD_FAILURE() << error.where << ": " << error.message << "; " << error.expected << ", not "
                  << error.actual;
  }
  return std::move(graph).value();
}

// The text of the graph after one pass, which must verify, and the pass's rules that fired: "add-nothing 2,
// ..".
inline std::pair<std::string, std::string> after_and_fired(std::string_view pass, std::string_view text,
                                                           const PassContext& context = {}) {
  Graph graph = parse(text);
  const Result<const PassRow*> row = find_pass(pass);
  if (!row.ok()) return {row.error().message, ""};
  std::string fired;
  PipelineOptions options;
  options.verify = true;
  options.observe = [&](const PassReport& report, const Graph&) -> Status {
    fired = rules_to_string(report.rules);
    return {};
  };
  const Status status = run_pass(graph, **row, options, context);
  return {status.ok() ? print_graph(graph) : status.error().where + ": " + status.error().message, fired};
}

// The text of the graph after one pass, which must verify.
inline std::string after(std::string_view pass, Graph graph, const PassContext& context = {}) {
  const Result<const PassRow*> row = find_pass(pass);
  if (!row.ok()) return row.error().message;
  PipelineOptions options;
  options.verify = true;
  const Status status = run_pass(graph, **row, options, context);
  if (!status.ok()) return status.error().where + ": " + status.error().message;
  return print_graph(graph);
}

inline std::string after(std::string_view pass, std::string_view text, const PassContext& context = {}) {
  return after(pass, parse(text), context);
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

inline std::int64_t count_op(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op == op; });
}

}  // namespace hone::test
