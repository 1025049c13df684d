// The probes of tests/data/jinja, rendered by Jinja on Python: each must come out the same, fail where Python
// fails, or be refused by name.
#include <cstdio>
#include <gtest/gtest.h>
#include <set>

#include "json_lines.h"
#include "tokens/jinja.h"

namespace hone {
namespace {

TEST(JinjaProbes, EachIsExactOrRefusedByName) {
  const auto probes = read_json_lines(HONE_TEST_DATA "/jinja/probes.jsonl");
  ASSERT_EQ(probes.size(), 106U);
  int exact = 0;
  std::string refused;
  for (const auto& probe : probes) {
    const std::string id = probe["id"];
    const auto result = render_template(probe["template"].get<std::string>(), probe["context"]);
    if (result.ok()) {
      ASSERT_TRUE(probe.contains("expected")) << id << ": should fail, gave " << *result;
      EXPECT_EQ(*result, probe["expected"].get<std::string>()) << id;
      ++exact;
      continue;
    }
    const std::string& message = result.error().message;
    const bool by_name = message.find(" is not supported, line ") != std::string::npos;
    if (probe.contains("error") && !by_name) {
      if (probe["error_kind"] == "raised") {
        EXPECT_EQ(message, probe["error"].get<std::string>()) << id;
      }
      ++exact;
      continue;
    }
    EXPECT_TRUE(by_name) << id << ": " << message;
    refused += id + ": " + message + "\n";
  }
  std::printf("%d of %zu probes exact, the others refused:\n%s", exact, probes.size(), refused.c_str());
  EXPECT_EQ(exact, 69);
}

}  // namespace
}  // namespace hone
