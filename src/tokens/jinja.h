// The part of the Jinja template language that chat templates use
// (https://jinja.palletsprojects.com/templates/), in the environment that transformers gives them:
// trim_blocks and lstrip_blocks on, keep_trailing_newline off, no autoescape, loop controls, the `generation`
// tag, raise_exception, tojson without HTML escapes.
//
// The rule: what is supported gives the same bytes as Jinja on Python; everything else is refused by name,
// with line and column. Never a wrong output. tests/tokens/jinja_test.cc counts what is supported.
//
// Supported: for (unpacking, `if`, else, break, continue), if/elif/else, set (also of namespace attributes
// and as a block), raw, generation, comments, whitespace control; literals, arithmetic, comparisons,
// and/or/not, in, ~, inline if, attributes, items, slices; the filters, tests, methods and functions listed
// in jinja_builtins.cc. Integers have 64 bits; a result beyond is refused.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// Bounds on the work of one template. A step is one evaluated node, or 16 bytes or elements that a node
// copies.
struct Fuel {
  std::int64_t steps = 20'000'000;
  std::int32_t depth = 128;              // nesting of source, data and built values
  std::int64_t output_bytes = 16 << 20;  // of the rendered text
  std::int64_t source_bytes = 1 << 20;   // of the template
};

// Renders `source` with the variables of `context` (a JSON object). Errors are BadInput: a syntax error, an
// operation that Python refuses, a construct that is not supported, raise_exception (its text is the
// message), or fuel used up; `where` is "template, line L column C".
Result<std::string> render_template(std::string_view source, const nlohmann::ordered_json& context,
                                    const Fuel& fuel = {});

}  // namespace hone
