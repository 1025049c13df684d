// Filters of sequences and mappings. Those that Python writes as generators work everything out at once here;
// an error on the way is kept for whoever takes the item it belongs to.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_strings.h"
#include "tokens/utf8.h"

namespace hone::jinja {

namespace {

Result<Value> filter_length(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string* text = input.as_string() != nullptr ? input.as_string() : input.as_markup();
  if (text != nullptr) return Value::integer(static_cast<std::int64_t>(count_characters(*text)));
  if (input.is_undefined()) return Value::integer(0);
  if (input.as_loop() != nullptr) return call.evaluator.attribute(call.offset, input, "length");
  if (input.as_list() == nullptr && input.as_dict() == nullptr) {
    return call.error(fmt::format("object of type '{}' has no len()", input.type_name()));
  }
  return Value::integer(static_cast<std::int64_t>(input.size()));
}

// attribute="a.b.0": a chain of items. No attribute: the value itself.
class AttributePath {
 public:
  static Result<AttributePath> parse(const Call& call, const Value* attribute,
                                     const Value* fallback = nullptr) {
    AttributePath out;
    if (fallback != nullptr && !fallback->is_none()) out.fallback_ = *fallback;
    if (attribute == nullptr || attribute->is_none()) return out;
    if (const auto index = attribute->integral()) {
      out.parts_.push_back(Value::integer(*index));
      return out;
    }
    const std::string* text = attribute->as_string();
    if (text == nullptr) return call.error("an attribute is named by a string or an integer");
    HONE_TRY(call.evaluator.charge(call.offset, 16 * text->size()));
    for (std::size_t begin = 0; begin <= text->size();) {
      const std::size_t end = std::min(text->find('.', begin), text->size());
      const std::string part = text->substr(begin, end - begin);
      const bool number =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
      out.parts_.push_back(number ? Value::integer(std::stol(part)) : Value::string(part));
      begin = end + 1;
    }
    return out;
  }

  Result<Value> of(const Call& call, Value value) const {
    for (const Value& part : parts_) {
      value = HONE_TRY(call.evaluator.item(call.offset, value, part));
      if (fallback_ && value.is_undefined()) value = *fallback_;
    }
    return value;
  }

