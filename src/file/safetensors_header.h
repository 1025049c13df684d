// The JSON header of safetensors as an event handler: no document tree is built, so memory is bounded by what
// is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "file/checkpoint.h"
#include "file/safetensors_types.h"

namespace hone {

// One tensor as the header states it; `at` is the byte of the file behind its name.
struct SafetensorsClaim {
  std::uint64_t at = 0;
  std::uint64_t begin = 0;  // data_offsets, from the start of the data
  std::uint64_t end = 0;
};

// Handler of nlohmann::json::sax_parse. After a parse that returned true, `tensors` and `claims` correspond.
// `position` is where the parser stands in the file; it must outlive the handler.
class SafetensorsHeader {
 public:
  SafetensorsHeader(std::string_view path, const std::uint64_t& position, Checkpoint& out)
      : path_(path), position_(position), out_(out) {}

  const std::vector<SafetensorsClaim>& claims() const { return claims_; }
  // The first broken rule; an internal error if there was none.
  Error take_error();

  bool null();
  bool boolean(bool value);
  bool number_integer(std::int64_t value);
  bool number_unsigned(std::uint64_t value);
  bool number_float(double value, const std::string& text);
  bool string(std::string& value);
  bool binary(nlohmann::json::binary_t& value);
  bool start_object(std::size_t size);
  bool key(std::string& name);
  bool end_object();
  bool start_array(std::size_t size);
  bool end_array();
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& exception);

 private:
  enum class State { Start, Top, MetadataStart, Metadata, TensorStart, Tensor, Shape, Offsets, Done };
  enum class Field { None, DType, Shape, Offsets };

  bool fail(std::string message, std::string expected, std::string actual);
  bool unexpected(std::string actual);
  bool top_key(std::string& name);
  bool tensor_key(const std::string& name);
  bool finish_tensor();

  std::string_view path_;
  const std::uint64_t& position_;
  Checkpoint& out_;
  State state_ = State::Start;
  Field field_ = Field::None;
  bool has_metadata_ = false;
  std::string metadata_key_;
  std::vector<SafetensorsClaim> claims_;
  const SafetensorsType* type_ = nullptr;  // of the tensor being read; null before its dtype
  bool has_shape_ = false;
  std::size_t offsets_ = 0;  // numbers of data_offsets read
  bool has_offsets_ = false;
  std::optional<Error> error_;
};

}  // namespace hone
