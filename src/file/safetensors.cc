#include "file/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "file/counting_iterator.h"
#include "file/file_error.h"
#include "file/safetensors_header.h"
#include "file/tensor_layout.h"

namespace hone {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

// The JSON library collects a string in full before it hands it over; this bounds what it may collect.
Status check_string_lengths(std::string_view header, const std::string& path) {
  std::size_t at = 0;
  while ((at = header.find('"', at)) != std::string_view::npos) {
    const std::size_t begin = at++;
    while (at < header.size() && header[at] != '"') at += header[at] == '\\' ? 2 : 1;
    if (at - begin > SafetensorsLimits::kStringBytes) {
      return bad_file_at(path, kLengthBytes + begin, "a string of the header must fit in 4 MiB",
                         fmt::format("at most {} bytes", SafetensorsLimits::kStringBytes),
                         fmt::format("{} bytes", at - begin));
    }
    ++at;
  }
  return {};
}

Result<std::string_view> find_header(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < kLengthBytes) {
    return bad_file_at(path, 0, "the header length must end inside the file", "8 bytes",
                       fmt::format("{} bytes", bytes.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - kLengthBytes) {
    return bad_file_at(path, 0, "the header must end inside the file",
                       fmt::format("at most {} bytes", bytes.size() - kLengthBytes),
                       fmt::format("{} bytes", length));
  }
  if (length > SafetensorsLimits::kHeaderBytes) {
    return bad_file_at(path, 0, "the header must fit in 16 MiB",
                       fmt::format("at most {} bytes", SafetensorsLimits::kHeaderBytes),
                       fmt::format("{} bytes", length));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!header.starts_with('{')) {
    return bad_file_at(path, kLengthBytes, "the header must begin with {", "{",
                       printable(header.substr(0, 1)));
  }
  HONE_TRY(check_string_lengths(header, path));
  return header;
}

Status check_metadata_keys(const Metadata& metadata, const std::string& path) {
  std::vector<std::string_view> keys;
  keys.reserve(metadata.entries().size());
  for (const MetadataEntry& entry : metadata.entries()) keys.push_back(entry.key);
  std::ranges::sort(keys);
  const auto twin = std::ranges::adjacent_find(keys);
  if (twin == keys.end()) return {};
  return bad_file_at(path, kLengthBytes, "a metadata key must not repeat", "distinct keys", printable(*twin));
}

// The data must be covered from its first byte to its last, each byte once.
Status place_tensors(Checkpoint& out, std::span<const SafetensorsClaim> claims, std::uint64_t file_bytes) {
  const std::uint64_t data_bytes = file_bytes - out.header_bytes;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].end > data_bytes) {
      return bad_file_at(out.path, claims[i].at, "tensor data must end inside the file",
                         fmt::format("an end at or before {} after the header", data_bytes),
                         fmt::format("{} in {}", claims[i].end, printable(out.tensors[i].name)));
    }
    out.tensors[i].offset = out.header_bytes + claims[i].begin;
  }
  const std::vector<std::uint32_t> order = order_by_offset(out.tensors);
  if (const std::optional<Overlap> overlap = find_overlap(out.tensors, order)) {
    return bad_file_at(out.path, claims[overlap->second].at, "the data of two tensors must not overlap",
                       fmt::format("{} at {} or later", printable(out.tensors[overlap->second].name),
                                   claims[overlap->first].end),
                       fmt::format("{}, inside {}", claims[overlap->second].begin,
                                   printable(out.tensors[overlap->first].name)));
  }
  std::uint64_t covered = 0;
  for (const std::uint32_t i : order) {
    if (claims[i].begin != covered) {
      return bad_file_at(out.path, claims[i].at, "the tensors must cover the data without holes",
                         fmt::format("{} at {}", printable(out.tensors[i].name), covered),
                         fmt::format("{}", claims[i].begin));
    }
    covered = claims[i].end;
  }
  if (covered != data_bytes) {
    return bad_file_at(out.path, out.header_bytes + covered, "the tensors must cover the data without holes",
                       fmt::format("{} bytes of data", covered), fmt::format("{} bytes", data_bytes));
  }
  return {};
}

}  // namespace

Result<Checkpoint> parse_safetensors(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view header = HONE_TRY(find_header(bytes, path));
  Checkpoint out;
  out.path = path;
  out.format = "safetensors";
  out.metadata = Metadata(path);
  out.header_bytes = kLengthBytes + header.size();

  std::uint64_t position = kLengthBytes;
  SafetensorsHeader handler(path, position, out);
  const bool parsed =
      nlohmann::json::sax_parse(CountingIterator(header.data(), &position),
                                CountingIterator(header.data() + header.size(), &position), &handler);
  if (!parsed) return handler.take_error();
  // The JSON library takes a zero byte for the end of the text.
  if (position != out.header_bytes || header.ends_with('\0')) {
    return bad_file_at(path, position - 1, "the header must be valid JSON", "spaces to the end of the header",
                       "a zero byte");
  }
  HONE_TRY(check_metadata_keys(out.metadata, path));
  if (const std::optional<std::size_t> twin = out.index_tensors()) {
    return bad_file_at(path, handler.claims()[*twin].at, "a tensor name must not repeat", "distinct names",
                       printable(out.tensors[*twin].name));
  }
  HONE_TRY(place_tensors(out, handler.claims(), bytes.size()));
  return out;
}

Result<Checkpoint> read_safetensors(std::shared_ptr<MappedFile> file) {
  Checkpoint out = HONE_TRY(parse_safetensors(file->data(), file->path()));
  out.files.push_back(std::move(file));
  return out;
}

Result<Checkpoint> read_safetensors(const std::string& path) {
  return read_safetensors(HONE_TRY(MappedFile::open(path)));
}

}  // namespace hone
