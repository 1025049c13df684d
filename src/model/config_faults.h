// What the two readers of configurations share: faults gathered to be reported at once, and tables of keys.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/config.h"

namespace hone {

class ConfigFaults {
 public:
  // `source`: the path of the file.
  explicit ConfigFaults(std::string source) : source_(std::move(source)) {}

  const std::string& source() const { return source_; }
  // A key that is missing, has another type or is out of range.
  void add(std::string_view key, std::string message, std::string expected, std::string actual);
  void add(Error error) { errors_.push_back(std::move(error)); }
  bool empty() const { return errors_.empty(); }

  // The value, or `otherwise` and a noted fault.
  template <class T>
  T take(Result<T> result, T otherwise) {
    if (result.ok()) return std::move(result).value();
    errors_.push_back(std::move(result).error());
    return otherwise;
  }

  // One error for all that was noted, and what `config` refuses with it.
  Status check(const ModelConfig& config) const;

 private:
  std::string source_;
  std::vector<Error> errors_;
};

enum class KeyUse : std::uint8_t {
  Used,     // read; by the families named in the row, or by all
  Refused,  // changes the maths, and hone does not implement it
  NoEffect  // changes no number that hone computes
};

struct KeyRow {
  std::string_view key;
  KeyUse use = KeyUse::Used;
  std::string_view families{};  // Used: by these, separated by spaces; by others it is refused. Empty: by all
  std::string_view neutral{};   // values that change nothing, separated by '|'; never refused
};

// The row of `key`, or nullptr.
const KeyRow* find_row(std::span<const KeyRow> rows, std::string_view key);

// Notes in `config` a key of the file that `rows` refuses, or that no row knows. `shown`: its full name;
// `value` as text.
void sort_key(std::span<const KeyRow> rows, std::string_view key, std::string_view shown,
              std::string_view value, ModelConfig& config);

// Ranges that hold for every model, and what follows from the keys alone (the scale of scores, v_head_dim).
void complete(const Checkpoint& checkpoint, ModelConfig& config, ConfigFaults& faults);

// Layers behind the last, which guess further tokens: left out, as transformers does. A warning that names
// `key` where the checkpoint has tensors of them.
void warn_of_prediction_layers(const Checkpoint& checkpoint, std::string_view key, ModelConfig& config);

Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint);
Result<ModelConfig> read_hugging_face_config(const Checkpoint& checkpoint);

}  // namespace hone
