// DeepSeek's GGUF files in both forms: kv_b in one matrix, whose keys and values of every head are cached,
// and k_b and v_b absorbed, with the latent in the cache. tests/engine/reference_models_test.cc compares both
// with transformers; here are sizes that int8 kernels take, written files and memory.
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

#include "engine/quantize_file.h"
#include "expected_model.h"
#include "file/gguf.h"
#include "file/gguf_writer.h"

namespace hone::test {
namespace {

constexpr std::int64_t kDim = 64, kHeads = 4, kNope = 32, kRope = 16, kRank = 64, kValue = 32, kFfn = 96;
constexpr std::int64_t kExperts = 4, kExpertFfn = 32, kVocabulary = 96, kLayers = 2;

struct Named {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

class MadeModel {
 public:
  // `predicts`: behind the last layer stands one that guesses the token after the next.
  explicit MadeModel(bool absorbed, bool predicts = false) : absorbed_(absorbed), predicts_(predicts) {
    matrix("token_embd.weight", {kVocabulary, kDim});
    for (int i = 0; i < kLayers; ++i) {
      const std::string block = fmt::format("blk.{}.", i);
      vector(block + "attn_norm.weight", kDim);
      matrix(block + "attn_q.weight", {kHeads * (kNope + kRope), kDim});
      matrix(block + "attn_kv_a_mqa.weight", {kRank + kRope, kDim});
      vector(block + "attn_kv_a_norm.weight", kRank);
      matrix(block + "attn_kv_b.weight", {kHeads * (kNope + kValue), kRank});
      if (absorbed) halve(block);
      matrix(block + "attn_output.weight", {kDim, kHeads * kValue});
      vector(block + "ffn_norm.weight", kDim);
      if (i == 0) {
        feed_forward(block, "", kFfn, {});
        continue;
      }
      matrix(block + "ffn_gate_inp.weight", {kExperts, kDim});
      feed_forward(block, "_exps", kExpertFfn, {kExperts});
      feed_forward(block, "_shexp", kExpertFfn, {});
    }
    vector("output_norm.weight", kDim);
    matrix("output.weight", {kVocabulary, kDim});
    if (!predicts) return;
    vector(fmt::format("blk.{}.attn_norm.weight", kLayers), kDim);
    matrix(fmt::format("blk.{}.attn_q.weight", kLayers), {kHeads * (kNope + kRope), kDim});
    matrix(fmt::format("blk.{}.nextn.eh_proj.weight", kLayers), {kDim, 2 * kDim});
  }

  Status write(const std::string& path) const {
    GgufWriter writer;
    writer.add_string("general.architecture", "deepseek2");
    const auto add = [&](const char* key, std::int64_t value) {
      writer.add_u32(fmt::format("deepseek2.{}", key), static_cast<std::uint32_t>(value));
    };
    add("embedding_length", kDim);
    add("block_count", kLayers + (predicts_ ? 1 : 0));
    if (predicts_) add("nextn_predict_layers", 1);
    add("feed_forward_length", kFfn);
    add("context_length", 256);
    add("attention.head_count", kHeads);
    add("attention.head_count_kv", absorbed_ ? 1 : kHeads);
    add("attention.key_length", (absorbed_ ? kRank : kNope) + kRope);
    add("attention.value_length", absorbed_ ? kRank : kValue);
    if (absorbed_) add("attention.key_length_mla", kNope + kRope);
    if (absorbed_) add("attention.value_length_mla", kValue);
    add("attention.kv_lora_rank", kRank);
    add("rope.dimension_count", kRope);
    add("expert_count", kExperts);
    add("expert_used_count", 2);
    add("expert_shared_count", 1);
    add("expert_feed_forward_length", kExpertFfn);
    add("leading_dense_block_count", 1);
    writer.add_f32("deepseek2.attention.layer_norm_rms_epsilon", 1e-5F);
    for (const Named& tensor : tensors_) writer.add_tensor(tensor.name, DType::F32, tensor.shape);
    HONE_TRY(writer.begin(path));
    for (const Named& tensor : tensors_) HONE_TRY(writer.append(std::as_bytes(std::span(tensor.values))));
    return writer.finish();
  }

