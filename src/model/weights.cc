#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hone {

ValueId Weights::get(const std::string& name, const std::vector<std::int64_t>& shape) {
  const TensorEntry* entry = checkpoint_.find_tensor(name);
  const Shape dims(shape.begin(), shape.end());
  const auto fault = [&](std::string text) {
    faults_.push_back(std::move(text));
    return builder_.weight(name, Type{DType::F32, dims});
  };
  if (entry == nullptr) return fault(fmt::format("{} is missing", name));
  if (entry->shape != shape) {
    return fault(
        fmt::format("{} is [{}], not [{}]", name, fmt::join(entry->shape, ","), fmt::join(shape, ",")));
  }
  if (!entry->dtype)
    return fault(fmt::format("{} has type {}, which hone cannot decode", name, entry->type_name));
  if (!dtype_row(*entry->dtype).is_float) return fault(fmt::format("{} has type {}", name, entry->type_name));
  return builder_.weight(name, Type{*entry->dtype, dims});
}

ValueId Weights::get_f32(const std::string& name, const std::vector<std::int64_t>& shape) {
  const ValueId value = get(name, shape);
  const DType dtype = builder_.type(value).dtype;
  if (dtype_row(dtype).is_quantised) {
    faults_.push_back(fmt::format("{} is block-quantised, which norms and biases cannot be", name));
    return value;
  }
  return dtype == DType::F32 ? value : builder_.cast(value, DType::F32);
}

Status Weights::check() const {
  if (faults_.empty()) return {};
  return Error{ErrorCode::BadModel,
               Fault::File,
               checkpoint_.path,
               fmt::format("{} tensors do not fit the model that the metadata describes", faults_.size()),
               "every tensor of the architecture, in its shape",
               fmt::format("{}", fmt::join(faults_, "; ")),
               "hone inspect lists the tensors of the file"};
}

}  // namespace hone