 private:
  std::vector<Value> parts_;
  std::optional<Value> fallback_;
};

// Strings in lower case, unless the case counts.
Value sort_key(const Value& value, const Value* case_sensitive) {
  if (case_sensitive != nullptr && case_sensitive->truth()) return value;
  const std::string* text = value.as_string();
  return text == nullptr ? value : Value::string(change_case(*text, LetterCase::Lower));
}

struct Keyed {
  Value key;
  Value item;
};

// Stable, by `key`.
Status sort_keyed(const Call& call, std::vector<Keyed>& items, bool reverse) {
  std::optional<Error> failure;
  const auto less = [&](const Keyed& a, const Keyed& b) {
    if (failure) return false;
    // Lists of keys: the first that differ decide.
    auto result = call.evaluator.compare(call.offset, "<", reverse ? b.key : a.key, reverse ? a.key : b.key);
    if (result.ok()) return *result;
    failure = result.error();
    return false;
  };
  std::stable_sort(items.begin(), items.end(), less);
  if (failure) return *failure;
  return {};
}

std::vector<Value> items_of(std::vector<Keyed> keyed) {
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (Keyed& each : keyed) out.push_back(std::move(each.item));
  return out;
}

Result<Value> filter_sort(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [reverse, sensitive, attribute] =
      HONE_TRY(bind<3>(call, arguments, {"reverse", "case_sensitive", "attribute"}));
  // "a,b" sorts by a, then by b: the key is a list.
  std::vector<AttributePath> paths;
  const std::string* names = attribute == nullptr ? nullptr : attribute->as_string();
  if (names == nullptr) {
    paths.push_back(HONE_TRY(AttributePath::parse(call, attribute)));
  } else {
    for (std::size_t begin = 0; begin <= names->size();) {
      const std::size_t end = std::min(names->find(',', begin), names->size());
      const Value name = Value::string(names->substr(begin, end - begin));
      paths.push_back(HONE_TRY(AttributePath::parse(call, &name)));
      begin = end + 1;
    }
  }
  const Value::ListPtr all = HONE_TRY(call.evaluator.iterate(call.offset, input));
  std::vector<Keyed> keyed;
  keyed.reserve(all->items.size());
  for (const Value& item : all->items) {
    std::vector<Value> keys;
    keys.reserve(paths.size());
    for (const AttributePath& path : paths)
      keys.push_back(sort_key(HONE_TRY(path.of(call, item)), sensitive));
    HONE_TRY(call.evaluator.charge(call.offset, 16 * paths.size()));
    keyed.push_back({make_list(Shape::List, std::move(keys)), item});
  }
  HONE_TRY(sort_keyed(call, keyed, reverse != nullptr && reverse->truth()));
  return make_list(Shape::List, items_of(std::move(keyed)));
}

Result<Value> filter_dictsort(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [sensitive, by, reverse] =
      HONE_TRY(bind<3>(call, arguments, {"case_sensitive", "by", "reverse"}));
  const std::string which = by == nullptr ? "key" : HONE_TRY(call.evaluator.text_of(call.offset, *by));
  if (which != "key" && which != "value")
    return call.error("You can only sort by either \"key\" or \"value\"");
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  const Dict* dict = input.as_dict();
  if (dict == nullptr)
    return call.error(fmt::format("'{} object' has no attribute 'items'", input.type_name()));
  HONE_TRY(call.evaluator.charge(call.offset, 32 * dict->items.size()));
  std::vector<Keyed> keyed;
  keyed.reserve(dict->items.size());
  for (const auto& [name, value] : dict->items) {
    const Value key = Value::string(name);
    keyed.push_back(
        {sort_key(which == "key" ? key : value, sensitive), make_list(Shape::Tuple, {key, value})});
  }
  HONE_TRY(sort_keyed(call, keyed, reverse != nullptr && reverse->truth()));
  return call.evaluator.bounded(call.offset, make_list(Shape::List, items_of(std::move(keyed))));
}

Result<Value> filter_groupby(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [attribute, fallback, sensitive] =
      HONE_TRY(bind<3>(call, arguments, {"attribute", "default", "case_sensitive"}));
  if (attribute == nullptr) return call.error("groupby needs an attribute");
  const AttributePath path = HONE_TRY(AttributePath::parse(call, attribute, fallback));
  const Value::ListPtr all = HONE_TRY(call.evaluator.iterate(call.offset, input));
  std::vector<Keyed> keyed;
  keyed.reserve(all->items.size());
  for (const Value& item : all->items) {
    HONE_TRY(call.evaluator.charge(call.offset, 16));
    keyed.push_back({sort_key(HONE_TRY(path.of(call, item)), sensitive), item});
  }
  HONE_TRY(sort_keyed(call, keyed, false));
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    std::vector<Value> members;
    std::size_t end = begin;
    while (end < keyed.size() &&
           (end == begin ||
            HONE_TRY(call.evaluator.compare(call.offset, "==", keyed[end].key, keyed[begin].key)))) {
      members.push_back(keyed[end++].item);
    }
    // The name of a group is the key of its first member, in that one's own case.
    const Value name = HONE_TRY(path.of(call, members[0]));
    groups.push_back(make_list(Shape::Group, {name, make_list(Shape::List, std::move(members))}));
    begin = end;
  }
  return call.evaluator.bounded(call.offset, make_list(Shape::List, std::move(groups)));
}

Result<Value> filter_join(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [separator, attribute] = HONE_TRY(bind<2>(call, arguments, {"d", "attribute"}));
  const AttributePath path = HONE_TRY(AttributePath::parse(call, attribute));
  const std::string between =
      separator == nullptr ? std::string() : HONE_TRY(call.evaluator.text_of(call.offset, *separator));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  std::string out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    HONE_TRY(call.evaluator.charge(call.offset, between.size()));
    if (i > 0) out += between;
    const Value value = HONE_TRY(path.of(call, items->items[i]));
    out += HONE_TRY(call.evaluator.text_of(call.offset, value));
    HONE_TRY(call.evaluator.check_size(call.offset, out.size()));
  }
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

Result<Value> filter_first(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const Value none = Value::undefined("No first item, sequence was empty.");
  if (Generator* generator = input.as_generator()) {
    if (generator->at < generator->items.size()) return generator->items[generator->at++];
    if (generator->failure) return *std::exchange(generator->failure, std::nullopt);
    return none;
  }
  if (const std::string* text = input.as_string()) {
    return text->empty() ? none : Value::string(std::string(first_characters(*text, 1)));
  }
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  return items->items.empty() ? none : items->items.front();
}

Result<Value> filter_last(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  if (input.as_generator() != nullptr) return call.error("'generator' object is not reversible");
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  if (items->items.empty()) return Value::undefined("No last item, sequence was empty.");
  return items->items.back();
}

Result<Value> filter_list(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  return call.evaluator.bounded(call.offset, make_list(Shape::List, items->items));
}

// Any item is a valid draw, and the same one every time is a repeatable one.
Result<Value> filter_random(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  const bool indexed =
      input.as_string() != nullptr || (input.as_list() != nullptr && input.as_list()->is_sequence());
  if (!indexed) return call.error(fmt::format("'{}' object is no sequence", input.type_name()));
  if (input.size() == 0) return Value::undefined("No random item, sequence was empty.");
  return call.evaluator.item(call.offset, input, Value::integer(0));
}

Result<Value> filter_items(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (input.is_undefined()) return Value::generator({});
  if (input.as_dict() == nullptr) {
    return Value::generator({}, call.error("Can only get item pairs from a mapping."));
  }
  const Value view = HONE_TRY(call_method(call.evaluator, call.offset, input, "items", {}));
  return Value::generator(view.as_list()->items);
}

Result<Value> filter_reverse(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (const std::string* text = input.as_string()) {
    std::string out;
    out.reserve(text->size());
    HONE_TRY(call.evaluator.charge(call.offset, text->size()));
    for (std::size_t end = text->size(); end > 0;) {
      std::size_t begin = end - 1;
      while (begin > 0 && (static_cast<unsigned char>((*text)[begin]) & 0xC0U) == 0x80U) --begin;
      out.append(*text, begin, end - begin);
      end = begin;
    }
    return Value::string(std::move(out));
  }
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  std::vector<Value> reversed(items->items.rbegin(), items->items.rend());
  // reversed() takes sequences and mappings; what else can be iterated becomes a list.
  if (input.as_generator() != nullptr || input.is_undefined())
    return make_list(Shape::List, std::move(reversed));
  return Value::generator(std::move(reversed));
}

Result<Value> filter_unique(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [sensitive, attribute] = HONE_TRY(bind<2>(call, arguments, {"case_sensitive", "attribute"}));
  const AttributePath path = HONE_TRY(AttributePath::parse(call, attribute));
  std::vector<Value> seen;
  std::vector<Value> out;
  const auto work = [&]() -> Status {
    const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
    for (const Value& item : items->items) {
      const Value key = sort_key(HONE_TRY(path.of(call, item)), sensitive);
      const bool hashable =
          key.as_dict() == nullptr && (key.as_list() == nullptr || key.as_list()->is_tuple());
      if (!hashable) return call.error(fmt::format("unhashable type: '{}'", key.type_name()));
      bool known = false;
      for (const Value& other : seen)
        known = known || HONE_TRY(call.evaluator.compare(call.offset, "==", other, key));
      if (known) continue;
      seen.push_back(key);
      out.push_back(item);
    }
    return {};
  };
  const Status done = work();
  return Value::generator(std::move(out), done.ok() ? std::nullopt : std::optional<Error>(done.error()));
}

template <bool kLargest>
Result<Value> filter_extreme(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [sensitive, attribute] = HONE_TRY(bind<2>(call, arguments, {"case_sensitive", "attribute"}));
  const AttributePath path = HONE_TRY(AttributePath::parse(call, attribute));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  if (items->items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  Value best = items->items[0];
  Value best_key = sort_key(HONE_TRY(path.of(call, best)), sensitive);
  for (std::size_t i = 1; i < items->items.size(); ++i) {
    const Value key = sort_key(HONE_TRY(path.of(call, items->items[i])), sensitive);
    if (!HONE_TRY(call.evaluator.compare(call.offset, kLargest ? ">" : "<", key, best_key))) continue;
    best = items->items[i];
    best_key = key;
  }
  return best;
}

Result<Value> filter_sum(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [attribute, start] = HONE_TRY(bind<2>(call, arguments, {"attribute", "start"}));
  const AttributePath path = HONE_TRY(AttributePath::parse(call, attribute));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  Value out = start == nullptr ? Value::integer(0) : *start;
  if (out.as_string() != nullptr) return call.error("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : items->items) {
    const Value value = HONE_TRY(path.of(call, item));
    // Python adds up floats alone with compensation from version 3.12 on, and plainly before.
    out = HONE_TRY(call.evaluator.binary(call.offset, "+", out, value));
  }
  return out;
}

Result<Value> filter_batch(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [count, fill] = HONE_TRY(bind<2>(call, arguments, {"linecount", "fill_with"}));
  if (count == nullptr || !count->integral()) return call.error("batch needs a number");
  const std::int64_t size = *count->integral();
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  std::vector<Value> out;
  std::vector<Value> row;
  for (const Value& item : items->items) {
    if (static_cast<std::int64_t>(row.size()) == size) {
      out.push_back(make_list(Shape::List, std::exchange(row, {})));
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    if (fill != nullptr && !fill->is_none() && static_cast<std::int64_t>(row.size()) < size) {
      HONE_TRY(call.evaluator.check_size(call.offset, static_cast<std::uint64_t>(size)));
      HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(size)));
      row.resize(static_cast<std::size_t>(size), *fill);
    }
    out.push_back(make_list(Shape::List, std::move(row)));
  }
  return Value::generator(std::move(out));
}

Result<Value> filter_slice(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [count, fill] = HONE_TRY(bind<2>(call, arguments, {"slices", "fill_with"}));
  if (count == nullptr || !count->integral()) return call.error("slice needs a number");
  const std::int64_t slices = *count->integral();
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  if (slices == 0) return Value::generator({}, call.error("integer division or modulo by zero"));
  if (slices < 0) return Value::generator({});
  const auto length = static_cast<std::int64_t>(items->items.size());
  const std::int64_t each = length / slices;
  const std::int64_t extra = length % slices;
  std::vector<Value> out;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    HONE_TRY(call.evaluator.charge(call.offset, 16));
    const std::int64_t end = begin + each + (i < extra ? 1 : 0);
    std::vector<Value> part(items->items.begin() + begin, items->items.begin() + end);
    if (fill != nullptr && !fill->is_none() && i >= extra) part.push_back(*fill);
    out.push_back(make_list(Shape::List, std::move(part)));
    begin = end;
  }
  return Value::generator(std::move(out));
}

