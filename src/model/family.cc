#include "model/family.h"

#include <array>
#include <fmt/format.h>

#include "model/decoder.h"

namespace hone {
namespace {

// Llama files store the rows of q and k permuted, pairs side by side; the Qwen families keep halves.
constexpr std::array kFamilies{
    Family{.architecture = "llama", .rope_interleaved = true, .build = build_decoder},
    Family{.architecture = "qwen2", .rope_interleaved = false, .build = build_decoder},
    Family{.architecture = "qwen3", .rope_interleaved = false, .build = build_decoder},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

Result<const Family*> find_family(std::string_view architecture, std::string_view path) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) return &family;
    if (!known.empty()) known += ", ";
    known += family.architecture;
  }
  return Error{ErrorCode::BadModel,
               Fault::File,
               fmt::format("{}, key general.architecture", path),
               "hone has no model family for this architecture",
               known,
               std::string(architecture),
               "use a checkpoint of one of these architectures"};
}

Result<Graph> build_graph(const Checkpoint& checkpoint, const ModelConfig& config,
                          const BuildOptions& options) {
  const Family* family = HONE_TRY(find_family(config.architecture, checkpoint.path));
  return family->build(checkpoint, config, options);
}

}  // namespace hone
