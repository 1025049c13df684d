// Which names a scope has of its own. Jinja settles that when it compiles a template, and it shows: a name
// that is assigned somewhere in a scope, before anything of that scope itself reads it, and that no outer
// scope has, is undefined until the assignment, even where the context has it. So
//   {% for i in [1] %}{{ x }}{% endfor %}{% set x = 2 %}
// prints nothing for any x of the context. Everything else is what looking the name up at run time gives.
#pragma once

#include "tokens/jinja_ast.h"

namespace hone::jinja {

// Fills in the fields `hidden` and `hidden_otherwise`.
void analyse_scopes(Template& tree);

}  // namespace hone::jinja
