#include "model/weights.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "file/stacked_tensors.h"

namespace hone {
namespace {

// A folder of another model has thousands of unknown names; beyond this many, their number says enough.
constexpr std::size_t kMostListed = 64;

// Tables that older exporters stored beside the weights; the graph computes them.
constexpr std::array<std::string_view, 4> kDerivedTensors{"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq",
                                                          "self_attn.masked_bias", "rope.freqs"};

bool is_derived(std::string_view name) {
  return std::any_of(kDerivedTensors.begin(), kDerivedTensors.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

std::string Weights::name_of(std::string_view part, std::string_view suffix) const {
  std::string stem = tensor_stem(names_, config_, part, layer_);
  if (stem.empty() || suffix.empty()) return stem;
  return fmt::format("{}.{}", stem, suffix);
}

bool Weights::has(std::string_view part, std::string_view suffix) {
  std::string name = name_of(part, suffix);
  if (name.empty()) return false;
  const bool there = checkpoint_.find_tensor(name) != nullptr;
  asked_.insert(std::move(name));
  return there;
}

void Weights::skip(std::string_view part, std::string_view suffix) {
  used_.insert(name_of(part, suffix));
}

ValueId Weights::get(std::string_view part, const std::vector<std::int64_t>& shape, std::string_view suffix) {
  std::string name = name_of(part, suffix);
  if (name.empty()) name = fmt::format("{}.{}", part, suffix);
  if (is_stacked(name) && shape.size() == 3) return get_stack(name, shape);
  asked_.insert(name);
  const bool first = used_.insert(name).second;
  const TensorEntry* entry = checkpoint_.find_tensor(name);
  const Shape dims(shape.begin(), shape.end());
  const auto fault = [&](std::string text) {
    if (first) faults_.push_back(std::move(text));
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

// One tensor for each index of the first axis.
ValueId Weights::get_stack(const std::string& name, const std::vector<std::int64_t>& shape) {
  const std::vector<std::int64_t> part(shape.begin() + 1, shape.end());
  const Shape dims(shape.begin(), shape.end());
  std::optional<DType> dtype;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    std::string own = name_in_stack(name, i);
    const TensorEntry* entry = checkpoint_.find_tensor(own);
    const auto fault = [&](std::string text) { faults_.push_back(std::move(text)); };
    if (entry == nullptr) {
      fault(fmt::format("{} is missing", own));
    } else if (entry->shape != part) {
      fault(fmt::format("{} is [{}], not [{}]", own, fmt::join(entry->shape, ","), fmt::join(part, ",")));
    } else if (!entry->dtype || !dtype_row(*entry->dtype).is_float) {
      fault(fmt::format("{} has type {}, which hone cannot decode", own, entry->type_name));
    } else if (dtype && *dtype != *entry->dtype) {
      fault(fmt::format("{} has type {}, not {} like the experts before it", own, entry->type_name,
                        dtype_name(*dtype)));
    } else {
      dtype = entry->dtype;
    }
    asked_.insert(own);
    used_.insert(std::move(own));
  }
  return builder_.weight(name, Type{dtype.value_or(DType::F32), dims});
}

ValueId Weights::get_f32(std::string_view part, const std::vector<std::int64_t>& shape,
                         std::string_view suffix) {
  const ValueId value = get(part, shape, suffix);
  const DType dtype = builder_.type(value).dtype;
  if (dtype_row(dtype).is_quantised) {
    faults_.push_back(
        fmt::format("{} is block-quantised, which norms and biases cannot be", name_of(part, suffix)));
    return value;
  }
  return dtype == DType::F32 ? value : builder_.cast(value, DType::F32);
}

std::vector<std::string> Weights::unknown_tensors() const {
  const std::vector<std::string_view> known(asked_.begin(), asked_.end());
  std::vector<std::string> out;
  std::size_t count = 0;
  for (const TensorEntry& entry : checkpoint_.tensors) {
    if (used_.contains(entry.name) || is_derived(entry.name)) continue;
    if (is_of_prediction_layer(config_, entry.name) || is_of_other_model(config_, entry.name)) continue;
    if (++count > kMostListed) continue;
    const std::string_view near = nearest_name(entry.name, known);
    out.push_back(near.empty() || near == entry.name
                      ? fmt::format("{} is not used by this family", entry.name)
                      : fmt::format("{} is not used by this family (nearest: {})", entry.name, near));
  }
  if (count > kMostListed) out.push_back(fmt::format("{} more tensors are not used", count - kMostListed));
  return out;
}

Status Weights::check() const {
  const std::vector<std::string> unknown = unknown_tensors();
  const std::size_t tensors = faults_.size() + unknown.size();
  if (tensors == 0 && config_.refused.empty()) return {};
  std::vector<std::string> all;
  all.reserve(tensors + config_.refused.size());
  for (const std::string& key : config_.refused) all.push_back(fmt::format("{} is not supported", key));
  for (std::size_t i = 0; i < std::min(faults_.size(), kMostListed); ++i) all.push_back(faults_[i]);
  if (faults_.size() > kMostListed) {
    all.push_back(fmt::format("{} more tensors do not fit", faults_.size() - kMostListed));
  }
  all.insert(all.end(), unknown.begin(), unknown.end());
  std::string message;
  if (config_.refused.empty()) {
    message = fmt::format("{} tensors do not fit the model that the metadata describes", tensors);
  } else if (tensors == 0) {
    message = fmt::format("{} keys change the model's arithmetic in ways that hone does not implement",
                          config_.refused.size());
  } else {
    message = fmt::format(
        "{} keys change the model's arithmetic in ways that hone does not implement, and {} "
        "tensors do not fit the model that the metadata describes",
        config_.refused.size(), tensors);
  }
  return Error{ErrorCode::BadModel,
               Fault::File,
               checkpoint_.path,
               std::move(message),
               fmt::format("the keys and tensors of the family {}, in its shapes", config_.family),
               fmt::format("{}", fmt::join(all, "; ")),
               "hone inspect lists the keys and tensors of the file"};
}

}  // namespace hone
