#include "apps/pass_flags.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <sstream>

#include "apps/verb.h"
#include "base/nearest_name.h"

namespace hone {
namespace {

// The move that "NAME:before:OTHER" asks for.
std::optional<PassMove> read_move(const std::string& text) {
  for (const std::string_view word : {":before:", ":after:"}) {
    const std::size_t at = text.find(word);
    if (at == std::string::npos || at == 0 || at + word.size() == text.size()) continue;
    return PassMove{text.substr(0, at), word == ":after:", text.substr(at + word.size())};
  }
  return std::nullopt;
}

class PassFlags {
 public:
  explicit PassFlags(EngineOptions& options) : options_(options) {}

  Status read(const std::string& text) {
    std::istringstream parts(text);
    std::string part;
    while (std::getline(parts, part, ',')) {
      if (!part.empty()) HONE_TRY(read_part(part));
    }
    if (!picked_.empty()) {
      std::erase_if(options_.plugins, [&](const auto& plugin) {
        return std::find(picked_.begin(), picked_.end(), plugin->name) == picked_.end();
      });
    }
    return {};
  }

 private:
  bool is_plugin(const std::string& name) const {
    return std::any_of(options_.plugins.begin(), options_.plugins.end(),
                       [&](const auto& plugin) { return plugin->name == name; });
  }
  // A plugin's pass may be named without the prefix.
  std::string full_name(const std::string& name) const {
    const std::string prefixed = std::string(kPluginPrefix) + name;
    return is_plugin(prefixed) ? prefixed : name;
  }

  Status pick(const std::string& name) {
    if (is_plugin(name)) {
      picked_.push_back(name);
      return {};
    }
    std::vector<std::string_view> names;
    std::string list;
    for (const auto& plugin : options_.plugins) {
      names.push_back(plugin->name);
      list += fmt::format("{}{}", list.empty() ? "" : ", ", plugin->name);
    }
    Error error = usage_error("--passes", "no plugin has this pass",
                              list.empty() ? "--plugin FILE.so beside it" : "one of " + list, "+" + name);
    const std::string_view near = nearest_name(name, names);
    if (!near.empty()) error.next_step = fmt::format("did you mean '+{}'?", near);
    return error;
  }

  Status read_part(const std::string& part) {
    const bool picks = part[0] == '+';
    const std::optional<PassMove> move = read_move(picks ? part.substr(1) : part);
    if (picks) HONE_TRY(pick(move ? move->name : part.substr(1)));
    if (move) {
      options_.moved_passes.push_back({full_name(move->name), move->after, full_name(move->other)});
    } else if (part[0] == '-' && part.size() > 1) {
      options_.disabled_passes.push_back(full_name(part.substr(1)));
    } else if (!picks) {
      return usage_error("--passes", "this switches nothing off, adds nothing and moves nothing", kPassesForm,
                         part);
    }
    return {};
  }

  EngineOptions& options_;
  std::vector<std::string> picked_;
};

}  // namespace

Status read_pass_flags(const std::vector<std::string>& plugins, const std::string& passes,
                       EngineOptions& options) {
  for (const std::string& file : plugins) {
    for (auto& pass : HONE_TRY(load_plugin(file))) options.plugins.push_back(std::move(pass));
  }
  return PassFlags(options).read(passes);
}

}  // namespace hone
