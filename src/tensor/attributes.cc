#include "tensor/attributes.h"

namespace hone {

void Attributes::set(std::string name, AttributeValue value) {
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

}  // namespace hone
