// Tokens -> tree, by Jinja's own grammar and precedences. Every construct that the interpreter lacks is
// refused here, so a template is known to be supported before its first character is rendered; methods and
// attributes depend on the values they meet and are refused when they are reached.
#pragma once

#include <vector>

#include "base/result.h"
#include "tokens/jinja_ast.h"
#include "tokens/jinja_lexer.h"
#include "tokens/jinja_source.h"

namespace hone::jinja {

// `max_depth` bounds the nesting of blocks and brackets, and with a factor of 4 the height of an expression.
Result<Template> parse(const Source& source, const std::vector<Token>& tokens, std::int32_t max_depth);

}  // namespace hone::jinja
