// What the chain of passes makes of a model of public shape: counts, bytes and planned memory, from headers
// alone.
#include <gtest/gtest.h>
#include <map>

#include "../file/temporary_folder.h"
#include "engine/compile.h"
#include "engine/random_model.h"
#include "engine_test_support.h"
#include "file/open.h"

namespace hone::test {
namespace {

constexpr std::int64_t kTokens = 512;

class Shape : public ::testing::Test {
 protected:
  // One step of 512 tokens of one sequence.
  static CompiledModel compiled(std::string_view name, Level level, bool watched = false) {
    const hone::testing::TemporaryFolder folder;
    const std::string path = folder.path("shape.gguf");
    const Result<ModelShape> shape = find_shape(name);
    EXPECT_TRUE(shape.ok() && write_model_header(*shape, {}, path).ok());
    const Result<Checkpoint> checkpoint = open_checkpoint(path);
    if (!checkpoint.ok()) {
      ADD_FAILURE() << describe(checkpoint.error());
      return {};
    }
    EngineOptions options;
    options.level = level;
    options.context = kTokens;
    options.chunk = kTokens;
    options.batch = 1;
    const auto ignore = [](const PassReport*, const Graph&) { return Status{}; };
    Result<CompiledModel> model =
        compile(*checkpoint, options, watched ? PassObserver(ignore) : PassObserver());
    if (!model.ok()) ADD_FAILURE() << describe(model.error());
    return model.ok() ? std::move(model).value() : CompiledModel{};
  }

  static std::int64_t bytes_moved(const Plan& plan) {
    std::int64_t sum = 0;
    for (const hone::Step& step : plan.steps) sum += step.bytes_moved.evaluate(plan.bound).value();
    return sum;
  }
};

// The floors of the reports that this project began with, and more: a share of O1 that is left at O3.
TEST_F(Shape, OfHalfABillionLosesMostLaunchesBytesAndMemory) {
  const CompiledModel before = compiled("qwen2-0.5b", Level::O1);
  const CompiledModel after = compiled("qwen2-0.5b", Level::O3);
  EXPECT_LE(static_cast<double>(after.plan.launches()), 0.15 * static_cast<double>(before.plan.launches()))
      << before.plan.launches() << " -> " << after.plan.launches();
  EXPECT_LE(static_cast<double>(bytes_moved(after.plan)),
            0.40 * static_cast<double>(bytes_moved(before.plan)));
  EXPECT_LE(static_cast<double>(after.plan.dynamic_bytes),
            0.30 * static_cast<double>(before.plan.dynamic_bytes));
  EXPECT_EQ(after.plan.fallbacks(), 0) << after.plan.fallback_line();
}

// An attention block of 20 nodes and more is three launches, between a norm and the two of the feed-forward.
TEST_F(Shape, ALayerIsSixLaunches) {
  const CompiledModel model = compiled("qwen2-0.5b", Level::O3);
  std::vector<std::string> ops;
  for (const hone::Step& step : model.plan.steps) {
    if (step.module == "layers.3" || step.module.starts_with("layers.3.")) ops.push_back(step.op);
  }
  const std::vector<std::string> expected{"rms_norm",   "projection", "attention",
                                          "projection", "projection", "projection"};
  EXPECT_EQ(ops, expected);
}

// What the chain does grows with the layers and with nothing else: each rule fires once a layer, or twice,
// and what is left of a layer is the same. bench/engine/compile_bench.cc has the times.
TEST_F(Shape, SevenBillionTakeTheSameStepsALayer) {
  for (const auto& [name, layers] : {std::pair{"smollm2-135m", 30}, std::pair{"llama2-7b", 32}}) {
    const CompiledModel model = compiled(name, Level::O3, true);
    std::map<std::string, std::int64_t> fired;
    for (const PassReport& pass : model.passes) {
      for (const RuleCount& rule : pass.rules) fired[pass.name + " " + rule.name] = rule.fired;
    }
    const auto per_layer = [&](const char* rule) { return fired[rule] / layers; };
    EXPECT_EQ(fired["fuse-attention attention"], layers) << name;
    EXPECT_EQ(fired["fuse-norm rms_norm"], 2 * layers + 1) << name;
    EXPECT_EQ(fired["fuse-rope rope"], 2 * layers) << name;
    EXPECT_EQ(fired["fuse-mlp swiglu_mlp"], layers) << name;
    EXPECT_EQ(fired["fuse-epilogue residual"], 2 * layers) << name;
    EXPECT_EQ(fired["merge-projections 3-of-one-x"], layers) << name;
    EXPECT_EQ(fired["fold-norm rms_norm"], layers) << name;
    EXPECT_EQ(per_layer("simplify reshape-of-reshape"), 2) << name;
    std::map<std::string, int> of_layer;
    for (const hone::Step& step : model.plan.steps) {
      if (step.module.starts_with("layers.")) ++of_layer[step.module.substr(0, step.module.find('.', 7))];
    }
    EXPECT_EQ(std::ssize(of_layer), layers) << name;
    for (const auto& [layer, launches] : of_layer) EXPECT_EQ(launches, 6) << name << ", " << layer;
  }
}

TEST_F(Shape, ActivationsAreAtTheLowerBound) {
  for (const std::string_view name : {"tiny", "smollm2-135m", "qwen2-0.5b", "qwen2-1.5b", "llama2-7b"}) {
    const CompiledModel model = compiled(name, Level::O3);
    EXPECT_LE(static_cast<double>(model.plan.dynamic_bytes),
              1.02 * static_cast<double>(model.plan.dynamic_lower_bound_bytes))
        << name;
  }
}

}  // namespace
}  // namespace hone::test
