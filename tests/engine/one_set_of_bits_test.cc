// One request has one set of bits, for every weight format a GGUF file can have and on every ISA level:
// whatever the threads, the cut of the prompt, the size of the batch, its place in it and its neighbours, and
// whether its tokens came as a prompt or one by one.
#include <gtest/gtest.h>
#include <numeric>

#include "../file/temporary_folder.h"
#include "../kernels/random_blocks.h"
#include "engine_test_support.h"
#include "file/ggml_types.h"
#include "file/gguf_writer.h"

namespace hone::test {
namespace {

constexpr std::int64_t kDim = 256;  // the largest block, so that every format has whole rows
constexpr std::int64_t kVocabulary = 272;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kLayers = 1;
constexpr std::int64_t kLargestBatch = 64;
constexpr std::int64_t kShortPrompt = 4;  // tokens of each sequence of a batch

struct Matrix {
  std::string name;
  std::int64_t n;
};

std::vector<Matrix> matrices() {
  std::vector<Matrix> all{{"token_embd", kVocabulary}, {"output", kVocabulary}};
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
      all.push_back({block + name, kDim});
    for (const char* name : {"attn_k", "attn_v"}) all.push_back({block + name, kKvHeads * kDim / 4});
  }
  return all;
}

std::vector<std::string> norms() {
  std::vector<std::string> all{"output_norm"};
  for (std::int64_t i = 0; i < kLayers; ++i) {
    for (const char* name : {".attn_norm", ".ffn_norm"}) all.push_back("blk." + std::to_string(i) + name);
  }
  return all;
}

// Weights of f64 have random bits too, of numbers about 1.
std::vector<std::byte> random_matrix(DType dtype, std::int64_t count, std::mt19937_64& random) {
  if (dtype != DType::F64) return random_blocks(dtype, count, random);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * 8);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const double value = std::normal_distribution<double>()(random);
    std::memcpy(bytes.data() + i, &value, 8);
  }
  return bytes;
}

// A llama of one layer. Its attention norms are small, so that scores are of the size of a trained model's.
void write_model(DType dtype, const std::string& path) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  const std::pair<const char*, std::int64_t> numbers[] = {
      {"block_count", kLayers},          {"context_length", 256},     {"embedding_length", kDim},
      {"feed_forward_length", kDim},     {"attention.head_count", 4}, {"attention.head_count_kv", kKvHeads},
      {"attention.key_length", kDim / 4}};
  for (const auto& [key, value] : numbers)
    writer.add_u32(std::string("llama.") + key, static_cast<std::uint32_t>(value));
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-6F);
  for (const Matrix& matrix : matrices()) writer.add_tensor(matrix.name + ".weight", dtype, {matrix.n, kDim});
  for (const std::string& name : norms()) writer.add_tensor(name + ".weight", DType::F32, {kDim});
  ASSERT_TRUE(writer.begin(path).ok());
  std::mt19937_64 random(static_cast<std::uint64_t>(dtype));
  for (const Matrix& matrix : matrices())
    ASSERT_TRUE(writer.append(random_matrix(dtype, matrix.n * kDim, random)).ok());
  for (const std::string& name : norms()) {
    const std::vector<float> values(kDim, name.ends_with("attn_norm") ? 0.05F : 1.0F);
    ASSERT_TRUE(writer.append(std::as_bytes(std::span(values))).ok());
  }
  ASSERT_TRUE(writer.finish().ok());
}

// Sequence s of a batch.
Ids prompt_of(std::int64_t s) {
  Ids ids;
  for (std::int64_t i = 0; i < kShortPrompt; ++i)
    ids.push_back(static_cast<std::int32_t>((s * 37 + i * i * 11 + 5) % kVocabulary));
  return ids;
}

class OneSetOfBits : public ::testing::TestWithParam<DType> {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<hone::testing::TemporaryFolder>(); }
  static void TearDownTestSuite() { folder_.reset(); }
  void SetUp() override {
    path_ = folder_->path(std::string(dtype_name(GetParam())) + ".gguf");
    if (!std::filesystem::exists(path_)) write_model(GetParam(), path_);
  }

  static EngineOptions options_of(Isa isa, std::int64_t threads = 1) {
    EngineOptions options;
    options.isa = isa;
    options.threads = threads;
    options.context = 128;
    options.chunk = 128;
    options.all_logits = true;
    return options;
  }
  std::unique_ptr<Session> open(const EngineOptions& options) const { return open_session(path_, options); }

  static std::vector<Isa> levels() {
    std::vector<Isa> all;
    for (const Isa isa : kIsaLevels) {
      if (isa <= detect_isa()) all.push_back(isa);
    }
    return all;
  }

 private:
  static inline std::unique_ptr<hone::testing::TemporaryFolder> folder_;
  std::string path_;
};

