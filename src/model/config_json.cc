#include "model/config_json.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace hone {

std::string json_text(const nlohmann::json& value) {
  constexpr std::size_t kMost = 80;
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "..";
  return text;
}

const nlohmann::json* JsonReader::find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::wrong_type(std::string_view key, std::string_view expected,
                            const nlohmann::json& value) const {
  faults_.add(name(key), "the value has another type", std::string(expected), json_text(value));
}

void JsonReader::missing(std::string_view key, std::string_view expected) const {
  faults_.add(name(key), "the key is missing", std::string(expected), "nothing");
}

std::optional<std::int64_t> JsonReader::integer(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() <= std::uint64_t{1} << 62) {
    return static_cast<std::int64_t>(value->get<std::uint64_t>());
  }
  if (value->is_number_integer() && !value->is_number_unsigned()) return value->get<std::int64_t>();
  // Some exporters write 64.0.
  if (value->is_number_float()) {
    const auto real = value->get<double>();
    if (std::floor(real) == real && std::abs(real) < 0x1p53) return static_cast<std::int64_t>(real);
  }
  wrong_type(key, "an integer", *value);
  return std::nullopt;
}

std::optional<double> JsonReader::real(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  wrong_type(key, "a number", *value);
  return std::nullopt;
}

std::optional<bool> JsonReader::truth(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  wrong_type(key, "true or false", *value);
  return std::nullopt;
}

std::optional<std::string> JsonReader::text(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong_type(key, "a string", *value);
  return std::nullopt;
}

std::vector<double> JsonReader::reals(std::string_view key) const {
  std::vector<double> out;
  const nlohmann::json* value = find(key);
  if (value == nullptr) return out;
  constexpr std::size_t kMost = 1'000'000;
  bool numbers = value->is_array() && value->size() <= kMost;
  for (std::size_t i = 0; numbers && i < value->size(); ++i) {
    numbers = (*value)[i].is_number();
    if (numbers) out.push_back((*value)[i].get<double>());
  }
  if (!numbers) wrong_type(key, "a list of numbers", *value);
  return out;
}

std::int64_t JsonReader::need_integer(std::string_view key) const {
  if (!has(key)) missing(key, "an integer");
  return integer(key).value_or(1);
}

double JsonReader::need_real(std::string_view key) const {
  if (!has(key)) missing(key, "a number");
  return real(key).value_or(0.5);
}

std::string JsonReader::need_text(std::string_view key) const {
  if (!has(key)) missing(key, "a string");
  return text(key).value_or("");
}

}  // namespace hone
