// Passes from shared libraries (include/hone/hone_pass.h). The library is opened in a child process, once to
// ask for its passes and once for each run: nothing of it ever enters this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "passes/pass.h"

namespace hone {

struct PluginPass {
  std::string file;
  int index = 0;     // of the file's passes
  std::string name;  // "plugin:scale-queries"
  ContractKind kind = ContractKind::SameBits;
  std::string bound;
  bool after = false;  // it stands behind `neighbour`, not in front of it
  std::string neighbour;
  Level from_level = Level::O1;
  std::string why;
  ChildLimits limits{};
};

inline constexpr std::string_view kPluginPrefix = "plugin:";

// The passes of a library. Errors: (File) one that cannot be loaded, has no function hone_plugin_pass, is of
// another ABI, describes a pass wrongly, or crashes meanwhile.
Result<std::vector<std::shared_ptr<const PluginPass>>> load_plugin(const std::string& file,
                                                                   const ChildLimits& limits = {});

// Runs it over `graph`. Errors (File): the pass crashes, takes too long, refuses, or answers with what is no
// graph, breaks the IR, or has other inputs, outputs or states.
Status run_plugin_pass(Graph& graph, const PluginPass& pass);

}  // namespace hone
