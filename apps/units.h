// Numbers with units, for tables.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

// "118.3 MiB"
std::string human_bytes(std::int64_t bytes);

// "512 OP", "1.2 GOP": arithmetic operations, powers of 1000.
std::string human_operations(std::int64_t operations);

// "199.6 -> 151.3 MiB", "1.2 GiB -> 980.0 MiB"; one number where both read the same.
std::string bytes_change(std::int64_t before, std::int64_t after);
// "123 -> 121", or one number.
std::string count_change(std::int64_t before, std::int64_t after);
// "-88 %" from before to after; "+0 %" where both are the same; "-" where before is 0.
std::string percent_change(std::int64_t before, std::int64_t after);

}  // namespace hone