// 70 tokens: more than a tile of rows and than a tile of keys.
Ids long_prompt() {
  Ids ids(70);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>((i * i * 7 + i * 31) % kVocabulary);
  return ids;
}

struct Cut {
  std::int64_t threads, chunk;
};

// Chunks of one token are decode. Every number of threads on the best level, fewer on those below.
TEST_P(OneSetOfBits, WhateverTheThreadsAndTheChunks) {
  const Ids ids = long_prompt();
  for (const Isa isa : levels()) {
    const std::vector<Cut> cuts = isa == detect_isa()
                                      ? std::vector<Cut>{{1, 128}, {2, 7}, {3, 48}, {4, 64}, {5, 128}, {2, 1}}
                                      : std::vector<Cut>{{1, 128}, {2, 16}, {5, 49}};
    std::vector<float> whole;
    for (const Cut& cut : cuts) {
      const std::unique_ptr<Session> session = open(options_of(isa, cut.threads));
      ASSERT_NE(session, nullptr);
      const std::vector<float> logits = all_logits(*session, ids, cut.chunk);
      if (whole.empty()) whole = logits;
      ASSERT_TRUE(same_bits(logits, whole))
          << isa_name(isa) << ", " << cut.threads << " threads, chunks of " << cut.chunk;
    }
  }
}

TEST_P(OneSetOfBits, WhateverTheInstructionSetIfAskedFor) {
  std::vector<float> portable;
  for (const Isa isa : levels()) {
    EngineOptions options = options_of(isa, 2);
    options.portable_bits = true;
    const std::unique_ptr<Session> session = open(options);
    ASSERT_NE(session, nullptr);
    const std::vector<float> logits = all_logits(*session, long_prompt(), 50);
    if (portable.empty()) portable = logits;
    ASSERT_TRUE(same_bits(logits, portable)) << isa_name(isa);
  }
}

// The logits [V] of the last tokens of sequences `order` of a batch, each `step_tokens` at a time.
std::vector<float> last_logits(Session& session, const std::vector<std::int64_t>& order,
                               std::int64_t step_tokens) {
  std::vector<Session::Row> rows;
  std::vector<float> out;
  for (std::int64_t at = 0; at < kShortPrompt; at += step_tokens) {
    std::vector<Ids> ids;
    rows.clear();
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Ids all = prompt_of(order[i]);
      ids.emplace_back(all.begin() + at, all.begin() + at + step_tokens);
      rows.push_back({static_cast<std::int64_t>(i), step_tokens - 1});
    }
    const std::vector<std::int64_t> past(order.size(), at);
    const Result<std::span<const float>> logits = session.step(ids, past, rows);
    if (!logits.ok()) ADD_FAILURE() << describe(logits.error());
    if (!logits.ok()) return {};
    out.assign(logits->begin(), logits->end());
  }
  return out;
}

// Batches of every size, each sequence in another place of each, as prompts and token by token.
TEST_P(OneSetOfBits, WhateverTheBatch) {
  for (const Isa isa : levels()) {
    EngineOptions options = options_of(isa);
    options.context = 16;
    options.chunk = 16;
    options.all_logits = false;
    const std::unique_ptr<Session> alone = open(options);
    options.batch = kLargestBatch;
    options.threads = 2;
    const std::unique_ptr<Session> session = open(options);
    ASSERT_TRUE(alone != nullptr && session != nullptr);
    std::vector<std::vector<float>> expected;
    for (std::int64_t s = 0; s < kLargestBatch; ++s)
      expected.push_back(last_logits(*alone, {s}, kShortPrompt));
    // Every size for one format of each kind of kernel, for the others those about the edges of tiles.
    const bool every = isa == detect_isa() && (GetParam() == DType::Q8_0 || GetParam() == DType::Q4_0 ||
                                               GetParam() == DType::BF16 || GetParam() == DType::Q4_K);
    const std::vector<std::int64_t> edges{1, 2, 3, 15, 17, 49, 64};
    for (std::int64_t batch = 1; batch <= kLargestBatch; ++batch) {
      if (!every && std::find(edges.begin(), edges.end(), batch) == edges.end()) continue;
      std::vector<std::int64_t> order(static_cast<std::size_t>(batch));
      for (std::int64_t i = 0; i < batch; ++i)
        order[static_cast<std::size_t>(i)] = (i * 7 + batch * 3) % kLargestBatch;
      // 7 and 64 have no common factor: all different.
      const std::vector<float> logits = last_logits(*session, order, batch % 3 == 0 ? 1 : kShortPrompt);
      for (std::size_t i = 0; i < order.size(); ++i) {
        ASSERT_TRUE(same_bits(row_of(logits, i, kVocabulary), expected[static_cast<std::size_t>(order[i])]))
            << isa_name(isa) << ", row " << i << " of " << batch;
      }
    }
  }
}

