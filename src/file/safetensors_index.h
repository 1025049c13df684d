// model.safetensors.index.json of a sharded checkpoint: {"metadata": {..}, "weight_map": {tensor: file}}
// (huggingface_hub, save_torch_state_dict). Read as events: an index of 16 MiB builds no tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hone {

// Limits of this reader; DeepSeek-V3's index has 91,991 tensors in 8.9 MB.
struct SafetensorsIndexLimits {
  static constexpr std::uint64_t kBytes = 16ULL << 20U;
  static constexpr std::size_t kTensors = 262'144;
  static constexpr std::size_t kShards = 4'096;
  static constexpr std::size_t kDepth = 64;
};

struct SafetensorsIndex {
  struct Entry {
    std::string tensor;
    std::uint32_t shard;  // position in `shards`
    std::uint64_t at;     // the byte of the text behind the tensor's name
  };
  std::vector<std::string> shards;  // file names without folders, in the order of their first use
  std::vector<Entry> entries;       // in the order of the text
};

// Errors (BadFile) with line, column and byte: no valid JSON; no weight_map, two of them, or one that is no
// object of strings; a repeated tensor; a file name that leaves the folder or is no .safetensors; a limit.
// `path` is named in errors.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view text, std::string_view path);

}  // namespace hone
