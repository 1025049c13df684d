// Steps of a tokenizer on their own, where their rules differ from those that look like them.
#include <gtest/gtest.h>

#include "tokens/decoder.h"
#include "tokens/expression.h"
#include "tokens/normaliser.h"
#include "tokens/tokenizer.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;

Texts matches(const std::string& pattern, std::string_view text) {
  const Result<Expression> expression = Expression::compile({pattern, true}, "t");
  if (!expression.ok()) return {expression.error().message};
  ExpressionScratch scratch;
  Texts out;
  const Status found = expression->for_each_match(text, scratch, [&](std::uint32_t begin, std::uint32_t end) {
    out.emplace_back(text.substr(begin, end - begin));
  });
  EXPECT_TRUE(found.ok());
  return out;
}

TEST(Expression, WhatIsNoWhiteSpaceIsUnicodes) {
  // U+180E has been no White_Space since Unicode 6.3; U+0085 and U+3000 are.
  EXPECT_EQ(matches(R"(\S+)", "a\u180Eb\u3000c\u0085d"), (Texts{"a\u180Eb", "c", "d"}));
}

TEST(Expression, WhatIsNoWordCharacterIsUnicodes) {
  // A combining mark is a word character, a fraction is none.
  EXPECT_EQ(matches(R"(\W+)", "e\u0301\u00BDx"), Texts{"\u00BD"});
}

TEST(Expression, ClassesHoldNegatedSetsAsUnicodeMeansThem) {
  EXPECT_EQ(matches(R"([\S])", "a\u180E\u3000b"), (Texts{"a", "\u180E", "b"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \u3000\u180E\n b"), (Texts{" \u3000", " "}));
  EXPECT_EQ(matches(R"([\W_]+)", "e\u0301_\u00BD x"), Texts{"_\u00BD "});
  // Letters and their marks.
  EXPECT_EQ(matches(R"([^\W\d_]+)", "ae\u0301\u00BD1b_c"), (Texts{"ae\u0301", "b", "c"}));
  EXPECT_EQ(matches(R"([\s\S])", "a\n "), (Texts{"a", "\n", " "}));
  EXPECT_EQ(matches(R"([^\s\S])", "a\n "), Texts{});
  EXPECT_EQ(matches(R"([\W\S])", "a "), (Texts{"a", " "}));
  EXPECT_EQ(matches(R"([^\W\S])", "a "), Texts{});
  // The class is one unit to what counts it.
  EXPECT_EQ(matches(R"([a\W]{2})", "a!ba"), Texts{"a!"});
}

TokenizerSpec spec_of(std::initializer_list<std::string_view> tokens) {
  TokenizerSpec spec;
  for (const std::string_view token : tokens) spec.model.tokens.push_back(token);
  return spec;
}

TEST(Decoder, StripTakesAtMostItsCountsOffEachPiece) {
  TokenizerSpec spec = spec_of({"___a___", "_b", "__"});
  DecoderStep strip;
  strip.kind = DecoderStep::Kind::Strip;
  strip.content = "_";
  const auto decoded = [&](std::uint32_t start, std::uint32_t stop, const Ids& ids) {
    strip.start = start;
    strip.stop = stop;
    spec.decoder = {strip};
    const Result<hone::Vocabulary> vocabulary = hone::Vocabulary::build(spec, false);
    const Result<TextDecoder> decoder = TextDecoder::build(spec);
    return vocabulary.ok() && decoder.ok() ? decoder->decode(*vocabulary, ids, {}) : "an error";
  };
  EXPECT_EQ(decoded(2, 0, {0, 1}), "_a___b");
  EXPECT_EQ(decoded(0, 2, {0, 1}), "___a__b");
  EXPECT_EQ(decoded(9, 9, {0, 1}), "ab");
  EXPECT_EQ(decoded(1, 2, {2}), "");
}

TEST(Normaliser, StripAccentsTakesEveryKindOfMark) {
  TokenizerSpec spec;
  NormaliserStep step;
  step.kind = NormaliserStep::Kind::StripAccents;
  spec.normaliser = {step};
  const Result<Normaliser> normaliser = Normaliser::build(spec);
  ASSERT_TRUE(normaliser.ok());
  // Mn, Mc, Me.
  std::string text = "a\u0301b\u0903c\u20DDd";
  NormaliserScratch scratch;
  ASSERT_TRUE(normaliser->apply(text, scratch).ok());
  EXPECT_EQ(text, "abcd");
}

TEST(Bpe, UnknownCharactersSideBySideAreOneTokenOnlyIfFused) {
  TokenizerSpec spec = spec_of({"?", "a"});
  spec.model.unknown = 0;
  for (const bool fused : {false, true}) {
    spec.model.fuse_unknown = fused;
    const Result<Tokenizer> tokenizer = Tokenizer::build(spec);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    const auto ids = tokenizer->encode("xyaz");
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, fused ? (Ids{0, 1, 0}) : (Ids{0, 0, 1, 0}));
  }
}

// SentencePiece gives a user-defined symbol the largest score, at least 0, for each of its bytes, less 0.1.
TEST(Unigram, AUserDefinedSymbolLosesToPiecesThatCostLessThanATenth) {
  TokenizerSpec spec = spec_of({"?", "a", "b", "c", "ab", "bc"});
  spec.model.kind = ModelSpec::Kind::Unigram;
  spec.model.unknown = 0;
  spec.model.types = {TokenType::Unknown, TokenType::Normal,      TokenType::Normal,
                      TokenType::Normal,  TokenType::UserDefined, TokenType::UserDefined};
  spec.model.scores = {0, -0.02F, -0.02F, -0.2F, 0, 0};
  const Result<Tokenizer> tokenizer = Tokenizer::build(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("ab"), (Ids{1, 2}));
  EXPECT_EQ(*tokenizer->encode("bc"), Ids{5});
}

}  // namespace
}  // namespace hone
