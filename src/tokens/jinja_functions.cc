// Global functions, and what the objects they make can do.
#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"

namespace hone::jinja {

std::string private_name(std::string_view name) {
  return fmt::format(
      "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{}'. Please "
      "rename the "
      "attribute.",
      name);
}

namespace {

Result<Value> call_range(const Call& call, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.error("range() takes no keyword arguments");
  const auto [a, b, c] = HONE_TRY(bind<3>(call, arguments, {"A", "B", "C"}));
  // The sandbox's limit.
  constexpr std::int64_t kMaxRange = 100'000;
  const auto too_big = [&] {
    return call.error(
        fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  };
  for (const Value& argument : arguments.positional) {
    HONE_TRY(call.evaluator.require_defined(call.offset, argument));
    if (argument.as_big() != nullptr) return too_big();
    if (!argument.integral()) {
      return call.error(fmt::format("'{}' object cannot be interpreted as an integer", argument.type_name()));
    }
  }
  if (a == nullptr) return call.error("range expected at least 1 argument, got 0");
  const std::int64_t start = b == nullptr ? 0 : *a->integral();
  const std::int64_t stop = b == nullptr ? *a->integral() : *b->integral();
  const std::int64_t step = c == nullptr ? 1 : *c->integral();
  if (step == 0) return call.error("range() arg 3 must not be zero");
  std::vector<Value> items;
  std::int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<std::int64_t>(items.size()) == kMaxRange) return too_big();
    HONE_TRY(call.evaluator.charge(call.offset, 0));
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  auto list = std::make_shared<List>(Shape::Range, std::move(items));
  list->range = {start, stop, step};
  return Value::list(std::move(list));
}

Result<std::vector<std::pair<std::string, Value>>> dict_items(const Call& call, const Arguments& arguments) {
  if (arguments.positional.size() > 1) {
    return call.error(fmt::format("dict expected at most 1 argument, got {}", arguments.positional.size()));
  }
  std::vector<std::pair<std::string, Value>> items;
  const auto put = [&](const std::string& name, const Value& value) {
    const auto same =
        std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
    if (same == items.end()) {
      items.emplace_back(name, value);
    } else {
      same->second = value;
    }
  };
  if (!arguments.positional.empty()) {
    const Value& base = arguments.positional[0];
    HONE_TRY(call.evaluator.require_defined(call.offset, base));
    if (const Dict* dict = base.as_dict()) {
      HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(dict->items.size())));
      items = dict->items;
    } else {
      const Value::ListPtr pairs = HONE_TRY(call.evaluator.iterate(call.offset, base));
      for (const Value& pair : pairs->items) {
        const List* list = pair.as_list();
        if (list == nullptr || list->items.size() != 2) return call.unsupported("of anything but pairs");
        if (list->items[0].as_string() == nullptr) return call.unsupported("with a key that is no string");
        HONE_TRY(call.evaluator.charge(call.offset, items.size()));
        put(*list->items[0].as_string(), list->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    HONE_TRY(call.evaluator.charge(call.offset, items.size()));
    put(name, value);
  }
  return items;
}

Result<Value> call_namespace(const Call& call, const Arguments& arguments) {
  auto items = HONE_TRY(dict_items(call, arguments));
  for (const auto& [name, value] : items) {
    if (name.starts_with('_')) return call.error(private_name(name));
  }
  return call.evaluator.make_namespace(std::move(items));
}

Result<Value> call_dict(const Call& call, const Arguments& arguments) {
  auto items = HONE_TRY(dict_items(call, arguments));
  return call.evaluator.bounded(call.offset, make_dict(std::move(items)));
}

Result<Value> call_raise(const Call& call, const Arguments& arguments) {
  const auto [message] = HONE_TRY(bind<1>(call, arguments, {"message"}));
  if (message == nullptr) return call.error("raise_exception needs a message");
  return call.error(HONE_TRY(call.evaluator.text_of(call.offset, *message)));
}

Result<Value> call_joiner(const Call& call, const Arguments& arguments) {
  const auto [separator] = HONE_TRY(bind<1>(call, arguments, {"sep"}));
  auto out = std::make_shared<Counter>();
  out->is_joiner = true;
  out->items.push_back(separator == nullptr ? Value::string(", ") : *separator);
  return Value::counter(std::move(out));
}

Result<Value> call_cycler(const Call& call, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.error("cycler() takes no keyword arguments");
  if (arguments.positional.empty()) return call.error("at least one item has to be provided");
  auto out = std::make_shared<Counter>();
  out->items = arguments.positional;
  out->footprint.grow(out->items.size() * sizeof(Value));
  return call.evaluator.bounded(call.offset, Value::counter(std::move(out)));
}

constexpr std::array<std::string_view, 12> kMonths{"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};

// The directives of strftime that templates use, in the C locale.
std::optional<std::string> time_part(char letter, bool no_pad, std::int64_t seconds) {
  using std::chrono::days;
  const std::chrono::sys_seconds now{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  const auto weekday = std::chrono::weekday(day).c_encoding();
  const auto month = static_cast<unsigned>(date.month());
  const auto year = static_cast<int>(date.year());
  const auto number = [&](auto value, int width) {
    return no_pad ? fmt::format("{}", value) : fmt::format("{:0{}}", value, width);
  };
  const auto hour = time.hours().count();
  switch (letter) {
    case 'Y':
      return fmt::format("{}", year);
    case 'y':
      return number(year % 100, 2);
    case 'm':
      return number(month, 2);
    case 'd':
      return number(static_cast<unsigned>(date.day()), 2);
    case 'e':
      return fmt::format("{:{}}", static_cast<unsigned>(date.day()), no_pad ? 1 : 2);
    case 'H':
      return number(hour, 2);
    case 'I':
      return number((hour + 11) % 12 + 1, 2);
    case 'M':
      return number(time.minutes().count(), 2);
    case 'S':
      return number(time.seconds().count(), 2);
    case 'j':
      return number((day - std::chrono::sys_days(date.year() / std::chrono::January / 1)).count() + 1, 3);
    case 'p':
      return std::string(hour < 12 ? "AM" : "PM");
    case 'B':
      return std::string(kMonths[month - 1]);
    case 'b':
    case 'h':
      return std::string(kMonths[month - 1].substr(0, 3));
    case 'A':
      return std::string(kDays[weekday]);
    case 'a':
      return std::string(kDays[weekday].substr(0, 3));
    case 'F':
      return fmt::format("{}-{:02}-{:02}", year, month, static_cast<unsigned>(date.day()));
    case 'T':
      return fmt::format("{:02}:{:02}:{:02}", hour, time.minutes().count(), time.seconds().count());
    case '%':
      return std::string("%");
    default:
      return std::nullopt;
  }
}

Result<Value> call_strftime(const Call& call, const Arguments& arguments) {
  const auto [format] = HONE_TRY(bind<1>(call, arguments, {"format"}));
  if (format == nullptr || format->as_string() == nullptr) return call.error("strftime_now takes a format");
  const std::optional<std::int64_t> now = call.evaluator.fuel().now;
  if (!now) return call.unsupported("without a clock");
  const std::string& text = *format->as_string();
  std::string out;
  HONE_TRY(call.evaluator.charge(call.offset, 16 * text.size()));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    const bool no_pad = text[i + 1] == '-' && i + 2 < text.size();
    i += no_pad ? 2 : 1;
    const auto part = time_part(text[i], no_pad, *now);
    if (!part) return call.unsupported(fmt::format("with '%{}'", text[i]));
    out += *part;
  }
  return Value::string(std::move(out));
}

}  // namespace

Result<Value> call_function(Evaluator& evaluator, std::uint32_t offset, Function function,
                            const Arguments& arguments) {
  switch (function) {
    case Function::Range:
      return call_range({evaluator, offset, "function 'range'"}, arguments);
    case Function::Namespace:
      return call_namespace({evaluator, offset, "function 'namespace'"}, arguments);
    case Function::Dict:
      return call_dict({evaluator, offset, "function 'dict'"}, arguments);
    case Function::RaiseException:
      return call_raise({evaluator, offset, "function 'raise_exception'"}, arguments);
    case Function::Joiner:
      return call_joiner({evaluator, offset, "function 'joiner'"}, arguments);
    case Function::Cycler:
      return call_cycler({evaluator, offset, "function 'cycler'"}, arguments);
    case Function::StrftimeNow:
      return call_strftime({evaluator, offset, "function 'strftime_now'"}, arguments);
  }
  return internal_error("template", "a function of unknown kind");
}

}  // namespace hone::jinja
