#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <unistd.h>

#include "engine/compare_models.h"
#include "engine/likelihood.h"
#include "engine/quantize_file.h"
#include "engine_test_support.h"
#include "file/gguf.h"
#include "tensor/block_formats.h"

namespace hone::test {
namespace {

class Quantize : public testing::Test {
 protected:
  Quantize() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-quantize-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Quantize() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  QuantizeReport write(const std::string& source, const char* name, const QuantizeOptions& options,
                       int threads = 2) const {
    const Result<Checkpoint> checkpoint = read_gguf(source);
    const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
    EXPECT_TRUE(checkpoint.ok() && pool.ok());
    const Result<QuantizeReport> report = quantize_file(*checkpoint, path(name), options, **pool);
    EXPECT_TRUE(report.ok()) << describe(report.error());
    return report.ok() ? *report : QuantizeReport{};
  }

  std::filesystem::path folder_;
};

const std::string kSource = data_path("gguf/llama-256-Q8_0.gguf");

std::vector<std::byte> bytes_of(const Checkpoint& checkpoint, const TensorEntry& entry) {
  std::vector<std::byte> out(entry.bytes);
  EXPECT_TRUE(checkpoint.read_tensor(entry, 0, out).ok());
  return out;
}

TEST_F(Quantize, EveryTypeIsWrittenAndReadBack) {
  const Result<Checkpoint> source = read_gguf(kSource);
  ASSERT_TRUE(source.ok());
  for (const DType type : quantize_types()) {
    SCOPED_TRACE(dtype_name(type));
    const QuantizeReport report = write(kSource, "out.gguf", {type, false});
    const Result<Checkpoint> written = read_gguf(path("out.gguf"));
    ASSERT_TRUE(written.ok()) << describe(written.error());
    EXPECT_EQ(report.bytes_after, std::filesystem::file_size(path("out.gguf")));
    ASSERT_EQ(written->tensors.size(), source->tensors.size());
    for (std::size_t i = 0; i < written->tensors.size(); ++i) {
      const TensorEntry& from = source->tensors[i];
      const TensorEntry& to = written->tensors[i];
      EXPECT_EQ(to.name, from.name);
      EXPECT_EQ(to.shape, from.shape);
      EXPECT_EQ(to.dtype, from.shape.size() < 2 ? from.dtype : type) << to.name;
      EXPECT_LT(report.tensors[i].relative_error, 0.11) << to.name;
      EXPECT_EQ(report.tensors[i].relative_error == 0, from.dtype == to.dtype || type == DType::F32);
    }
  }
}

TEST_F(Quantize, BlocksAreThoseOfEncodeRow) {
  write(kSource, "out.gguf", {DType::Q5_1, false});
  const Result<Checkpoint> source = read_gguf(kSource);
  const Result<Checkpoint> written = read_gguf(path("out.gguf"));
  ASSERT_TRUE(source.ok() && written.ok());
  const char* name = "blk.1.ffn_down.weight";
  const TensorEntry& entry = *source->find_tensor(name);
  std::vector<float> values(static_cast<std::size_t>(entry.elements()));
  ASSERT_TRUE(
      decode_row(*entry.dtype, bytes_of(*source, entry).data(), entry.elements(), values.data()).ok());
  std::vector<std::byte> expected(static_cast<std::size_t>(dtype_bytes(DType::Q5_1, entry.elements())));
  ASSERT_TRUE(encode_row(DType::Q5_1, values.data(), entry.elements(), expected.data()).ok());
  EXPECT_EQ(bytes_of(*written, *written->find_tensor(name)), expected);
}

TEST_F(Quantize, MetadataTokenizerAndTemplateTravelAlong) {
  write(kSource, "out.gguf", {DType::Q4_K, true});
  const Result<Checkpoint> source = read_gguf(kSource);
  const Result<Checkpoint> written = read_gguf(path("out.gguf"));
  ASSERT_TRUE(source.ok() && written.ok());
  for (const MetadataEntry& entry : source->metadata.entries()) {
    const MetadataValue* value = written->metadata.find(entry.key);
    ASSERT_NE(value, nullptr) << entry.key;
    if (entry.key == "general.file_type" || entry.key == "general.quantization_version") continue;
    EXPECT_EQ(value->type_text(), entry.value.type_text()) << entry.key;
    EXPECT_EQ(value->bits(), entry.value.bits()) << entry.key;
    EXPECT_EQ(value->as_string(), entry.value.as_string()) << entry.key;
    if (const auto array = entry.value.as_array()) {
      EXPECT_TRUE(std::ranges::equal(value->as_array()->bytes(), array->bytes())) << entry.key;
    }
  }
  EXPECT_EQ(*written->metadata.required_integer("general.file_type"), 15);
  EXPECT_EQ(*written->metadata.required_integer("general.quantization_version"), 2);
}

TEST_F(Quantize, ThreadsDoNotChangeTheFile) {
  const QuantizeReport one = write(kSource, "one.gguf", {DType::Q4_K, false}, 1);
  const QuantizeReport three = write(kSource, "three.gguf", {DType::Q4_K, false}, 3);
  const Result<Checkpoint> first = read_gguf(path("one.gguf"));
  const Result<Checkpoint> second = read_gguf(path("three.gguf"));
  ASSERT_TRUE(first.ok() && second.ok());
  for (std::size_t i = 0; i < first->tensors.size(); ++i) {
    EXPECT_EQ(bytes_of(*first, first->tensors[i]), bytes_of(*second, second->tensors[i]));
    EXPECT_EQ(one.tensors[i].relative_error, three.tensors[i].relative_error);
  }
}

// The mix is the one that llama.cpp calls Q4_K_M: its file has the same type for every tensor.
TEST_F(Quantize, TheMixKeepsSensitiveMatricesWider) {
  const Result<Checkpoint> source = read_gguf(kSource);
  const Result<Checkpoint> reference = read_gguf(data_path("gguf/llama-256-Q4_K_M.gguf"));
  ASSERT_TRUE(source.ok() && reference.ok());
  int wide = 0;
  const std::vector<GgufTensor> tensors = as_gguf_tensors(*source);
  for (const GgufTensor& tensor : tensors) {
    const DType type = target_type(tensors, tensor, {DType::Q4_K, true});
    EXPECT_EQ(type, reference->find_tensor(tensor.name)->dtype) << tensor.name;
    wide += type == DType::Q6_K ? 1 : 0;
  }
  EXPECT_EQ(wide, 3);
}

TensorEntry tensor(const char* name, std::vector<std::int64_t> shape, DType dtype = DType::F32) {
  TensorEntry entry;
  entry.name = name;
  entry.dtype = dtype;
  entry.shape = std::move(shape);
  return entry;
}

TEST(QuantizeTypes, WhatStaysAndWhatFallsBack) {
  const auto type_of = [&](const TensorEntry& entry, DType type, bool mix = false) {
    Checkpoint checkpoint;
    checkpoint.tensors.push_back(entry);
    const std::vector<GgufTensor> tensors = as_gguf_tensors(checkpoint);
    return target_type(tensors, tensors[0], {.type = type, .mix = mix, .keep_small_types = true});
  };
  EXPECT_EQ(type_of(tensor("output_norm.weight", {256}), DType::Q4_K), DType::F32);
  EXPECT_EQ(type_of(tensor("blk.0.attn_q.bias", {256}), DType::Q4_K), DType::F32);
  EXPECT_EQ(type_of(tensor("blk.0.ffn_gate_inp.weight", {8, 256}), DType::Q4_K), DType::F32);
  EXPECT_EQ(type_of(tensor("blk.0.ffn_up_exps.weight", {8, 64, 256}), DType::Q4_K), DType::Q4_K);
  EXPECT_EQ(type_of(tensor("rows", {8, 256}), DType::Q4_K), DType::F32) << "not a weight";
  EXPECT_EQ(type_of(tensor("t.weight", {8, 256}, DType::I32), DType::Q4_K), DType::I32);
  // Rows of no whole blocks: of 256, of 32.
  EXPECT_EQ(type_of(tensor("t.weight", {8, 96}), DType::Q4_K), DType::Q5_0);
  EXPECT_EQ(type_of(tensor("t.weight", {8, 96}), DType::Q5_K), DType::Q5_1);
  EXPECT_EQ(type_of(tensor("t.weight", {8, 96}), DType::Q6_K), DType::Q8_0);
  EXPECT_EQ(type_of(tensor("t.weight", {8, 40}), DType::Q4_K), DType::F16);
  EXPECT_EQ(type_of(tensor("t.weight", {8, 40}), DType::Q8_0), DType::F16);
  EXPECT_EQ(type_of(tensor("output.weight", {8, 256}), DType::Q8_0, true), DType::F16);
  EXPECT_EQ(type_of(tensor("token_embd.weight", {8, 256}), DType::Q4_K, true), DType::Q6_K) << "tied";
  EXPECT_EQ(quantize_type_from_name("Q4_K"), DType::Q4_K);
  EXPECT_EQ(quantize_type_from_name("bf16"), DType::BF16);
  EXPECT_EQ(quantize_type_from_name("q2_k"), std::nullopt) << "no encoder";
  EXPECT_EQ(quantize_type_from_name("i32"), std::nullopt);
}

TEST_F(Quantize, RefusesWhatItCannotWrite) {
  const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(1);
  ASSERT_TRUE(pool.ok());
  std::filesystem::copy_file(kSource, path("same.gguf"));
  const Result<Checkpoint> same = read_gguf(path("same.gguf"));
  ASSERT_TRUE(same.ok());
  const auto onto_itself = quantize_file(*same, path("same.gguf"), {DType::Q4_0, false}, **pool);
  ASSERT_FALSE(onto_itself.ok());
  EXPECT_EQ(onto_itself.error().code, ErrorCode::Usage);
  Checkpoint folder;
  folder.format = "huggingface";
  const auto other = quantize_file(folder, path("out.gguf"), {DType::Q4_0, false}, **pool);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::BadModel);
  EXPECT_FALSE(std::filesystem::exists(path("out.gguf")));
}

EngineOptions exact() {
  EngineOptions options;
  options.level = Level::O2;
  options.all_logits = true;
  options.context = 64;
  options.chunk = 24;
  options.threads = 2;
  return options;
}

Ids some_ids(std::size_t count) {
  Ids ids;
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    ids.push_back(static_cast<std::int32_t>(state >> 23));
  }
  return ids;
}

