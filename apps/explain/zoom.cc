#include "apps/explain/zoom.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>

#include "apps/explain/escape.h"
#include "apps/units.h"
#include "base/nearest_name.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const NodeRow*>;

struct LayerNumbers {
  std::int64_t nodes = 0;
  std::int64_t launches = 0;
  std::int64_t bytes = 0;
};

Rows rows_of_layer(const Snapshot& snapshot, std::int64_t layer) {
  Rows rows;
  for (const NodeRow& node : snapshot.nodes) {
    if (!node.constant && layer_of(node.module) == layer) rows.push_back(&node);
  }
  return rows;
}

LayerNumbers count(const Rows& rows) {
  LayerNumbers out;
  for (const NodeRow* row : rows) {
    ++out.nodes;
    if (row->step >= 0) ++out.launches;
    out.bytes += row->bytes;
  }
  return out;
}

std::string level_name(Level level) {
  return fmt::format("O{}", static_cast<int>(level));
}

// step, op, output type, module without "layers.N."
std::string half_line(const NodeRow* row) {
  constexpr std::string_view kHalf = "{:>4} {:<18} {:<21} {:<13}";
  if (row == nullptr) return fmt::format(kHalf, "", "", "", "");
  const std::size_t dot = row->module.find('.', std::string("layers.").size());
  const std::string module = dot == std::string::npos ? "" : row->module.substr(dot + 1);
  return fmt::format(kHalf, row->step < 0 ? "-" : fmt::format("{}", row->step), clipped(row->op, 18),
                     clipped(row->type, 21), clipped(module, 13));
}

// Whether the value has been there since the graph was built.
bool built(const Explanation& explanation, const std::string& value) {
  int id = -1;
  const char* const end = value.data() + value.size();
  const auto [rest, failed] = std::from_chars(value.data() + 1, end, id);
  return failed == std::errc{} && rest == end && id < explanation.built_values;
}

// For each row of the right, the row of the left that it stands beside; in ascending order, -1 for none.
std::vector<int> alignment(const Explanation& explanation, const Rows& left, const Rows& right) {
  std::map<std::string, int> place;
  for (std::size_t i = 0; i < left.size(); ++i) place[left[i]->value] = static_cast<int>(i);
  std::vector<int> out(right.size(), -1);
  int last = -1;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto found = place.find(right[i]->value);
    if (found == place.end() || found->second <= last || !built(explanation, right[i]->value)) continue;
    last = out[i] = found->second;
  }
  return out;
}

