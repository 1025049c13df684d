#include "apps/command_line.h"

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <fmt/format.h>
#include <limits>

#include "apps/misuse.h"

namespace hone {

struct FlagRules {
  std::string names;  // "-p, --prompt"
  std::string_view note;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  bool may_be_empty = false;
};

namespace {

struct WrongValue : CLI::ParseError {
  explicit WrongValue(hone::Error what) : ParseError("WrongValue", what.message, 2), error(std::move(what)) {}
  hone::Error error;
};

[[noreturn]] void refuse(const FlagRules& rules, std::string message, std::string expected,
                         const std::string& text) {
  throw WrongValue(Error{ErrorCode::Usage,
                         Fault::User,
                         rules.names,
                         std::move(message),
                         std::move(expected),
                         text.empty() ? "''" : text,
                         {}});
}

template <std::integral T>
T highest_of(const FlagRules& rules) {
  if (rules.highest == std::numeric_limits<std::int64_t>::max()) return std::numeric_limits<T>::max();
  return static_cast<T>(rules.highest);
}

template <std::integral T>
T lowest_of(const FlagRules& rules) {
  if (std::cmp_less(rules.lowest, std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(rules.lowest);
}

template <std::integral T>
std::string range_of(const FlagRules& rules, bool whole_range) {
  const T lowest = lowest_of<T>(rules);
  const T highest = highest_of<T>(rules);
  std::string out = "a whole number, ";
  if (whole_range || std::is_unsigned_v<T> || rules.highest != std::numeric_limits<std::int64_t>::max()) {
    out += fmt::format("{} to {}", lowest, highest);
  } else {
    out += fmt::format("{} or more", lowest);
  }
  return rules.note.empty() ? out : fmt::format("{}; {}", out, rules.note);
}

bool only_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

template <std::integral T>
void read_value(const FlagRules& rules, const std::string& text, T& value) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool negative = text.starts_with('-');
  if (!only_digits(std::string_view(text).substr(negative ? 1 : 0))) {
    refuse(rules, "the value is not a whole number", range_of<T>(rules, false), text);
  }
  if (error != std::errc() || number < lowest_of<T>(rules) || number > highest_of<T>(rules)) {
    refuse(rules, "the number is out of range", range_of<T>(rules, !negative && error != std::errc()), text);
  }
  value = number;
}

void read_value(const FlagRules& rules, const std::string& text, double& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    refuse(rules, "the value is not a number", "a number, as 0.7", text);
  }
  value = number;
}

void read_value(const FlagRules& rules, const std::string& text, std::string& value) {
  if (text.empty() && !rules.may_be_empty) refuse(rules, "the value is empty", "some text", text);
  value = text;
}

template <class T>
constexpr const char* kind_of() {
  if constexpr (std::integral<T>) return "INT";
  return std::same_as<T, double> ? "FLOAT" : "TEXT";
}

template <class T>
std::string text_of(const T& value) {
  return fmt::format("{}", value);
}

std::shared_ptr<FlagRules> make_rules(std::string_view names) {
  auto rules = std::make_shared<FlagRules>();
  for (const char c : names) rules->names += c == ',' ? ", " : std::string(1, c);
  return rules;
}

// Every value is read here and not by CLI11, whose messages name neither what was typed nor what may be.
template <class T>
Flag add_value(CLI::App& app, const char* names, T& value, const char* help) {
  std::shared_ptr<FlagRules> rules = make_rules(names);
  const auto read = [rules, &value](const CLI::results_t& texts) {
    if (texts.size() > 1)
      refuse(*rules, "the flag is given twice", "one value", texts[0] + " and " + texts[1]);
    read_value(*rules, texts[0], value);
    return true;
  };
  CLI::Option* option = app.add_option(names, read, help, false, [&value] { return text_of(value); });
  option->type_name(kind_of<T>())->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return {option, std::move(rules)};
}

Flag add_list(CLI::App& app, const char* names, std::vector<std::string>& values, const char* help) {
  std::shared_ptr<FlagRules> rules = make_rules(names);
  const auto read = [rules, &values](const CLI::results_t& texts) {
    values.clear();
    for (const std::string& text : texts) read_value(*rules, text, values.emplace_back());
    return true;
  };
  CLI::Option* option = app.add_option(names, read, help);
  option->type_name("TEXT")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return {option, std::move(rules)};
}

KnownFlags flags_of(const CLI::App& app) {
  KnownFlags out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) {
      out.names.push_back("-" + name);
      if (name == "p" && option->get_type_name() == "TEXT") out.takes_prompt = true;
    }
  }
  return out;
}

