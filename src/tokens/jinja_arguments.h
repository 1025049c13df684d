// Binding of arguments to parameters, for the tables of built-in functions.
#pragma once

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>

#include "base/result.h"
#include "tokens/jinja_eval.h"

namespace hone::jinja {

// Where a built-in is called, and as what.
struct Call {
  Evaluator& evaluator;
  std::uint32_t offset;
  std::string_view what;  // "filter 'join'"

  Error error(std::string message) const { return evaluator.error(offset, std::move(message)); }
  Error unsupported(std::string_view form) const {
    return evaluator.unsupported(offset, fmt::format("{} {}", what, form));
  }
};

// Pointers to the arguments of the parameters `names`, nullptr for one that is not given. A name in capitals
// cannot be given by name. An argument without a parameter is an error, as in Python.
template <std::size_t N>
Result<std::array<const Value*, N>> bind(const Call& call, const Arguments& arguments,
                                         const std::array<std::string_view, N>& names) {
  std::array<const Value*, N> out{};
  if (arguments.positional.size() > N) {
    return call.error(fmt::format("{} takes at most {} arguments", call.what, N));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) out[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    std::size_t i = 0;
    while (i < N && names[i] != name) ++i;
    if (i == N) return call.error(fmt::format("{} has no argument '{}'", call.what, name));
    if (out[i] != nullptr) return call.error(fmt::format("{} has the argument '{}' twice", call.what, name));
    out[i] = &value;
  }
  return out;
}

}  // namespace hone::jinja