// The items of a generator made from `input`: `each` appends to its first argument, and its error ends them.
Result<Value> make_generator(const Call& call, const Value& input,
                             const std::function<Status(std::vector<Value>&, const Value&)>& each) {
  std::vector<Value> out;
  const auto work = [&]() -> Status {
    if (!input.truth()) return {};
    const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
    for (const Value& item : items->items) {
      HONE_TRY(call.evaluator.charge(call.offset, 16));
      HONE_TRY(each(out, item));
    }
    return {};
  };
  const Status done = work();
  return Value::generator(std::move(out), done.ok() ? std::nullopt : std::optional<Error>(done.error()));
}

Result<Value> filter_map(const Call& call, const Value& input, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    const auto [attribute, fallback] = HONE_TRY(bind<2>(call, arguments, {"attribute", "default"}));
    if (attribute == nullptr) {
      return input.truth() ? Value::generator({}, call.error("map requires a filter argument"))
                           : Value::generator({});
    }
    auto parsed = AttributePath::parse(call, attribute, fallback);
    if (!parsed.ok()) return Value::generator({}, parsed.error());
    const AttributePath& path = *parsed;
    return make_generator(call, input, [&](std::vector<Value>& out, const Value& item) -> Status {
      out.push_back(HONE_TRY(path.of(call, item)));
      return {};
    });
  }
  const std::string* name = arguments.positional[0].as_string();
  if (name == nullptr) return call.error("map takes the name of a filter");
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
  return make_generator(call, input, [&](std::vector<Value>& out, const Value& item) -> Status {
    out.push_back(HONE_TRY(apply_filter(call.evaluator, call.offset, *name, item, rest)));
    return {};
  });
}

