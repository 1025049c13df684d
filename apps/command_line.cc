#include "apps/command_line.h"

#include <CLI/CLI.hpp>

namespace hone {

Flag Flag::required(bool value) const {
  option_->required(value);
  return *this;
}

Flag Flag::excludes(Flag other) const {
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

bool Flag::given() const {
  return option_->count() > 0;
}

Flag Command::option(const char* names, std::string& value, const char* help) const {
  return Flag(app_->add_option(names, value, help));
}
Flag Command::option(const char* names, std::int32_t& value, const char* help) const {
  return Flag(app_->add_option(names, value, help));
}
Flag Command::option(const char* names, std::int64_t& value, const char* help) const {
  return Flag(app_->add_option(names, value, help));
}
Flag Command::option(const char* names, std::uint64_t& value, const char* help) const {
  return Flag(app_->add_option(names, value, help));
}
Flag Command::option(const char* names, double& value, const char* help) const {
  return Flag(app_->add_option(names, value, help));
}
Flag Command::option(const char* names, std::vector<std::string>& value, const char* help) const {
  return Flag(app_->add_option(names, value, help)->take_all());
}
Flag Command::flag(const char* names, bool& value, const char* help) const {
  return Flag(app_->add_flag(names, value, help));
}

Flag Command::find(const char* name) const {
  return Flag(app_->get_option(name));
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
}

CommandLine::~CommandLine() = default;

Command CommandLine::add_verb(const char* name, const char* help) const {
  app_->require_subcommand(1);
  return Command(app_->add_subcommand(name, help));
}

ParseOutcome CommandLine::parse(int count, char** values) const {
  try {
    app_->parse(count, values);
    return {};
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app_->exit(error);
      return {ParseOutcome::Kind::HelpShown, {}};
    }
    return {ParseOutcome::Kind::Wrong, error.what()};
  }
}

}  // namespace hone
