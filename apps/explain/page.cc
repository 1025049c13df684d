#include "apps/explain/page.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/explain/escape.h"
#include "apps/units.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kAttributeWidth = 120;

Json memory_map(const std::string& level, const Snapshot& snapshot) {
  Json lives = Json::array();
  for (const LifeRow& life : snapshot.lives) {
    lives.push_back({life.value, life.module, life.bytes, life.offset, life.first, life.last});
  }
  return {{"level", level},
          {"steps", snapshot.steps},
          {"bytes", snapshot.numbers.activation_bytes},
          {"lower_bound_bytes", snapshot.numbers.activation_lower_bound_bytes},
          {"lives", std::move(lives)}};
}

Json node_table(const Snapshot& snapshot) {
  Json rows = Json::array();
  for (const NodeRow& node : snapshot.nodes) {
    if (node.constant) continue;
    rows.push_back({node.step, node.value, node.op, node.module, node.type, node.kernel, node.bytes,
                    node.operations, node.memory});
  }
  return rows;
}

Json time_table(const std::vector<TimeRow>& times) {
  Json rows = Json::array();
  for (const TimeRow& row : times) rows.push_back({row.op, row.phase, row.launches, row.seconds, row.share});
  return rows;
}

// `text` with the one `mark` in it replaced.
std::string filled(std::string text, std::string_view mark, std::string_view with) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), with);
}

std::string names(const std::vector<NodeValue>& values) {
  std::vector<std::string_view> list;
  list.reserve(values.size());
  for (const NodeValue& value : values) list.push_back(value.port.empty() ? value.name : value.port);
  return fmt::format("{}", fmt::join(list, "\x1f"));
}

}  // namespace

int PageGraphs::intern_body(const std::string& body) {
  if (body.empty()) return -1;
  const auto [place, added] = known_bodies_.try_emplace(body, static_cast<int>(bodies_.size()));
  if (added) bodies_.push_back(body);
  return place->second;
}

int PageGraphs::intern_node(const NodeRow& node) {
  const int body = intern_body(node.body);
  const std::string key =
      fmt::format("{}\x1e{}\x1e{}\x1e{}\x1e{}\x1e{}\x1e{}\x1e{}\x1e{}", node.value, node.op, node.module,
                  node.type, node.attributes, names(node.inputs), body, node.kernel, node.bytes);
  const auto [place, added] = known_nodes_.try_emplace(key, static_cast<int>(nodes_.size()));
  if (!added) return place->second;
  Json inputs = Json::array();
  for (const NodeValue& input : node.inputs) inputs.push_back({input.name, input.type, input.port});
  Json outputs = Json::array();
  for (const NodeValue& output : node.outputs) outputs.push_back({output.name, output.type});
  nodes_.push_back({node.op, node.module, layer_of(node.module), clipped(node.attributes, kAttributeWidth),
                    std::move(inputs), std::move(outputs), body, node.kernel, node.bytes, node.operations,
                    node.step >= 0 ? 1 : 0});
  return place->second;
}

void PageGraphs::add(const std::string& pass, const Snapshot& snapshot) {
  if (passes_.empty()) {
    layers_ = layer_count(snapshot.nodes);
    if (snapshot.nodes.size() > most_nodes_ && layers_ > 0) {
      const auto per_layer =
          std::max<std::size_t>(1, snapshot.nodes.size() / static_cast<std::size_t>(layers_));
      layers_shown_ = static_cast<int>(std::max<std::size_t>(1, most_nodes_ / per_layer));
    }
  }
  Json list = Json::array();
  for (const NodeRow& node : snapshot.nodes) {
    if (node.constant || (layers_shown_ >= 0 && layer_of(node.module) >= layers_shown_)) continue;
    list.push_back(intern_node(node));
  }
  passes_.push_back({{"name", pass}, {"nodes", std::move(list)}});
}

nlohmann::ordered_json PageGraphs::take() {
  return {{"nodes", std::move(nodes_)},
          {"bodies", std::move(bodies_)},
          {"passes", std::move(passes_)},
          {"layers", layers_},
          {"layers_shown", layers_shown_ < 0 ? layers_ : layers_shown_}};
}

std::string explanation_page(const std::string& title, const Explanation& explanation, PageGraphs& graphs) {
  Json data = screen_json(explanation);
  data["title"] = title;
  data["model"] = explanation.model;
  data["level"] = fmt::format("O{}", static_cast<int>(explanation.level));
  data["graphs"] = graphs.take();
  data["maps"] = {memory_map("O1", explanation.eager),
                  memory_map(fmt::format("O{}", static_cast<int>(explanation.level)), explanation.final)};
  data["table"] = node_table(explanation.final);
  data["times"] = time_table(explanation.times);
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  // The data last: what it says is not looked through for marks.
  std::string page(kPageHtml);
  page = filled(std::move(page), "/*STYLE*/", kPageStyle);
  page = filled(std::move(page), "/*SCRIPT*/", kPageScript);
  page = filled(std::move(page), "<!--DATA-->", script_json(json));
  return filled(std::move(page), "<!--TITLE-->", html_text(title));
}

}  // namespace hone
