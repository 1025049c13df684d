#include "file/checkpoint.h"

#include <algorithm>
#include <numeric>

namespace hone {

std::int64_t TensorEntry::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) product *= dim;
  return product;
}

const TensorEntry* Checkpoint::find_tensor(std::string_view name) const {
  if (by_name_.size() != tensors.size()) {
    const auto found = std::ranges::find(tensors, name, &TensorEntry::name);
    return found == tensors.end() ? nullptr : &*found;
  }
  const auto name_of = [this](std::uint32_t i) -> std::string_view { return tensors[i].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found == by_name_.end() || name_of(*found) != name ? nullptr : &tensors[*found];
}

std::optional<std::size_t> Checkpoint::index_tensors() {
  by_name_.resize(tensors.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::ranges::sort(by_name_, [this](std::uint32_t a, std::uint32_t b) {
    const int order = tensors[a].name.compare(tensors[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  const auto twin = std::ranges::adjacent_find(
      by_name_, [this](std::uint32_t a, std::uint32_t b) { return tensors[a].name == tensors[b].name; });
  if (twin == by_name_.end()) return std::nullopt;
  return *(twin + 1);
}

Status Checkpoint::read_tensor(const TensorEntry& tensor, std::uint64_t begin,
                               std::span<std::byte> out) const {
  if (tensor.file >= files.size()) {
    return internal_error(path, "a checkpoint that was parsed from memory has no files to read");
  }
  return files[tensor.file]->read_at(tensor.offset + begin, out);
}

void Checkpoint::drop_pages() const {
  for (const std::shared_ptr<MappedFile>& file : files) file->drop(0, file->size());
}

}  // namespace hone
