// tokenizer.json: real ones over the corpus, small ones for one feature each, and broken ones.
#include "tokens/tokenizer_json.h"

#include <gtest/gtest.h>

#include "file/open.h"
#include "json_lines.h"
#include "tokens/load_tokenizer.h"
#include "tokens/tokenizer_gguf.h"
#include "tokens/utf8.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::ordered_json;

std::string folder_of(const std::string& name) {
  return HONE_VOCAB_DIR "/" + name;
}

// The differences from the reference, over the whole corpus.
void expect_exact(const Tokenizer& tokenizer, const std::string& name) {
  const auto corpus = read_json_lines(HONE_TEST_DATA "/tokenizer/corpus.jsonl");
  const auto expected = read_json_lines(HONE_TEST_DATA "/tokenizer/" + name + ".jsonl");
  ASSERT_EQ(corpus.size(), 585U);
  ASSERT_EQ(expected.size(), corpus.size());
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    const std::string id = corpus[i]["id"];
    const std::string text = corpus[i]["text"];
    ASSERT_EQ(expected[i]["id"], id);
    const Ids ids = expected[i]["ids"].get<Ids>();
    const Ids special = expected[i].contains("ids_special") ? expected[i]["ids_special"].get<Ids>() : ids;
    const std::string decoded = expected[i].value("decoded", text);
    const std::string skipped = expected[i].value("decoded_skip", decoded);
    const auto plain = tokenizer.encode(text, {.add_special = false});
    const auto whole = tokenizer.encode(text);
    ASSERT_TRUE(plain.ok() && whole.ok()) << id;
    EXPECT_EQ(*plain, ids) << id;
    EXPECT_EQ(*whole, special) << id;
    EXPECT_EQ(to_valid_utf8(tokenizer.decode(ids)), decoded) << id;
    EXPECT_EQ(to_valid_utf8(tokenizer.decode(ids, {.skip_special = true})), skipped) << id;
  }
}

Result<std::optional<Tokenizer>> load_folder(const std::string& folder) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(folder));
  return load_tokenizer(checkpoint);
}

// What gguf-py writes for a byte-level tokenizer.json.
Metadata as_gguf(const TokenizerSpec& spec, const std::string& pre) {
  std::vector<std::string> tokens;
  for (std::size_t id = 0; id < spec.model.tokens.size(); ++id) tokens.emplace_back(spec.model.tokens[id]);
  std::vector<std::int64_t> types(tokens.size(), 1);
  for (const AddedToken& added : spec.added_tokens) {
    const auto id = static_cast<std::size_t>(added.id);
    while (tokens.size() <= id) {
      tokens.push_back("[PAD" + std::to_string(tokens.size()) + "]");
      types.push_back(5);
    }
    tokens[id] = added.content;
    types[id] = added.special ? 3 : 4;
  }
  std::vector<std::string> merges;
  for (std::size_t i = 0; i < spec.model.merges.size(); i += 2) {
    merges.push_back(std::string(spec.model.merges[i]) + " " + std::string(spec.model.merges[i + 1]));
  }
  Metadata out("test");
  out.add_string("tokenizer.ggml.model", "gpt2");
  out.add_string("tokenizer.ggml.pre", pre);
  out.add_strings("tokenizer.ggml.tokens", tokens);
  out.add_integers("tokenizer.ggml.token_type", types);
  out.add_strings("tokenizer.ggml.merges", merges);
  return out;
}

