// Float matrices of a checkpoint loaded as q8_0: the bits of a file that has them so, in every layout.
#include "exec/load_weights.h"
#include "run_graph.h"

namespace hone::test {
namespace {

constexpr std::int64_t kK = 288;   // more than is rounded at once, and no multiple of it
constexpr std::int64_t kN = 2008;  // three pieces of the staging buffer in f32, the last panel not whole

std::string product(std::string_view type) {
  return "graph \"g\" symbols(B, T) {\n  input %x \"x\": f32[B,T,288]\n  weight %w \"w\": " +
         std::string(type) +
         "[2008,288]\n  %y: f32[B,T,2008] = matmul(%x, %w) {transpose_b = 1}\n  output \"y\" %y\n}\n";
}

// The file of the product's weight in `dtype`, whose numbers are bf16 and so the same in every float type.
Result<Checkpoint> written(DType dtype, const hone::testing::TemporaryFolder& folder) {
  std::vector<float> values = draw("w", static_cast<std::size_t>(kN * kK));
  for (float& value : values) value = bf16_to_f32(f32_to_bf16(value));
  std::vector<std::byte> bytes(static_cast<std::size_t>(dtype_bytes(dtype, kN * kK)));
  HONE_TRY(encode_row(dtype, values.data(), kN * kK, bytes.data()));
  GgufWriter writer;
  writer.add_string("general.architecture", "test");
  writer.add_tensor("w", dtype, {kN, kK});
  const std::string path = folder.path(std::string(dtype_name(dtype)) + ".gguf");
  HONE_TRY(writer.begin(path));
  HONE_TRY(writer.append(bytes));
  HONE_TRY(writer.finish());
  return open_checkpoint(path);
}

Result<std::vector<float>> computed(const Plan& plan, const Checkpoint& checkpoint) {
  const std::unique_ptr<Executor> executor = HONE_TRY(Executor::create(plan, checkpoint, {}));
  const StepSizes step{{{'B', 1}, {'T', 3}}, 0};
  HONE_TRY(executor->bind(step.bindings));
  HONE_TRY(fill_inputs(*executor, plan, step));
  executor->run();
  const std::span<const std::byte> bytes = HONE_TRY(executor->output("y"));
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  return std::vector<float>(values, values + bytes.size() / 4);
}

TEST(QuantiseWeights, HasTheBitsOfAFileInBlocks) {
  const hone::testing::TemporaryFolder folder;
  const Result<Checkpoint> blocks = written(DType::Q8_0, folder);
  ASSERT_TRUE(blocks.ok()) << describe(blocks.error());
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const Result<Checkpoint> floats = written(dtype, folder);
    ASSERT_TRUE(floats.ok()) << describe(floats.error());
    for (const Level level : {Level::O0, Level::O3}) {
      Graph graph = parse(product(dtype_name(dtype)));
      PassContext context;
      context.target = {Isa::Portable, 2};
      context.precision.weights = DType::Q8_0;
      context.precision.int8_activations = level == Level::O3;
      PipelineOptions options;
      options.level = level;
      options.verify = true;
      ASSERT_TRUE(run_pipeline(graph, options, context).ok());
      const Result<Plan> plan = make_plan(graph, {context.target, level, {{'B', 1}, {'T', 3}}});
      ASSERT_TRUE(plan.ok()) << describe(plan.error());
      const std::string what = std::string(dtype_name(dtype)) + (level == Level::O0 ? ", rows" : ", panels");
      EXPECT_EQ(plan->statics[0].layout, level == Level::O0 ? Layout::Strided : Layout::Panel16) << what;
      EXPECT_EQ(plan->statics[0].type.dtype, DType::Q8_0) << what;
      const Result<std::vector<float>> is = computed(*plan, *floats);
      const Result<std::vector<float>> should = computed(*plan, *blocks);
      ASSERT_TRUE(is.ok() && should.ok()) << what << (is.ok() ? "" : describe(is.error()));
      EXPECT_EQ(*is, *should) << what;
      // For each thread a piece as it is stored and as it becomes, where the types differ.
      const std::int64_t rows = kStagingBytes / (dtype_bytes(dtype, kK) * 16) * 16;
      EXPECT_EQ(staging_bytes(*plan, *floats),
                context.target.threads * rows * (dtype_bytes(dtype, kK) + dtype_bytes(DType::Q8_0, kK)))
          << what;
    }
  }
}

}  // namespace
}  // namespace hone::test