 private:
  void matrix(std::string name, std::vector<std::int64_t> shape) {
    std::int64_t elements = 1;
    for (const std::int64_t axis : shape) elements *= axis;
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(shape.back())));
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (float& value : values) value = normal(random_);
    tensors_.push_back({std::move(name), std::move(shape), std::move(values)});
  }
  void vector(std::string name, std::int64_t size) {
    matrix(std::move(name), {size});
    for (float& value : tensors_.back().values) value += 1;
  }
  void feed_forward(const std::string& block, const char* end, std::int64_t width,
                    const std::vector<std::int64_t>& stack) {
    const auto shape = [&](std::int64_t out, std::int64_t in) {
      std::vector<std::int64_t> all = stack;
      all.insert(all.end(), {out, in});
      return all;
    };
    matrix(fmt::format("{}ffn_gate{}.weight", block, end), shape(width, kDim));
    matrix(fmt::format("{}ffn_up{}.weight", block, end), shape(width, kDim));
    matrix(fmt::format("{}ffn_down{}.weight", block, end), shape(kDim, width));
  }
  // The last tensor, kv_b [H,(n+v),R], as k_b [H,R,n] and v_b [H,v,R].
  void halve(const std::string& block) {
    const std::vector<float> both = std::move(tensors_.back().values);
    tensors_.pop_back();
    Named k{block + "attn_k_b.weight", {kHeads, kRank, kNope}, {}};
    Named v{block + "attn_v_b.weight", {kHeads, kValue, kRank}, {}};
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const auto row = both.begin() + h * (kNope + kValue) * kRank;
      for (std::int64_t r = 0; r < kRank; ++r) {
        for (std::int64_t n = 0; n < kNope; ++n) k.values.push_back(row[n * kRank + r]);
      }
      v.values.insert(v.values.end(), row + kNope * kRank, row + (kNope + kValue) * kRank);
    }
    tensors_.push_back(std::move(k));
    tensors_.push_back(std::move(v));
  }

  std::mt19937_64 random_{20261130};
  std::vector<Named> tensors_;
  bool absorbed_ = false;
  bool predicts_ = false;
};

EngineOptions options_of(Level level) {
  EngineOptions options;
  options.level = level;
  options.all_logits = true;
  options.context = 64;
  options.chunk = 64;
  options.threads = 2;
  options.verify_passes = true;
  options.strict = true;
  return options;
}

class LatentAttention : public testing::Test {
 protected:
  LatentAttention() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-latent-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    for (int i = 0; i < 37; ++i) ids_.push_back(i * 29 % static_cast<int>(kVocabulary));
  }
  ~LatentAttention() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  std::string write(bool absorbed, bool predicts = false) const {
    const std::string out = path(absorbed ? "absorbed.gguf" : "expanded.gguf");
    const Status status = MadeModel(absorbed, predicts).write(out);
    EXPECT_TRUE(status.ok()) << describe(status.error());
    return out;
  }
  std::string quantize(const std::string& source, DType type) const {
    const Result<Checkpoint> checkpoint = read_gguf(source);
    const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(2);
    EXPECT_TRUE(checkpoint.ok() && pool.ok());
    std::string out = path("quantised.gguf");
    const Result<QuantizeReport> report = quantize_file(*checkpoint, out, {.type = type}, **pool);
    EXPECT_TRUE(report.ok()) << describe(report.error());
    return out;
  }
  std::vector<float> logits_of(const std::string& file, const EngineOptions& options) const {
    return logits_of(file, options, ids_);
  }
  static std::vector<float> logits_of(const std::string& file, const EngineOptions& options, const Ids& ids) {
    const std::unique_ptr<Session> session = open_session(file, options);
    return session == nullptr ? std::vector<float>() : all_logits(*session, ids, 64);
  }

  std::filesystem::path folder_;
  Ids ids_;
};

TEST_F(LatentAttention, BothFormsAreOneModel) {
  const std::vector<float> expanded = logits_of(write(false), options_of(Level::O0));
  const double largest = largest_magnitude(expanded);
  for (const Level level : {Level::O0, Level::O1, Level::O2, Level::O3}) {
    EngineOptions options = options_of(level);
    options.strict = level != Level::O1;  // the mask's iota has no fast kernel
    const std::unique_ptr<Session> session = open_session(write(true), options);
    ASSERT_NE(session, nullptr);
    EXPECT_LE(largest_difference(all_logits(*session, ids_, 64), expanded),
              2 * f32_tolerance(kHeads * (kNope + kRope), kLayers, largest));
    EXPECT_EQ(session->model().plan.fallbacks(), level == Level::O1 ? 1 : 0);
  }
}

TEST_F(LatentAttention, ALayerThatPredictsChangesNothing) {
  EngineOptions options = options_of(Level::O3);
  const std::vector<float> without = logits_of(write(true), options);
  options.strict = false;
  const std::unique_ptr<Session> session = open_session(write(true, true), options);
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(session->model().config.warnings.size(), 1U);
  EXPECT_TRUE(session->model().config.warnings[0].starts_with("3 tensors of the layers behind layer 1"));
  EXPECT_TRUE(same_bits(all_logits(*session, ids_, 64), without));
}

