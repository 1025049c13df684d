// Many short strings in two flat arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hone {

class StringTable {
 public:
  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  // Bytes of all strings; the callers keep them under 2^32.
  std::size_t bytes() const { return pool_.size(); }

  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {pool_.data() + begin, ends_[i] - begin};
  }

  void push_back(std::string_view text) {
    pool_.insert(pool_.end(), text.begin(), text.end());
    ends_.push_back(static_cast<std::uint32_t>(pool_.size()));
  }
  void reserve(std::size_t strings, std::size_t bytes) {
    ends_.reserve(strings);
    pool_.reserve(bytes);
  }
  void clear() {
    pool_.clear();
    ends_.clear();
  }

  std::int64_t heap_bytes() const {
    return static_cast<std::int64_t>(pool_.capacity() + ends_.capacity() * sizeof(ends_[0]));
  }

 private:
  std::vector<char> pool_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace hone
