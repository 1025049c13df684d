#include "file/json_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "file/counting_iterator.h"
#include "file/file_error.h"
#include "file/mapped_file.h"

namespace hone {
namespace {

using Json = nlohmann::json;

// Handler of Json::sax_parse that builds the tree. The library's own builder lets a repeated key pass (the
// last one wins) and knows no depth.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view path, const JsonLimits& limits,
              const std::uint64_t& position)
      : text_(text), path_(path), limits_(limits), position_(position) {}

  Json take_root() { return std::move(root_); }
  Error take_error() {
    return error_ ? std::move(*error_)
                  : internal_error(std::string(path_), "JSON text failed without a reason");
  }

  bool null() { return place(nullptr) != nullptr; }
  bool boolean(bool value) { return place(value) != nullptr; }
  bool number_integer(std::int64_t value) { return place(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) { return place(value) != nullptr; }
  bool number_float(double value, const std::string& /*text*/) { return place(value) != nullptr; }
  bool string(std::string& value) { return place(std::move(value)) != nullptr; }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const auto [slot, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(name);
    if (!is_new) return fail("a key must not repeat in its object", "distinct keys", printable(name));
    slot_ = &slot->second;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& exception) {
    return fail("the text must be valid JSON", "JSON (RFC 8259)", json_reason(exception.what()));
  }

 private:
  bool fail(std::string message, std::string expected, std::string actual) {
    if (!error_) {
      error_ =
          bad_json_at(text_, path_, position_, std::move(message), std::move(expected), std::move(actual));
    }
    return false;
  }

  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  // The place of an open value stays where it is: its parent grows only after it is closed.
  bool open(Json value) {
    if (open_.size() == limits_.depth) {
      return fail("objects and arrays must not be nested too deep",
                  fmt::format("at most {} levels", limits_.depth), "more");
    }
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view path_;
  const JsonLimits& limits_;
  const std::uint64_t& position_;
  Json root_;
  std::vector<Json*> open_;  // from the root to the value being filled
  Json* slot_ = nullptr;     // of the key read last
  std::optional<Error> error_;
};

}  // namespace

Error bad_json_at(std::string_view text, std::string_view path, std::uint64_t offset, std::string message,
                  std::string expected, std::string actual) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  Error error = bad_file_at(path, offset, std::move(message), std::move(expected), std::move(actual),
                            "mend the file, or download it again");
  error.where = fmt::format("{}, line {}:{}, byte {}", path, line, before.size() - line_begin + 1, offset);
  return error;
}

std::string json_reason(std::string_view what) {
  const std::size_t column = what.find("column ");
  const std::size_t colon = column == std::string_view::npos ? column : what.find(": ", column);
  if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
  std::string out;
  for (const char c : what) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return out;
}

std::int64_t json_heap_bytes(const Json& value) {
  // malloc rounds to 16 bytes and adds 8 of its own.
  const auto block = [](std::size_t bytes) { return static_cast<std::int64_t>((bytes + 8 + 15) / 16 * 16); };
  const auto text = [&](const std::string& string) {
    return string.size() < 16 ? 0 : block(string.capacity() + 1);
  };
  if (const auto* string = value.get_ptr<const Json::string_t*>()) {
    return block(sizeof(std::string)) + text(*string);
  }
  std::int64_t sum = 0;
  if (const auto* array = value.get_ptr<const Json::array_t*>()) {
    sum = block(sizeof(Json::array_t)) + block(array->capacity() * sizeof(Json));
    for (const Json& item : *array) sum += json_heap_bytes(item);
  }
  if (const auto* object = value.get_ptr<const Json::object_t*>()) {
    constexpr std::size_t kTreeNode = 32;  // colour and three links
    sum = block(sizeof(Json::object_t));
    for (const auto& [key, item] : *object) {
      sum += block(kTreeNode + sizeof(Json::object_t::value_type)) + text(key) + json_heap_bytes(item);
    }
  }
  return sum;
}

Result<Json> parse_json(std::string_view text, std::string_view path, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return bad_json_at(text, path, 0, "the JSON text must not exceed the limit of this reader",
                       fmt::format("at most {} bytes", limits.bytes), fmt::format("{} bytes", text.size()));
  }
  std::uint64_t position = 0;
  TreeBuilder builder(text, path, limits, position);
  if (!Json::sax_parse(CountingIterator(text.data(), &position),
                       CountingIterator(text.data() + text.size(), &position), &builder)) {
    return builder.take_error();
  }
  // The JSON library takes a zero byte for the end of the text.
  if (position != text.size() || text.ends_with('\0')) {
    return bad_json_at(text, path, position - 1, "the text must be valid JSON", "nothing behind the value",
                       "a zero byte");
  }
  return builder.take_root();
}

Result<Json> parse_json_object(std::string_view text, std::string_view path, const JsonLimits& limits) {
  Json value = HONE_TRY(parse_json(text, path, limits));
  if (!value.is_object()) {
    return bad_json_at(text, path, 0, "the JSON value of the file must be an object", "an object",
                       value.type_name());
  }
  return value;
}

Result<Json> read_json_object(const std::string& path, const JsonLimits& limits) {
  const std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file->data().data()), file->size());
  return parse_json_object(text, path, limits);
}

}  // namespace hone
