#include "file/gguf.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "file/byte_reader.h"
#include "file/file_error.h"
#include "file/ggml_types.h"
#include "file/tensor_layout.h"

namespace hone {
namespace {

constexpr std::uint64_t kSmallestAlignment = 8;
// Smallest encodings: key of one byte, value type, value of one byte; name of one byte, axes, type, offset.
constexpr std::uint64_t kSmallestEntry = 8 + 1 + 4 + 1;
constexpr std::uint64_t kSmallestTensor = 8 + 1 + 4 + 4 + 8;

// Where the parts of one tensor's description stand in the file, for errors found later.
struct TensorPlace {
  std::uint64_t name_at = 0;
  std::uint64_t offset_at = 0;
  std::uint64_t relative = 0;  // offset as stored, from the start of the data section
};

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, const std::string& path, const MappedFile* file)
      : reader_(bytes, GgufLimits::kHeaderBytes, path, file), size_(bytes.size()) {
    out_.path = path;
    out_.format = "gguf";
    out_.metadata = Metadata(path);
  }

  Result<Checkpoint> parse() {
    HONE_TRY(parse_start());
    HONE_TRY(parse_counts());
    HONE_TRY(parse_metadata());
    HONE_TRY(parse_tensors());
    HONE_TRY(place_tensors());
    return std::move(out_);
  }

 private:
  Status parse_start();
  Status parse_counts();
  Status check_count(std::uint64_t at, std::string_view what, std::uint64_t count, std::uint64_t smallest,
                     std::uint64_t limit) const;
  Result<std::string_view> parse_name(std::string_view what);
  Status parse_metadata();
  Result<MetadataType> parse_value_type(std::string_view what);
  Result<MetadataValue> parse_value(MetadataType type);
  Result<MetadataValue> parse_bool();
  Result<MetadataValue> parse_array();
  Status check_bools(std::uint64_t at, std::span<const std::byte> bytes) const;
  Status read_alignment(std::uint64_t at, const MetadataValue& value);
  Status check_keys() const;
  Status parse_tensors();
  Status parse_tensor();
  Result<std::uint64_t> parse_shape(TensorEntry& tensor);
  Status place_tensors();

  ByteReader reader_;
  std::uint64_t size_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t metadata_count_ = 0;
  std::uint64_t alignment_ = kGgufDefaultAlignment;
  std::vector<TensorPlace> places_;
  Checkpoint out_;
};

Status GgufParser::parse_start() {
  const std::span<const std::byte> magic = HONE_TRY(reader_.take(4, "the magic bytes"));
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  const auto big_endian = [this](std::uint64_t at, std::string actual) {
    return bad_file_at(reader_.path(), at, "a GGUF file must be little-endian", "little-endian",
                       std::move(actual),
                       "convert the model to little-endian (gguf_convert_endian.py of llama.cpp)");
  };
  if (text == "FUGG") return big_endian(0, "big-endian (magic bytes \"FUGG\")");
  if (text != "GGUF") {
    return reader_.fail(0, "a GGUF file must begin with the bytes \"GGUF\"", "\"GGUF\"", printable(text));
  }
  const std::uint32_t version = HONE_TRY(reader_.number<std::uint32_t>("the version"));
  // A big-endian file carries the same magic; its small version number shows the order of bytes.
  if (version != 0 && (version & 0xffffU) == 0) {
    return big_endian(4, fmt::format("big-endian (version {} byte-swapped)", __builtin_bswap32(version)));
  }
  if (version != 2 && version != 3) {
    return bad_file_at(
        reader_.path(), 4, "the GGUF version must be 2 or 3", "2 or 3", fmt::format("{}", version),
        version == 1 ? "convert the model again: version 1 has 32-bit counts and is no longer written"
                     : "download the file again, or convert it again");
  }
  return {};
}

Status GgufParser::check_count(std::uint64_t at, std::string_view what, std::uint64_t count,
                               std::uint64_t smallest, std::uint64_t limit) const {
  if (count > reader_.left() / smallest) {
    return reader_.fail(at, fmt::format("the {} must fit in the bytes left", what),
                        fmt::format("at most {} ({} bytes left, {} or more each)", reader_.left() / smallest,
                                    reader_.left(), smallest),
                        fmt::format("{}", count));
  }
  if (count > limit) {
    return reader_.fail(at, fmt::format("the {} must not exceed the limit of this reader", what),
                        fmt::format("at most {}", limit), fmt::format("{}", count));
  }
  return {};
}

