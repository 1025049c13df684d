// Fields of a protobuf message, one after the other, from hostile bytes (protobuf.dev, "Encoding").
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "file/file_error.h"

namespace hone {

struct ProtobufField {
  enum class Wire : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  std::uint32_t number = 0;
  Wire wire = Wire::Varint;
  std::uint64_t at = 0;     // byte of the file where the field begins
  std::uint64_t value = 0;  // of Varint, Fixed64 and Fixed32
  std::string_view bytes;   // of Bytes
};

// A cursor over one message. `base` is the place of its first byte in the file.
class ProtobufReader {
 public:
  ProtobufReader(std::string_view bytes, std::uint64_t base, std::string_view path)
      : bytes_(bytes), base_(base), path_(path) {}

  bool done() const { return position_ == bytes_.size(); }

  Result<ProtobufField> next() {
    ProtobufField field;
    field.at = base_ + position_;
    const std::uint64_t tag = HONE_TRY(varint());
    const std::uint64_t number = tag >> 3;
    if (number == 0 || number >= (1U << 29)) {
      return fail(field.at, "a field has a number from 1 to 2^29 - 1", fmt::format("{}", number));
    }
    field.number = static_cast<std::uint32_t>(number);
    switch (tag & 7) {
      case 0:
        field.value = HONE_TRY(varint());
        return field;
      case 1:
        return fixed(field, ProtobufField::Wire::Fixed64, 8);
      case 2:
        return length_delimited(field);
      case 5:
        return fixed(field, ProtobufField::Wire::Fixed32, 4);
      default:
        return fail(field.at, "the wire type of a field is 0, 1, 2 or 5", fmt::format("{}", tag & 7));
    }
  }

  // A field of another wire type than its message declares.
  Status expect(const ProtobufField& field, ProtobufField::Wire wire) const {
    if (field.wire == wire) return {};
    return fail(field.at, fmt::format("field {} has the wire type that its message declares", field.number),
                fmt::format("{}", static_cast<int>(field.wire)), fmt::format("{}", static_cast<int>(wire)));
  }

  // The fields of a Bytes field that is a message.
  ProtobufReader inside(const ProtobufField& field) const {
    const auto offset = static_cast<std::uint64_t>(field.bytes.data() - bytes_.data());
    return {field.bytes, base_ + offset, path_};
  }

  Error fail(std::uint64_t at, std::string message, std::string actual, std::string expected = {}) const {
    return bad_file_at(path_, at, std::move(message), std::move(expected), std::move(actual));
  }

 private:
  std::uint64_t left() const { return bytes_.size() - position_; }

  Result<std::uint64_t> varint() {
    const std::uint64_t at = base_ + position_;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (done()) return fail(at, "a varint must end inside its message", "0 bytes left");
      const auto byte = static_cast<unsigned char>(bytes_[position_++]);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    return fail(at, "a varint has at most 64 bits", "more");
  }

  Result<ProtobufField> fixed(ProtobufField field, ProtobufField::Wire wire, std::size_t size) {
    if (left() < size) return past_end(field.at, size);
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(&field.value, bytes_.data() + position_, size);
    position_ += size;
    field.wire = wire;
    return field;
  }

  Result<ProtobufField> length_delimited(ProtobufField field) {
    const std::uint64_t length = HONE_TRY(varint());
    if (length > left()) return past_end(field.at, length);
    field.wire = ProtobufField::Wire::Bytes;
    field.bytes = bytes_.substr(position_, length);
    position_ += length;
    return field;
  }

  Error past_end(std::uint64_t at, std::uint64_t size) const {
    return fail(at, "a field must end inside its message", fmt::format("{} bytes left", left()),
                fmt::format("{} bytes", size));
  }

  std::string_view bytes_;
  std::uint64_t base_;
  std::string_view path_;
  std::size_t position_ = 0;
};

}  // namespace hone
