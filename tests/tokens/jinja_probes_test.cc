// The probes of tests/data/jinja, rendered by Jinja on Python: each must come out the same, or fail where
// Python fails.
#include <gtest/gtest.h>

#include "json_lines.h"
#include "tokens/jinja.h"

namespace hone {
namespace {

TEST(JinjaProbes, EachIsExact) {
  const auto probes = read_json_lines(HONE_TEST_DATA "/jinja/probes.jsonl");
  ASSERT_EQ(probes.size(), 106U);
  for (const auto& probe : probes) {
    const std::string id = probe["id"];
    const auto result = render_template(probe["template"].get<std::string>(), probe["context"]);
    if (!probe.contains("error")) {
      EXPECT_TRUE(result.ok()) << id << ": " << result.error().message;
      if (result.ok()) {
        EXPECT_EQ(*result, probe["expected"].get<std::string>()) << id;
      }
      continue;
    }
    ASSERT_FALSE(result.ok()) << id << ": should fail, gave " << *result;
    const Error& error = result.error();
    EXPECT_EQ(error.message.find(" is not supported"), std::string::npos) << id << ": " << error.message;
    EXPECT_TRUE(error.where.starts_with("template, line ")) << id << ": " << error.where;
    if (probe["error_kind"] == "raised") {
      EXPECT_EQ(error.message, probe["error"].get<std::string>()) << id;
    }
  }
}

}  // namespace
}  // namespace hone