template <bool kByAttribute, bool kKeep>
Result<Value> filter_select(const Call& call, const Value& input, const Arguments& arguments) {
  AttributePath path;
  std::size_t used = 0;
  if (kByAttribute) {
    if (arguments.positional.empty()) {
      return input.truth() ? Value::generator({}, call.error("Missing parameter for attribute name"))
                           : Value::generator({});
    }
    path = HONE_TRY(AttributePath::parse(call, arguments.positional.data()));
    used = 1;
  }
  const Value* test = arguments.positional.size() > used ? &arguments.positional[used] : nullptr;
  if (test != nullptr && test->as_string() == nullptr) return call.error("a test is named by a string");
  if (test == nullptr && !arguments.named.empty()) return call.error("a test is missing");
  Arguments rest{{}, arguments.named};
  if (test != nullptr) {
    rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used) + 1,
                           arguments.positional.end());
  }
  return make_generator(call, input, [&](std::vector<Value>& out, const Value& item) -> Status {
    const Value value = HONE_TRY(path.of(call, item));
    const bool holds =
        test == nullptr ? value.truth()
                        : HONE_TRY(apply_test(call.evaluator, call.offset, *test->as_string(), value, rest));
    if (holds == kKeep) out.push_back(item);
    return {};
  });
}

constexpr std::array<FilterRow, 23> kSequenceFilters{{
    {"batch", filter_batch},
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"map", filter_map},
    {"max", filter_extreme<true>},
    {"min", filter_extreme<false>},
    {"random", filter_random},
    {"reject", filter_select<false, false>},
    {"rejectattr", filter_select<true, false>},
    {"reverse", filter_reverse},
    {"select", filter_select<false, true>},
    {"selectattr", filter_select<true, true>},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
}};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  const auto row = std::find_if(kSequenceFilters.begin(), kSequenceFilters.end(),
                                [&](const FilterRow& r) { return r.name == name; });
  return row == kSequenceFilters.end() ? nullptr : row->filter;
}

}  // namespace hone::jinja
