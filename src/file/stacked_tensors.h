// One value of many tensors: Hugging Face checkpoints hold a tensor per expert, where GGUF holds one of a
// further axis. A weight's name with `*` stands for both: in place of `*`, the index along its first axis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

inline bool is_stacked(std::string_view name) {
  return name.find('*') != std::string_view::npos;
}

// "experts.*.up_proj", 3 -> "experts.3.up_proj"; a name without `*` as it is.
inline std::string name_in_stack(std::string_view name, std::int64_t index) {
  std::string out(name);
  const std::size_t at = out.find('*');
  if (at != std::string::npos) out.replace(at, 1, std::to_string(index));
  return out;
}

}  // namespace hone
