// One region of memory: reserved and touched at once, so that what the plan predicts is true from the first
// token on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace hone {

class Arena {
 public:
  Arena() = default;
  // `bytes` of zeroed memory, aligned to a page; `what` names it in the error (DoesNotFit) if the system
  // refuses. Pages are touched as they are first written if `touch` is false (weights, which loading writes
  // in full).
  static Result<Arena> create(std::int64_t bytes, std::string_view what, bool touch);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  // Bytes of the pages of it that lie in memory now; 0 where the system does not say.
  std::int64_t resident_bytes() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace hone
