// Reads the reference files: one JSON value a line, lines end at "\n" only.
#pragma once

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokens/exact_json.h"

namespace hone {

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<nlohmann::ordered_json> read_json_lines(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<nlohmann::ordered_json> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out.push_back(parse_exact_json(text.substr(at, end - at), path).value());
    at = end + 1;
  }
  return out;
}

}  // namespace hone
