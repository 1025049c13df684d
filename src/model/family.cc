#include "model/family.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "model/families.h"

namespace hone {
namespace {

constexpr std::array kFamilies{
    chatglm3_family,  deepseek_family, gemma2_family,    gemma3_family, glm4_family,
    llama_family,     mistral_family,  olmo2_family,     phi3_family,   qwen2_family,
    qwen2_moe_family, qwen3_family,    qwen3_moe_family,
};

}  // namespace

bool in_list(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Result<const Family*> find_family(std::string_view architecture, FileStyle style, std::string where) {
  std::string known;
  for (const auto& family_of : kFamilies) {
    const Family& family = family_of();
    const std::string_view list = style == FileStyle::Gguf ? family.gguf : family.hugging_face;
    if (in_list(list, architecture)) return &family;
    for (const char c : list) known += c == ' ' ? std::string(", ") : std::string(1, c);
    if (!list.empty()) known += ", ";
  }
  known.resize(known.size() - std::min<std::size_t>(2, known.size()));
  return Error{ErrorCode::BadModel,
               Fault::File,
               std::move(where),
               "hone has no model family for this architecture",
               std::move(known),
               std::string(architecture),
               "use a checkpoint of one of these architectures"};
}

Result<Graph> build_graph(const Checkpoint& checkpoint, const ModelConfig& config,
                          const BuildOptions& options) {
  const Family* family = HONE_TRY(find_family(config.architecture, config.style, checkpoint.path));
  ModelBuilder model(checkpoint, config, family->names, options);
  family->build(model);
  return model.finish();
}

}  // namespace hone
