#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "file/file_error.h"
#include "file/output_file.h"
#include "file/safetensors.h"
#include "file/safetensors_types.h"

namespace hone {
namespace {

Error usage(std::string_view name, std::string message, std::string expected, std::string actual) {
  return Error{ErrorCode::Usage,    Fault::User,       printable(name),  std::move(message),
               std::move(expected), std::move(actual), "change the call"};
}

// Invalid UTF-8 becomes U+FFFD; the library would throw otherwise.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status check_tensor(const SafetensorsTensor& tensor) {
  const SafetensorsType* type = safetensors_type_of(tensor.dtype);
  if (type == nullptr) {
    return usage(tensor.name, "the type must be one that safetensors has", "a type without blocks",
                 std::string(dtype_name(tensor.dtype)));
  }
  if (tensor.name == "__metadata__" || tensor.name.size() > SafetensorsLimits::kNameBytes ||
      !is_usable_name(tensor.name)) {
    return usage(
        tensor.name, "a tensor name must be one that readers accept",
        fmt::format("1 to {} bytes of UTF-8 without control characters", SafetensorsLimits::kNameBytes),
        printable(tensor.name));
  }
  // In elements of the data given, so that no product can overflow: each step divides.
  std::uint64_t left = tensor.data.size() / (type->bits / 8);
  bool matches = tensor.data.size() % (type->bits / 8) == 0;
  const bool empty = std::ranges::find(tensor.shape, 0) != tensor.shape.end();
  for (const std::int64_t dim : tensor.shape) {
    matches = matches && dim >= 0;
    if (empty || !matches) continue;
    matches = left % static_cast<std::uint64_t>(dim) == 0;
    left /= static_cast<std::uint64_t>(dim);
  }
  matches = matches && (empty ? left == 0 : left == 1);
  if (!matches || tensor.shape.size() > SafetensorsLimits::kDimensions) {
    return usage(tensor.name, "the data must have the size of the shape",
                 fmt::format("[{}] of {}", fmt::join(tensor.shape, ", "), dtype_name(tensor.dtype)),
                 fmt::format("{} bytes", tensor.data.size()));
  }
  return {};
}

Status check_names(std::span<const SafetensorsTensor> tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const SafetensorsTensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twin = std::ranges::adjacent_find(names);
  if (twin == names.end()) return {};
  return usage(*twin, "a tensor name must not repeat", "distinct names", printable(*twin));
}

std::string header_text(std::span<const SafetensorsTensor> tensors, std::span<const std::size_t> order,
                        std::span<const std::pair<std::string, std::string>> metadata) {
  std::vector<std::uint64_t> begin(tensors.size());
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    begin[i] = at;
    at += tensors[i].data.size();
  }
  std::string out = "{";
  const auto separator = [&out] { return out.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::string items;
    for (const auto& [key, value] : metadata) {
      items += fmt::format("{}{}:{}", items.empty() ? "" : ",", json_text(key), json_text(value));
    }
    out += fmt::format("\"__metadata__\":{{{}}}", items);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SafetensorsTensor& tensor = tensors[i];
    out += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", separator(),
                       json_text(tensor.name), safetensors_type_of(tensor.dtype)->name,
                       fmt::join(tensor.shape, ","), begin[i], begin[i] + tensor.data.size());
  }
  out += "}";
  out.append((8 - out.size() % 8) % 8, ' ');
  return out;
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors,
                         std::span<const std::pair<std::string, std::string>> metadata) {
  for (const SafetensorsTensor& tensor : tensors) HONE_TRY(check_tensor(tensor));
  HONE_TRY(check_names(tensors));
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [tensors](std::size_t i) { return dtype_row(tensors[i].dtype).block_bytes; });

  const std::string header = header_text(tensors, order, metadata);
  const std::uint64_t length = header.size();
  const std::unique_ptr<OutputFile> file = HONE_TRY(OutputFile::create(path));
  HONE_TRY(file->append(std::as_bytes(std::span(&length, 1))));
  HONE_TRY(file->append(std::as_bytes(std::span(header))));
  for (const std::size_t i : order) HONE_TRY(file->append(tensors[i].data));
  return file->commit();
}

}  // namespace hone
