// Graphs into files: text IR, DOT, or a drawing that Graphviz makes of the DOT.
#pragma once

#include <string>
#include <vector>

#include "apps/explain/snapshot.h"
#include "base/result.h"

namespace hone {

// Error (BadInput): the file cannot be written.
Status write_text(const std::string& path, std::string_view text);

// Error (Usage) unless `path` ends in .ir, .dot or .svg.
Status check_drawing_name(const std::string& path);

// Errors: as above; (BadInput) an SVG is asked for, and Graphviz is not installed or does not take the graph.
Status draw_graph(const std::string& path, const Graph& graph, const std::vector<NodeRow>& rows);

// What the program `dot` of $PATH makes of a DOT text.
Result<std::string> graphviz_svg(const std::string& dot);

}  // namespace hone
