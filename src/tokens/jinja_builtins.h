// Filters, tests, methods and global functions: a table each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokens/jinja_arguments.h"
#include "tokens/jinja_eval.h"
#include "tokens/jinja_value.h"

namespace hone::jinja {

using Filter = Result<Value> (*)(const Call&, const Value&, const Arguments&);
struct FilterRow {
  std::string_view name;
  Filter filter;
};
// nullptr if the table has no such filter. Text and numbers: jinja_filters.cc.
Filter find_text_filter(std::string_view name);
// jinja_sequence_filters.cc
Filter find_sequence_filter(std::string_view name);

bool is_known_filter(std::string_view name);
bool is_known_test(std::string_view name);
// A filter of Jinja that is missing here.
bool is_unsupported_filter(std::string_view name);

Result<Value> apply_filter(Evaluator& evaluator, std::uint32_t offset, std::string_view name,
                           const Value& input, const Arguments& arguments);
Result<bool> apply_test(Evaluator& evaluator, std::uint32_t offset, std::string_view name, const Value& input,
                        const Arguments& arguments);
Result<Value> call_method(Evaluator& evaluator, std::uint32_t offset, const Value& object,
                          std::string_view name, const Arguments& arguments);
Result<Value> call_function(Evaluator& evaluator, std::uint32_t offset, Function function,
                            const Arguments& arguments);

// What Python's type of a value has under a name.
enum class Attribute : std::uint8_t {
  None,
  Method,
  Unsafe,  // one that the sandbox does not hand out
  Other,   // a field; hone does not have it
};
Attribute attribute_kind(const Value& value, std::string_view name);

// The message of transformers' environment for a namespace attribute that begins with '_'.
std::string private_name(std::string_view name);

}  // namespace hone::jinja
