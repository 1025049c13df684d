// The explanation as one HTML page that needs nothing else: chain, graph after each pass, memory map, nodes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/explain/screen.h"

namespace hone {

// apps/explain/page/, put into the program by cmake/embed_text.cmake.
extern const std::string_view kPageHtml;
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

// Collects the graph after each pass. Nodes that a pass leaves as they are, are kept once.
class PageGraphs {
 public:
  // A model of more nodes shows its first layers only.
  explicit PageGraphs(std::size_t most_nodes = 12'000) : most_nodes_(most_nodes) {}

  // The next graph of the chain; `pass` is empty for the graph as it was built.
  void add(const std::string& pass, const Snapshot& snapshot);
  // {"nodes": [..], "bodies": [..], "passes": [{"name", "nodes": [index into nodes]}], "layers"}
  nlohmann::ordered_json take();

 private:
  int intern_node(const NodeRow& node);
  int intern_body(const std::string& body);

  std::size_t most_nodes_;
  int layers_shown_ = -1;  // -1: all
  int layers_ = 0;
  std::unordered_map<std::string, int> known_nodes_;
  std::unordered_map<std::string, int> known_bodies_;
  nlohmann::ordered_json nodes_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json bodies_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json passes_ = nlohmann::ordered_json::array();
};

// `title`: what the page is of, for instance the name of the file.
std::string explanation_page(const std::string& title, const Explanation& explanation, PageGraphs& graphs);

}  // namespace hone
