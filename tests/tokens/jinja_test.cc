#include "tokens/jinja.h"

#include <gtest/gtest.h>
#include <string>

#include "tokens/exact_json.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string render(std::string_view source, const Json& context = Json::object(), const Fuel& fuel = {}) {
  const auto result = render_template(source, context, fuel);
  return result.ok() ? *result : "error: " + result.error().message;
}

TEST(Jinja, UnsupportedConstructsAreNamedWithTheirPlace) {
  EXPECT_EQ(render("\n\n{{ xs    | xmlattr }}"),
            "error: filter 'xmlattr' is not supported, line 3 column 12");
  EXPECT_EQ(render("a{% include 'b' %}"), "error: tag 'include' is not supported, line 1 column 5");
  EXPECT_EQ(render("{{ 'a'.encode() }}"),
            "error: method 'encode' of a str is not supported, line 1 column 8");
  EXPECT_EQ(render("{{ 'é'.casefold() }}"),
            "error: method 'casefold' of a str is not supported, line 1 column 8");
  EXPECT_EQ(render("{{ strftime_now('%Y') }}"),
            "error: function 'strftime_now' without a clock is not supported, line 1 column 4");
  EXPECT_EQ(render("{{ {1: 2} }}"), "error: a mapping key of type int is not supported, line 1 column 4");
  EXPECT_EQ(render("{{ range }}"),
            "error: printing a value of type builtin_function_or_method is not supported, line 1 column 4");
}

TEST(Jinja, IntegersHaveNoLimit) {
  const Json context =
      parse_exact_json(R"({"x": 123456789012345678901234567890, "y": -9223372036854775809, "z": 1e30})", "c")
          .value();
  EXPECT_EQ(render("{{ x }} {{ x | tojson }} {{ [x] }} {{ y }} {{ x - y }} {{ x * y }} {{ z }} {{ x > z }}",
                   context),
            "123456789012345678901234567890 123456789012345678901234567890 [123456789012345678901234567890"
            "] -9223372036854775809 123456789021569050938089343699 "
            "-1138687895536349070247652208023626532906940173010 1e+30 False");
  EXPECT_EQ(render("{{ 9223372036854775807 + 1 }} {{ -9223372036854775807 - 2 }} {{ 3 ** 90 }}"),
            "9223372036854775808 -9223372036854775809 8727963568087712425891397479476727340041449");
  EXPECT_EQ(render("{{ (-9223372036854775807 - 1) // -1 }} {{ 10 ** 40 // 7 }} {{ 10 ** 40 % -7 }} {{ -(10 "
                   "** 40) // 7 ** 30 }}"),
            "9223372036854775808 1428571428571428571428571428571428571428 -3 -443668708623631");
  EXPECT_EQ(render("{{ 10 ** 40 / 10 ** 20 }} {{ 1 / 3 ** 50 }} {{ 2 ** 64 == 2.0 ** 64 }} {{ 2 ** 64 + 1 > "
                   "2.0 ** 64 }}"),
            "1e+20 1.3929555690985384e-24 True True");
  EXPECT_EQ(render("{{ 'x' if 2 ** 20000 % 10 == 6 }}"), "x");
  EXPECT_TRUE(render("{{ 2 ** 20000 }}").starts_with("error: Exceeds the limit (4300 digits)"));
}

TEST(Jinja, TheClockIsTheCallers) {
  EXPECT_EQ(
      render("{{ strftime_now('%d %b %Y, %A %H:%M:%S %j %-d %I %p') }}", Json::object(), {.now = 1719835445}),
      "01 Jul 2024, Monday 12:04:05 183 1 12 PM");
}

TEST(Jinja, FloatsPrintAsInPython) {
  EXPECT_EQ(render("{{ a }} {{ b }} {{ c }} {{ d }} {{ e }} {{ f }}",
                   {{"a", 1e15}, {"b", 1e16}, {"c", 0.0001}, {"d", 0.00001}, {"e", -0.0}, {"f", 123456.789}}),
            "1000000000000000.0 1e+16 0.0001 1e-05 -0.0 123456.789");
}

