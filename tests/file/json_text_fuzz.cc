// Any bytes as config.json: an Error that names its place, or a tree that prints and comes back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "file/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = hone::parse_json_object(text, "fuzz", {.bytes = 4096, .depth = 64});
  if (!value.ok()) {
    const hone::Error& error = value.error();
    if (error.code != hone::ErrorCode::BadFile || !error.where.starts_with("fuzz, line ")) std::abort();
    return 0;
  }
  if (hone::json_heap_bytes(*value) <= 0) std::abort();
  const auto again = hone::parse_json(value->dump(), "again");
  if (!again.ok() || *again != *value) std::abort();
  return 0;
}
