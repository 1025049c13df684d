// Runs text IR through the passes of a level, the planner and the executor, on inputs and weights drawn from
// a seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../file/temporary_folder.h"
#include "exec/executor.h"
#include "exec/reference_evaluator.h"
#include "file/gguf_writer.h"
#include "file/open.h"
#include "file/stacked_tensors.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "passes/pipeline.h"
#include "tensor/block_formats.h"

namespace hone::test {

inline std::string describe(const Error& error) {
  return error.where + ": " + error.message + "; expected " + error.expected + ", not " + error.actual;
}

inline Graph parse(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  if (!graph.ok()) {
    ADD_FAILURE() << describe(graph.error());
    return {};
  }
  const Status valid = verify(*graph, "reading the test's text");
  if (!valid.ok()) ADD_FAILURE() << describe(valid.error());
  return std::move(graph).value();
}

// Uniform in [-1, 1), the same for one name whatever else the test draws.
inline std::vector<float> draw(std::string_view name, std::size_t count) {
  std::uint32_t seed = 17;
  for (const char letter : name) seed = seed * 31 + static_cast<unsigned char>(letter);
  std::mt19937 bits(seed);
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(static_cast<std::int32_t>(bits())) * 0x1p-31F;
  return out;
}

// Writes the graph's weights (f32 and q8_0) as a GGUF file into `folder`; a stack as the tensors it is made
// of, with the values of one tensor whose name lacks the `*`.
inline Result<Checkpoint> write_weights(const Graph& graph, const hone::testing::TemporaryFolder& folder) {
  GgufWriter writer;
  writer.add_string("general.architecture", "test");
  std::vector<std::vector<std::byte>> data;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind != InputKind::Weight) continue;
    const Type& type = graph.type(input.value);
    std::vector<std::int64_t> shape;
    std::int64_t elements = 1;
    for (const Dim& dim : type.shape) {
      shape.push_back(dim.as_constant().value_or(1));
      elements *= shape.back();
    }
    if (is_stacked(input.name)) {
      const std::vector<std::int64_t> part(shape.begin() + 1, shape.end());
      for (std::int64_t i = 0; i < shape[0]; ++i)
        writer.add_tensor(name_in_stack(input.name, i), type.dtype, part);
    } else {
      writer.add_tensor(input.name, type.dtype, shape);
    }
    std::string seed = input.name;
    std::erase(seed, '*');
    const std::vector<float> values = draw(seed, static_cast<std::size_t>(elements));
    std::vector<std::byte>& bytes =
        data.emplace_back(static_cast<std::size_t>(dtype_bytes(type.dtype, elements)));
    if (type.dtype == DType::F32) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
      continue;
    }
    const std::uint16_t scale = f32_to_f16(1.0F / 127);
    for (std::size_t block = 0; block * 34 < bytes.size(); ++block) {  // f16 scale, then 32 signed bytes
      std::memcpy(bytes.data() + block * 34, &scale, 2);
      for (std::size_t i = 0; i < 32; ++i) {
        const auto quant = static_cast<std::int8_t>(std::lround(values[block * 32 + i] * 127));
        std::memcpy(bytes.data() + block * 34 + 2 + i, &quant, 1);
      }
    }
  }
  const std::string path = folder.path("weights.gguf");
  HONE_TRY(writer.begin(path));
  std::size_t next = 0;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind != InputKind::Weight) continue;
    const std::span<const std::byte> bytes = data[next++];
    const std::int64_t parts =
        is_stacked(input.name) ? graph.type(input.value).shape[0].as_constant().value_or(1) : 1;
    const std::size_t size = bytes.size() / static_cast<std::size_t>(parts);
    for (std::size_t at = 0; at < bytes.size(); at += size) HONE_TRY(writer.append(bytes.subspan(at, size)));
  }
  HONE_TRY(writer.finish());
  return open_checkpoint(path);
}

// One step of a run: its sizes, and the first position of its tokens.
struct StepSizes {
  Bindings bindings;
  std::int64_t past = 0;
};

struct GraphRun {
  std::vector<std::string> ops;             // one per launch
  std::vector<std::vector<float>> outputs;  // "y" after each step
};

inline bool has_op(const GraphRun& run, std::string_view op) {
  return std::find(run.ops.begin(), run.ops.end(), op) != run.ops.end();
}

// With N = B*T: every token of a step is one.
inline Bindings with_all_tokens(Bindings bindings) {
  bindings.set('N', bindings.find('B').value_or(1) * bindings.find('T').value_or(1));
  return bindings;
}

// f32 and f16 inputs are drawn anew for each step; an i32 input [B,T] is the tokens' positions, or the
// sequence of each in a flattened graph.
inline Status fill_inputs(Executor& executor, const Plan& plan, const StepSizes& step) {
  for (const Port& port : plan.inputs) {
    const std::span<std::byte> bytes = HONE_TRY(executor.input(port.name));
    if (port.type.dtype == DType::I32) {
      const std::int64_t tokens = step.bindings.find('T').value_or(1);
      auto* positions = reinterpret_cast<std::int32_t*>(bytes.data());
      for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
        const auto token = static_cast<std::int64_t>(i);
        positions[i] =
            static_cast<std::int32_t>(port.name == "sequence" ? token / tokens : step.past + token % tokens);
      }
      continue;
    }
    const bool half = port.type.dtype == DType::F16;
    const std::vector<float> values =
        draw(port.name + std::to_string(step.past), bytes.size() / (half ? 2 : 4));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t bits = f32_to_f16(values[i]);
      half ? std::memcpy(bytes.data() + 2 * i, &bits, 2) : std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    }
  }
  return {};
}

// What the passes of a run get besides.
struct PassChoice {
  PrecisionPolicy precision = {};
  std::vector<std::string> disabled = {};
};

// Runs `text` at `level` for the instruction set `isa`; the plan has room for `bound`.
inline Result<GraphRun> run_graph(std::string_view text, Level level, Isa isa, const Bindings& bound,
                                  std::span<const StepSizes> steps, int threads = 2,
                                  const PassChoice& choice = {}) {
  Graph graph = parse(text);
  const hone::testing::TemporaryFolder folder;
  const Checkpoint checkpoint = HONE_TRY(write_weights(graph, folder));
  const ReferenceEvaluator evaluator;
  PassContext context;
  context.target = {isa, threads};
  context.evaluator = &evaluator;
  context.precision = choice.precision;
  PipelineOptions options;
  options.level = level;
  options.disabled = choice.disabled;
  options.verify = true;
  HONE_TRY(run_pipeline(graph, options, context));
  const Plan plan = HONE_TRY(make_plan(graph, {context.target, level, with_all_tokens(bound)}));
  const std::unique_ptr<Executor> executor = HONE_TRY(Executor::create(plan, checkpoint, {}));
  GraphRun out;
  for (const Step& step : plan.steps) out.ops.push_back(step.op);
  for (const StepSizes& step : steps) {
    HONE_TRY(executor->bind(with_all_tokens(step.bindings)));
    HONE_TRY(fill_inputs(*executor, plan, step));
    executor->run();
    const std::span<const std::byte> bytes = HONE_TRY(executor->output("y"));
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    out.outputs.emplace_back(values, values + bytes.size() / 4);
  }
  return out;
}

}  // namespace hone::test
