// Key-value metadata of a checkpoint. Strings and arrays stay in the bytes of the file: a vocabulary of 150
// 000 tokens costs no heap at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hone {

// The numbers are those of the GGUF specification (gguf_metadata_value_type).
enum class MetadataType : std::uint8_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

// "u8", "f32", "string", "array", ...
std::string_view metadata_type_name(MetadataType type);
// Bytes of one value; 0 for String and Array, whose size varies.
std::uint64_t metadata_type_bytes(MetadataType type);
bool is_integer_type(MetadataType type);
bool is_real_type(MetadataType type);

// A typed array over bytes in GGUF's encoding: numbers little-endian one after the other, strings as u64
// length and bytes. The bytes were validated when the array was made: every string ends inside them.
class MetadataArray {
 public:
  MetadataArray(MetadataType element, std::uint64_t count, std::span<const std::byte> bytes)
      : bytes_(bytes), count_(count), element_(element) {}

  MetadataType element_type() const { return element_; }
  std::uint64_t size() const { return count_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Calls visit(std::uint64_t index, std::string_view text) in order. Does nothing unless the elements are
  // strings.
  template <class Visit>
  void for_each_string(Visit&& visit) const {
    if (element_ != MetadataType::String) return;
    const char* at = reinterpret_cast<const char*>(bytes_.data());
    for (std::uint64_t i = 0; i < count_; ++i) {
      std::uint64_t length = 0;
      std::memcpy(&length, at, sizeof length);
      visit(i, std::string_view(at + sizeof length, length));
      at += sizeof length + length;
    }
  }

  // Element `index`; nullopt if the elements have another kind, the index is past the end, or a u64 exceeds
  // int64.
  std::optional<std::int64_t> integer_at(std::uint64_t index) const;
  // As above for f32 and f64; integers convert.
  std::optional<double> real_at(std::uint64_t index) const;
  std::optional<bool> bool_at(std::uint64_t index) const;

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t count_;
  MetadataType element_;
};

// One value. Strings and arrays are views: see Metadata for what keeps them alive.
class MetadataValue {
 public:
  static MetadataValue from_unsigned(MetadataType type, std::uint64_t value);
  static MetadataValue from_signed(MetadataType type, std::int64_t value);
  static MetadataValue from_real(MetadataType type, double value);
  static MetadataValue from_bool(bool value);
  static MetadataValue from_string(std::string_view value);
  static MetadataValue from_array(const MetadataArray& array);

  MetadataType type() const { return type_; }

  // nullopt if the value has another kind. as_integer: any integer type; also nullopt for a u64 above int64's
  // largest.
  std::optional<std::int64_t> as_integer() const;
  // f32 and f64 only.
  std::optional<double> as_real() const;
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;
  std::optional<MetadataArray> as_array() const;

  // Bit pattern of a scalar: integers and bools as stored (sign-extended), reals as f64.
  std::uint64_t bits() const { return number_; }

  // "u32", "string", "array of f32": for messages.
  std::string type_text() const;

 private:
  MetadataValue(MetadataType type, std::uint64_t bits) : number_(bits), type_(type) {}

  std::span<const std::byte> bytes_;  // of a string or an array
  std::uint64_t number_ = 0;          // bits() of a scalar; count of an array
  MetadataType type_ = MetadataType::U8;
  MetadataType element_ = MetadataType::U8;
};

struct MetadataEntry {
  std::string_view key;
  MetadataValue value;
};

enum class ArrayKind { Strings, Integers, Reals, Bools };

// An ordered list of keys and values. Views inside it point into the bytes given to keep_alive or into
// storage of its own; both are shared by copies, so a copy is cheap and stays valid.
class Metadata {
 public:
  Metadata() = default;
  // `source` is named in errors: the path of the file.
  explicit Metadata(std::string source) : source_(std::move(source)) {}

  const std::string& source() const { return source_; }
  const std::vector<MetadataEntry>& entries() const { return entries_; }
  // The first entry of that key, or nullptr.
  const MetadataValue* find(std::string_view key) const;

  // required_*: a missing key or another type is an Error (BadModel) that names key, expected and actual
  // type. optional_*: nullopt where the key is missing; another type is still an Error.
  Result<std::int64_t> required_integer(std::string_view key) const;
  // Accepts integers too: writers store 10000 for 10000.0.
  Result<double> required_real(std::string_view key) const;
  Result<bool> required_bool(std::string_view key) const;
  Result<std::string_view> required_string(std::string_view key) const;
  // Reals accept arrays of integers.
  Result<MetadataArray> required_array(std::string_view key, ArrayKind kind) const;
  Result<std::optional<std::int64_t>> optional_integer(std::string_view key) const;
  Result<std::optional<double>> optional_real(std::string_view key) const;
  Result<std::optional<bool>> optional_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> optional_string(std::string_view key) const;
  Result<std::optional<MetadataArray>> optional_array(std::string_view key, ArrayKind kind) const;

  // Adds views: whatever they point into must be given to keep_alive, or outlive this object.
  void add(std::string_view key, const MetadataValue& value) { entries_.push_back({key, value}); }
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void keep_alive(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }

  // Adds copies, for metadata that is not in a mapped file (tests, JSON headers).
  void add_integer(std::string_view key, std::int64_t value);
  void add_real(std::string_view key, double value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_integers(std::string_view key, std::span<const std::int64_t> values);
  void add_reals(std::string_view key, std::span<const double> values);

 private:
  std::string_view own(std::string text);
  void add_owned_array(std::string_view key, MetadataType element, std::uint64_t count, std::string bytes);

  std::string source_;
  std::vector<MetadataEntry> entries_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<std::deque<std::string>> storage_;
};

}  // namespace hone
