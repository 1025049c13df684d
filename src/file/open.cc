#include "file/open.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "file/file_error.h"
#include "file/gguf.h"
#include "file/gguf_split.h"
#include "file/huggingface.h"
#include "file/safetensors.h"

namespace hone {
namespace {

constexpr const char* kAccepted = "a GGUF or safetensors file, or a Hugging Face folder";

// For formats that are recognised but not read: what they are, and the way out.
struct KnownFormat {
  std::string_view magic;
  const char* name;
  std::string_view next_step;
};

constexpr std::string_view kFromOldGgml = "convert the model again with a current llama.cpp: it writes GGUF";
constexpr KnownFormat kKnownFormats[] = {
    {"PK\x03\x04", "a PyTorch archive (zip), a pickle", kFromPickle},
    {"\x80\x02", "a Python pickle (PyTorch)", kFromPickle},
    {"\x80\x03", "a Python pickle (PyTorch)", kFromPickle},
    {"\x80\x04", "a Python pickle (PyTorch)", kFromPickle},
    {"\x80\x05", "a Python pickle (PyTorch)", kFromPickle},
    {"lmgg", "a GGML file from before GGUF", kFromOldGgml},
    {"fmgg", "a GGML file from before GGUF", kFromOldGgml},
    {"tjgg", "a GGML file from before GGUF", kFromOldGgml},
    {"version https://git-lfs", "a Git LFS pointer, not the model", "fetch the model with `git lfs pull`"},
};

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return read_huggingface(path);
  std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file->data().data()), file->size());
  if (bytes.starts_with("GGUF") || bytes.starts_with("FUGG")) {
    Checkpoint part = HONE_TRY(read_gguf(std::move(file)));
    return join_gguf_parts(std::move(part));
  }
  for (const KnownFormat& format : kKnownFormats) {
    if (bytes.starts_with(format.magic)) {
      return bad_file_at(path, 0, "the file must have a format that hone reads", kAccepted, format.name,
                         std::string(format.next_step));
    }
  }
  // No magic bytes: a length of eight bytes, and the JSON object behind it.
  if (bytes.size() > 8 && bytes[8] == '{') {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    const bool has_config = std::filesystem::exists(std::filesystem::path(folder) / "config.json", ignored);
    return has_config ? read_huggingface_file(folder, std::move(file)) : read_safetensors(std::move(file));
  }
  return bad_file_at(path, 0, "the file must have a format that hone reads", kAccepted,
                     "a file that begins with " + printable(bytes.substr(0, 8)), "convert the model to GGUF");
}

}  // namespace hone
