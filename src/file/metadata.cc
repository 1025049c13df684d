#include "file/metadata.h"

#include <array>
#include <bit>
#include <fmt/format.h>
#include <limits>

#include "file/file_error.h"

namespace hone {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the readers copy little-endian values as they stand");

constexpr std::array<std::string_view, 13> kTypeNames{"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                      "bool", "string", "array", "u64", "i64", "f64"};
constexpr std::array<std::uint64_t, 13> kTypeBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

std::optional<std::int64_t> fits_signed(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

bool is_kind(MetadataType element, ArrayKind kind) {
  switch (kind) {
    case ArrayKind::Strings:
      return element == MetadataType::String;
    case ArrayKind::Integers:
      return is_integer_type(element);
    case ArrayKind::Reals:
      return is_real_type(element) || is_integer_type(element);
    case ArrayKind::Bools:
      return element == MetadataType::Bool;
  }
  return false;
}

std::string_view kind_text(ArrayKind kind) {
  constexpr std::array<std::string_view, 4> kTexts{"an array of strings", "an array of integers",
                                                   "an array of reals", "an array of bools"};
  return kTexts[static_cast<std::size_t>(kind)];
}

// What the value holds as T, or nullopt: one reading rule per type of the typed getters.
std::optional<std::int64_t> read_integer(const MetadataValue& value) {
  return value.as_integer();
}
std::optional<double> read_real(const MetadataValue& value) {
  if (const auto real = value.as_real()) return real;
  if (const auto integer = value.as_integer()) return static_cast<double>(*integer);
  return std::nullopt;
}
std::optional<bool> read_bool(const MetadataValue& value) {
  return value.as_bool();
}
std::optional<std::string_view> read_string(const MetadataValue& value) {
  return value.as_string();
}

template <class T, class Read>
Result<std::optional<T>> get(const Metadata& metadata, std::string_view key, std::string_view expected,
                             Read&& read) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr) return std::optional<T>();
  std::optional<T> out = read(*value);
  if (!out) {
    std::string actual = value->type_text();
    if (is_integer_type(value->type()) && expected == "an integer") actual += " above 2^63-1";
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 fmt::format("{}, metadata key {}", metadata.source(), printable(key)),
                 "a metadata value must have the type that its key stands for",
                 std::string(expected),
                 std::move(actual),
                 "convert the model again"};
  }
  return out;
}

template <class T>
Result<T> required(const Metadata& metadata, std::string_view key, std::string_view expected,
                   Result<std::optional<T>> found) {
  if (!found.ok()) return std::move(found).error();
  if (!found->has_value()) {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 fmt::format("{}, metadata key {}", metadata.source(), printable(key)),
                 "the metadata must hold every key that the architecture needs",
                 std::string(expected),
                 "no such key",
                 "convert the model again; `hone inspect` lists the keys it has"};
  }
  return **found;
}

}  // namespace

std::string_view metadata_type_name(MetadataType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}
std::uint64_t metadata_type_bytes(MetadataType type) {
  return kTypeBytes[static_cast<std::size_t>(type)];
}

bool is_integer_type(MetadataType type) {
  return type <= MetadataType::I32 || type == MetadataType::U64 || type == MetadataType::I64;
}
bool is_real_type(MetadataType type) {
  return type == MetadataType::F32 || type == MetadataType::F64;
}

std::optional<std::int64_t> MetadataArray::integer_at(std::uint64_t index) const {
  if (index >= count_) return std::nullopt;
  switch (element_) {
    case MetadataType::U8:
      return load<std::uint8_t>(bytes_, index);
    case MetadataType::I8:
      return load<std::int8_t>(bytes_, index);
    case MetadataType::U16:
      return load<std::uint16_t>(bytes_, index);
    case MetadataType::I16:
      return load<std::int16_t>(bytes_, index);
    case MetadataType::U32:
      return load<std::uint32_t>(bytes_, index);
    case MetadataType::I32:
      return load<std::int32_t>(bytes_, index);
    case MetadataType::U64:
      return fits_signed(load<std::uint64_t>(bytes_, index));
    case MetadataType::I64:
      return load<std::int64_t>(bytes_, index);
    default:
      return std::nullopt;
  }
}

std::optional<double> MetadataArray::real_at(std::uint64_t index) const {
  if (index >= count_) return std::nullopt;
  if (element_ == MetadataType::F32) return static_cast<double>(load<float>(bytes_, index));
  if (element_ == MetadataType::F64) return load<double>(bytes_, index);
  if (element_ == MetadataType::U64) return static_cast<double>(load<std::uint64_t>(bytes_, index));
  const auto integer = integer_at(index);
  return integer ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt;
}

std::optional<bool> MetadataArray::bool_at(std::uint64_t index) const {
  if (index >= count_ || element_ != MetadataType::Bool) return std::nullopt;
  return bytes_[index] != std::byte{0};
}

MetadataValue MetadataValue::from_unsigned(MetadataType type, std::uint64_t value) {
  return {type, value};
}
MetadataValue MetadataValue::from_signed(MetadataType type, std::int64_t value) {
  return {type, static_cast<std::uint64_t>(value)};
}
MetadataValue MetadataValue::from_real(MetadataType type, double value) {
  return {type, std::bit_cast<std::uint64_t>(value)};
}
MetadataValue MetadataValue::from_bool(bool value) {
  return {MetadataType::Bool, value ? 1ULL : 0ULL};
}

