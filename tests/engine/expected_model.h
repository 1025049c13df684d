// Logits, hidden states and greedy tokens that an independent implementation computed in f64, and how far a
// computation in f32 may be from them.
#pragma once

#include <map>

#include "engine_test_support.h"

namespace hone::test {

struct Expected {
  std::vector<Ids> ids;                    // two sequences
  std::vector<std::vector<float>> logits;  // [S,V] of each
  std::vector<Ids> greedy;  // 16 ids of each: arg max, the whole sequence computed anew at each step
  std::vector<std::vector<float>> margin;  // largest logit - second largest at each of the 16
  double largest = 0;                      // |logit|
  // Of the first sequence, where the file has them: hidden_embed, hidden_0 .. and hidden_norm, [S,D] each.
  std::map<std::string, std::vector<float>> hidden;
  // With a cache, where that differs; one entry a sequence, empty if there is none.
  std::vector<Ids> greedy_cached;
  std::vector<std::vector<float>> margin_cached;
};

inline Expected read_expected(const std::string& path) {
  const Result<Checkpoint> file = read_safetensors(path);
  Expected out;
  if (!file.ok()) {
    ADD_FAILURE() << describe(file.error());
    return out;
  }
  const std::vector<std::int64_t> ids = tensor_values<std::int64_t>(*file, "input_ids");  // [2,S], padded
  const std::vector<std::int64_t> lengths = tensor_values<std::int64_t>(*file, "lengths");
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string suffix = i == 0 ? "_0" : "_1";
    const std::size_t begin = i * ids.size() / lengths.size();
    out.ids.push_back(to_ids(std::span(ids).subspan(begin, static_cast<std::size_t>(lengths[i]))));
    out.logits.push_back(tensor_values<float>(*file, "logits" + suffix));
    out.greedy.push_back(to_ids(tensor_values<std::int64_t>(*file, "greedy" + suffix)));
    out.margin.push_back(tensor_values<float>(*file, "margin" + suffix));
    out.largest = std::max(out.largest, largest_magnitude(out.logits.back()));
    if (file->find_tensor("greedy_cached" + suffix) == nullptr) continue;
    out.greedy_cached.resize(lengths.size());
    out.margin_cached.resize(lengths.size());
    out.greedy_cached[i] = to_ids(tensor_values<std::int64_t>(*file, "greedy_cached" + suffix));
    out.margin_cached[i] = tensor_values<float>(*file, "margin_cached" + suffix);
  }
  for (const TensorEntry& tensor : file->tensors) {
    if (tensor.name.starts_with("hidden_")) {
      out.hidden[tensor.name] = tensor_values<float>(*file, tensor.name);
    }
  }
  return out;
}

// At each step whose margin is above `undecided`, the reference's tokens so far must give the reference's
// next token.
inline void expect_greedy(Session& session, const Expected& expected, std::size_t i, double undecided) {
  Ids fed = expected.ids[i];
  const std::size_t prompt = fed.size();
  fed.insert(fed.end(), expected.greedy[i].begin(), expected.greedy[i].end() - 1);
  const auto vocabulary = static_cast<std::size_t>(session.model().config.vocabulary);
  const bool anew = session.model().config.depends_on_length();
  const std::vector<float> logits = anew ? std::vector<float>() : all_logits(session, fed, 64);
  if (!anew) {
    ASSERT_EQ(logits.size(), fed.size() * vocabulary);
  }
  int decided = 0;
  for (std::size_t t = 0; t < expected.greedy[i].size(); ++t) {
    if (static_cast<double>(expected.margin[i][t]) <= undecided) continue;
    ++decided;
    std::int64_t best = -1;
    if (anew) {
      const Ids so_far(fed.begin(), fed.begin() + static_cast<std::ptrdiff_t>(prompt + t));
      const Result<std::span<const float>> last = session.prefill(so_far, 0);
      ASSERT_TRUE(last.ok()) << describe(last.error());
      best = arg_max(*last);
    } else {
      best = arg_max(row_of(logits, prompt - 1 + t, vocabulary));
    }
    EXPECT_EQ(best, expected.greedy[i][t]) << "step " << t;
  }
  EXPECT_GE(decided, 4) << "a margin rule that leaves nothing to check";
}

}  // namespace hone::test