TEST(Jinja, StringsInsideListsPrintAsInPython) {
  EXPECT_EQ(render("{{ [s] }}", {{"s", "a\n\x01\x7f\xC2\xA0\xC3\xA9\xE2\x80\x8B\\'"}}),
            "[\"a\\n\\x01\\x7f\\xa0\xC3\xA9\\u200b\\\\'\"]");
}

TEST(Jinja, SlicesFollowPython) {
  const Json context{{"x", {0, 1, 2, 3, 4}}};
  EXPECT_EQ(render("{{ x[::2] }}{{ x[4:0:-2] }}{{ x[-99:99] }}{{ x[9:] }}{{ x[::-9] }}{{ x[2:1] }}", context),
            "[0, 2, 4][4, 2][0, 1, 2, 3, 4][][4][]");
  EXPECT_EQ(render("{{ x[::-9223372036854775807 - 1] }}{{ x[::9223372036854775807] }}", context), "[4][0]");
  EXPECT_TRUE(render("{{ x[::0] }}", context).starts_with("error: slice step"));
}

TEST(Jinja, FuelBoundsStepsDepthAndOutput) {
  const Fuel small{.steps = 1000, .depth = 20, .output_bytes = 1000, .source_bytes = 100'000};
  EXPECT_EQ(render("{% for i in range(90000) %}{% endfor %}", Json::object(), small),
            "error: the template takes more than 1000 steps");
  EXPECT_EQ(render("{{ 'x' * 2000 }}", Json::object(), small), "error: a value is too large");
  const Fuel wide{.steps = 1'000'000, .depth = 20, .output_bytes = 1000, .source_bytes = 100'000};
  EXPECT_EQ(render("{% for i in range(2000) %}x{% endfor %}", Json::object(), wide),
            "error: the rendered text has more than 1000 bytes");
  EXPECT_EQ(render("{{ " + std::string(50, '(') + "1" + std::string(50, ')') + " }}", Json::object(), small),
            "error: an expression is nested too deeply");
  std::string sum = "{{ 1";
  for (int i = 0; i < 500; ++i) sum += "+1";
  EXPECT_EQ(render(sum + " }}", Json::object(), small), "error: an expression is nested too deeply");
  std::string blocks;
  for (int i = 0; i < 50; ++i) blocks += "{% if 1 %}";
  EXPECT_EQ(render(blocks, Json::object(), small), "error: blocks are nested too deeply");
  EXPECT_EQ(render(std::string(200'000, 'x'), Json::object(), small),
            "error: the template has more than 100000 bytes");
}

TEST(Jinja, ValuesThatGrowByReferenceAreBounded) {
  // Each round doubles what printing costs, and the second one nests deeper.
  EXPECT_EQ(
      render("{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"),
      "error: a value is too large");
  EXPECT_EQ(render("{% set n = namespace(x=1) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}"),
            "error: a value is nested deeper than 128");
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.x = [n, namespace(y=n)] %}{{ n.x[1].y.x | length }}"),
            "2");
}

TEST(Jinja, BadTemplatesAreTypedErrors) {
  for (const char* source :
       {"{{", "{% if", "{# x", "{{ 'a }}", "{{ 1 + }}", "{% endif %}", "{% for in x %}{% endfor %}",
        "{{ a b }}", "{{ (1 }}", "{{ ) }}", "{% raw %}", "{% break %}", "{{ x.1.y.z }}", "{{ '\\u12' }}",
        "{{ '\\ud800' }}", "{{ \xE2\x82\xAC }}", "\xFF", "{{ 1 is odd is even }}"}) {
    const auto result = render_template(source, Json::object());
    ASSERT_FALSE(result.ok()) << source << " gave " << *result;
    EXPECT_EQ(result.error().code, ErrorCode::BadInput) << source;
    EXPECT_TRUE(result.error().where.starts_with("template, line 1 column ")) << result.error().where;
  }
}

}  // namespace
}  // namespace hone
