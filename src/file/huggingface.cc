#include "file/huggingface.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "file/file_error.h"
#include "file/json_text.h"
#include "file/safetensors.h"
#include "file/safetensors_index.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kConfig = "config.json";
constexpr std::array kPartNames{kConfig,          kWeights,          kIndex,
                                "tokenizer.json", "tokenizer.model", "tokenizer_config.json"};

std::string in_folder(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

bool has_file(const std::string& folder, std::string_view name) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / name, ignored);
}

// Weights that hone does not read: pickles run code when they are loaded.
std::vector<std::string> pickle_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

Error refused_pickles(const std::string& folder, const std::vector<std::string>& names) {
  return Error{ErrorCode::BadModel,
               Fault::User,
               folder,
               "weights must not be Python pickles, which run code when they are loaded",
               "model.safetensors, or shards with model.safetensors.index.json",
               fmt::format("{}", fmt::join(names, ", ")),
               std::string(kFromPickle)};
}

Result<std::shared_ptr<const nlohmann::json>> read_optional(const std::string& folder,
                                                            std::string_view name) {
  if (!has_file(folder, name)) return std::shared_ptr<const nlohmann::json>();
  return std::make_shared<const nlohmann::json>(HONE_TRY(read_json_object(in_folder(folder, name))));
}

Result<Checkpoint> read_configs(const std::string& folder) {
  Checkpoint out;
  out.path = folder;
  out.format = "huggingface";
  out.folder = folder;
  out.metadata = Metadata(folder);
  out.config = HONE_TRY(read_optional(folder, kConfig));
  out.generation_config = HONE_TRY(read_optional(folder, "generation_config.json"));
  return out;
}

Status add_file(Checkpoint& out, std::shared_ptr<MappedFile> file) {
  Checkpoint part = HONE_TRY(read_safetensors(std::move(file)));
  const auto number = static_cast<std::uint32_t>(out.files.size());
  if (number == 0) {
    out.header_bytes = part.header_bytes;
    out.metadata = std::move(part.metadata);
  }
  for (TensorEntry& tensor : part.tensors) {
    tensor.file = number;
    out.tensors.push_back(std::move(tensor));
  }
  part.drop_pages();
  out.files.push_back(std::move(part.files[0]));
  return {};
}

// Every fault of one kind in one error.
std::string list_some(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min<std::ptrdiff_t>(std::ssize(names), kShown));
  std::string out = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

Status check_placement(const Checkpoint& out, const SafetensorsIndex& index, std::string_view text,
                       const std::string& path) {
  for (const SafetensorsIndex::Entry& entry : index.entries) {
    const TensorEntry* tensor = out.find_tensor(entry.tensor);
    if (tensor != nullptr && tensor->file == entry.shard) continue;
    const std::string where = tensor == nullptr ? "in no file" : "in " + index.shards[tensor->file];
    return bad_json_at(text, path, entry.at, "a tensor must lie in the file that the index names",
                       fmt::format("{} in {}", printable(entry.tensor), index.shards[entry.shard]), where);
  }
  return {};
}

Status read_shards(Checkpoint& out, const std::string& folder) {
  const std::string path = in_folder(folder, kIndex);
  const std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file->data().data()), file->size());
  const SafetensorsIndex index = HONE_TRY(parse_safetensors_index(text, path));
  std::vector<std::string> missing;
  for (const std::string& shard : index.shards) {
    if (!has_file(folder, shard)) missing.push_back(shard);
  }
  if (!missing.empty()) {
    return Error{ErrorCode::BadFile,
                 Fault::File,
                 path,
                 "every file that the index names must be in the folder",
                 fmt::format("{} files", index.shards.size()),
                 fmt::format("missing: {}", list_some(missing)),
                 "download the missing files into the folder"};
  }
  for (const std::string& shard : index.shards) {
    std::shared_ptr<MappedFile> mapped = HONE_TRY(MappedFile::open(in_folder(folder, shard)));
    HONE_TRY(add_file(out, std::move(mapped)));
  }
  if (const std::optional<std::size_t> twin = out.index_tensors()) {
    const TensorEntry& second = out.tensors[*twin];
    return Error{ErrorCode::BadFile,
                 Fault::File,
                 out.files[second.file]->path(),
                 "a tensor must lie in one file only",
                 "distinct names",
                 printable(second.name),
                 "download the files again, or convert them again"};
  }
  return check_placement(out, index, text, path);
}

}  // namespace

Result<Checkpoint> read_huggingface(const std::string& folder) {
  std::error_code refused;
  (void)std::filesystem::directory_iterator(folder, refused);
  if (refused) return system_error(folder, "the folder must be readable", refused.value());
  const bool has_part =
      std::ranges::any_of(kPartNames, [&](const char* name) { return has_file(folder, name); });
  const bool has_weights = has_file(folder, kWeights) || has_file(folder, kIndex);
  const std::vector<std::string> pickles = has_weights ? std::vector<std::string>() : pickle_names(folder);
  if (!pickles.empty()) return refused_pickles(folder, pickles);
  if (!has_part) {
    return Error{ErrorCode::BadModel,
                 Fault::User,
                 folder,
                 "a model folder must hold config.json",
                 fmt::format("one or more of {}", fmt::join(kPartNames, ", ")),
                 "a folder with none of them",
                 "give the path of a GGUF file, or of a Hugging Face folder"};
  }
  Checkpoint out = HONE_TRY(read_configs(folder));
  // transformers takes the single file too where a folder has both.
  if (has_file(folder, kWeights)) {
    std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(in_folder(folder, kWeights)));
    HONE_TRY(add_file(out, std::move(file)));
    (void)out.index_tensors();
  } else if (has_file(folder, kIndex)) {
    HONE_TRY(read_shards(out, folder));
  }
  return out;
}

Result<Checkpoint> read_huggingface_file(const std::string& folder, std::shared_ptr<MappedFile> file) {
  Checkpoint out = HONE_TRY(read_configs(folder));
  out.path = file->path();
  HONE_TRY(add_file(out, std::move(file)));
  (void)out.index_tensors();
  return out;
}

Status require_model(const Checkpoint& checkpoint) {
  const bool no_config = checkpoint.format == "huggingface" && checkpoint.config == nullptr;
  if (!checkpoint.tensors.empty() && !no_config) return {};
  return Error{ErrorCode::BadModel,
               Fault::User,
               checkpoint.path,
               no_config ? "a model needs its config.json" : "a model needs its weights",
               no_config ? "config.json beside the weights"
                         : fmt::format("{}, or {} and its shards", kWeights, kIndex),
               no_config ? "no config.json" : "no tensors",
               "download the missing files of the model"};
}

std::string architecture_name(const Checkpoint& checkpoint) {
  const MetadataValue* value = checkpoint.metadata.find("general.architecture");
  if (value != nullptr && value->as_string()) return std::string(*value->as_string());
  if (checkpoint.config != nullptr) {
    const nlohmann::json& config = *checkpoint.config;
    const auto list = config.find("architectures");
    if (list != config.end() && list->is_array() && !list->empty() && list->front().is_string()) {
      return list->front().get<std::string>();
    }
    const auto type = config.find("model_type");
    if (type != config.end() && type->is_string()) return type->get<std::string>();
  }
  return "unknown";
}

}  // namespace hone
