// What `hone explain MODEL` prints: the chain with what each pass bought, the levels, and the nodes that cost
// most.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/explain/snapshot.h"
#include "passes/pass.h"

namespace hone {

struct PassNumbers {
  PassReport report;
  LevelNumbers before;
  LevelNumbers after;
};

// Nodes that differ in their layer alone, as one row.
struct CostGroup {
  std::string op;
  std::string module;  // "layers.*.attn"
  std::string type;
  std::string kernel;
  std::string value;  // of the first
  std::int64_t count = 0;
  std::int64_t cost = 0;  // of all together; of memory, of the largest
};

// What one op took in a measured run, all its launches of a phase together (hone profile --json).
struct TimeRow {
  std::string op;
  std::string phase;
  std::int64_t launches = 0;
  double seconds = 0;
  double share = 0;  // of the phase
};

struct Explanation {
  StepSizes sizes;
  std::string model;  // architecture
  std::string symbols;
  std::vector<PassNumbers> passes;
  LevelNumbers levels[4];
  Snapshot eager;  // O1
  Snapshot final;  // the level asked for
  Level level = Level::O3;
  // Values of the graph as it was built; a value id below means the same at every level.
  int built_values = 0;
  // Values that a pass has taken away, with its name and that of the pass before it (empty: none).
  struct Gone {
    std::string pass;
    std::string pass_before;
  };
  std::map<std::string, Gone> gone;
  std::vector<TimeRow> times;  // the dearest first; empty: no run is at hand
};

enum class CostKind : std::uint8_t { Bytes, Operations, Memory };
// The `most` dearest groups.
std::vector<CostGroup> dearest_nodes(const Snapshot& snapshot, CostKind kind, std::size_t most);

// `wide`: contracts in full.
std::string screen_text(const Explanation& explanation, bool wide);
nlohmann::ordered_json screen_json(const Explanation& explanation);

}  // namespace hone
