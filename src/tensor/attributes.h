// Attributes of a node: named plain data. Read by passes, by the planner and by kernels, so it lives below
// all three.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/dim.h"

namespace hone {

using AttributeVariant = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                                      std::vector<double>, std::vector<Dim>>;

// libstdc++ 12 holds a variant of these alternatives for one that always has a value, and destroys what is
// not there yet when memory for a copy is refused. Assigned instead of constructed, a copy comes into being
// whole or not at all.
struct AttributeValue : AttributeVariant {
  using AttributeVariant::AttributeVariant;
  AttributeValue() = default;
  // NOLINTNEXTLINE(bugprone-copy-constructor-init): the base's copy is what is not safe
  AttributeValue(const AttributeValue& other) : AttributeVariant() { AttributeVariant::operator=(other); }
  AttributeValue(AttributeValue&&) noexcept = default;
  AttributeValue& operator=(const AttributeValue&) = default;
  AttributeValue& operator=(AttributeValue&&) noexcept = default;
  ~AttributeValue() = default;
};

// A small ordered map; names are unique and keep the order in which they were first set.
class Attributes {
 public:
  using Item = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Item> items) : items_(items) {}

  void set(std::string name, AttributeValue value);
  const AttributeValue* find(std::string_view name) const {
    for (const Item& item : items_) {
      if (item.first == name) return &item.second;
    }
    return nullptr;
  }
  // The value of type T, or nullptr if the name is absent or its value has another type.
  template <class T>
  const T* get(std::string_view name) const {
    const AttributeValue* value = find(name);
    return value == nullptr ? nullptr : std::get_if<T>(value);
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise = 0) const {
    const std::int64_t* value = get<std::int64_t>(name);
    return value == nullptr ? otherwise : *value;
  }
  double real(std::string_view name, double otherwise = 0) const {
    const double* value = get<double>(name);
    return value == nullptr ? otherwise : *value;
  }
  const std::vector<Item>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  friend bool operator==(const Attributes& a, const Attributes& b) { return a.items_ == b.items_; }

 private:
  std::vector<Item> items_;
};

}  // namespace hone
