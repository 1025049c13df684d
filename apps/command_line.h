// The command line: verbs and their flags. A front of CLI11 that is compiled once; its headers cost seconds
// in every source that includes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): its name in CLI11
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hone {

// A flag or an operand of a command. A handle: valid as long as the command line it belongs to.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag required(bool value = true) const;
  Flag excludes(Flag other) const;
  // The help text shows the value that the variable has now.
  Flag show_default() const;
  // "a,b" is two values.
  Flag split_at_commas() const;
  bool given() const;

 private:
  CLI::Option* option_;
};

// The program itself, or one of its verbs. A handle like Flag.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // `names` as "-p,--prompt", or a bare word for an operand. The variable must outlive the parse; what it
  // holds is the default. A list takes every occurrence.
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
  std::string message;  // what is wrong
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
  // Sets the variables. Writes the help text to stdout when it is asked for.
  ParseOutcome parse(int count, char** values) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace hone
