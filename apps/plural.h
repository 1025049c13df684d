// "1 thread", "2 threads".
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace hone {

// `many`: the word behind any number but 1, where it is not the noun with an s.
inline std::string counted(std::int64_t number, std::string_view noun, std::string_view many = {}) {
  if (number == 1) return fmt::format("1 {}", noun);
  return many.empty() ? fmt::format("{} {}s", number, noun) : fmt::format("{} {}", number, many);
}

}  // namespace hone
