// A pass as plugin: attention's scale moves from the scores to the queries.
//
//   %s: f32[B,K,G,T,C] = matmul(%q, %k) {transpose_b = 1}      %s_queries: f32[B,K,G,T,E] = mul(%q, %c)
//   %t: f32[B,K,G,T,C] = mul(%s, %c)                     ->    %t: f32[B,K,G,T,C] = matmul(%s_queries, %k)
//   {..}
//
// The scores are as long as the context and the queries are not, so without fused attention fewer bytes move:
//
//   hone explain MODEL --level O1 --plugin scale_queries_pass.so
//   hone verify MODEL --plugin scale_queries_pass.so
//   hone explain MODEL --plugin scale_queries_pass.so --passes=-plugin:scale-queries       the same without
//   it
//
// It rewrites lines of text. A plugin that needs more than that parses them: the grammar is in
// src/graph/text.h.
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "hone/hone_pass.h"

namespace {

struct Line {
  std::string text;
  std::string value, type, op, operands, rest;  // "%7", "f32[2]", "mul", "%5, %6", what follows
};

std::vector<Line> lines_of(const std::string& graph) {
  // Lines of the graph itself stand two blanks in; those of bodies stand further in and are left alone.
  static const std::regex node(R"(^  (%\w+(?:\.\w+)*): (\S+) = (\w+)\(([^)]*)\)(.*)$)");
  std::vector<Line> lines;
  std::istringstream text(graph);
  for (std::string line; std::getline(text, line);) {
    Line& made = lines.emplace_back();
    made.text = line;
    std::smatch part;
    if (!std::regex_match(line, part, node)) continue;
    made.value = part[1];
    made.type = part[2];
    made.op = part[3];
    made.operands = part[4];
    made.rest = part[5];
  }
  return lines;
}

std::pair<std::string, std::string> both(const std::string& operands) {
  const std::size_t comma = operands.find(", ");
  if (comma == std::string::npos) return {operands, ""};
  return {operands.substr(0, comma), operands.substr(comma + 2)};
}

// How often each value is read, outputs included.
std::map<std::string, int> readers(const std::vector<Line>& lines) {
  static const std::regex name(R"(%\w+(?:\.\w+)*)");
  std::map<std::string, int> count;
  for (const Line& line : lines) {
    for (std::sregex_iterator at(line.text.begin(), line.text.end(), name), end; at != end; ++at)
      ++count[at->str()];
    if (!line.value.empty()) --count[line.value];
  }
  return count;
}

int scale_queries(const char* graph, hone_answer answer, void* hone) {
  std::vector<Line> lines = lines_of(graph);
  const std::map<std::string, int> reads = readers(lines);
  std::map<std::string, Line*> producer;
  for (Line& line : lines) {
    if (!line.value.empty()) producer[line.value] = &line;
  }
  for (Line& line : lines) {
    if (line.op != "mul") continue;
    const auto [scores, factor] = both(line.operands);
    Line* product = producer[scores];
    const Line* constant = producer[factor];
    const bool fits = product != nullptr && product->op == "matmul" && reads.at(scores) == 1 &&
                      constant != nullptr && constant->op == "constant" && constant->type == "f32[]";
    if (!fits) continue;
    const auto [queries, keys] = both(product->operands);
    if (producer[queries] == nullptr || producer[queries]->type.rfind("f32", 0) != 0) continue;
    const std::string scaled = scores + "_queries";
    const std::string where = line.rest;
    line.text = "  " + scaled + ": " + producer[queries]->type + " = mul(" + queries + ", " + factor + ")" +
                where + "\n  " + line.value + ": " + line.type + " = matmul(" + scaled + ", " + keys + ")" +
                product->rest;
    product->text.clear();
  }
  std::string out;
  for (const Line& line : lines) {
    if (!line.text.empty()) out += line.text + "\n";
  }
  answer(hone, out.c_str());
  return 0;
}

const hone_pass kPass{HONE_PASS_ABI,
                      "scale-queries",
                      "reorders",
                      "2 * 2^-24 of a score",
                      "before fuse-softmax",
                      1,
                      "before fuse-attention, which finds the scale on the queries as well",
                      scale_queries};

}  // namespace

const hone_pass* hone_plugin_pass(int index) {
  return index == 0 ? &kPass : nullptr;
}