// Neighbours of other lengths, whose rows are padded or have ended.
TEST_P(OneSetOfBits, WhateverTheNeighboursLengths) {
  const Ids ids = long_prompt();
  EngineOptions options = options_of(detect_isa(), 2);
  options.batch = 3;
  const std::unique_ptr<Session> session = open(options);
  ASSERT_NE(session, nullptr);
  const std::vector<float> alone = all_logits(*session, ids, 128);
  const std::vector<Ids> others{Ids(90, 9), {5, 6, 7}};
  for (const std::size_t slot : {0U, 1U, 2U}) {
    for (const std::int64_t chunk : {128, 20}) {
      ASSERT_TRUE(same_bits(all_logits(*session, ids, chunk, slot, others), alone))
          << "row " << slot << ", chunks of " << chunk;
    }
  }
}

// A step in which one sequence is at its prompt, one at a chunk of it, one decodes and one rests has the bits
// of each alone, and of the dense form with padding.
TEST_P(OneSetOfBits, InAMixedStep) {
  const Ids prompt = long_prompt();
  const std::vector<Ids> mixed{{prompt.begin(), prompt.begin() + 60},
                               {prompt[5]},
                               {},
                               {prompt[9]},
                               {prompt.begin(), prompt.begin() + 7}};
  const std::vector<std::int64_t> past{0, 5, 0, 9, 0};
  std::vector<Session::Row> rows;
  for (std::size_t s = 0; s < mixed.size(); ++s) {
    for (std::size_t t = 0; t < mixed[s].size(); ++t)
      rows.push_back({static_cast<std::int64_t>(s), static_cast<std::int64_t>(t)});
  }
  EngineOptions options = options_of(detect_isa(), 2);
  const std::unique_ptr<Session> one = open(options);
  options.batch = std::ssize(mixed);
  const std::unique_ptr<Session> flat = open(options);
  options.disabled_passes = {"flatten-tokens"};
  const std::unique_ptr<Session> dense = open(options);
  ASSERT_TRUE(one != nullptr && flat != nullptr && dense != nullptr);
  std::vector<float> logits;
  for (Session* session : {flat.get(), dense.get()}) {
    const std::vector<Ids> before{
        {}, {prompt.begin(), prompt.begin() + 5}, {}, {prompt.begin(), prompt.begin() + 9}, {}};
    const std::vector<Session::Row> last{{1, 4}};
    ASSERT_TRUE(session->step(before, std::vector<std::int64_t>(5, 0), last).ok());
    const Result<std::span<const float>> step = session->step(mixed, past, rows);
    ASSERT_TRUE(step.ok()) << describe(step.error());
    if (logits.empty()) logits.assign(step->begin(), step->end());
    ASSERT_TRUE(same_bits(*step, logits)) << "the dense form differs";
  }
  std::size_t row = 0;
  for (std::size_t s = 0; s < mixed.size(); ++s) {
    if (mixed[s].empty()) continue;
    const auto until = past[s] + std::ssize(mixed[s]);
    const std::vector<float> alone = all_logits(*one, Ids(prompt.begin(), prompt.begin() + until), 128);
    for (std::int64_t at = past[s]; at < until; ++at, ++row) {
      ASSERT_TRUE(same_bits(row_of(logits, row, kVocabulary),
                            row_of(alone, static_cast<std::size_t>(at), kVocabulary)))
          << "token " << at << " of sequence " << s;
    }
  }
}

std::vector<DType> gguf_types() {
  std::vector<DType> all;
  for (const DType dtype : weight_types()) {
    if (ggml_type_of(dtype) != nullptr) all.push_back(dtype);
  }
  return all;
}

std::string format_name(const ::testing::TestParamInfo<DType>& info) {
  return std::string(dtype_name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Formats, OneSetOfBits, ::testing::ValuesIn(gguf_types()), format_name);

}  // namespace
}  // namespace hone::test
