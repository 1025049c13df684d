#include "file/safetensors_header.h"

#include <fmt/format.h>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "file/file_error.h"
#include "file/safetensors.h"

namespace hone {

bool SafetensorsHeader::fail(std::string message, std::string expected, std::string actual) {
  if (!error_)
    error_ = bad_file_at(path_, position_, std::move(message), std::move(expected), std::move(actual));
  return false;
}

Error SafetensorsHeader::take_error() {
  return error_ ? std::move(*error_)
                : internal_error(std::string(path_), "the header failed without a reason");
}

bool SafetensorsHeader::unexpected(std::string actual) {
  switch (state_) {
    case State::MetadataStart:
      return fail("__metadata__ must be an object of strings", "an object", std::move(actual));
    case State::Metadata:
      return fail("the values of __metadata__ must be strings", "a string", std::move(actual));
    case State::TensorStart:
    case State::Top:
      return fail("a tensor must be described by an object", "{dtype, shape, data_offsets}",
                  std::move(actual));
    case State::Tensor:
      return fail("a tensor's fields must be a string dtype, and arrays shape and data_offsets",
                  field_ == Field::DType ? "a string" : "an array", std::move(actual));
    case State::Shape:
    case State::Offsets:
      return fail("shape and data_offsets must hold unsigned integers below 2^63", "an unsigned integer",
                  std::move(actual));
    default:
      return fail("the header must be a JSON object", "an object", std::move(actual));
  }
}

bool SafetensorsHeader::null() {
  return unexpected("null");
}
bool SafetensorsHeader::boolean(bool value) {
  return unexpected(value ? "true" : "false");
}
bool SafetensorsHeader::number_integer(std::int64_t value) {
  return unexpected(fmt::format("{}", value));
}
bool SafetensorsHeader::number_float(double /*value*/, const std::string& text) {
  return unexpected(printable(text));
}
bool SafetensorsHeader::binary(nlohmann::json::binary_t& /*value*/) {
  return unexpected("binary");
}

bool SafetensorsHeader::number_unsigned(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return unexpected(fmt::format("{}", value));
  }
  if (state_ == State::Shape) {
    std::vector<std::int64_t>& shape = out_.tensors.back().shape;
    if (shape.size() == SafetensorsLimits::kDimensions) {
      return fail(fmt::format("a tensor must have at most {} dimensions", SafetensorsLimits::kDimensions),
                  fmt::format("at most {}", SafetensorsLimits::kDimensions), "more");
    }
    shape.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  if (state_ == State::Offsets) {
    if (offsets_ == 2)
      return fail("data_offsets must hold two numbers, begin and end", "2 numbers", "3 or more");
    (offsets_ == 0 ? claims_.back().begin : claims_.back().end) = value;
    ++offsets_;
    return true;
  }
  return unexpected(fmt::format("{}", value));
}

bool SafetensorsHeader::string(std::string& value) {
  if (state_ == State::Metadata) {
    out_.metadata.add_string(metadata_key_, std::move(value));
    return true;
  }
  if (state_ != State::Tensor || field_ != Field::DType) return unexpected("the string " + printable(value));
  type_ = safetensors_type(value);
  if (type_ == nullptr) {
    return fail("a tensor's dtype must be one that safetensors defines", "F32, F16, BF16, I64, ...",
                printable(value));
  }
  return true;
}

bool SafetensorsHeader::start_object(std::size_t /*size*/) {
  switch (state_) {
    case State::Start:
      state_ = State::Top;
      return true;
    case State::MetadataStart:
      state_ = State::Metadata;
      return true;
    case State::TensorStart:
      state_ = State::Tensor;
      return true;
    default:
      return unexpected("an object");
  }
}

bool SafetensorsHeader::key(std::string& name) {
  if (state_ == State::Top) return top_key(name);
  if (state_ == State::Tensor) return tensor_key(name);
  if (out_.metadata.entries().size() == SafetensorsLimits::kMetadataEntries) {
    return fail("the metadata count must not exceed the limit of this reader",
                fmt::format("at most {}", SafetensorsLimits::kMetadataEntries), "more");
  }
  metadata_key_ = std::move(name);
  return true;
}

bool SafetensorsHeader::top_key(std::string& name) {
  if (name == "__metadata__") {
    if (has_metadata_) return fail("__metadata__ must not repeat", "one __metadata__", "two");
    has_metadata_ = true;
    state_ = State::MetadataStart;
    return true;
  }
  if (name.size() > SafetensorsLimits::kNameBytes) {
    return fail(fmt::format("a tensor name must not exceed {} bytes", SafetensorsLimits::kNameBytes),
                fmt::format("at most {} bytes", SafetensorsLimits::kNameBytes),
                fmt::format("{} bytes", name.size()));
  }
  if (!is_usable_name(name)) {
    return fail("a tensor name must be text without control characters", "one or more characters",
                printable(name));
  }
  if (claims_.size() == SafetensorsLimits::kTensors) {
    return fail("the tensor count must not exceed the limit of this reader",
                fmt::format("at most {}", SafetensorsLimits::kTensors), "more");
  }
  out_.tensors.emplace_back().name = std::move(name);
  claims_.push_back({.at = position_});
  type_ = nullptr;
  has_shape_ = false;
  has_offsets_ = false;
  offsets_ = 0;
  state_ = State::TensorStart;
  return true;
}

bool SafetensorsHeader::tensor_key(const std::string& name) {
  bool seen = false;
  if (name == "dtype") {
    field_ = Field::DType;
    seen = type_ != nullptr;
  } else if (name == "shape") {
    field_ = Field::Shape;
    seen = has_shape_;
  } else if (name == "data_offsets") {
    field_ = Field::Offsets;
    seen = has_offsets_;
  } else {
    return fail("a tensor must have the fields dtype, shape and data_offsets and no others", "a known field",
                printable(name));
  }
  if (seen) return fail("a tensor's field must not repeat", "one of each field", printable(name));
  return true;
}

bool SafetensorsHeader::start_array(std::size_t /*size*/) {
  if (state_ == State::Tensor && field_ == Field::Shape) {
    has_shape_ = true;
    state_ = State::Shape;
    return true;
  }
  if (state_ == State::Tensor && field_ == Field::Offsets) {
    has_offsets_ = true;
    state_ = State::Offsets;
    return true;
  }
  return unexpected("an array");
}

bool SafetensorsHeader::end_array() {
  if (state_ == State::Offsets && offsets_ != 2) {
    return fail("data_offsets must hold two numbers, begin and end", "2 numbers",
                fmt::format("{}", offsets_));
  }
  state_ = State::Tensor;
  return true;
}

bool SafetensorsHeader::end_object() {
  if (state_ == State::Top) {
    state_ = State::Done;
    return true;
  }
  const bool was_tensor = state_ == State::Tensor;
  state_ = State::Top;
  return !was_tensor || finish_tensor();
}

bool SafetensorsHeader::finish_tensor() {
  TensorEntry& tensor = out_.tensors.back();
  const SafetensorsClaim& claim = claims_.back();
  if (type_ == nullptr || !has_shape_ || !has_offsets_) {
    return fail("a tensor must have the fields dtype, shape and data_offsets and no others",
                "all three fields",
                fmt::format("{} without {}", printable(tensor.name),
                            type_ == nullptr ? "dtype"
                            : !has_shape_    ? "shape"
                                             : "data_offsets"));
  }
  tensor.dtype = type_->dtype;
  tensor.type_name = type_->type_name;
  std::uint64_t bits = type_->bits;
  bool fits = true;
  bool empty = false;
  for (const std::int64_t dim : tensor.shape) {
    // A zero does not excuse the others: elements() multiplies them in some order too.
    empty = empty || dim == 0;
    const auto product = checked_multiply(bits, dim == 0 ? 1 : static_cast<std::uint64_t>(dim));
    fits = fits && product.has_value();
    bits = product.value_or(0);
  }
  if (!fits) {
    return fail("the size of a tensor in bits must be below 2^64", "below 2^64", printable(tensor.name));
  }
  if (empty) bits = 0;
  if (bits % 8 != 0)
    return fail("a tensor must fill whole bytes", "a multiple of 8 bits", fmt::format("{} bits", bits));
  tensor.bytes = bits / 8;
  if (claim.end < claim.begin || claim.end - claim.begin != tensor.bytes) {
    return fail("data_offsets must span exactly the bytes of dtype and shape",
                fmt::format("{} bytes", tensor.bytes),
                fmt::format("[{}, {}] in {}", claim.begin, claim.end, printable(tensor.name)));
  }
  return true;
}

bool SafetensorsHeader::parse_error(std::size_t /*position*/, const std::string& token,
                                    const nlohmann::json::exception& exception) {
  return fail("the header must be valid JSON", exception.what(), printable(token));
}

}  // namespace hone
