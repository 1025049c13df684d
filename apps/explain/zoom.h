// The graph from near: one layer before and after, one node with all that is known of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/explain/screen.h"

namespace hone {

// A layer at O1 and at the level asked for, side by side: a node of the right stands beside the one of the
// left that wrote the same value. Error (Usage): no such layer.
Result<std::string> layer_text(const Explanation& explanation, std::int64_t layer);
// {"number", "before": {"level", "launches", "bytes", "nodes": [..]}, "after": {..}}
Result<nlohmann::ordered_json> layer_json(const Explanation& explanation, std::int64_t layer);

// `name`: a value as printed ("%12"), a module, or an input of the graph by its own name. Error (Usage):
// nothing has this name.
Result<std::string> node_text(const Explanation& explanation, const std::string& name);
Result<nlohmann::ordered_json> node_json(const Explanation& explanation, const std::string& name);

// Error (Usage) unless the final graph has the layer.
Status check_layer(const Explanation& explanation, std::int64_t layer);

}  // namespace hone
