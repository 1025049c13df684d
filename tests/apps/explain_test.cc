// What `hone explain` draws: DOT, escapes of foreign names, the page, the groups of nodes that cost most.
#include <gtest/gtest.h>

#include "apps/explain/dot.h"
#include "apps/explain/draw.h"
#include "apps/explain/escape.h"
#include "apps/explain/page.h"
#include "apps/units.h"
#include "graph/text.h"

namespace hone {
namespace {

constexpr std::string_view kHostile = "</script><script>alert(1)</script>";

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? *graph : Graph{};
}

// A fused node in each of two layers; the second reads the first.
Graph two_layers(std::string_view weight = "w") {
  constexpr std::string_view kBody = R"( body "relu" symbols(T) {
    input %0 "0": f32[T,8]
    %1: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.0]}
    %2: f32[T,8] = max(%0, %1)
    output "0" %2
  })";
  std::string text = "graph \"g\" symbols(T) {\n  input %0 \"x\": f32[T,8]\n";
  text += "  weight %1 \"" + std::string(weight) + "\": f32[8]\n";
  text += "  %2: f32[T,8] = mul(%0, %1) @\"layers.0.attn\"\n";
  text += "  %3: f32[T,8] = fused_elementwise(%2) @\"layers.0\"" + std::string(kBody) + "\n";
  text += "  %4: f32[T,8] = mul(%3, %1) @\"layers.1.attn\"\n";
  text += "  %5: f32[T,8] = fused_elementwise(%4) @\"layers.1\"" + std::string(kBody) + "\n";
  return parsed(text + "  output \"y\" %5\n}\n");
}

constexpr StepSizes kSizes{1, 16, 16};

