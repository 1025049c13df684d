#include "file/gguf_split.h"

#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>
#include <vector>

#include "file/file_error.h"
#include "file/gguf.h"

namespace hone {
namespace {

constexpr std::int64_t kMostParts = 4096;
constexpr std::size_t kTailBytes = 20;  // "-00001-of-00002.gguf"

// What the keys of one part say.
struct Place {
  std::int64_t number = 0;  // from 0
  std::int64_t count = 0;
  std::int64_t tensors = 0;  // of all parts together
};

Error broken_split(const std::string& path, std::string message, std::string expected, std::string actual) {
  return Error{ErrorCode::BadFile,
               Fault::File,
               path,
               std::move(message),
               std::move(expected),
               std::move(actual),
               "download all parts again into one folder, with the names they were published under"};
}

Result<Place> read_place(const Checkpoint& part) {
  Place place;
  place.count = HONE_TRY(part.metadata.required_integer("split.count"));
  if (place.count < 1 || place.count > kMostParts) {
    return broken_split(part.path, "split.count is out of range", fmt::format("1 to {}", kMostParts),
                        fmt::format("{}", place.count));
  }
  if (place.count == 1) return place;
  place.number = HONE_TRY(part.metadata.required_integer("split.no"));
  place.tensors = HONE_TRY(part.metadata.required_integer("split.tensors.count"));
  if (place.number < 0 || place.number >= place.count) {
    return broken_split(part.path, "split.no is out of range", fmt::format("0 to {}", place.count - 1),
                        fmt::format("{}", place.number));
  }
  return place;
}

std::string tail(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

// The part's path without its tail.
Result<std::string> stem_of(const Checkpoint& part, const Place& place) {
  const std::string expected = tail(place.number, place.count);
  if (part.path.size() <= kTailBytes || !part.path.ends_with(expected)) {
    return broken_split(part.path, "the name of a part must say its number",
                        "a name that ends in " + expected,
                        std::filesystem::path(part.path).filename().string());
  }
  return part.path.substr(0, part.path.size() - expected.size());
}

Status check_all_there(const std::string& stem, const Place& place) {
  std::vector<std::string> missing;
  for (std::int64_t i = 0; i < place.count; ++i) {
    std::error_code ignored;
    const std::string path = stem + tail(i, place.count);
    if (!std::filesystem::exists(path, ignored)) {
      missing.push_back(std::filesystem::path(path).filename().string());
    }
  }
  if (missing.empty()) return {};
  constexpr std::size_t kShown = 8;
  const std::size_t all = missing.size();
  missing.resize(std::min(all, kShown));
  return broken_split(stem + tail(0, place.count), "every part of the checkpoint must be in the folder",
                      fmt::format("{} parts", place.count),
                      fmt::format("missing: {}{}", fmt::join(missing, ", "),
                                  all > kShown ? fmt::format(" and {} more", all - kShown) : ""));
}

Status add_part(Checkpoint& out, Checkpoint part) {
  for (TensorEntry& tensor : part.tensors) {
    tensor.file = static_cast<std::uint32_t>(out.files.size());
    out.tensors.push_back(std::move(tensor));
  }
  part.drop_pages();
  out.files.push_back(std::move(part.files[0]));
  return {};
}

Status check_whole(Checkpoint& out, const Place& place) {
  if (std::cmp_not_equal(out.tensors.size(), place.tensors)) {
    return broken_split(out.path, "the parts must have split.tensors.count tensors together",
                        fmt::format("{}", place.tensors), fmt::format("{}", out.tensors.size()));
  }
  if (const std::optional<std::size_t> twin = out.index_tensors()) {
    const TensorEntry& second = out.tensors[*twin];
    return broken_split(out.files[second.file]->path(), "a tensor must lie in one part only",
                        "distinct names", printable(second.name));
  }
  return {};
}

}  // namespace

Result<Checkpoint> join_gguf_parts(Checkpoint part) {
  if (part.metadata.find("split.count") == nullptr) return part;
  const Place place = HONE_TRY(read_place(part));
  if (place.count == 1) return part;
  const std::string stem = HONE_TRY(stem_of(part, place));
  HONE_TRY(check_all_there(stem, place));
  Checkpoint out = HONE_TRY(read_gguf(stem + tail(0, place.count)));
  out.path = part.path;
  for (std::int64_t i = 0; i < place.count; ++i) {
    Checkpoint next = HONE_TRY(read_gguf(stem + tail(i, place.count)));
    const Place its = HONE_TRY(read_place(next));
    if (its.number != i || its.count != place.count || its.tensors != place.tensors) {
      return broken_split(
          next.path, "the keys of a part must agree with its name and with the other parts",
          fmt::format("part {} of {}, {} tensors in all", i, place.count, place.tensors),
          fmt::format("part {} of {}, {} tensors in all", its.number, its.count, its.tensors));
    }
    if (i > 0) HONE_TRY(add_part(out, std::move(next)));
  }
  HONE_TRY(check_whole(out, place));
  return out;
}

}  // namespace hone