Status GgufParser::parse_counts() {
  const std::uint64_t at = reader_.position();
  tensor_count_ = HONE_TRY(reader_.number<std::uint64_t>("the tensor count"));
  metadata_count_ = HONE_TRY(reader_.number<std::uint64_t>("the metadata count"));
  HONE_TRY(check_count(at, "tensor count", tensor_count_, kSmallestTensor, GgufLimits::kTensors));
  HONE_TRY(
      check_count(at + 8, "metadata count", metadata_count_, kSmallestEntry, GgufLimits::kMetadataEntries));
  return {};
}

Result<std::string_view> GgufParser::parse_name(std::string_view what) {
  const std::uint64_t at = reader_.position();
  const std::string_view name = HONE_TRY(reader_.string(what));
  if (name.size() > GgufLimits::kNameBytes) {
    return reader_.fail(at, fmt::format("{} must not exceed {} bytes", what, GgufLimits::kNameBytes),
                        fmt::format("at most {} bytes", GgufLimits::kNameBytes),
                        fmt::format("{} bytes", name.size()));
  }
  if (!is_usable_name(name)) {
    return reader_.fail(at, fmt::format("{} must be UTF-8 text without control characters", what),
                        "one or more characters", printable(name));
  }
  return name;
}

Result<MetadataType> GgufParser::parse_value_type(std::string_view what) {
  const std::uint64_t at = reader_.position();
  const std::uint32_t id = HONE_TRY(reader_.number<std::uint32_t>(what));
  if (id > static_cast<std::uint32_t>(MetadataType::F64)) {
    return reader_.fail(at, fmt::format("{} must be one that GGUF defines", what), "0 to 12",
                        fmt::format("{}", id));
  }
  return static_cast<MetadataType>(id);
}

Result<MetadataValue> GgufParser::parse_bool() {
  const std::uint64_t at = reader_.position();
  const std::span<const std::byte> byte = HONE_TRY(reader_.take(1, "a metadata value"));
  HONE_TRY(check_bools(at, byte));
  return MetadataValue::from_bool(byte[0] != std::byte{0});
}

Status GgufParser::check_bools(std::uint64_t at, std::span<const std::byte> bytes) const {
  const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (bad == bytes.end()) return {};
  return reader_.fail(at + static_cast<std::uint64_t>(bad - bytes.begin()), "a bool must be 0 or 1", "0 or 1",
                      fmt::format("{}", std::to_integer<int>(*bad)));
}

Result<MetadataValue> GgufParser::parse_array() {
  const std::uint64_t type_at = reader_.position();
  const MetadataType element = HONE_TRY(parse_value_type("an array's element type"));
  if (element == MetadataType::Array) {
    return reader_.fail(type_at, "an array must not hold arrays", "a scalar or string element type", "array");
  }
  const std::uint64_t count_at = reader_.position();
  const auto count = HONE_TRY(reader_.number<std::uint64_t>("an array's count"));
  const std::uint64_t each = element == MetadataType::String ? 8 : metadata_type_bytes(element);
  HONE_TRY(check_count(count_at, "array count", count, each, std::numeric_limits<std::uint64_t>::max()));
  const std::uint64_t begin = reader_.position();
  if (element == MetadataType::String) {
    HONE_TRY(reader_.skip_strings(count, "a string of an array"));
  } else {
    const std::span<const std::byte> bytes = HONE_TRY(reader_.take(count * each, "an array"));
    if (element == MetadataType::Bool) HONE_TRY(check_bools(begin, bytes));
  }
  return MetadataValue::from_array(
      MetadataArray(element, count, {reader_.base() + begin, reader_.position() - begin}));
}

Result<MetadataValue> GgufParser::parse_value(MetadataType type) {
  constexpr std::string_view kWhat = "a metadata value";
  switch (type) {
    case MetadataType::U8:
      return MetadataValue::from_unsigned(type, HONE_TRY(reader_.number<std::uint8_t>(kWhat)));
    case MetadataType::I8:
      return MetadataValue::from_signed(type, HONE_TRY(reader_.number<std::int8_t>(kWhat)));
    case MetadataType::U16:
      return MetadataValue::from_unsigned(type, HONE_TRY(reader_.number<std::uint16_t>(kWhat)));
    case MetadataType::I16:
      return MetadataValue::from_signed(type, HONE_TRY(reader_.number<std::int16_t>(kWhat)));
    case MetadataType::U32:
      return MetadataValue::from_unsigned(type, HONE_TRY(reader_.number<std::uint32_t>(kWhat)));
    case MetadataType::I32:
      return MetadataValue::from_signed(type, HONE_TRY(reader_.number<std::int32_t>(kWhat)));
    case MetadataType::U64:
      return MetadataValue::from_unsigned(type, HONE_TRY(reader_.number<std::uint64_t>(kWhat)));
    case MetadataType::I64:
      return MetadataValue::from_signed(type, HONE_TRY(reader_.number<std::int64_t>(kWhat)));
    case MetadataType::F32:
      return MetadataValue::from_real(type, static_cast<double>(HONE_TRY(reader_.number<float>(kWhat))));
    case MetadataType::F64:
      return MetadataValue::from_real(type, HONE_TRY(reader_.number<double>(kWhat)));
    case MetadataType::Bool:
      return parse_bool();
    case MetadataType::String:
      return MetadataValue::from_string(HONE_TRY(reader_.string(kWhat)));
    case MetadataType::Array:
      return parse_array();
  }
  return internal_error("gguf", "unhandled metadata type");
}

