// Filters, tests, methods and global functions: a table each. What is not in a table is not supported.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "tokens/jinja_eval.h"
#include "tokens/jinja_value.h"

namespace hone::jinja {

bool is_known_filter(std::string_view name);
bool is_known_test(std::string_view name);
// "function 'joiner'" for a global of Jinja or transformers that is missing here; else empty.
std::string_view unsupported_global(std::string_view name);

Result<Value> apply_filter(Evaluator& evaluator, std::uint32_t offset, std::string_view name,
                           const Value& input, const Arguments& arguments);
Result<bool> apply_test(Evaluator& evaluator, std::uint32_t offset, std::string_view name, const Value& input,
                        const Arguments& arguments);
Result<Value> call_method(Evaluator& evaluator, std::uint32_t offset, const Value& object,
                          std::string_view name, const Arguments& arguments);
Result<Value> call_function(Evaluator& evaluator, std::uint32_t offset, Function function,
                            const Arguments& arguments);
// True if Python's type of `value` has a method or field of that name, so that `value.name` is no item.
bool shadows_item(const Value& value, std::string_view name);

}  // namespace hone::jinja