Snapshot snapshot_of(const Graph& graph) {
  Result<Snapshot> made = take_snapshot(graph, {Isa::Portable, 1}, Level::O3, kSizes);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? *made : Snapshot{};
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Escape, CleanTextKeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(clean_text("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82"), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82");
  const std::string bad = "\xEF\xBF\xBD";
  // A control character of one byte and one of two, half a character, a surrogate, an overlong '/', beyond
  // U+10FFFF.
  EXPECT_EQ(clean_text("\x1b"), bad);
  EXPECT_EQ(clean_text("\xC2\x9B"), bad);
  EXPECT_EQ(clean_text("\xE2\x82"), bad + bad);
  EXPECT_EQ(clean_text("\xED\xA0\x80"), bad + bad + bad);
  EXPECT_EQ(clean_text("\xC0\xAF"), bad + bad);
  EXPECT_EQ(clean_text("\xF4\x90\x80\x80"), bad + bad + bad + bad);
}

TEST(Escape, HtmlScriptAndDot) {
  EXPECT_EQ(html_text("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  EXPECT_EQ(script_json("\"</script>\""), "\"\\u003c/script>\"");
  EXPECT_EQ(dot_text("a\"b\\N&lt;\nc"), "a\\\"b\\\\N&amp;lt;\\nc");
  EXPECT_EQ(dot_text("a\\\nb\n", "\\l"), "a\\\\\\lb\\l");
}

TEST(Escape, ClippedCountsCharacters) {
  EXPECT_EQ(clipped("12345", 5), "12345");
  EXPECT_EQ(clipped("123456", 5), "123..");
  EXPECT_EQ(clipped("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3), "\xC3\xA9..");
}

TEST(Units, ChangesReadShort) {
  EXPECT_EQ(bytes_change(2048, 1024), "2.0 -> 1.0 KiB");
  EXPECT_EQ(bytes_change(2 << 20, 1024), "2.0 MiB -> 1.0 KiB");
  EXPECT_EQ(bytes_change(1024, 1025), "1.0 KiB");
  EXPECT_EQ(count_change(3, 3), "3");
  EXPECT_EQ(percent_change(200, 50), "-75 %");
  EXPECT_EQ(percent_change(0, 50), "-");
  EXPECT_EQ(human_operations(999), "999 OP");
  EXPECT_EQ(human_operations(2'500'000), "2.5 MOP");
}

TEST(Snapshot, NodesHaveKernelCostAndPlace) {
  const Snapshot snapshot = snapshot_of(two_layers());
  ASSERT_EQ(snapshot.nodes.size(), 4U);
  const NodeRow& mul = snapshot.nodes[0];
  EXPECT_EQ(mul.step, 0);
  EXPECT_EQ(mul.bytes, 16 * 8 * 4 * 2 + 8 * 4);
  EXPECT_EQ(mul.operations, 16 * 8);
  EXPECT_EQ(mul.memory, 16 * 8 * 4);
  EXPECT_FALSE(mul.kernel.empty());
  EXPECT_EQ(mul.inputs[1].port, "w");
  EXPECT_EQ(mul.inputs[1].producer, "weight");
  EXPECT_EQ(snapshot.nodes[1].inputs[0].producer, "mul");
  const LifeRow& life = snapshot.lives[static_cast<std::size_t>(mul.life)];
  EXPECT_EQ(life.value, "%2");
  EXPECT_EQ(life.last, 1);
  std::int64_t bytes = 0;
  for (const NodeRow& node : snapshot.nodes) bytes += node.bytes;
  EXPECT_EQ(bytes, snapshot.numbers.bytes);
}

TEST(Snapshot, LayerOfAModule) {
  EXPECT_EQ(layer_of("layers.12"), 12);
  EXPECT_EQ(layer_of("layers.3.attn.q_proj"), 3);
  EXPECT_EQ(layer_of("layers.x"), -1);
  EXPECT_EQ(layer_of("layers.3x"), -1);
  EXPECT_EQ(layer_of("layers.-1"), -1);
  EXPECT_EQ(layer_of("lm_head"), -1);
}

TEST(Snapshot, ALayerIsAGraphOfItsOwn) {
  const Graph layer = layer_graph(two_layers(), 1);
  EXPECT_EQ(layer.nodes.size(), 2U);
  const Graph read_back = parsed(print_graph(layer));
  EXPECT_EQ(print_graph(read_back), print_graph(layer));
  ASSERT_EQ(layer.outputs.size(), 1U);
  EXPECT_EQ(layer.value_name(layer.outputs[0].value), "%5");
  ASSERT_NE(layer.find_input("%3"), nullptr);
  EXPECT_EQ(layer.find_input("w")->kind, InputKind::Weight);
}

TEST(Dearest, NodesOfAllLayersAreOneGroup) {
  const Snapshot snapshot = snapshot_of(two_layers());
  const std::vector<CostGroup> groups = dearest_nodes(snapshot, CostKind::Bytes, 5);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].op, "mul");
  EXPECT_EQ(groups[0].module, "layers.*.attn");
  EXPECT_EQ(groups[0].count, 2);
  EXPECT_EQ(groups[0].cost, 2 * snapshot.nodes[0].bytes);
  const std::vector<CostGroup> memory = dearest_nodes(snapshot, CostKind::Memory, 1);
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory[0].cost, 16 * 8 * 4);
}

TEST(Dot, BodiesAreBoxesAndEdgesHaveTypes) {
  const Graph graph = two_layers();
  const std::string dot = graph_dot(graph, snapshot_of(graph).nodes);
  EXPECT_EQ(occurrences(dot, "subgraph cluster_"), 2U);
  EXPECT_NE(dot.find("max  %2"), std::string::npos);
  EXPECT_NE(dot.find("[label=\"f32[T,8]\"]"), std::string::npos);
  EXPECT_NE(dot.find("step 0: "), std::string::npos);
  EXPECT_NE(dot.find("1.0 KiB, 128 OP"), std::string::npos);
  EXPECT_NE(dot.find("layers.0.attn"), std::string::npos);
}

