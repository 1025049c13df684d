// A cursor over hostile little-endian bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "file/file_error.h"
#include "file/mapped_file.h"

namespace hone {

// Every read either ends inside the bytes and below `limit`, or is an Error that names the byte where it
// began.
class ByteReader {
 public:
  // `file`, if given, is what `bytes` maps: pages are dropped behind the cursor so that a long header stays
  // small in memory.
  ByteReader(std::span<const std::byte> bytes, std::uint64_t limit, std::string_view path,
             const MappedFile* file)
      : bytes_(bytes), limit_(limit), path_(path), file_(file) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }
  const std::byte* base() const { return bytes_.data(); }
  std::string_view path() const { return path_; }

  // `what` begins the message: "the metadata count must end inside the file".
  Status need(std::uint64_t count, std::string_view what) const {
    if (count > left()) {
      return fail(position_, fmt::format("{} must end inside the file", what), fmt::format("{} bytes", count),
                  fmt::format("{} bytes left", left()));
    }
    if (position_ + count > limit_) {
      return fail(position_, fmt::format("the header must fit in {} MiB", limit_ >> 20U),
                  fmt::format("at most {} bytes", limit_),
                  fmt::format("{} bytes and more", position_ + count));
    }
    return {};
  }

  template <class T>
  Result<T> number(std::string_view what) {
    if (Status room = need(sizeof(T), what); !room.ok()) return std::move(room).error();
    T value{};
    std::memcpy(&value, base() + position_, sizeof(T));
    advance(sizeof(T));
    return value;
  }

  Result<std::span<const std::byte>> take(std::uint64_t count, std::string_view what) {
    if (Status room = need(count, what); !room.ok()) return std::move(room).error();
    const std::span<const std::byte> out = bytes_.subspan(position_, count);
    advance(count);
    return out;
  }

  // u64 length, then the bytes. An error names the byte of the length.
  Result<std::string_view> string(std::string_view what) {
    Status room = need(sizeof(std::uint64_t), what);
    const std::uint64_t length = room.ok() ? peek_length() : 0;
    if (room.ok()) room = need_behind_length(length, what);
    if (!room.ok()) return std::move(room).error();
    const std::string_view text(reinterpret_cast<const char*>(base() + position_ + sizeof length), length);
    advance(sizeof length + length);
    return text;
  }

  // Walks over `count` strings, so that later visits need no checks. The loop builds no Result: a vocabulary
  // has hundreds of thousands of strings, a hostile file millions.
  Status skip_strings(std::uint64_t count, std::string_view what) {
    const std::uint64_t end = std::min<std::uint64_t>(bytes_.size(), limit_);
    for (; count > 0; --count) {
      const bool has_length = position_ <= end && end - position_ >= sizeof(std::uint64_t);
      const std::uint64_t length = has_length ? peek_length() : 0;
      if (!has_length || length > end - position_ - sizeof length) {
        Result<std::string_view> broken = string(what);
        return broken.ok() ? internal_error(std::string(path_), "a broken string was read") : broken.error();
      }
      advance(sizeof length + length);
    }
    return {};
  }

  Error fail(std::uint64_t offset, std::string message, std::string expected, std::string actual) const {
    return bad_file_at(path_, offset, std::move(message), std::move(expected), std::move(actual));
  }

 private:
  static constexpr std::uint64_t kDropBytes = 8ULL << 20U;

  std::uint64_t peek_length() const {
    std::uint64_t length = 0;
    std::memcpy(&length, base() + position_, sizeof length);
    return length;
  }

  Status need_behind_length(std::uint64_t length, std::string_view what) const {
    const std::uint64_t behind = left() - sizeof length;
    if (length > behind) {
      return fail(position_, fmt::format("{} must end inside the file", what),
                  fmt::format("{} bytes", length), fmt::format("{} bytes left", behind));
    }
    return need(sizeof length + length, what);
  }

  void advance(std::uint64_t count) {
    position_ += count;
    if (file_ != nullptr && position_ - dropped_ > kDropBytes) {
      file_->drop(dropped_, position_ - dropped_);
      dropped_ = position_;
    }
  }

  std::span<const std::byte> bytes_;
  std::uint64_t limit_;
  std::string_view path_;
  const MappedFile* file_;
  std::uint64_t position_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace hone
