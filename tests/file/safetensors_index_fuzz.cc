// Any bytes as an index: an Error that names its place, or distinct tensors in files of the folder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "file/safetensors_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = hone::parse_safetensors_index(text, "fuzz");
  if (!index.ok()) {
    const hone::Error& error = index.error();
    if (error.code != hone::ErrorCode::BadFile || !error.where.starts_with("fuzz, line ")) std::abort();
    return 0;
  }
  std::set<std::string_view> names;
  for (const hone::SafetensorsIndex::Entry& entry : index->entries) {
    if (!names.insert(entry.tensor).second || entry.shard >= index->shards.size()) std::abort();
  }
  for (const std::string& shard : index->shards) {
    if (shard.find('/') != std::string::npos || !shard.ends_with(".safetensors")) std::abort();
  }
  return 0;
}
