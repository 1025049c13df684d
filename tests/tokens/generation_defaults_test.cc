#include "tokens/generation_defaults.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hone {
namespace {

Checkpoint folder(const char* generation_config, const char* config = "{}") {
  Checkpoint out;
  out.folder = "model";
  if (generation_config != nullptr) {
    out.generation_config = std::make_shared<const nlohmann::json>(nlohmann::json::parse(generation_config));
  }
  out.config = std::make_shared<const nlohmann::json>(nlohmann::json::parse(config));
  return out;
}

GenerationDefaults defaults(const char* text) {
  auto out = generation_defaults(folder(text));
  EXPECT_TRUE(out.ok()) << out.error().message;
  return std::move(out).value();
}

TEST(GenerationDefaults, EveryKeyIsTaken) {
  const GenerationDefaults made = defaults(R"({
    "do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "typical_p": 0.9,
    "repetition_penalty": 1.1, "eos_token_id": [7, 9], "max_new_tokens": 32, "bos_token_id": 1,
    "transformers_version": "4.51.0"})");
  EXPECT_EQ(made.sampler.temperature, 0.6);
  EXPECT_EQ(made.sampler.top_k, 20);
  EXPECT_EQ(made.sampler.top_p, 0.95);
  EXPECT_EQ(made.sampler.min_p, 0.05);
  EXPECT_EQ(made.sampler.typical_p, 0.9);
  EXPECT_EQ(made.sampler.repeat_penalty, 1.1);
  EXPECT_EQ(made.end_ids, (std::vector<std::int32_t>{7, 9}));
  EXPECT_EQ(made.max_tokens, 32);
  EXPECT_TRUE(made.ignored.empty());
  EXPECT_EQ(made.source_of("top-k"), "generation_config.json: top_k");
  EXPECT_EQ(made.source_of("repeat-penalty"), "generation_config.json: repetition_penalty");
  EXPECT_EQ(made.source_of("presence-penalty"), "");
}

TEST(GenerationDefaults, WithoutDoSampleItIsGreedy) {
  EXPECT_EQ(defaults(R"({"temperature": 0.7})").sampler.temperature, 0);
  const GenerationDefaults greedy = defaults(R"({"do_sample": false, "temperature": 0.7, "top_k": 3})");
  EXPECT_EQ(greedy.sampler.temperature, 0);
  EXPECT_EQ(greedy.sampler.top_k, 3);
  EXPECT_EQ(greedy.source_of("temperature"), "generation_config.json: do_sample");
  EXPECT_EQ(defaults(R"({"do_sample": true})").sampler.temperature, 1);
}

TEST(GenerationDefaults, NullIsAMissingKey) {
  const GenerationDefaults made = defaults(
      R"({"do_sample": true, "temperature": null, "top_k": null, "eos_token_id": null, "max_new_tokens": null})");
  EXPECT_EQ(made.sampler.temperature, 1);
  EXPECT_EQ(made.sampler.top_k, 0);
  EXPECT_TRUE(made.end_ids.empty());
  EXPECT_FALSE(made.max_tokens.has_value());
}

TEST(GenerationDefaults, WhatHoneDoesNotDoIsListed) {
  const GenerationDefaults made = defaults(
      R"({"num_beams": 4, "no_repeat_ngram_size": 0, "eta_cutoff": 0.0, "bad_words_ids": [[5]], "stop_strings": []})");
  EXPECT_EQ(made.ignored, (std::vector<std::string>{"num_beams = 4", "bad_words_ids = [[5]]"}));
}

TEST(GenerationDefaults, WithoutTheFileTheEndIsThatOfTheConfig) {
  auto made = generation_defaults(folder(nullptr, R"({"eos_token_id": 2})"));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->end_ids, std::vector<std::int32_t>{2});
  EXPECT_EQ(made->sampler.temperature, 0);
  made = generation_defaults(folder("{}", R"({"eos_token_id": 2})"));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->end_ids.empty());
}

