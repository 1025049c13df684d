#include "tokens/jinja.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "tokens/exact_json.h"
#include "tokens/jinja_eval.h"
#include "tokens/jinja_lexer.h"
#include "tokens/jinja_parser.h"
#include "tokens/jinja_source.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

Error bad_context(std::string message, std::string expected) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               "template variables",
               std::move(message),
               std::move(expected),
               {},
               "change the messages, tools or variables"};
}

Result<jinja::Value> to_value(const nlohmann::ordered_json& data, std::int32_t depth_left) {
  using jinja::Value;
  if (depth_left < 0) return bad_context("the data is nested too deeply", {});
  switch (data.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return Value::boolean(data.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value::integer(data.get<std::int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned:
      return Value::integer(*jinja::BigInteger::parse(fmt::format("{}", data.get<std::uint64_t>())));
    case nlohmann::ordered_json::value_t::number_float:
      return Value::real(data.get<double>());
    case nlohmann::ordered_json::value_t::binary: {
      const std::string digits = long_integer_digits(data).value_or("");
      if (digits.size() > jinja::kMostDigits) {
        return bad_context(fmt::format("an integer has more than {} digits", jinja::kMostDigits), {});
      }
      const auto integer = jinja::BigInteger::parse(digits);
      return integer ? Result<Value>(Value::integer(*integer)) : bad_context("a number has no digits", {});
    }
    case nlohmann::ordered_json::value_t::string:
      return Value::string(data.get_ref<const std::string&>());
    case nlohmann::ordered_json::value_t::array: {
      std::vector<Value> items;
      items.reserve(data.size());
      for (const auto& item : data) items.push_back(HONE_TRY(to_value(item, depth_left - 1)));
      return jinja::make_list(jinja::Shape::List, std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      std::vector<std::pair<std::string, Value>> items;
      items.reserve(data.size());
      for (const auto& [key, item] : data.items())
        items.emplace_back(key, HONE_TRY(to_value(item, depth_left - 1)));
      return jinja::make_dict(std::move(items));
    }
    default:
      return Value::none();
  }
}

}  // namespace

Result<std::string> render_template(std::string_view text, const nlohmann::ordered_json& context,
                                    const Fuel& fuel) {
  if (!context.is_object()) return bad_context("the variables of a template are a JSON object", "an object");
  const jinja::Source source(text);
  if (static_cast<std::int64_t>(text.size()) > fuel.source_bytes) {
    return source.error(0, fmt::format("the template has more than {} bytes", fuel.source_bytes));
  }
  const std::size_t valid = utf8_valid_prefix(source.text());
  if (valid < source.text().size()) return source.error(valid, "the template is not valid UTF-8");
  const std::vector<jinja::Token> tokens = HONE_TRY(jinja::tokenize(source));
  const jinja::Template tree = HONE_TRY(jinja::parse(source, tokens, fuel.depth));
  std::vector<std::pair<std::string, jinja::Value>> variables;
  for (const auto& [name, item] : context.items())
    variables.emplace_back(name, HONE_TRY(to_value(item, fuel.depth)));
  jinja::Evaluator evaluator(source, fuel, std::move(variables));
  return evaluator.render(tree);
}

}  // namespace hone
