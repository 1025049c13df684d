#include "tokens/chat.h"

#include <gtest/gtest.h>
#include <map>

#include "json_lines.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string template_text(const std::string& name) {
  return read_text(HONE_TEST_DATA "/chat/templates/" + name + ".jinja");
}

SpecialTokenTexts special_texts(const std::string& name) {
  const Json json = Json::parse(read_text(HONE_TEST_DATA "/chat/templates/" + name + ".json"));
  const auto text = [&](const char* key) { return json.value(key, std::string()); };
  return {text("bos_token"), text("eos_token"), text("unk_token"), text("pad_token")};
}

TEST(Chat, ReferenceCasesAreExact) {
  const auto cases = read_json_lines(HONE_TEST_DATA "/chat/cases.jsonl");
  ASSERT_EQ(cases.size(), 288U);
  std::map<std::string, int> exact;
  for (const auto& each : cases) {
    const std::string id = each["id"];
    const std::string name = each["template"];
    ChatOptions options;
    for (const auto& [key, value] : each["options"].items()) {
      if (key == "add_generation_prompt") {
        options.add_generation_prompt = value.get<bool>();
      } else {
        options.variables[key] = value;
      }
    }
    const auto result = render_chat(template_text(name), each["messages"], each.value("tools", Json()),
                                    special_texts(name), options);
    if (result.ok()) {
      ASSERT_TRUE(each.contains("expected")) << id << ": should fail, gave " << *result;
      EXPECT_EQ(*result, each["expected"].get<std::string>()) << id;
      ++exact[name];
      continue;
    }
    const std::string& message = result.error().message;
    ASSERT_TRUE(each.contains("error")) << id << ": " << message;
    EXPECT_EQ(message.find(" is not supported"), std::string::npos) << id << ": " << message;
    if (each["error_kind"] == "raised") {
      EXPECT_EQ(message, each["error"].get<std::string>()) << id;
    }
    ++exact[name];
  }
  const std::map<std::string, int> expected{{"deepseek_v3", 96}, {"qwen3", 96}, {"smollm2", 96}};
  EXPECT_EQ(exact, expected);
}

TEST(Chat, WrongShapesAreTypedErrors) {
  const SpecialTokenTexts none;
  const auto code = [&](const Json& messages, const Json& tools, const Json& variables) {
    ChatOptions options;
    options.variables = variables;
    const auto result = render_chat("x", messages, tools, none, options);
    return result.ok() ? std::string("ok") : result.error().where;
  };
  EXPECT_EQ(code(Json::array(), nullptr, Json::object()), "ok");
  EXPECT_EQ(code(Json::object(), nullptr, Json::object()), "messages");
  EXPECT_EQ(code(Json::array({"hi"}), nullptr, Json::object()), "messages[0]");
  EXPECT_EQ(code(Json::array(), "tool", Json::object()), "tools");
  EXPECT_EQ(code(Json::array(), nullptr, 3), "variables");
}

TEST(Chat, NullsAndTokensReachTheTemplate) {
  const auto result = render_chat(
      "{{ bos_token }}{{ messages[0].content is none }}{{ tools is none }}{{ unk_token is defined }}",
      Json::parse(R"([{"role": "user", "content": null}])"), nullptr,
      {.bos = "<s>", .eos = "", .unknown = "", .padding = ""});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, "<s>TrueTrueFalse");
}

TEST(Chat, DeepMessagesAreRefused) {
  Json deep = Json::array();
  for (int i = 0; i < 300; ++i) deep = Json::array({deep});
  const auto result = render_chat("x", Json::array({Json{{"content", deep}}}), nullptr, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::BadInput);
}

}  // namespace
}  // namespace hone
