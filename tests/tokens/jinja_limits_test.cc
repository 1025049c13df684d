// Hostile templates: one typed error with its place, in under one second and 64 MiB of memory. A program of
// its own, because the largest resident size of a process never falls.
#include <ctime>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "tokens/jinja.h"

namespace hone {
namespace {

constexpr bool kSanitized = HONE_TEST_SANITIZED;

std::uint64_t status_bytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field)) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// Of this process: a machine busy with other work does not change it.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  out.reserve(text.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// The template fails by one of the fuel's rules.
void expect_bounded(const std::string& source, std::string_view rule) {
  std::ofstream("/proc/self/clear_refs") << "5";
  const std::uint64_t before = status_bytes("VmRSS");
  const double start = processor_seconds();
  const auto result = render_template(source, nlohmann::ordered_json::object());
  const double seconds = processor_seconds() - start;
  const std::uint64_t peak = status_bytes("VmHWM");
  const std::string shown = source.substr(0, 120);
  ASSERT_FALSE(result.ok()) << shown;
  EXPECT_EQ(result.error().code, ErrorCode::BadInput) << shown;
  EXPECT_NE(result.error().message.find(rule), std::string::npos) << shown << ": " << result.error().message;
  EXPECT_TRUE(result.error().where.starts_with("template, line ")) << result.error().where;
  if (kSanitized) return;
  EXPECT_LT(peak - std::min(before, peak), 64U << 20U) << shown;
  EXPECT_LT(seconds, 1.0) << shown;
}

TEST(JinjaLimits, HugeResultsAreRefusedBeforeTheyAreMade) {
  expect_bounded("{{ range(10**9) | list }}", "Range too big");
  expect_bounded("{{ 'x' * 10**9 }}", "too large");
  expect_bounded("{{ [1, 2] * 10**9 }}", "too large");
  expect_bounded("{{ 10**(10**9) }}", "more than 65536 bits");
  expect_bounded("{{ 'x' | center(10**9) }}", "too large");
  expect_bounded("{{ '%1000000000d' % 1 }}", "too large");
  expect_bounded("{{ '{:>99999999}'.format(1) }}", "too large");
  expect_bounded("{{ 'ab'.ljust(10**9) }}", "too large");
  expect_bounded("{{ 'a\nb' | indent(10**9) }}", "too large");
  expect_bounded("{% set a = 'x' * 10**6 %}{{ a | replace('x', a) }}", "");
  expect_bounded("{% set a = ['x' * 10**6] * 4 %}{{ (a * 9) | join }}", "too large");
  expect_bounded("{% set a = 'x' * 10**6 %}{{ a.join(a) }}", "");
  expect_bounded("{{ [1] | batch(10**9, 0) | list }}", "too large");
  expect_bounded("{{ [] | slice(10**9) | list }}", "");
}

TEST(JinjaLimits, EndlessWorkRunsOutOfFuel) {
  const std::string loop = "{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string end = "{% endfor %}{% endfor %}";
  expect_bounded(loop + end, "steps");
  expect_bounded(loop + "{{ 'x' }}" + end, "");
  expect_bounded(loop + "{% set c = 7 ** 9999 %}" + end, "steps");
  expect_bounded(loop + "{% set c = (7 ** 9999 | string) %}" + end, "");
  expect_bounded("{% set long = 'é' * 10**6 %}" + loop + "{% set c = long.upper() %}" + end, "steps");
  expect_bounded("{% set long = ('é' * 10**6,) %}" + loop + "{% set c = long ~ '' %}" + end, "steps");
  expect_bounded("{% set long = range(99999) | list %}" + loop + "{% set c = long | sort %}" + end, "");
  expect_bounded("{% set a = range(99999) | list %}{{ a | unique | list }}", "steps");
  expect_bounded("{% set long = 'a' * 10**6 %}" + loop + "{{ long.rfind('b' ~ 'a' * 9999) }}" + end, "steps");
  expect_bounded("{% for a in range(9) recursive %}{{ loop(range(9)) }}{% endfor %}", "nested too deeply");
}

TEST(JinjaLimits, ValuesTakeBoundedMemory) {
  const std::string loop =
      "{% set n = namespace(x=[]) %}{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string end = "{% endfor %}{% endfor %}";
  expect_bounded(loop + "{% set n.x = n.x + [a] %}" + end, "");
  expect_bounded(loop + "{% set n.x = [n.x, n.x] %}" + end, "");
  expect_bounded(loop + "{% set n.x = (n.x, 'x' * 1000) %}" + end, "");
  expect_bounded(loop + "{% set n.x = namespace(y=n.x) %}" + end, "bytes");
  expect_bounded(loop + "{% macro m() %}{% endmacro %}" + end, "bytes");
  expect_bounded(loop + "{% set n.x = missing %}" + end, "steps");
  expect_bounded("{{ ('é' * 10**6) | list | length }}", "bytes");
  expect_bounded("{% set a = 'x' * 10**6 %}{% set b = [" + repeated("a ~ '',", 40) + "] %}", "");
}

TEST(JinjaLimits, DeepSourceIsRefused) {
  expect_bounded("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nested too deeply");
  expect_bounded("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "nested too deeply");
  expect_bounded("{{ 1" + repeated("|e", 100'000) + " }}", "nested too deeply");
  expect_bounded("{{ 1" + repeated("+1", 100'000) + " }}", "nested too deeply");
  expect_bounded("{{ a" + repeated(".a", 100'000) + " }}", "nested too deeply");
  expect_bounded("{{ " + repeated("not ", 60'000) + "1 }}", "nested too deeply");
  expect_bounded("{{ " + repeated("-", 100'000) + "1 }}", "nested too deeply");
  expect_bounded("{{ " + repeated("1 if 1 else ", 20'000) + "1 }}", "nested too deeply");
  expect_bounded(repeated("{% if 1 %}", 20'000), "nested too deeply");
  expect_bounded(repeated("{% for a in b %}", 10'000), "nested too deeply");
  expect_bounded("{% set " + repeated("(", 200'000) + "a = 1 %}", "");
  expect_bounded("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply");
  expect_bounded("{% macro m() %}{% if 1 %}{{ [m()] | map('e') | list }}{% endif %}{% endmacro %}{{ m() }}",
                 "nested too deeply");
  expect_bounded("{{ " + repeated("a,", 120'000) + " | nothing }}", "");
  expect_bounded(repeated("x", 300'000), "more than 262144 bytes");
}

TEST(JinjaLimits, ManyNamesInManyBranchesTakeLinearTime) {
  std::string source;
  for (int i = 0; i < 6000; ++i) {
    const std::string n = std::to_string(i);
    source += "{% if a" + n + " %}{% set b" + n + " = 1 %}{% endif %}";
  }
  expect_bounded(source + "{{ 1 | nothing }}", "No filter named");
}

}  // namespace
}  // namespace hone
