// Vocabularies broken in one place each.
#include <functional>
#include <gtest/gtest.h>

#include "file/metadata.h"
#include "tokens/tokenizer.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;

struct Vocabulary {
  std::string model = "gpt2";
  std::string pre = "gpt-2";
  std::vector<std::string> tokens{"a", "b", "c", "ab", "abc", "<s>", "<s>x", "\xC4\xA0"};
  std::vector<std::int64_t> types{1, 1, 1, 1, 1, 3, 4, 1};
  std::vector<std::string> merges{"a b", "ab c"};
  std::optional<std::int64_t> bos;
  std::optional<bool> add_bos;

  Metadata metadata() const {
    Metadata out("test");
    out.add_string("tokenizer.ggml.model", model);
    out.add_string("tokenizer.ggml.pre", pre);
    out.add_strings("tokenizer.ggml.tokens", tokens);
    out.add_integers("tokenizer.ggml.token_type", types);
    out.add_strings("tokenizer.ggml.merges", merges);
    if (bos) out.add_integer("tokenizer.ggml.bos_token_id", *bos);
    if (add_bos) out.add_bool("tokenizer.ggml.add_bos_token", *add_bos);
    return out;
  }
};

std::string where_of(const std::function<void(Vocabulary&)>& change) {
  Vocabulary vocabulary;
  change(vocabulary);
  const Metadata metadata = vocabulary.metadata();
  const auto result = Tokenizer::from_metadata(metadata);
  if (result.ok()) return "ok";
  EXPECT_EQ(result.error().code, ErrorCode::BadModel);
  EXPECT_EQ(result.error().fault, Fault::File);
  EXPECT_FALSE(result.error().message.empty());
  return result.error().where;
}

TEST(TokenizerErrors, EachBrokenRuleIsNamed) {
  EXPECT_EQ(where_of([](Vocabulary&) {}), "ok");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.model = std::string("bert"); }), "tokenizer.ggml.model");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.model = std::string("llama"); }),
            "test, metadata key \"tokenizer.ggml.scores\"");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.pre = std::string("klingon"); }), "tokenizer.ggml.pre");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.tokens[1] = std::string("a"); }), "tokenizer.ggml.tokens[1]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.tokens[6] = std::string("<s>"); }), "tokenizer.ggml.tokens[6]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.tokens[2] = std::string(5000, 'c'); }),
            "tokenizer.ggml.tokens[2]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.types.pop_back(); }), "tokenizer.ggml.token_type");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.types[2] = 7; }), "tokenizer.ggml.token_type[2]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.merges[1] = std::string("ab"); }), "tokenizer.ggml.merges[1]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.merges[1] = std::string("a b c"); }), "tokenizer.ggml.merges[1]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.merges[1] = std::string(" ab"); }), "tokenizer.ggml.merges[1]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.merges[0] = std::string("a z"); }), "tokenizer.ggml.merges[0]");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.merges[0] = std::string("a c"); }),
            "tokenizer.ggml.merges[0]");  // no "ac"
  EXPECT_EQ(where_of([](Vocabulary& v) { v.merges[1] = std::string("a b"); }),
            "tokenizer.ggml.merges[1]");  // twice
  EXPECT_EQ(where_of([](Vocabulary& v) { v.bos = 8; }), "tokenizer.ggml.bos_token_id");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.bos = -1; }), "tokenizer.ggml.bos_token_id");
  EXPECT_EQ(where_of([](Vocabulary& v) { v.add_bos = true; }), "tokenizer.ggml.add_bos_token");
  EXPECT_EQ(where_of([](Vocabulary& v) {
              v.tokens.clear();
              v.types.clear();
              v.merges.clear();
            }),
            "tokenizer.ggml.tokens");
}

TEST(TokenizerErrors, MissingKeysAndWrongTypesAreErrors) {
  EXPECT_FALSE(Tokenizer::from_metadata(Metadata("test")).ok());
  Metadata numbers("test");
  numbers.add_string("tokenizer.ggml.model", "gpt2");
  numbers.add_integers("tokenizer.ggml.tokens", std::vector<std::int64_t>{1, 2});
  numbers.add_strings("tokenizer.ggml.merges", std::vector<std::string>{});
  EXPECT_FALSE(Tokenizer::from_metadata(numbers).ok());
}

TEST(TokenizerErrors, SmallVocabularyMergesAndAddsTheBeginToken) {
  Vocabulary vocabulary;
  vocabulary.bos = 5;
  vocabulary.add_bos = true;
  const Metadata metadata = vocabulary.metadata();
  const auto tokenizer = Tokenizer::from_metadata(metadata);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto ids = [&](std::string_view text, EncodeOptions options) {
    return *tokenizer->encode(text, options);
  };
  EXPECT_EQ(ids("abcab", {}), (Ids{5, 4, 3}));
  EXPECT_EQ(ids("abcab", {.add_special = false}), (Ids{4, 3}));
  EXPECT_EQ(ids("a<s>xb<s>", {.add_special = false}), (Ids{0, 6, 1, 5}));  // the longest one
  // Only the user-defined token is left: "s" has no token, "<" and ">" neither.
  EXPECT_EQ(ids("a<s>xb<s>", {.parse_special = false, .add_special = false}), (Ids{0, 6, 1}));
  EXPECT_EQ(tokenizer->decode(Ids{7, 3}), " ab");
}

}  // namespace
}  // namespace hone