TEST(GenerationDefaults, TheTextModelsEndCountsWhereTheWholeHasNone) {
  auto made = generation_defaults(folder(nullptr, R"({"text_config": {"eos_token_id": [4, 5]}})"));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->end_ids, (std::vector<std::int32_t>{4, 5}));
  made = generation_defaults(folder(nullptr, R"({"eos_token_id": 2, "text_config": {"eos_token_id": 4}})"));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->end_ids, std::vector<std::int32_t>{2});
  made = generation_defaults(folder(nullptr, R"({"text_config": [1]})"));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->end_ids.empty());
  made = generation_defaults(folder(nullptr, R"({"text_config": {"eos_token_id": "x"}})"));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().where, "model/config.json: text_config: eos_token_id");
}

TEST(GenerationDefaults, AWrongValueIsNamedWithItsKey) {
  const auto where = [](const char* text) {
    const auto made = generation_defaults(folder(text));
    if (made.ok()) return std::string("ok");
    EXPECT_EQ(made.error().code, ErrorCode::BadModel);
    EXPECT_EQ(made.error().fault, Fault::File);
    return made.error().where;
  };
  EXPECT_EQ(where(R"({"temperature": "hot"})"), "model/generation_config.json: temperature");
  EXPECT_EQ(where(R"({"temperature": -1})"), "model/generation_config.json: temperature");
  EXPECT_EQ(where(R"({"top_k": 1.5})"), "model/generation_config.json: top_k");
  EXPECT_EQ(where(R"({"top_k": -1})"), "model/generation_config.json: top_k");
  EXPECT_EQ(where(R"({"top_k": 18446744073709551615})"), "model/generation_config.json: top_k");
  EXPECT_EQ(where(R"({"top_p": 0})"), "model/generation_config.json: top_p");
  EXPECT_EQ(where(R"({"min_p": 2})"), "model/generation_config.json: min_p");
  EXPECT_EQ(where(R"({"typical_p": 2})"), "model/generation_config.json: typical_p");
  EXPECT_EQ(where(R"({"repetition_penalty": 0})"), "model/generation_config.json: repetition_penalty");
  EXPECT_EQ(where(R"({"do_sample": 1})"), "model/generation_config.json: do_sample");
  EXPECT_EQ(where(R"({"eos_token_id": ["a"]})"), "model/generation_config.json: eos_token_id");
  EXPECT_EQ(where(R"({"eos_token_id": 99999999999})"), "model/generation_config.json: eos_token_id");
  EXPECT_EQ(where(R"({"max_new_tokens": 0})"), "model/generation_config.json: max_new_tokens");
}

TEST(GenerationDefaults, KeysOfGguf) {
  Checkpoint checkpoint;
  checkpoint.metadata.add_real("general.sampling.temp", 0.8);
  checkpoint.metadata.add_integer("general.sampling.top_k", 40);
  checkpoint.metadata.add_real("general.sampling.top_p", 0.9);
  checkpoint.metadata.add_real("general.sampling.min_p", 0.1);
  checkpoint.metadata.add_real("general.sampling.penalty_repeat", 1.2);
  checkpoint.metadata.add_integer("general.sampling.mirostat", 2);
  auto made = generation_defaults(checkpoint);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->sampler.temperature, 0.8);
  EXPECT_EQ(made->sampler.top_k, 40);
  EXPECT_EQ(made->sampler.top_p, 0.9);
  EXPECT_EQ(made->sampler.min_p, 0.1);
  EXPECT_EQ(made->sampler.repeat_penalty, 1.2);
  EXPECT_EQ(made->ignored, std::vector<std::string>{"general.sampling.mirostat"});
  EXPECT_EQ(made->source_of("temperature"), "general.sampling.temp");

  Checkpoint bad;
  bad.metadata.add_real("general.sampling.top_p", 3);
  made = generation_defaults(bad);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().where, "general.sampling.top_p");
  EXPECT_EQ(made.error().code, ErrorCode::BadModel);
}

}  // namespace
}  // namespace hone
