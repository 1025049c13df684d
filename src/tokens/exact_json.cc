#include "tokens/exact_json.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace hone {

namespace {

using OrderedJson = nlohmann::ordered_json;

// Builds the document from the reader's events.
class ExactReader {
 public:
  static constexpr std::size_t kMostNesting = 512;

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(OrderedJson::number_integer_t value) { return put(value); }
  bool number_unsigned(OrderedJson::number_unsigned_t value) { return put(value); }
  bool number_float(OrderedJson::number_float_t value, const std::string& digits) {
    if (digits.find_first_of(".eE") != std::string::npos) return put(value);
    return put(OrderedJson::binary(std::vector<std::uint8_t>(digits.begin(), digits.end())));
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(OrderedJson::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(OrderedJson::object()); }
  bool start_array(std::size_t) { return open(OrderedJson::array()); }
  bool key(std::string& name) {
    slot_ = &(*open_.back())[name];
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const OrderedJson::exception& error) {
    at_ = position;
    // What the parser says after its own name and number: "syntax error while parsing value - ..".
    const std::string_view what = error.what();
    const std::size_t end = what.find("] ");
    message_ = what.substr(end == std::string_view::npos ? 0 : end + 2);
    return false;
  }

  std::size_t at() const { return at_; }
  const std::string& message() const { return message_; }
  bool too_deep() const { return too_deep_; }
  OrderedJson take() { return std::move(root_); }

 private:
  OrderedJson* place(OrderedJson value) {
    OrderedJson* target = &root_;
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(nullptr);
      target = &open_.back()->back();
    } else if (!open_.empty()) {
      target = slot_;
    }
    *target = std::move(value);
    return target;
  }
  bool put(OrderedJson value) {
    place(std::move(value));
    return true;
  }
  bool open(OrderedJson value) {
    if (open_.size() == kMostNesting) {
      too_deep_ = true;
      return false;
    }
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  OrderedJson root_;
  // The containers around the place at hand. They do not move: only the innermost one grows.
  std::vector<OrderedJson*> open_;
  OrderedJson* slot_ = nullptr;
  std::size_t at_ = 0;
  bool too_deep_ = false;
  std::string message_;
};

}  // namespace

Result<nlohmann::ordered_json> parse_exact_json(std::string_view text, const std::string& name) {
  ExactReader reader;
  if (OrderedJson::sax_parse(text.begin(), text.end(), &reader)) return reader.take();
  if (reader.too_deep()) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 name,
                 "the data is nested too deeply",
                 fmt::format("at most {} levels", ExactReader::kMostNesting),
                 "more",
                 "give flatter messages or variables"};
  }
  return Error{ErrorCode::BadInput,    Fault::User,       fmt::format("{}, byte {}", name, reader.at()),
               "the text is not JSON", "a JSON document", reader.message(),
               "correct the text"};
}

std::optional<std::string> long_integer_digits(const nlohmann::ordered_json& value) {
  if (!value.is_binary()) return std::nullopt;
  const auto& digits = value.get_binary();
  return std::string(digits.begin(), digits.end());
}

}  // namespace hone
