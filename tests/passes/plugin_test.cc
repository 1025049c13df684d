// Passes from shared libraries: what is asked of them, and that nothing they do hurts this process.
#include <algorithm>
#include <gtest/gtest.h>

#include "base/float_environment.h"
#include "decoder_graph.h"
#include "graph/text.h"
#include "passes/pipeline.h"

namespace hone::test {
namespace {

using Plugins = std::vector<std::shared_ptr<const PluginPass>>;

Plugins load(const std::string& file, const ChildLimits& limits = {}) {
  Result<Plugins> plugins = load_plugin(file, limits);
  if (plugins.ok()) return std::move(plugins).value();
  ADD_FAILURE() << plugins.error().message << ": " << plugins.error().actual;
  return {};
}

// The faulty passes of one name.
PipelineOptions options_with(const std::string& name, const ChildLimits& limits = {}) {
  PipelineOptions options;
  for (const auto& plugin : load(HONE_FAULTY_PASSES, limits)) {
    if (plugin->name == "plugin:" + name) options.plugins.push_back(plugin);
  }
  EXPECT_EQ(options.plugins.size(), 1U) << name;
  return options;
}

struct Misbehaviour {
  const char* pass;
  const char* message;
  const char* actual;
};

class Misbehaving : public testing::TestWithParam<Misbehaviour> {};

TEST_P(Misbehaving, IsThePluginsFaultByName) {
  Graph graph = decoder_graph({});
  const std::string before = print_graph(graph);
  PipelineOptions options = options_with(GetParam().pass, {.seconds = 2});
  options.stop_after = options.plugins[0]->name;
  options.disabled = {"fold-constants", "simplify", "cse"};
  const Status status = run_pipeline(graph, options, {});
  ASSERT_FALSE(status.ok());
  const Error& error = status.error();
  EXPECT_EQ(error.fault, Fault::File);
  EXPECT_EQ(error.code, ErrorCode::BadInput);
  EXPECT_NE(error.where.find(std::string("pass plugin:") + GetParam().pass + " of " + HONE_FAULTY_PASSES),
            std::string::npos)
      << error.where;
  EXPECT_NE(error.message.find(GetParam().message), std::string::npos) << error.message;
  EXPECT_NE(error.actual.find(GetParam().actual), std::string::npos) << error.actual;
  EXPECT_NE(error.next_step.find(std::string("--passes=-plugin:") + GetParam().pass), std::string::npos);
  EXPECT_EQ(print_graph(graph), before);
}

constexpr Misbehaviour kMisbehaviours[] = {
    {"break-ir", "breaks a rule of the IR", ""},
    {"no-text", "the text is not a graph", "done!"},
    {"rename-output", "keeps the inputs, outputs and states", "output my_"},
    {"refuse", "cannot do it", "I like no graph"},
    {"silent", "the text is not a graph", "the end of the text"},
    {"crash", "crashed", "signal 11"},
    {"abort", "crashed", "signal 6"},
    {"leave", "crashed", "exit status 3"},
    {"throw", "cannot do it", "seven"},
    {"hang", "was stopped", "no answer after 2 s"},
    {"close-and-hang", "was stopped", "no answer after 2 s"},
};

std::string name_of(const testing::TestParamInfo<Misbehaviour>& info) {
  std::string name = info.param.pass;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Passes, Misbehaving, testing::ValuesIn(kMisbehaviours), name_of);

struct BadLibrary {
  const char* file;
  const char* message;
};

TEST(Plugin, WhatCannotBeLoadedIsNamed) {
  const std::string folder = HONE_UNLOADABLE_FOLDER;
  for (const BadLibrary& bad :
       {BadLibrary{"abi", "another form of hone_pass.h"}, BadLibrary{"name", "has a name"},
        BadLibrary{"contract", "no such contract"}, BadLibrary{"place", "no place"},
        BadLibrary{"level", "no level"}, BadLibrary{"run", "no function"}, BadLibrary{"load", "crashed"},
        BadLibrary{"empty", "no pass"}, BadLibrary{"missing", "cannot do it"}}) {
    const std::string file = folder + "/unloadable_" + bad.file + ".so";
    const Result<Plugins> plugins = load_plugin(file);
    ASSERT_FALSE(plugins.ok()) << bad.file;
    EXPECT_EQ(plugins.error().fault, Fault::File) << bad.file;
    EXPECT_NE(plugins.error().message.find(bad.message), std::string::npos)
        << bad.file << ": " << plugins.error().message;
    EXPECT_NE(plugins.error().where.find(file), std::string::npos) << plugins.error().where;
  }
}

TEST(Plugin, APlaceBesideNoPassIsThePluginsFault) {
  PipelineOptions options;
  options.plugins = load(std::string(HONE_UNLOADABLE_FOLDER) + "/unloadable_neighbour.so");
  const auto chain = make_chain(options);
  ASSERT_FALSE(chain.ok());
  EXPECT_EQ(chain.error().fault, Fault::File);
  EXPECT_EQ(chain.error().actual, "'fuse-nrom'");
}

TEST(Plugin, FastMathStaysInItsProcess) {
  constexpr unsigned kControls = 0xffc0;  // the bits below are exceptions that have been seen
  const unsigned before = read_float_control() & kControls;
  PipelineOptions options = options_with("swap-inputs");
  Graph graph = decoder_graph({});
  ASSERT_TRUE(run_pipeline(graph, options, {}).ok());
  EXPECT_EQ(read_float_control() & kControls, before);
}

TEST(Plugin, StandsWhereItAsksAndGivesTheGraphBack) {
  PipelineOptions options;
  options.plugins = load(HONE_EXAMPLE_PASS);
  ASSERT_EQ(options.plugins.size(), 1U);
  std::vector<std::string> names;
  std::string changed;
  options.verify = true;
  options.observe = [&](const PassReport& report, const Graph&) -> Status {
    names.push_back(report.name);
    if (report.changed && report.name.starts_with("plugin:")) changed = report.name;
    return {};
  };
  Graph graph = decoder_graph({});
  ASSERT_TRUE(run_pipeline(graph, options, {}).ok());
  const auto at = std::find(names.begin(), names.end(), "plugin:scale-queries");
  ASSERT_NE(at, names.end());
  EXPECT_EQ(*(at + 1), "fuse-softmax");
  EXPECT_EQ(changed, "plugin:scale-queries");
  options.disabled = {"plugin:scale-queries"};
  names.clear();
  Graph without = decoder_graph({});
  ASSERT_TRUE(run_pipeline(without, options, {}).ok());
  EXPECT_EQ(std::find(names.begin(), names.end(), "plugin:scale-queries"), names.end());
}

std::vector<std::string> order_with(std::vector<PassMove> moves) {
  PipelineOptions options;
  options.moves = std::move(moves);
  std::vector<std::string> names;
  const auto chain = make_chain(options);
  if (!chain.ok()) {
    ADD_FAILURE() << chain.error().message;
    return names;
  }
  for (const ChainPass& pass : *chain) names.emplace_back(pass.row.name);
  return names;
}

std::ptrdiff_t place(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

TEST(Chain, PassesMoveWhereTheRulesAllow) {
  const std::vector<std::string> before = order_with({{"fuse-rope", false, "fuse-norm"}});
  EXPECT_EQ(place(before, "fuse-rope") + 1, place(before, "fuse-norm"));
  const std::vector<std::string> after = order_with({{"fuse-norm", true, "fuse-mlp"}});
  EXPECT_EQ(place(after, "fuse-norm"), place(after, "fuse-mlp") + 1);
}

TEST(Chain, AnOrderThatBreaksARuleIsRefusedByName) {
  PipelineOptions options;
  options.moves = {{"fuse-attention", false, "cse"}};
  const auto chain = make_chain(options);
  ASSERT_FALSE(chain.ok());
  EXPECT_EQ(chain.error().code, ErrorCode::Usage);
  EXPECT_EQ(chain.error().expected, "cse before fuse-attention");
  EXPECT_NE(chain.error().message.find("computed twice"), std::string::npos) << chain.error().message;
  // Between passes of which one does not run there is nothing to keep.
  options.disabled = {"cse"};
  EXPECT_TRUE(make_chain(options).ok());
}

TEST(Chain, TheTableKeepsItsOwnRules) {
  EXPECT_TRUE(make_chain({}).ok());
  for (const OrderRule& rule : order_rules()) {
    EXPECT_TRUE(find_pass(rule.pass).ok()) << rule.pass;
    EXPECT_TRUE(find_pass(rule.first).ok()) << rule.first;
    EXPECT_FALSE(rule.why.empty());
  }
}

TEST(Chain, UnknownNamesOfMovesAreListed) {
  PipelineOptions options;
  options.moves = {{"fuse-rop", false, "fuse-nrom"}};
  const auto chain = make_chain(options);
  ASSERT_FALSE(chain.ok());
  EXPECT_EQ(chain.error().actual, "'fuse-rop', 'fuse-nrom'");
}

}  // namespace
}  // namespace hone::test