TEST(Dot, HostileNamesStayText) {
  // In text IR a quote and a backslash are escaped.
  const Graph graph = two_layers("\\\"]; bad [label=\\\"\\\\N&amp;<b>");
  const std::string dot = graph_dot(graph, {});
  EXPECT_NE(dot.find(R"(label="\"]; bad [label=\"\\N&amp;amp;<b>)"), std::string::npos) << dot;
  const Result<std::string> svg = graphviz_svg(dot);
  ASSERT_TRUE(svg.ok()) << svg.error().actual;
  EXPECT_NE(svg->find("]; bad [label=&quot;\\N&amp;amp;&lt;b&gt;"), std::string::npos) << *svg;
  EXPECT_EQ(svg->find("<title>bad"), std::string::npos);
}

TEST(Dot, ALargeGraphHasNoBodies) {
  Graph graph = two_layers();
  EXPECT_TRUE(draws_bodies(graph));
  const Node last = graph.nodes.back();
  for (int i = 0; i < 400; ++i) {
    Node more = last;
    more.inputs = {graph.nodes.back().outputs[0]};
    more.outputs = {graph.add_value(graph.type(last.outputs[0]))};
    graph.nodes.push_back(std::move(more));
  }
  EXPECT_FALSE(draws_bodies(graph));
  EXPECT_EQ(graph_dot(graph, {}).find("subgraph"), std::string::npos);
}

TEST(Draw, ANameSaysWhatToWrite) {
  for (const char* name : {"a.svg", "b/a.dot", "a.b.ir"}) EXPECT_TRUE(check_drawing_name(name).ok()) << name;
  for (const char* name : {"a", "a.png", "b.svg/a", ".svg/", "a.svg "}) {
    EXPECT_FALSE(check_drawing_name(name).ok()) << name;
  }
}

TEST(Page, NothingOfAModelIsMarkup) {
  const Graph graph = two_layers(kHostile);
  Explanation explanation;
  explanation.sizes = kSizes;
  explanation.model = kHostile;
  explanation.eager = explanation.final = snapshot_of(graph);
  PageGraphs graphs;
  graphs.add("", explanation.final);
  const std::string page = explanation_page(std::string(kHostile), explanation, graphs);
  EXPECT_EQ(page.find(kHostile), std::string::npos);
  // The data's element and the script's: no other ends.
  EXPECT_EQ(occurrences(page, "</script>"), 2U);
  EXPECT_EQ(occurrences(page, "<script"), 2U);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
  EXPECT_NE(page.find("&lt;/script&gt;"), std::string::npos);
  for (const char* mark : {"/*STYLE*/", "/*SCRIPT*/", "<!--DATA-->", "<!--TITLE-->", "http://", "https://"}) {
    const std::string_view w3 = "http://www.w3.org/2000/svg";
    const std::size_t allowed = std::string_view(mark) == "http://" ? occurrences(page, w3) : 0;
    EXPECT_EQ(occurrences(page, mark), allowed) << mark;
  }
}

TEST(Page, ALargeModelShowsItsFirstLayers) {
  const Snapshot snapshot = snapshot_of(two_layers());
  PageGraphs graphs(3);
  graphs.add("", snapshot);
  const nlohmann::ordered_json made = graphs.take();
  EXPECT_EQ(made["layers"], 2);
  EXPECT_EQ(made["layers_shown"], 1);
  EXPECT_EQ(made["passes"][0]["nodes"].size(), 2U);
}

TEST(Page, ANodeThatStaysIsKeptOnce) {
  const Snapshot snapshot = snapshot_of(two_layers());
  PageGraphs graphs;
  graphs.add("", snapshot);
  graphs.add("pass", snapshot);
  const nlohmann::ordered_json made = graphs.take();
  EXPECT_EQ(made["nodes"].size(), 4U);
  EXPECT_EQ(made["bodies"].size(), 1U);
  EXPECT_EQ(made["passes"][0]["nodes"], made["passes"][1]["nodes"]);
}

}  // namespace
}  // namespace hone
