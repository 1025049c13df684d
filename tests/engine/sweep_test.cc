// Lengths in any order, on a model of a public shape's kind: one compile, and memory that does not grow.
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <unistd.h>

#include "../file/temporary_folder.h"
#include "engine/random_model.h"
#include "engine/session.h"
#include "engine_test_support.h"

namespace hone::test {
namespace {

constexpr std::int64_t kContext = 2048;

class Sweep : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<ModelShape> shape = find_shape("tiny");
    ASSERT_TRUE(shape.ok());
    const std::string path = folder_.path("tiny.gguf");
    ASSERT_TRUE(write_random_model(*shape, {}, 1, path).ok());
    EngineOptions options;
    options.context = kContext;
    options.threads = 2;
    before_ = compile_count();
    session_ = open_session(path, options);
    ASSERT_NE(session_, nullptr);
    ids_.resize(kContext);
    for (std::size_t i = 0; i < ids_.size(); ++i) ids_[i] = static_cast<std::int32_t>(i * 7 % 320);
  }

  void prefill(std::int64_t length) {
    const std::span<const std::int32_t> prompt(ids_.data(), static_cast<std::size_t>(length));
    const Result<std::span<const float>> logits = session_->prefill(prompt, 0);
    ASSERT_TRUE(logits.ok()) << length << ": " << describe(logits.error());
    for (const float logit : *logits) ASSERT_TRUE(std::isfinite(logit)) << length;
  }

  static std::int64_t resident_pages() {
    std::ifstream file("/proc/self/statm");
    std::int64_t size = 0;
    std::int64_t resident = 0;
    file >> size >> resident;
    return resident;
  }

  hone::testing::TemporaryFolder folder_;
  std::unique_ptr<Session> session_;
  std::int64_t before_ = 0;
  Ids ids_;
};

TEST_F(Sweep, OneCompileServesLengthsUpTo2048) {
  std::vector<std::int64_t> lengths{1, 2, 2047, 2048};
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) lengths.push_back(1 + static_cast<std::int64_t>(random() % kContext));
  std::shuffle(lengths.begin(), lengths.end(), random);
  for (const std::int64_t length : lengths) prefill(length);
  EXPECT_EQ(compile_count() - before_, 1);
}

TEST_F(Sweep, TheSecondAddsNoPage) {
  std::vector<std::int64_t> lengths(512);
  std::iota(lengths.begin(), lengths.end(), 1);
  std::mt19937 random(6);
  std::shuffle(lengths.begin(), lengths.end(), random);
  for (const std::int64_t length : lengths) prefill(length);
  std::shuffle(lengths.begin(), lengths.end(), random);
  const std::int64_t after_first = resident_pages();
  ASSERT_GT(after_first, 0);
  for (const std::int64_t length : lengths) prefill(length);
  EXPECT_EQ(resident_pages(), after_first);
  EXPECT_EQ(compile_count() - before_, 1);
}

}  // namespace
}  // namespace hone::test
