// Templates rendered by Jinja 3.1.6 on Python (tools/make_jinja_references.py): each must come out the same,
// or fail where Python fails. What hone lacks is refused by name; how much that is, is counted.
#include <gtest/gtest.h>

#include "json_lines.h"
#include "tokens/jinja.h"

namespace hone {
namespace {

TEST(JinjaReferences, EachIsExactOrRefusedByName) {
  const auto lines = read_json_lines(HONE_REFERENCES);
  ASSERT_GT(lines.size(), 400U);
  nlohmann::ordered_json context;
  std::size_t refused = 0;
  for (const auto& line : lines) {
    if (line.contains("random_context")) {
      context = line["random_context"];
      continue;
    }
    const auto source = line["template"].get<std::string>();
    const auto result = render_template(source, line.contains("context") ? line["context"] : context);
    if (!result.ok() && result.error().message.find(" is not supported, line ") != std::string::npos) {
      ++refused;
      continue;
    }
    if (line.contains("expected")) {
      ASSERT_TRUE(result.ok()) << source << "\n" << result.error().message;
      EXPECT_EQ(*result, line["expected"].get<std::string>()) << source;
      continue;
    }
    ASSERT_FALSE(result.ok()) << source << " should fail, gave " << *result;
    EXPECT_TRUE(result.error().where.starts_with("template, line ")) << source;
    if (line["error_kind"] == "raised") {
      EXPECT_EQ(result.error().message, line["error"].get<std::string>()) << source;
    }
  }
  EXPECT_LT(refused, lines.size() / 20);
}

}  // namespace
}  // namespace hone
