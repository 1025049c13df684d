// Typed reads of a JSON object's members, and the parts of config.json that have a file of their own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "model/config_faults.h"

namespace hone {

// A value for messages: its text, cut to 80 characters.
std::string json_text(const nlohmann::json& value);

class JsonReader {
 public:
  // `prefix` stands before the keys in errors: "rope_scaling.". All three must outlive the reader.
  JsonReader(const nlohmann::json& object, std::string prefix, ConfigFaults& faults)
      : object_(object), prefix_(std::move(prefix)), faults_(faults) {}

  // A key with the prefix before it.
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  // Present and not null.
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // nullopt where the key is missing or null; another type is noted as a fault.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<bool> truth(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::vector<double> reals(std::string_view key) const;
  // A missing key is a fault too.
  std::int64_t need_integer(std::string_view key) const;
  double need_real(std::string_view key) const;
  std::string need_text(std::string_view key) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  void wrong_type(std::string_view key, std::string_view expected, const nlohmann::json& value) const;
  void missing(std::string_view key, std::string_view expected) const;

  const nlohmann::json& object_;
  std::string prefix_;
  ConfigFaults& faults_;
};

// The rotary keys: rope_theta and rope_scaling, or rope_parameters.
void read_rope_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                    ConfigFaults& faults);

// Every key of config.json that hone knows; families with names of their own have tables of their own
// (config_chatglm.cc).
std::span<const KeyRow> hugging_face_keys();

// Where model_type is that of a text model with others around it (Gemma 3 with images): the keys of the text
// model, config.json's `text_config` over the defaults of transformers, for its files leave out what equals
// them. Sorts the keys beside `text_config`, sets the prefixes of the tensors and notes what is left out.
// nullopt: the file is of one model.
std::optional<nlohmann::json> text_model_keys(const Checkpoint& checkpoint, ModelConfig& config,
                                              ConfigFaults& faults);

// ChatGLM's own keys (num_layers, kv_channels, ..).
void read_chatglm_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config);

}  // namespace hone
