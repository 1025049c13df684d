// Rotary frequencies against those that transformers computed in f64.
#include "model/rotary.h"

#include <cstring>
#include <gtest/gtest.h>

#include "file/safetensors.h"

namespace hone::test {
namespace {

void expect_frequencies(const std::string& model, const RopeConfig& rope) {
  const Result<Checkpoint> file =
      read_safetensors(std::string(HONE_TEST_DATA) + "/models/" + model + "/expected.safetensors");
  ASSERT_TRUE(file.ok());
  const TensorEntry* entry = file->find_tensor("inv_freq");
  ASSERT_NE(entry, nullptr);
  std::vector<double> expected(static_cast<std::size_t>(entry->elements()));
  std::memcpy(expected.data(), file->files[0]->data().data() + entry->offset, entry->bytes);
  const std::vector<double> found = rope_frequencies(rope);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-14 * expected[i]) << model << ", pair " << i;
  }
}

RopeConfig rope_of(RopeKind kind, double factor) {
  RopeConfig rope;
  rope.kind = kind;
  rope.dim = 16;
  rope.factor = factor;
  return rope;
}

TEST(Rotary, FrequenciesAreTheReferences) {
  expect_frequencies("llama-gqa", rope_of(RopeKind::Plain, 1));
  expect_frequencies("llama-rope-linear", rope_of(RopeKind::Linear, 4));
  RopeConfig llama3 = rope_of(RopeKind::Llama3, 8);
  llama3.original_context = 32;
  expect_frequencies("llama-rope-llama3", llama3);
  RopeConfig yarn = rope_of(RopeKind::Yarn, 4);
  yarn.original_context = 64;
  yarn.beta_fast = 8;
  expect_frequencies("llama-rope-yarn", yarn);
  RopeConfig half = rope_of(RopeKind::Plain, 1);
  half.dim = 8;
  expect_frequencies("chatglm3", half);
}

}  // namespace
}  // namespace hone::test