Status GgufParser::read_alignment(std::uint64_t at, const MetadataValue& value) {
  const auto wrong = [&](std::string actual) {
    return reader_.fail(at, "general.alignment must be a u32 power of two of at least 8",
                        "a u32 power of two of at least 8", std::move(actual));
  };
  if (value.type() != MetadataType::U32) return wrong(value.type_text());
  const auto alignment = static_cast<std::uint64_t>(value.as_integer().value_or(0));
  if (alignment < kSmallestAlignment || !std::has_single_bit(alignment))
    return wrong(fmt::format("{}", alignment));
  alignment_ = alignment;
  return {};
}

Status GgufParser::parse_metadata() {
  out_.metadata.reserve(metadata_count_);
  for (std::uint64_t i = 0; i < metadata_count_; ++i) {
    const std::string_view key = HONE_TRY(parse_name("a metadata key"));
    const MetadataType type = HONE_TRY(parse_value_type("a metadata value type"));
    const std::uint64_t value_at = reader_.position();
    Result<MetadataValue> parsed = parse_value(type);
    if (!parsed.ok()) {
      Error error = std::move(parsed).error();
      error.where += fmt::format(", value of {}", key);
      return error;
    }
    const MetadataValue value = *parsed;
    if (key == kGgufAlignmentKey) HONE_TRY(read_alignment(value_at, value));
    out_.metadata.add(key, value);
  }
  return check_keys();
}

Status GgufParser::check_keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(out_.metadata.entries().size());
  for (const MetadataEntry& entry : out_.metadata.entries()) keys.push_back(entry.key);
  // Among equal keys the one that stands later in the file comes second.
  std::ranges::sort(keys, [](std::string_view a, std::string_view b) {
    const int order = a.compare(b);
    return order != 0 ? order < 0 : a.data() < b.data();
  });
  const auto twin = std::ranges::adjacent_find(keys);
  if (twin == keys.end()) return {};
  const auto at = reinterpret_cast<const std::byte*>((twin + 1)->data()) - reader_.base();
  return reader_.fail(static_cast<std::uint64_t>(at) - 8, "a metadata key must not repeat", "distinct keys",
                      printable(*twin));
}

// The axes of the file run fastest first. Returns the count of elements.
Result<std::uint64_t> GgufParser::parse_shape(TensorEntry& tensor) {
  const std::uint64_t count_at = reader_.position();
  const auto dimensions = HONE_TRY(reader_.number<std::uint32_t>("a tensor's number of dimensions"));
  if (dimensions > GgufLimits::kDimensions) {
    return reader_.fail(count_at,
                        fmt::format("a tensor must have at most {} dimensions", GgufLimits::kDimensions),
                        fmt::format("at most {}", GgufLimits::kDimensions), fmt::format("{}", dimensions));
  }
  tensor.shape.resize(dimensions);
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const std::uint64_t at = reader_.position();
    const auto length = HONE_TRY(reader_.number<std::uint64_t>("a tensor's dimension"));
    if (length == 0) {
      return reader_.fail(at, "a tensor's dimension must be at least 1", "1 or more",
                          fmt::format("0 in {}", printable(tensor.name)));
    }
    const std::optional<std::uint64_t> product = checked_multiply(elements, length);
    if (!product || *product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return reader_.fail(at, "the product of a tensor's dimensions must be below 2^63", "below 2^63",
                          fmt::format("{} x {} in {}", elements, length, printable(tensor.name)));
    }
    elements = *product;
    tensor.shape[dimensions - 1 - i] = static_cast<std::int64_t>(length);
  }
  return elements;
}