// CLI11 reads "--flag=" as the flag without a value.
std::vector<std::string> separate_empty_values(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments) {
    if (argument.size() > 3 && argument.starts_with("--") && argument.ends_with('=') &&
        std::ranges::count(argument, '=') == 1) {
      out.push_back(argument.substr(0, argument.size() - 1));
      out.emplace_back();
    } else {
      out.push_back(argument);
    }
  }
  return out;
}

ParseOutcome wrong(hone::Error error) {
  return {ParseOutcome::Kind::Wrong, std::move(error)};
}

hone::Error error_of(const CLI::ParseError& error, const std::string& command) {
  const std::string help = command + " --help";
  if (const auto* wrong_value = dynamic_cast<const WrongValue*>(&error)) {
    hone::Error out = wrong_value->error;
    out.next_step = help;
    return out;
  }
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return {ErrorCode::Usage,
            Fault::User,
            text.substr(0, text.find(':')),
            "the flag needs a value",
            "a value behind it",
            "none",
            help};
  }
  return {ErrorCode::Usage, Fault::User, command, std::move(text), {}, {}, help};
}

}  // namespace

Flag Flag::required(bool value) const {
  option_->required(value);
  return *this;
}

Flag Flag::excludes(const Flag& other) const {
  option_->excludes(other.option_);
  return *this;
}

Flag Flag::show_default() const {
  option_->capture_default_str();
  return *this;
}

Flag Flag::split_at_commas() const {
  option_->delimiter(',');
  return *this;
}

Flag Flag::within(std::int64_t lowest, std::int64_t highest, std::string_view note) const {
  rules_->lowest = lowest;
  rules_->highest = highest;
  rules_->note = note;
  return *this;
}

Flag Flag::may_be_empty() const {
  rules_->may_be_empty = true;
  return *this;
}

bool Flag::given() const {
  return option_->count() > 0;
}

Flag Command::option(const char* names, std::string& value, const char* help) const {
  return add_value(*app_, names, value, help);
}
Flag Command::option(const char* names, std::int32_t& value, const char* help) const {
  return add_value(*app_, names, value, help);
}
Flag Command::option(const char* names, std::int64_t& value, const char* help) const {
  return add_value(*app_, names, value, help);
}
Flag Command::option(const char* names, std::uint64_t& value, const char* help) const {
  return add_value(*app_, names, value, help);
}
Flag Command::option(const char* names, double& value, const char* help) const {
  return add_value(*app_, names, value, help);
}
Flag Command::option(const char* names, std::vector<std::string>& value, const char* help) const {
  return add_list(*app_, names, value, help);
}
Flag Command::flag(const char* names, bool& value, const char* help) const {
  return {app_->add_flag(names, value, help), make_rules(names)};
}

Flag Command::find(const char* name) const {
  return {app_->get_option(name), make_rules(name)};
}

void Command::remove(const char* name) const {
  app_->remove_option(app_->get_option(name));
}

std::string Command::name() const {
  return app_->get_name();
}

bool Command::chosen() const {
  return app_->parsed();
}

CommandLine::CommandLine(const char* name, const char* description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_help_flag("-h,--help", "this text");
  app_->get_formatter()->label("SUBCOMMAND", "VERB");
  app_->allow_extras();
}

CommandLine::~CommandLine() = default;

Command CommandLine::add_verb(const char* name, const char* help) const {
  app_->require_subcommand(1);
  CLI::App* verb = app_->add_subcommand(name, help);
  verb->allow_extras();
  verb->group("Verbs");
  return Command(verb);
}

ParseOutcome CommandLine::parse(int count, char** values) const {
  std::vector<std::string> arguments(values + (count > 0 ? 1 : 0), values + count);
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app_->get_subcommands({})) verbs.push_back(verb->get_name());
  if (!verbs.empty()) {
    if (auto misuse = prepare_verb(app_->get_name(), verbs, arguments)) return wrong(std::move(*misuse));
  }
  const CLI::App* chosen = app_.get();
  std::string command = app_->get_name();
  if (!verbs.empty() && std::ranges::find(verbs, arguments[0]) != verbs.end()) {
    chosen = app_->get_subcommand(arguments[0]);
    command += " " + arguments[0];
  }
  if (auto misuse = check_dashes(command, flags_of(*chosen), arguments)) return wrong(std::move(*misuse));
  const auto leftover = [&] { return check_leftover(command, flags_of(*chosen), chosen->remaining()); };
  try {
    std::vector<std::string> reversed = separate_empty_values(arguments);
    std::ranges::reverse(reversed);
    app_->parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app_->exit(error);
      return {ParseOutcome::Kind::HelpShown};
    }
    if (auto misuse = leftover()) return wrong(std::move(*misuse));
    return wrong(error_of(error, command));
  }
  if (auto misuse = leftover()) return wrong(std::move(*misuse));
  return {};
}

}  // namespace hone
