// SentencePiece's BPE over texts without a blank, longer than the encoder's change of method: what a plain
// search for the best neighbours gives.
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "file/open.h"
#include "json_lines.h"
#include "tokens/load_tokenizer.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer_sentencepiece.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;

// The pair with the highest score first, the leftmost of those with one score; a set instead of a queue.
Ids joined_by_score(const ModelSpec& model, const std::string& letters) {
  std::map<std::string, std::int32_t, std::less<>> ids;
  for (std::size_t id = 0; id < model.tokens.size(); ++id)
    ids.emplace(model.tokens[id], static_cast<std::int32_t>(id));
  const std::size_t count = letters.size();
  std::vector<std::size_t> next(count);
  std::vector<std::size_t> previous(count);
  for (std::size_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i == 0 ? count : i - 1;
  }
  std::set<std::pair<float, std::size_t>> pairs;  // -score, place
  const auto score_of = [&](std::size_t at) -> std::optional<float> {
    if (at >= count || next[at] >= count) return std::nullopt;
    const auto found = ids.find(std::string_view(letters).substr(at, next[next[at]] - at));
    if (found == ids.end()) return std::nullopt;
    return -model.scores[static_cast<std::size_t>(found->second)];
  };
  const auto change = [&](std::size_t at, bool add) {
    const auto score = score_of(at);
    if (score && add) pairs.emplace(*score, at);
    if (score && !add) pairs.erase({*score, at});
  };
  for (std::size_t i = 0; i < count; ++i) change(i, true);
  while (!pairs.empty()) {
    const std::size_t at = pairs.begin()->second;
    const std::size_t right = next[at];
    for (const std::size_t each : {previous[at], at, right}) change(each, false);
    next[at] = next[right];
    if (next[at] < count) previous[next[at]] = at;
    for (const std::size_t each : {previous[at], at}) change(each, true);
  }
  Ids out;
  for (std::size_t i = 0; i < count; i = next[i]) {
    out.push_back(ids.find(std::string_view(letters).substr(i, next[i] - i))->second);
  }
  return out;
}

class SpmLongText : public ::testing::TestWithParam<const char*> {};

TEST_P(SpmLongText, IsJoinedByScore) {
  const std::string bytes = read_text(std::string(HONE_SPM_DIR "/") + GetParam() + ".model");
  const auto model = parse_sentencepiece_model(std::as_bytes(std::span(bytes)), GetParam());
  ASSERT_TRUE(model.ok());
  auto spec = tokenizer_spec_from_sentencepiece(*model, GetParam());
  ASSERT_TRUE(spec.ok());
  spec->normaliser.front().spm.add_dummy_prefix = false;
  const auto tokenizer = Tokenizer::build(*spec);
  ASSERT_TRUE(tokenizer.ok());
  std::minstd_rand random(7);
  std::string varied;
  for (int i = 0; i < 100'000; ++i) varied.push_back("etaoinshr"[random() % 9]);
  for (const std::string& text : {varied, std::string(70'001, 'e'), varied.substr(0, 256),
                                  varied.substr(0, 257), varied.substr(0, 5'000)}) {
    const auto ids = tokenizer->encode(text, {.add_special = false});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, joined_by_score(spec->model, text)) << text.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SpmLongText, ::testing::Values("bpe-llama", "bpe-gemma"));

// Scores in an order of their own: a merge makes pairs that come before the one it was, or have its score.
TEST(SpmLongScores, ScoresNeedNotFallWithLength) {
  TokenizerSpec spec;
  NormaliserStep step;
  step.kind = NormaliserStep::Kind::SentencePiece;
  step.spm.add_dummy_prefix = false;
  spec.normaliser.push_back(step);
  spec.model.kind = ModelSpec::Kind::SentencePieceBpe;
  spec.model.tokens.push_back("<unk>");
  spec.model.unknown = 0;
  spec.model.types.push_back(TokenType::Unknown);
  spec.model.scores.push_back(0);
  std::minstd_rand random(11);
  const std::string letters = "abc";
  std::vector<std::string> pieces{"a", "b", "c"};
  for (std::size_t i = 0; pieces.size() < 3 + 9 + 27 + 81; ++i) {
    for (const char c : letters) pieces.push_back(pieces[i] + c);
  }
  for (const std::string& piece : pieces) {
    spec.model.tokens.push_back(piece);
    spec.model.types.push_back(TokenType::Normal);
    spec.model.scores.push_back(-static_cast<float>(random() % 40));
  }
  DecoderStep decoder;
  decoder.kind = DecoderStep::Kind::SentencePiece;
  spec.decoder.push_back(decoder);
  const auto tokenizer = Tokenizer::build(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (const std::size_t size : {1'000U, 66'000U}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text.push_back(letters[random() % 3]);
    const auto ids = tokenizer->encode(text, {.add_special = false});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, joined_by_score(spec.model, text)) << size;
  }
}

}  // namespace
}  // namespace hone