MetadataValue MetadataValue::from_string(std::string_view value) {
  MetadataValue out(MetadataType::String, 0);
  out.bytes_ = std::as_bytes(std::span(value));
  return out;
}

MetadataValue MetadataValue::from_array(const MetadataArray& array) {
  MetadataValue out(MetadataType::Array, array.size());
  out.bytes_ = array.bytes();
  out.element_ = array.element_type();
  return out;
}

std::optional<std::int64_t> MetadataValue::as_integer() const {
  if (!is_integer_type(type_)) return std::nullopt;
  if (type_ == MetadataType::U64) return fits_signed(number_);
  return static_cast<std::int64_t>(number_);
}

std::optional<double> MetadataValue::as_real() const {
  if (!is_real_type(type_)) return std::nullopt;
  return std::bit_cast<double>(number_);
}

std::optional<bool> MetadataValue::as_bool() const {
  if (type_ != MetadataType::Bool) return std::nullopt;
  return number_ != 0;
}

std::optional<std::string_view> MetadataValue::as_string() const {
  if (type_ != MetadataType::String) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
}

std::optional<MetadataArray> MetadataValue::as_array() const {
  if (type_ != MetadataType::Array) return std::nullopt;
  return MetadataArray(element_, number_, bytes_);
}

std::string MetadataValue::type_text() const {
  if (type_ == MetadataType::Array) return fmt::format("array of {}", metadata_type_name(element_));
  return std::string(metadata_type_name(type_));
}

const MetadataValue* Metadata::find(std::string_view key) const {
  for (const MetadataEntry& entry : entries_) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Result<std::optional<std::int64_t>> Metadata::optional_integer(std::string_view key) const {
  return get<std::int64_t>(*this, key, "an integer", read_integer);
}
Result<std::optional<double>> Metadata::optional_real(std::string_view key) const {
  return get<double>(*this, key, "a real", read_real);
}
Result<std::optional<bool>> Metadata::optional_bool(std::string_view key) const {
  return get<bool>(*this, key, "a bool", read_bool);
}
Result<std::optional<std::string_view>> Metadata::optional_string(std::string_view key) const {
  return get<std::string_view>(*this, key, "a string", read_string);
}
Result<std::optional<MetadataArray>> Metadata::optional_array(std::string_view key, ArrayKind kind) const {
  return get<MetadataArray>(*this, key, kind_text(kind), [kind](const MetadataValue& value) {
    std::optional<MetadataArray> array = value.as_array();
    // An empty array has no elements of a wrong kind.
    if (array && array->size() > 0 && !is_kind(array->element_type(), kind)) array.reset();
    return array;
  });
}

Result<std::int64_t> Metadata::required_integer(std::string_view key) const {
  return required(*this, key, "an integer", optional_integer(key));
}
Result<double> Metadata::required_real(std::string_view key) const {
  return required(*this, key, "a real", optional_real(key));
}
Result<bool> Metadata::required_bool(std::string_view key) const {
  return required(*this, key, "a bool", optional_bool(key));
}
Result<std::string_view> Metadata::required_string(std::string_view key) const {
  return required(*this, key, "a string", optional_string(key));
}
Result<MetadataArray> Metadata::required_array(std::string_view key, ArrayKind kind) const {
  return required(*this, key, kind_text(kind), optional_array(key, kind));
}

std::string_view Metadata::own(std::string text) {
  if (!storage_) storage_ = std::make_shared<std::deque<std::string>>();
  return storage_->emplace_back(std::move(text));
}

void Metadata::add_integer(std::string_view key, std::int64_t value) {
  add(own(std::string(key)), MetadataValue::from_signed(MetadataType::I64, value));
}
void Metadata::add_real(std::string_view key, double value) {
  add(own(std::string(key)), MetadataValue::from_real(MetadataType::F64, value));
}
void Metadata::add_bool(std::string_view key, bool value) {
  add(own(std::string(key)), MetadataValue::from_bool(value));
}
void Metadata::add_string(std::string_view key, std::string value) {
  const std::string_view text = own(std::move(value));
  add(own(std::string(key)), MetadataValue::from_string(text));
}

void Metadata::add_owned_array(std::string_view key, MetadataType element, std::uint64_t count,
                               std::string bytes) {
  const std::string_view owned = own(std::move(bytes));
  add(own(std::string(key)),
      MetadataValue::from_array(MetadataArray(element, count, std::as_bytes(std::span(owned)))));
}

void Metadata::add_strings(std::string_view key, std::span<const std::string> values) {
  std::string bytes;
  for (const std::string& value : values) {
    const std::uint64_t length = value.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += value;
  }
  add_owned_array(key, MetadataType::String, values.size(), std::move(bytes));
}

void Metadata::add_integers(std::string_view key, std::span<const std::int64_t> values) {
  add_owned_array(key, MetadataType::I64, values.size(),
                  std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

void Metadata::add_reals(std::string_view key, std::span<const double> values) {
  add_owned_array(key, MetadataType::F64, values.size(),
                  std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

}  // namespace hone