TEST(CompareModels, DivergenceByHand) {
  // p = (1/2, 1/2), q = (1/4, 3/4): ln 2 / 2 + ln(2/3) / 2
  const std::vector<float> p{1.0F, 1.0F};
  const std::vector<float> q{0.0F, std::log(3.0F)};
  EXPECT_NEAR(divergence(p, q), 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-7);
  EXPECT_EQ(divergence(p, p), 0.0);
}

TEST_F(Quantize, AModelIsNotFarFromItself) {
  const std::unique_ptr<Session> a = open_session(kSource, exact());
  const std::unique_ptr<Session> b = open_session(kSource, exact());
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const Result<Comparison> same = compare_models(*a, *b, some_ids(100), 40);
  ASSERT_TRUE(same.ok()) << describe(same.error());
  EXPECT_EQ(same->tokens, 99);
  EXPECT_EQ(same->kl_mean, 0.0);
  EXPECT_EQ(same->same_top_rate, 1.0);
  EXPECT_EQ(same->source_nll_mean, same->other_nll_mean);
}

TEST(CompareModels, IsTheSumOverTheLogitsOfBoth) {
  const std::unique_ptr<Session> a = open_session(data_path("gguf/llama-256-F32.gguf"), exact());
  const std::unique_ptr<Session> b = open_session(data_path("gguf/llama-256-Q4_1.gguf"), exact());
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const Ids ids = some_ids(250);
  const Result<Comparison> found = compare_models(*a, *b, ids, 40);
  ASSERT_TRUE(found.ok()) << describe(found.error());
  std::vector<double> divergences;
  double same = 0;
  double a_nll = 0;
  double b_nll = 0;
  double worst = 0;
  for (std::size_t first = 0; first + 1 < ids.size(); first += 40) {
    const std::size_t count = std::min<std::size_t>(40, ids.size() - 1 - first);
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    const Ids part(begin, begin + static_cast<std::ptrdiff_t>(count));
    const std::vector<float> p = all_logits(*a, part, 24);
    const std::vector<float> q = all_logits(*b, part, 24);
    double sum = 0;
    for (std::size_t t = 0; t < count; ++t) {
      const std::span<const float> p_row = row_of(p, t, 512);
      const std::span<const float> q_row = row_of(q, t, 512);
      divergences.push_back(divergence(p_row, q_row));
      sum += divergences.back();
      same += arg_max(p_row) == arg_max(q_row) ? 1 : 0;
      a_nll += negative_log_likelihood(p_row, ids[first + t + 1]);
      b_nll += negative_log_likelihood(q_row, ids[first + t + 1]);
    }
    worst = std::max(worst, sum / static_cast<double>(count));
  }
  ASSERT_EQ(divergences.size(), 249U);
  EXPECT_EQ(found->tokens, 249);
  std::ranges::sort(divergences, std::greater<>());
  EXPECT_NEAR(found->kl_mean, std::accumulate(divergences.begin(), divergences.end(), 0.0) / 249, 1e-9);
  EXPECT_NEAR(found->kl_largest, divergences[0], 1e-9);
  EXPECT_NEAR(found->kl_worst_percent, (divergences[0] + divergences[1]) / 2, 1e-9);
  EXPECT_NEAR(found->worst.kl_mean, worst, 1e-9);
  EXPECT_LT(same, 249);
  EXPECT_EQ(found->same_top_rate, same / 249);
  EXPECT_NEAR(found->source_nll_mean, a_nll / 249, 1e-9);
  EXPECT_NEAR(found->other_nll_mean, b_nll / 249, 1e-9);
}

