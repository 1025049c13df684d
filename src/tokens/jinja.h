// The part of the Jinja template language that chat templates use
// (https://jinja.palletsprojects.com/templates/), in the environment that transformers gives them:
// trim_blocks and lstrip_blocks on, keep_trailing_newline off, no autoescape, loop controls, the `generation`
// tag, raise_exception, tojson without HTML escapes.
//
// The rule: what is supported gives the same bytes as Jinja 3.1 on Python; everything else is refused by
// name, with line and column. Never a wrong output. tests/tokens/jinja_reference_test.cc holds the proof.
//
// Supported: every statement of Jinja but those that need other templates (block, extends, include, import),
// and all of its expressions, with integers of any size; the filters in jinja_filters.cc and
// jinja_sequence_filters.cc, the tests in jinja_tests.cc, the methods of strings and mappings in
// jinja_methods.cc. Mapping keys are strings.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// Bounds on the work of one template. A step is one evaluated node, or 16 bytes or elements that a node
// copies.
struct Fuel {
  std::int64_t steps = 5'000'000;
  std::int32_t depth = 128;               // nesting of source, data and built values; of calls, 8 times that
  std::int64_t output_bytes = 4 << 20;    // of the rendered text, and of each value
  std::int64_t memory_bytes = 16 << 20;   // of all values that the template makes
  std::int64_t source_bytes = 256 << 10;  // of the template
  // What strftime_now sees, in seconds since 1970 (UTC); without it the function is not supported.
  std::optional<std::int64_t> now{};
};

// Renders `source` with the variables of `context` (a JSON object; numbers as parse_exact_json gives them).
// Errors are BadInput: a syntax error, an
// operation that Python refuses, a construct that is not supported, raise_exception (its text is the
// message), or fuel used up; `where` is "template, line L column C".
Result<std::string> render_template(std::string_view source, const nlohmann::ordered_json& context,
                                    const Fuel& fuel = {});

}  // namespace hone
