#include "file/safetensors_index.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "file/counting_iterator.h"
#include "file/file_error.h"
#include "file/json_text.h"
#include "file/safetensors.h"

namespace hone {
namespace {

using Json = nlohmann::json;

class IndexHandler {
 public:
  IndexHandler(std::string_view text, std::string_view path, const std::uint64_t& position)
      : text_(text), path_(path), position_(position) {}

  Result<SafetensorsIndex> finish(bool parsed);

  bool null() { return scalar("null"); }
  bool boolean(bool value) { return scalar(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return scalar(fmt::format("{}", value)); }
  bool number_unsigned(std::uint64_t value) { return scalar(fmt::format("{}", value)); }
  bool number_float(double /*value*/, const std::string& text) { return scalar(printable(text)); }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool string(std::string& value);
  bool start_object(std::size_t /*size*/) { return open(true); }
  bool start_array(std::size_t /*size*/) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name);
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& exception) {
    return fail("the index must be valid JSON", "JSON (RFC 8259)", json_reason(exception.what()));
  }

 private:
  enum class State { Start, Top, MapStart, Map, Skipped };

  bool fail(std::string message, std::string expected, std::string actual) {
    if (!error_) error_ = error_at(position_, std::move(message), std::move(expected), std::move(actual));
    return false;
  }
  Error error_at(std::uint64_t at, std::string message, std::string expected, std::string actual) const {
    return bad_json_at(text_, path_, at, std::move(message), std::move(expected), std::move(actual));
  }
  bool open(bool is_object);
  bool close();
  bool scalar(std::string actual);
  std::optional<Error> repeated_tensor() const;

  std::string_view text_;
  std::string_view path_;
  const std::uint64_t& position_;
  State state_ = State::Start;
  std::size_t skipped_depth_ = 0;  // open objects and arrays of a value that is passed over
  bool has_map_ = false;
  std::map<std::string, std::uint32_t, std::less<>> shard_numbers_;
  SafetensorsIndex out_;
  std::optional<Error> error_;
};

bool is_shard_name(std::string_view name) {
  return is_usable_name(name) && name.size() <= SafetensorsLimits::kNameBytes &&
         name.ends_with(".safetensors") && name.find_first_of("/\\") == std::string_view::npos;
}

bool IndexHandler::scalar(std::string actual) {
  switch (state_) {
    case State::Skipped:
      if (skipped_depth_ == 0) state_ = State::Top;
      return true;
    case State::MapStart:
      return fail("weight_map must be an object of file names", "an object", std::move(actual));
    case State::Map:
      return fail("weight_map must be an object of file names", "a file name", std::move(actual));
    default:
      return fail("the index must be a JSON object", "an object", std::move(actual));
  }
}

bool IndexHandler::string(std::string& value) {
  if (state_ != State::Map) return scalar(printable(value));
  if (!is_shard_name(value)) {
    return fail("weight_map must name .safetensors files of its own folder", "a file name without folders",
                printable(value));
  }
  const auto [shard, is_new] =
      shard_numbers_.try_emplace(value, static_cast<std::uint32_t>(out_.shards.size()));
  if (is_new) {
    if (out_.shards.size() == SafetensorsIndexLimits::kShards) {
      return fail("the number of files must not exceed the limit of this reader",
                  fmt::format("at most {}", SafetensorsIndexLimits::kShards), "more");
    }
    out_.shards.push_back(value);
  }
  out_.entries.back().shard = shard->second;
  return true;
}

bool IndexHandler::open(bool is_object) {
  if (state_ == State::Skipped) {
    if (skipped_depth_ == SafetensorsIndexLimits::kDepth) {
      return fail("objects and arrays must not be nested too deep",
                  fmt::format("at most {} levels", SafetensorsIndexLimits::kDepth), "more");
    }
    ++skipped_depth_;
    return true;
  }
  if (!is_object || state_ == State::Map) return scalar(is_object ? "an object" : "an array");
  state_ = state_ == State::Start ? State::Top : State::Map;
  return true;
}

bool IndexHandler::close() {
  if (state_ == State::Skipped) {
    if (--skipped_depth_ == 0) state_ = State::Top;
  } else {
    state_ = State::Top;
  }
  return true;
}

bool IndexHandler::key(std::string& name) {
  if (state_ == State::Skipped) return true;
  if (state_ == State::Top) {
    if (name != "weight_map") {
      state_ = State::Skipped;
      return true;
    }
    if (has_map_) return fail("weight_map must not repeat", "one weight_map", "two");
    has_map_ = true;
    state_ = State::MapStart;
    return true;
  }
  if (name.size() > SafetensorsLimits::kNameBytes || !is_usable_name(name)) {
    return fail("a tensor name must be text without control characters",
                fmt::format("1 to {} bytes", SafetensorsLimits::kNameBytes), printable(name));
  }
  if (out_.entries.size() == SafetensorsIndexLimits::kTensors) {
    return fail("the tensor count must not exceed the limit of this reader",
                fmt::format("at most {}", SafetensorsIndexLimits::kTensors), "more");
  }
  out_.entries.push_back({std::move(name), 0, position_});
  return true;
}

std::optional<Error> IndexHandler::repeated_tensor() const {
  std::vector<std::uint32_t> order(out_.entries.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    const int compared = out_.entries[a].tensor.compare(out_.entries[b].tensor);
    return compared != 0 ? compared < 0 : a < b;
  });
  const auto twin = std::ranges::adjacent_find(order, [this](std::uint32_t a, std::uint32_t b) {
    return out_.entries[a].tensor == out_.entries[b].tensor;
  });
  if (twin == order.end()) return std::nullopt;
  const SafetensorsIndex::Entry& second = out_.entries[*(twin + 1)];
  return error_at(second.at, "a tensor name must not repeat", "distinct names", printable(second.tensor));
}

Result<SafetensorsIndex> IndexHandler::finish(bool parsed) {
  if (!parsed) {
    return error_ ? std::move(*error_)
                  : internal_error(std::string(path_), "the index failed without a reason");
  }
  // The JSON library takes a zero byte for the end of the text.
  if (position_ != text_.size() || text_.ends_with('\0')) {
    return error_at(position_ - 1, "the index must be valid JSON", "nothing behind the value", "a zero byte");
  }
  if (!has_map_) {
    return error_at(text_.size(), "the index must have a weight_map", "\"weight_map\": {tensor: file}",
                    "none");
  }
  if (std::optional<Error> twin = repeated_tensor()) return std::move(*twin);
  return std::move(out_);
}

}  // namespace

Result<SafetensorsIndex> parse_safetensors_index(std::string_view text, std::string_view path) {
  if (text.size() > SafetensorsIndexLimits::kBytes) {
    return bad_json_at(text, path, 0, "the JSON text must not exceed the limit of this reader",
                       fmt::format("at most {} bytes", SafetensorsIndexLimits::kBytes),
                       fmt::format("{} bytes", text.size()));
  }
  std::uint64_t position = 0;
  IndexHandler handler(text, path, position);
  const bool parsed = Json::sax_parse(CountingIterator(text.data(), &position),
                                      CountingIterator(text.data() + text.size(), &position), &handler);
  return handler.finish(parsed);
}

}  // namespace hone