// R + r numbers a token and layer, in f32 and in f16; every head's keys and values in the other form.
TEST_F(LatentAttention, TheCacheHoldsTheLatent) {
  const auto state_bytes = [](const std::string& file) {
    const std::unique_ptr<Session> session = open_session(file, options_of(Level::O3));
    return session == nullptr ? 0 : session->model().plan.state_bytes;
  };
  EXPECT_EQ(state_bytes(write(true)), kLayers * 64 * (kRank + kRope) * 4);
  EXPECT_EQ(state_bytes(quantize(write(true), DType::Q8_0)), kLayers * 64 * (kRank + kRope) * 2);
  EXPECT_EQ(state_bytes(write(false)), kLayers * 64 * kHeads * (kNope + kRope + kValue) * 4);
}

TEST_F(LatentAttention, AttentionIsOneLaunch) {
  const std::unique_ptr<Session> session = open_session(write(true), options_of(Level::O3));
  ASSERT_NE(session, nullptr);
  int attentions = 0;
  for (const Step& step : session->model().plan.steps) attentions += step.op == "attention" ? 1 : 0;
  EXPECT_EQ(attentions, kLayers);
}

// The bound is that of tests/engine/tiny_models_test.cc for int8 activations.
TEST_F(LatentAttention, Int8Activations) {
  const std::string source = write(true);
  const std::string quantised = quantize(source, DType::Q8_0);
  const Result<Checkpoint> file = read_gguf(quantised);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->find_tensor("blk.0.attn_k_b.weight")->dtype, DType::Q8_0);
  EXPECT_EQ(file->find_tensor("blk.1.attn_v_b.weight")->dtype, DType::Q8_0);
  const std::vector<float> exact = logits_of(quantised, options_of(Level::O0));
  EXPECT_LE(relative_distance(exact, logits_of(source, options_of(Level::O0))), 0.04);
  const std::unique_ptr<Session> session = open_session(quantised, options_of(Level::O3));
  ASSERT_NE(session, nullptr);
  int int8 = 0;
  for (const Step& step : session->model().plan.steps) {
    int8 += step.module.ends_with("_b_proj") && step.inputs[0].spec.dtype == DType::Q8A ? 1 : 0;
  }
  EXPECT_EQ(int8, 2 * kLayers);
  EXPECT_LE(relative_distance(all_logits(*session, ids_, 64), exact), 0.04);
}

TEST_F(LatentAttention, BitsDoNotDependOnThreadsChunksRowsOrInstructionSet) {
  const std::string quantised = quantize(write(true), DType::Q8_0);
  EngineOptions options = options_of(Level::O3);
  const std::vector<float> whole = logits_of(quantised, options);
  for (const std::int64_t threads : {1, 3}) {
    options.threads = threads;
    EXPECT_TRUE(same_bits(logits_of(quantised, options), whole)) << threads << " threads";
  }
  options.threads = 2;
  for (const Isa isa : kIsaLevels) {
    if (isa > detect_isa()) continue;
    options.isa = isa;
    EXPECT_TRUE(same_bits(logits_of(quantised, options), whole)) << isa_name(isa);
  }
  options.isa.reset();
  options.batch = 3;
  const std::unique_ptr<Session> session = open_session(quantised, options);
  ASSERT_NE(session, nullptr);
  const std::vector<Ids> others{{5, 6, 7, 8, 9}, Ids(30, 11)};
  for (const std::int64_t chunk : {1, 3, 64}) {
    EXPECT_TRUE(same_bits(all_logits(*session, ids_, chunk), whole)) << "chunks of " << chunk;
    EXPECT_TRUE(same_bits(all_logits(*session, ids_, chunk, 1, others), whole)) << "chunks of " << chunk;
  }
}

// Rows of 12 and of 20 are no blocks: those matrices stay wider. With all matrices in 16 bits the reference's
// logits are as near as tests/engine/reference_models_test.cc allows for one rounding to 2^-11 in each
// branch.
TEST_F(LatentAttention, HalvesThatAreNoBlocksStayWider) {
  const std::string folder = data_path("models/deepseek-v3/");
  const Expected expected = read_expected(folder + "expected.safetensors");
  const std::string quantised = quantize(folder + "deepseek-v3-absorbed.gguf", DType::Q8_0);
  const Result<Checkpoint> file = read_gguf(quantised);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->find_tensor("blk.0.attn_k_b.weight")->dtype, DType::F16);
  EXPECT_EQ(file->find_tensor("blk.1.attn_v_b.weight")->dtype, DType::F16);
  EXPECT_EQ(file->find_tensor("blk.0.attn_q_a.weight")->dtype, DType::Q8_0);
  const std::string half = quantize(folder + "deepseek-v3-absorbed.gguf", DType::F16);
  for (const Level level : {Level::O0, Level::O3}) {
    const std::vector<float> logits = logits_of(half, options_of(level), expected.ids[0]);
    EXPECT_LE(largest_difference(logits, expected.logits[0]),
              8 * 0x1p-11 * std::sqrt(2.0 * kLayers) * expected.largest);
  }
}

}  // namespace
}  // namespace hone::test
