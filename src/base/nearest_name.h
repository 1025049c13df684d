// "Did you mean": the name that a misspelt one was probably meant to be.
#pragma once

#include <span>
#include <string_view>

namespace hone {

// The candidate with the fewest insertions, deletions and substitutions of characters (Levenshtein 1966) from
// `name`; empty if that is more than two and more than a third of the name's length. The first of several
// equally near.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace hone