std::string side_by_side(const Explanation& explanation, const Rows& left, const Rows& right) {
  const std::vector<int> beside = alignment(explanation, left, right);
  std::string out;
  const auto line = [&](const NodeRow* a, const NodeRow* b) {
    std::string text = half_line(a) + " | " + half_line(b);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  std::size_t l = 0;
  std::size_t r = 0;
  while (l < left.size() || r < right.size()) {
    // Rows of the right without a place stand in front of the next one that has one, in the gap before it.
    std::size_t next = r;
    while (next < right.size() && beside[next] < 0) ++next;
    const std::size_t place = next < right.size() ? static_cast<std::size_t>(beside[next]) : left.size();
    const std::size_t gap = std::max(place - l, next - r);
    for (std::size_t i = 0; i < gap; ++i) {
      const bool has_left = place - l > i;
      const bool has_right = gap - i <= next - r;
      line(has_left ? left[l + i] : nullptr, has_right ? right[next - (gap - i)] : nullptr);
    }
    l = place;
    r = next;
    if (next == right.size()) break;
    line(left[l++], right[r++]);
  }
  return out;
}

Json row_json(const NodeRow& node, const Snapshot& snapshot) {
  const auto values = [](const std::vector<NodeValue>& list) {
    Json out = Json::array();
    for (const NodeValue& value : list) {
      out.push_back(
          {{"value", value.name}, {"type", value.type}, {"from", value.producer}, {"name", value.port}});
    }
    return out;
  };
  Json out{{"value", node.value},
           {"op", node.op},
           {"module", node.module},
           {"type", node.type},
           {"attributes", node.attributes},
           {"inputs", values(node.inputs)},
           {"outputs", values(node.outputs)},
           {"step", node.step},
           {"kernel", node.kernel},
           {"bytes", node.bytes},
           {"operations", node.operations}};
  if (node.life >= 0) {
    const LifeRow& life = snapshot.lives[static_cast<std::size_t>(node.life)];
    out["memory"] = {
        {"bytes", life.bytes}, {"offset", life.offset}, {"first", life.first}, {"last", life.last}};
  }
  if (!node.body.empty()) out["body"] = node.body;
  return out;
}

std::string value_line(std::string_view what, const NodeValue& value, std::string_view from) {
  return fmt::format("  {:<11}{:<11}{:<28}{}\n", what, value.name, clipped(value.type, 27), from);
}

std::string node_detail(const NodeRow& node, const Snapshot& snapshot) {
  std::string out = fmt::format("{} = {}{}{}\n", node.value, node.op, node.module.empty() ? "" : " of ",
                                clean_text(node.module));
  for (const NodeValue& value : node.inputs) {
    const std::string from = value.port.empty()
                                 ? value.producer
                                 : fmt::format("{} {}", value.producer, clipped(clean_text(value.port), 60));
    out += value_line("reads", value, from);
  }
  for (const NodeValue& value : node.outputs) {
    std::string readers;
    for (const NodeRow& other : snapshot.nodes) {
      const bool reads = std::any_of(other.inputs.begin(), other.inputs.end(),
                                     [&](const NodeValue& input) { return input.name == value.name; });
      if (reads) readers += fmt::format("{}{} {}", readers.empty() ? "for " : ", ", other.op, other.value);
    }
    out += value_line("writes", value, readers);
  }
  if (!node.attributes.empty()) out += fmt::format("  attributes {}\n", clipped(node.attributes, 100));
  if (node.step < 0) {
    out += fmt::format("  kernel     none: a {} costs nothing\n", node.constant ? "constant" : "view");
  } else {
    out += fmt::format("  kernel     {}, step {} of {}\n", node.kernel, node.step, snapshot.steps);
    out += fmt::format("  cost       {} moved, {}\n", human_bytes(node.bytes),
                       human_operations(node.operations));
  }
  if (node.life >= 0) {
    const LifeRow& life = snapshot.lives[static_cast<std::size_t>(node.life)];
    out += fmt::format("  memory     {} at offset {} of {} activation bytes, steps {} to {}\n",
                       human_bytes(life.bytes), life.offset, snapshot.numbers.activation_bytes, life.first,
                       life.last);
  } else if (node.step >= 0) {
    out += "  memory     none of its own: it writes into what it reads\n";
  }
  if (!node.body.empty()) out += "  body       " + node.body;
  return out;
}

bool has_name(const NodeRow& node, const std::string& name) {
  const auto is_value = [&](const NodeValue& value) {
    return value.name == name || value.name == "%" + name;
  };
  return node.module == name || std::any_of(node.outputs.begin(), node.outputs.end(), is_value);
}

Error no_such_node(const Explanation& explanation, const std::string& name) {
  Error error{ErrorCode::Usage, Fault::User, "--node", "no node of the final graph has this name", {},
              "'" + name + "'", {}};
  error.expected = "a value as printed (%12), a module (layers.0.attn) or an input's name";
  const std::string value = name.starts_with('%') ? name : "%" + name;
  if (const auto gone = explanation.gone.find(value); gone != explanation.gone.end()) {
    const auto& [pass, pass_before] = gone->second;
    error.message += fmt::format("; pass {} took {} away", pass, value);
    error.next_step = pass_before.empty()
                          ? "see the graph before it: --level O0"
                          : fmt::format("see it before that: --node {} --stop-after {}", value, pass_before);
    return error;
  }
  std::vector<std::string_view> modules;
  modules.reserve(explanation.final.nodes.size());
  for (const NodeRow& node : explanation.final.nodes) modules.push_back(node.module);
  if (const std::string_view near = nearest_name(name, modules); !near.empty()) {
    error.next_step = fmt::format("did you mean '{}'?", near);
  }
  return error;
}

// The nodes of that name; of an input, those that read it.
Result<Rows> find_nodes(const Explanation& explanation, const std::string& name) {
  Rows found;
  for (const NodeRow& node : explanation.final.nodes) {
    if (has_name(node, name)) found.push_back(&node);
  }
  if (!found.empty()) return found;
  for (const NodeRow& node : explanation.final.nodes) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const NodeValue& value) {
      return !value.port.empty() && (value.port == name || value.name == name);
    });
    if (reads || node.module.starts_with(name + ".")) found.push_back(&node);
  }
  if (!found.empty()) return found;
  return no_such_node(explanation, name);
}

}  // namespace

