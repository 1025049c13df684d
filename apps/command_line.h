// The command line: verbs and their flags. A front of CLI11 that is compiled once; its headers cost seconds
// in every source that includes them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// NOLINTNEXTLINE(readability-identifier-naming): its name in CLI11
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hone {

struct FlagRules;

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
inline constexpr std::string_view kZeroIsDefault = "0 for the default";

// A flag or an operand of a command. A handle: valid as long as the command line it belongs to.
class Flag {
 public:
  Flag(CLI::Option* option, std::shared_ptr<FlagRules> rules) : option_(option), rules_(std::move(rules)) {}

  Flag required(bool value = true) const;
  Flag excludes(const Flag& other) const;
  // The help text shows the value that the variable has now.
  Flag show_default() const;
  // "a,b" is two values.
  Flag split_at_commas() const;
  // A whole number's lowest and highest value. `note` follows them in a message: "0 is off".
  Flag within(std::int64_t lowest, std::int64_t highest, std::string_view note = {}) const;
  // '' is a value like any other; without this it is an error.
  Flag may_be_empty() const;
  bool given() const;

 private:
  CLI::Option* option_;
  std::shared_ptr<FlagRules> rules_;
};

// The program itself, or one of its verbs. A handle like Flag.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // `names` as "-p,--prompt", or a bare word for an operand. The variable must outlive the parse; what it
  // holds is the default. A list takes every occurrence, everything else one.
  Flag option(const char* names, std::string& value, const char* help) const;
  Flag option(const char* names, std::int32_t& value, const char* help) const;
  Flag option(const char* names, std::int64_t& value, const char* help) const;
  Flag option(const char* names, std::uint64_t& value, const char* help) const;
  Flag option(const char* names, double& value, const char* help) const;
  Flag option(const char* names, std::vector<std::string>& value, const char* help) const;
  Flag flag(const char* names, bool& value, const char* help) const;

  // One that was added before.
  Flag find(const char* name) const;
  void remove(const char* name) const;

  std::string name() const;
  // Whether the arguments named this verb.
  bool chosen() const;

 private:
  CLI::App* app_;
};

struct ParseOutcome {
  enum class Kind { Run, HelpShown, Wrong };
  Kind kind = Kind::Run;
  Error error{};  // what is wrong (Usage)
};

class CommandLine {
 public:
  CommandLine(const char* name, const char* description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command program() const { return Command(app_.get()); }
  // A verb; from the first one on, one must be given.
  Command add_verb(const char* name, const char* help) const;
  // Sets the variables. Writes the help text to stdout when it is asked for: by --help, or by the first
  // argument `help`. --version is the verb `version`, if there is one.
  ParseOutcome parse(int count, char** values) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace hone