TEST(TokenizerJson, Qwen3IsExact) {
  const auto tokenizer = load_folder(folder_of("qwen3"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().where << ": " << tokenizer.error().message;
  expect_exact(**tokenizer, "qwen3");
  EXPECT_EQ((*tokenizer)->eos_text(), "<|im_end|>");
  EXPECT_EQ((*tokenizer)->bos_text(), "");
  EXPECT_EQ((*tokenizer)->padding_text(), "<|endoftext|>");
  EXPECT_TRUE((*tokenizer)->chat_template().starts_with("{%- if tools %}"));
}

TEST(TokenizerJson, DeepSeekV3IsExact) {
  const auto tokenizer = load_folder(folder_of("deepseek_v3"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().where << ": " << tokenizer.error().message;
  expect_exact(**tokenizer, "deepseek_v3");
  EXPECT_EQ((*tokenizer)->special_tokens().bos, 0);
  EXPECT_EQ((*tokenizer)->special_tokens().eos, 1);
}

TEST(TokenizerJson, GgufMetadataGivesTheSame) {
  for (const auto& [name, pre] : {std::pair("qwen3", "qwen2"), std::pair("deepseek_v3", "deepseek-v3")}) {
    const std::string text = read_text(folder_of(name) + "/tokenizer.json");
    const auto spec = tokenizer_spec_from_json(text, name);
    ASSERT_TRUE(spec.ok());
    const Metadata metadata = as_gguf(*spec, pre);
    const auto tokenizer = Tokenizer::from_metadata(metadata);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().where << ": " << tokenizer.error().message;
    expect_exact(*tokenizer, name);
  }
}

// tools/make_tokenizer_references.py
TEST(TokenizerJson, EachFeatureIsExact) {
  const Json reference = Json::parse(read_text(HONE_TEST_DATA "/tokenizer/features.json"));
  ASSERT_GE(reference["cases"].size(), 40U);
  for (const Json& each : reference["cases"]) {
    Json whole = each["config"];
    whole["model"] = reference["models"][each["model"].get<std::string>()];
    if (whole.contains("ignore_merges")) whole["model"]["ignore_merges"] = true;
    const std::string name = each["name"];
    const auto spec = tokenizer_spec_from_json(whole.dump(), name);
    ASSERT_TRUE(spec.ok()) << spec.error().where << ": " << spec.error().message;
    const auto tokenizer = Tokenizer::build(*spec);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().where << ": " << tokenizer.error().message;
    for (const Json& text : each["texts"]) {
      const auto source = text["text"].get<std::string>();
      const Ids ids = text["ids"].get<Ids>();
      const auto plain = tokenizer->encode(source, {.add_special = false});
      const auto special = tokenizer->encode(source);
      ASSERT_TRUE(plain.ok() && special.ok());
      EXPECT_EQ(*plain, ids) << name << ": " << text["text"];
      EXPECT_EQ(*special, text.contains("ids_special") ? text["ids_special"].get<Ids>() : ids) << name;
      if (each.value("ids_only", false)) continue;
      const std::string decoded = text.value("decoded", source);
      EXPECT_EQ(to_valid_utf8(tokenizer->decode(ids)), decoded) << name << ": " << text["text"];
      EXPECT_EQ(to_valid_utf8(tokenizer->decode(ids, {.skip_special = true})),
                text.value("decoded_skip", decoded))
          << name << ": " << text["text"];
    }
  }
}

// A small whole one, with one part of it replaced.
std::string small_json(const std::string& part, const std::string& with) {
  std::string text =
      R"({"added_tokens": [{"id": 4, "content": "<s>", "special": true}], "normalizer": null,)"
      R"( "pre_tokenizer": {"type": "ByteLevel", "use_regex": true, "add_prefix_space": false}, "post_processor": null,)"
      R"( "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3},)"
      R"( "merges": ["a b"]}})";
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), with);
}

std::string fault_of(const std::string& part, const std::string& with) {
  const std::string text = small_json(part, with);
  const auto spec = tokenizer_spec_from_json(text, "t");
  const auto built = spec.ok() ? Tokenizer::build(*spec) : Result<Tokenizer>(spec.error());
  if (built.ok()) return "ok";
  EXPECT_EQ(built.error().fault, Fault::File);
  return built.error().where + ": " + built.error().message;
}

