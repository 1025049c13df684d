// Reads characters and tells how far the reading went: the JSON library's events carry no position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace hone {

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  // `position`, which outlives every copy, goes up with each character that is left behind.
  CountingIterator(const char* at, std::uint64_t* position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*position_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::uint64_t* position_;
};

}  // namespace hone
