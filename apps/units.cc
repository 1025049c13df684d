#include "apps/units.h"

#include <fmt/format.h>
#include <iterator>

namespace hone {

std::string human_bytes(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string human_operations(std::int64_t operations) {
  constexpr std::string_view kUnits[] = {"OP", "kOP", "MOP", "GOP", "TOP", "POP"};
  double value = static_cast<double>(operations);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} OP", operations) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string bytes_change(std::int64_t before, std::int64_t after) {
  std::string from = human_bytes(before);
  std::string to = human_bytes(after);
  if (from == to) return to;
  const std::size_t unit = from.find(' ');
  if (from.substr(unit) == to.substr(to.find(' '))) from.resize(unit);
  return fmt::format("{} -> {}", from, to);
}

std::string count_change(std::int64_t before, std::int64_t after) {
  return before == after ? fmt::format("{}", after) : fmt::format("{} -> {}", before, after);
}

std::string percent_change(std::int64_t before, std::int64_t after) {
  if (before <= 0) return "-";
  const double change = 100.0 * static_cast<double>(after - before) / static_cast<double>(before);
  return fmt::format("{:+.0f} %", change == 0 ? 0.0 : change);
}

}  // namespace hone