TEST(TokenizerJson, EachBrokenRuleIsNamedWithItsPlace) {
  EXPECT_EQ(fault_of("null", "null"), "ok");
  EXPECT_EQ(fault_of(R"("b": 1)", R"("a": 1)"), "t, model.vocab[1]: each token stands once in a vocabulary");
  EXPECT_EQ(fault_of(R"("b": 1)", R"("b": 0)"), "t, model.vocab[0]: each id stands once in a vocabulary");
  EXPECT_EQ(fault_of(R"("b": 1)", R"("b": 900000000)"), "t, model.vocab: token ids have few holes");
  EXPECT_TRUE(fault_of(R"("b": 1)", R"("b": 99999999999)").starts_with("t, line 1:"));
  EXPECT_TRUE(fault_of(R"("b": 1)", R"("b": -1)").starts_with("t, line 1:"));
  EXPECT_TRUE(fault_of(R"("b": 1)", R"("b": 1.5)").starts_with("t, line 1:"));
  EXPECT_TRUE(fault_of(R"("b": 1)", R"("b" 1)").starts_with("t, line 1:"));
  EXPECT_TRUE(fault_of(R"("b": 1)", R"("\ud800": 1)").starts_with("t, line 1:"));
  EXPECT_TRUE(fault_of(R"("b": 1)", "\"\xFF\": 1").starts_with("t, line 1:"));
  EXPECT_EQ(fault_of("a b", "a z"), "t, model.merges[0]: a merge joins two tokens into a third");
  EXPECT_EQ(fault_of("a b", "a b c"), "t, model.merges[0]: a merge is two tokens");
  EXPECT_EQ(fault_of(R"("a b")", R"("a b", ["a", "b"])"),
            "t, model.merges[1]: each merge stands once in its list");
  EXPECT_EQ(fault_of(R"("BPE")", R"("WordPiece")"),
            "t, model.type: tokenizer model 'WordPiece' is not supported");
  EXPECT_EQ(fault_of(R"("normalizer": null)", R"("normalizer": {"type": "Nmt"})"),
            "t, normalizer: normalizer 'Nmt' is not supported");
  EXPECT_EQ(
      fault_of(R"("pre_tokenizer": {"type": "ByteLevel")", R"("pre_tokenizer": {"type": "UnicodeScripts")"),
      "t, pre_tokenizer: pre-tokenizer 'UnicodeScripts' is not supported");
  EXPECT_EQ(fault_of(R"("post_processor": null)", R"("post_processor": {"type": "X"})"),
            "t, post_processor: post-processor 'X' is not supported");
  EXPECT_EQ(fault_of(R"("decoder": {"type": "ByteLevel"})", R"("decoder": {"type": "CTC"})"),
            "t, decoder: decoder 'CTC' is not supported");
  EXPECT_EQ(
      fault_of(R"("normalizer": null)",
               R"("normalizer": {"type": "Replace", "pattern": {"Regex": "[a&&b]"}, "content": ""})"),
      "t, normalizer[0], byte 2 of the expression: the expression's syntax '&& in a class' is not supported");
  EXPECT_EQ(fault_of(R"("id": 4)", R"("id": 1)"),
            "t, added_tokens[0]: an added token with the id of another token has its text");
  EXPECT_EQ(fault_of(R"("id": 4)", R"("id": 900000000)"), "t, added_tokens[0]: token ids have few holes");
  EXPECT_EQ(fault_of(R"("content": "<s>")", R"("content": "")"),
            "t, added_tokens[0]: an added token has an id and a content");
  const std::string deep = std::string(100000, '[');
  EXPECT_TRUE(fault_of(R"("normalizer": null)", R"("normalizer": )" + deep).find("nested") !=
              std::string::npos);
  EXPECT_TRUE(fault_of(R"("normalizer": null)", R"("x": )" + deep).find("nested") != std::string::npos);
  std::string sequences = "null";
  for (int i = 0; i < 12; ++i) sequences = R"({"type": "Sequence", "normalizers": [)" + sequences + "]}";
  EXPECT_TRUE(fault_of(R"("normalizer": null)", R"("normalizer": )" + sequences).find("nested") !=
              std::string::npos);
}

// (a+)+$ over a's and a b takes 2^n steps.
TEST(TokenizerJson, AnExpressionThatBacktracksForEverIsAnError) {
  const std::string text = small_json(
      R"({"type": "ByteLevel", "use_regex": true, "add_prefix_space": false})",
      R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}, )"
      R"({"type": "ByteLevel", "use_regex": false, "add_prefix_space": false}]})");
  const auto spec = tokenizer_spec_from_json(text, "t");
  ASSERT_TRUE(spec.ok());
  const auto tokenizer = Tokenizer::build(*spec);
  ASSERT_TRUE(tokenizer.ok());
  const auto ids = tokenizer->encode(std::string(5000, 'a') + "b");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().code, ErrorCode::BadInput);
  EXPECT_TRUE(ids.error().where.starts_with("text, byte"));
}

}  // namespace
}  // namespace hone