Status check_layer(const Explanation& explanation, std::int64_t layer) {
  const int count = layer_count(explanation.final.nodes);
  if (layer >= 0 && layer < count) return {};
  return Error{ErrorCode::Usage,
               Fault::User,
               "--layer",
               "the model has no such layer",
               fmt::format("0 to {}", count - 1),
               fmt::format("{}", layer),
               {}};
}

Result<std::string> layer_text(const Explanation& explanation, std::int64_t layer) {
  HONE_TRY(check_layer(explanation, layer));
  const Rows left = rows_of_layer(explanation.eager, layer);
  const Rows right = rows_of_layer(explanation.final, layer);
  const LayerNumbers before = count(left);
  const LayerNumbers after = count(right);
  const StepSizes& sizes = explanation.sizes;
  std::string out = fmt::format(
      "launches {} ({}), bytes moved {} ({}), nodes {}\nlayer {} of {}, O1 -> {}, for batch {}, tokens {}, "
      "context {}\n\n",
      count_change(before.launches, after.launches), percent_change(before.launches, after.launches),
      bytes_change(before.bytes, after.bytes), percent_change(before.bytes, after.bytes),
      count_change(before.nodes, after.nodes), layer, layer_count(explanation.final.nodes),
      level_name(explanation.level), sizes.batch, sizes.tokens, sizes.context);
  const auto title = [](const std::string& level) {
    return fmt::format("{:>4} {:<18} {:<21} {:<13}", "step", level + ": op", "output", "module");
  };
  out += title("O1") + " | " + title(level_name(explanation.level));
  out.erase(out.find_last_not_of(' ') + 1);
  out += "\n" + side_by_side(explanation, left, right);
  return out;
}

Result<Json> layer_json(const Explanation& explanation, std::int64_t layer) {
  HONE_TRY(check_layer(explanation, layer));
  const auto side = [&](const Snapshot& snapshot, Level level) {
    const Rows rows = rows_of_layer(snapshot, layer);
    const LayerNumbers numbers = count(rows);
    Json nodes = Json::array();
    for (const NodeRow* row : rows) nodes.push_back(row_json(*row, snapshot));
    return Json{{"level", level_name(level)},
                {"launches", numbers.launches},
                {"bytes", numbers.bytes},
                {"nodes", std::move(nodes)}};
  };
  return Json{{"number", layer},
              {"before", side(explanation.eager, Level::O1)},
              {"after", side(explanation.final, explanation.level)}};
}

Result<std::string> node_text(const Explanation& explanation, const std::string& name) {
  const Rows rows = HONE_TRY(find_nodes(explanation, name));
  std::string out;
  for (const NodeRow* row : rows) {
    if (!out.empty()) out += "\n";
    out += node_detail(*row, explanation.final);
  }
  return out;
}

Result<Json> node_json(const Explanation& explanation, const std::string& name) {
  const Rows rows = HONE_TRY(find_nodes(explanation, name));
  Json out = Json::array();
  for (const NodeRow* row : rows) out.push_back(row_json(*row, explanation.final));
  return out;
}

}  // namespace hone
