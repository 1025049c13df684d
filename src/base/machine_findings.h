// What is wrong with a machine for running models, from its facts alone: every rule can be tested by a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/machine_facts.h"

namespace hone {

struct MachineState {
  ProcessorFacts processor;
  AmxPermission amx = AmxPermission::Absent;
  SystemFacts system;
  std::optional<Isa> isa_asked;  // by HONE_ISA
  int threads_asked = 0;         // 0: not asked
  int threads = 1;               // that the process may use
  std::string thread_source;
  std::int64_t memory_bytes = 0;  // that the process may use
  std::string memory_source;
  std::vector<std::string> other_copies;
  // Of a model, where one was named.
  std::int64_t model_bytes = 0;  // memory that it needs; 0: no model
  std::int64_t file_bytes = 0;
  std::string file;
  FileSpeed file_speed;
};

struct MachineFinding {
  std::string name;    // "isa-masked"
  std::string detail;  // what was found, and what it costs
  std::string fix;     // the command or setting that mends it
};

std::vector<MachineFinding> machine_findings(const MachineState& state);

// The instruction set that processors of this vendor, family and model have, if the table knows them.
std::optional<Isa> known_isa(const ProcessorFacts& processor);

// A file is called slow below this rate: a model of 8 GB takes more than half a minute to load.
inline constexpr double kSlowFileBytesPerSecond = 250e6;

}  // namespace hone