Status GgufParser::parse_tensor() {
  TensorEntry tensor;
  TensorPlace place;
  place.name_at = reader_.position();
  tensor.name = HONE_TRY(parse_name("a tensor name"));
  const std::uint64_t dimensions_at = reader_.position();
  const std::uint64_t elements = HONE_TRY(parse_shape(tensor));

  const std::uint64_t type_at = reader_.position();
  const auto id = HONE_TRY(reader_.number<std::uint32_t>("a tensor's type"));
  const GgmlType* type = ggml_type(id);
  if (type == nullptr) {
    return reader_.fail(type_at, "a tensor's type must be one that ggml defines", "a known type id",
                        fmt::format("{} in {}", id, printable(tensor.name)));
  }
  tensor.dtype = type->dtype;
  tensor.type_name = type->name;
  const std::uint64_t row = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape.back());
  if (row % type->block_elements != 0) {
    return reader_.fail(dimensions_at + 4, "a tensor's row must be a whole number of blocks",
                        fmt::format("a multiple of {} ({})", type->block_elements, type->name),
                        fmt::format("{} in {}", row, printable(tensor.name)));
  }
  const std::optional<std::uint64_t> bytes =
      checked_multiply(elements / type->block_elements, type->block_bytes);
  if (!bytes) {
    return reader_.fail(dimensions_at + 4, "a tensor's size in bytes must be below 2^64", "below 2^64",
                        fmt::format("{} elements of {} in {}", elements, type->name, printable(tensor.name)));
  }
  tensor.bytes = *bytes;

  place.offset_at = reader_.position();
  place.relative = HONE_TRY(reader_.number<std::uint64_t>("a tensor's offset"));
  places_.push_back(place);
  out_.tensors.push_back(std::move(tensor));
  return {};
}

Status GgufParser::parse_tensors() {
  out_.tensors.reserve(tensor_count_);
  places_.reserve(tensor_count_);
  for (std::uint64_t i = 0; i < tensor_count_; ++i) HONE_TRY(parse_tensor());
  if (const std::optional<std::size_t> twin = out_.index_tensors()) {
    return reader_.fail(places_[*twin].name_at, "a tensor name must not repeat", "distinct names",
                        printable(out_.tensors[*twin].name));
  }
  return {};
}

Status GgufParser::place_tensors() {
  const std::uint64_t padding = (alignment_ - reader_.position() % alignment_) % alignment_;
  const std::uint64_t data_begin = reader_.position() + padding;
  out_.header_bytes = std::min(data_begin, size_);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    TensorEntry& tensor = out_.tensors[i];
    const TensorPlace& place = places_[i];
    if (place.relative % alignment_ != 0) {
      return reader_.fail(place.offset_at, "a tensor's offset must be a multiple of the alignment",
                          fmt::format("a multiple of {}", alignment_),
                          fmt::format("{} in {}", place.relative, printable(tensor.name)));
    }
    const std::optional<std::uint64_t> begin = checked_add(data_begin, place.relative);
    const std::optional<std::uint64_t> end = begin ? checked_add(*begin, tensor.bytes) : std::nullopt;
    if (!end || *end > size_) {
      return reader_.fail(place.offset_at, "tensor data must end inside the file",
                          fmt::format("an end at or before byte {}", size_),
                          fmt::format("{} bytes at {} after the start of the data in {}", tensor.bytes,
                                      place.relative, printable(tensor.name)));
    }
    tensor.offset = *begin;
  }
  const std::vector<std::uint32_t> order = order_by_offset(out_.tensors);
  if (const std::optional<Overlap> overlap = find_overlap(out_.tensors, order)) {
    const TensorEntry& first = out_.tensors[overlap->first];
    const TensorEntry& second = out_.tensors[overlap->second];
    return reader_.fail(
        places_[overlap->second].offset_at, "the data of two tensors must not overlap",
        fmt::format("{} at byte {} or later", printable(second.name), first.offset + first.bytes),
        fmt::format("byte {}, inside {}", second.offset, printable(first.name)));
  }
  return {};
}

}  // namespace

Result<Checkpoint> parse_gguf(std::span<const std::byte> bytes, const std::string& path) {
  return GgufParser(bytes, path, nullptr).parse();
}

Result<Checkpoint> read_gguf(std::shared_ptr<MappedFile> file) {
  Checkpoint out = HONE_TRY(GgufParser(file->data(), file->path(), file.get()).parse());
  out.metadata.keep_alive(file);
  out.files.push_back(std::move(file));
  return out;
}

Result<Checkpoint> read_gguf(const std::string& path) {
  return read_gguf(HONE_TRY(MappedFile::open(path)));
}

}  // namespace hone
