// GGUF reader, versions 2 and 3, little-endian (specification: ggml/docs/gguf.md).
//
// Input is hostile: every count is compared with the bytes left before anything is allocated for it, every
// sum and product is checked, and each Error (BadFile) names the rule and the byte at which it is broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "file/checkpoint.h"
#include "file/mapped_file.h"

namespace hone {

inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr std::uint32_t kGgufDefaultAlignment = 32;

// Limits of this reader, beyond those of the format; they bound its memory. All are far above any published
// model.
struct GgufLimits {
  static constexpr std::uint64_t kMetadataEntries = 65'536;
  static constexpr std::uint64_t kTensors = 65'536;
  static constexpr std::uint64_t kNameBytes = 256;            // of a metadata key or a tensor name
  static constexpr std::uint64_t kHeaderBytes = 64ull << 20;  // metadata and tensor table together
  static constexpr std::uint32_t kDimensions = 4;
};

// Maps the file and reads its header; tensor data is not touched.
Result<Checkpoint> read_gguf(const std::string& path);
Result<Checkpoint> read_gguf(std::shared_ptr<MappedFile> file);

// Reads from memory. `bytes` is the whole file; the result holds views into it. `path` is named in errors.
Result<Checkpoint> parse_gguf(std::span<const std::byte> bytes, const std::string& path);

}  // namespace hone
