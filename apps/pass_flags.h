// --plugin and --passes: which passes run, and where they stand.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/options.h"

namespace hone {

inline constexpr const char* kPassesForm =
    "-NAME, +plugin:NAME or NAME:before:OTHER (or :after:), with commas between";

// Loads the plugins and reads `passes`: "-fuse-rope,+plugin:mine,fuse-norm:after:fuse-rope". Where it picks
// passes of plugins with '+', only those run; else all of them do. Errors: (Usage) a text of another form, a
// '+' without its plugin; those of load_plugin.
Status read_pass_flags(const std::vector<std::string>& plugins, const std::string& passes,
                       EngineOptions& options);

}  // namespace hone
