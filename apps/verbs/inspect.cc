// hone inspect: what is in the file, headers only.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "apps/plural.h"
#include "apps/verb.h"
#include "file/huggingface.h"
#include "file/open.h"

namespace hone {
namespace {

// Arrays are summarised: a vocabulary would drown the answer.
Json metadata_value(const MetadataValue& value) {
  if (const auto text = value.as_string()) return std::string(*text);
  if (const auto flag = value.as_bool()) return *flag;
  if (const auto integer = value.as_integer()) return *integer;
  if (const auto real = value.as_real()) return *real;
  if (const auto array = value.as_array()) return fmt::format("{} x {}", array->size(), value.type_text());
  return value.type_text();
}

std::int64_t parameter_count(const Checkpoint& checkpoint) {
  std::int64_t sum = 0;
  for (const TensorEntry& tensor : checkpoint.tensors) sum += tensor.elements();
  return sum;
}

// Everything the checkpoint says beside its tensors; of a Hugging Face folder, config.json's keys as they
// stand there.
Json metadata_of(const Checkpoint& checkpoint) {
  Json metadata = checkpoint.config == nullptr ? Json::object() : Json(*checkpoint.config);
  for (const MetadataEntry& entry : checkpoint.metadata.entries()) {
    metadata[std::string(entry.key)] = metadata_value(entry.value);
  }
  if (checkpoint.generation_config != nullptr) metadata["generation_config"] = *checkpoint.generation_config;
  return metadata;
}

Json as_json(const Checkpoint& checkpoint, const std::string& architecture) {
  Json tensors = Json::array();
  for (const TensorEntry& tensor : checkpoint.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", tensor.type_name},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes}});
  }
  return {{"architecture", architecture},
          {"format", checkpoint.format},
          {"parameters", parameter_count(checkpoint)},
          {"tensors", std::move(tensors)},
          {"metadata", metadata_of(checkpoint)}};
}

std::string as_text(const Checkpoint& checkpoint, const std::string& architecture) {
  std::uint64_t bytes = 0;
  std::size_t widest = 4;
  for (const TensorEntry& tensor : checkpoint.tensors) {
    bytes += tensor.bytes;
    widest = std::max(widest, tensor.name.size());
  }
  std::string out =
      fmt::format("{:.1f} million parameters in {}, {}; architecture {}, format {}\n\n",
                  static_cast<double>(parameter_count(checkpoint)) / 1e6,
                  counted(std::ssize(checkpoint.tensors), "tensor"),
                  human_bytes(static_cast<std::int64_t>(bytes)), architecture, checkpoint.format);
  const Json metadata = metadata_of(checkpoint);
  for (const auto& [key, item] : metadata.items()) {
    std::string value = item.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (value.size() > 100) value = value.substr(0, 97) + "...";
    out += fmt::format("{:<44} {}\n", key, value);
  }
  out += fmt::format("\n{:<{}}  {:<8}{:>20}{:>14}\n", "tensor", widest, "type", "shape", "bytes");
  for (const TensorEntry& tensor : checkpoint.tensors) {
    out += fmt::format("{:<{}}  {:<8}{:>20}{:>14}\n", tensor.name, widest, tensor.type_name,
                       fmt::format("[{}]", fmt::join(tensor.shape, ",")), tensor.bytes);
  }
  return out;
}

Status run(const CommonFlags& flags) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
  const std::string architecture = architecture_name(checkpoint);
  if (flags.json) {
    print_json(as_json(checkpoint, architecture));
  } else {
    print_answer(as_text(checkpoint, architecture));
  }
  return {};
}

}  // namespace

Verb add_inspect(const CommandLine& line) {
  const Command verb = line.add_verb("inspect", "what is in the file, headers only");
  auto flags = std::make_shared<CommonFlags>();
  flags->add_to(verb, true);
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