// llama.cpp's own file of the same size, both from the f32 weights.
TEST_F(Quantize, Q4KMIsNoFurtherThanTheReferenceFile) {
  const std::string exact_source = data_path("gguf/llama-256-F32.gguf");
  const QuantizeReport report = write(exact_source, "ours.gguf", {DType::Q4_K, true});
  const std::string reference = data_path("gguf/llama-256-Q4_K_M.gguf");
  EXPECT_NEAR(static_cast<double>(report.bytes_after),
              static_cast<double>(std::filesystem::file_size(reference)), 4096);
  const std::unique_ptr<Session> source = open_session(exact_source, exact());
  const std::unique_ptr<Session> ours = open_session(path("ours.gguf"), exact());
  const std::unique_ptr<Session> theirs = open_session(reference, exact());
  ASSERT_TRUE(source != nullptr && ours != nullptr && theirs != nullptr);
  const Ids ids = some_ids(600);
  const Result<Comparison> our = compare_models(*source, *ours, ids, 60);
  const Result<Comparison> their = compare_models(*source, *theirs, ids, 60);
  ASSERT_TRUE(our.ok() && their.ok());
  RecordProperty("kl_ours", std::to_string(our->kl_mean));
  RecordProperty("kl_theirs", std::to_string(their->kl_mean));
  EXPECT_LE(our->kl_mean, their->kl_mean);
  EXPECT_GT(our->kl_mean, 0);
  EXPECT_GE(our->kl_worst_percent, our->kl_mean);
  EXPECT_GE(our->kl_largest, our->kl_worst_percent);
  EXPECT_GE(our->worst.kl_mean, our->kl_mean);
  EXPECT_EQ(our->worst.first % 60, 0);
  // Random weights leave small margins; another file of the same size agrees about as often.
  EXPECT_GT(our->same_top_rate, their->same_top_rate - 0.1);
}

}  // namespace
}  // namespace hone::test
