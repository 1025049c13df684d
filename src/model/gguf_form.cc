#include "model/gguf_form.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "file/stacked_tensors.h"
#include "model/family.h"
#include "model/rotary.h"

namespace hone {
namespace {

// Mistral's files are of architecture llama, whose keys hold its window too.
std::string_view gguf_architecture(const Family& family) {
  if (family.name == "mistral") return "llama";
  return family.gguf.substr(0, family.gguf.find(' '));
}

// What the target's family says of every GGUF file before a key is read.
ModelConfig described(const Family& family) {
  ModelConfig target;
  target.style = FileStyle::Gguf;
  target.family = family.name;
  if (family.describe != nullptr) family.describe(target);
  return target;
}

// Older exporters' tables, which the graph computes (model/weights.cc leaves them out as well).
bool is_computed(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with("rotary_pos_emb.inv_freq") ||
         name.ends_with("self_attn.masked_bias");
}

class Namer {
 public:
  Namer(const Checkpoint& checkpoint, const ModelConfig& config, const ModelConfig& target,
        std::span<const PartName> names)
      : checkpoint_(checkpoint), config_(config), target_(target), names_(names) {}

  void add_all() {
    add_rows(names_, 0, false);
    add_rows(common_names(), 0, false);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      add_rows(names_, layer, true);
      add_rows(common_names(), layer, true);
    }
    if (config_.tied.value_or(false)) used_.insert(config_.head_prefix + "lm_head.weight");
  }

  std::vector<std::string> left_over() const {
    std::vector<std::string> out;
    for (const TensorEntry& entry : checkpoint_.tensors) {
      const bool left_out = is_computed(entry.name) || is_of_prediction_layer(config_, entry.name) ||
                            is_of_other_model(config_, entry.name);
      if (!used_.contains(entry.name) && !left_out) out.push_back(entry.name);
    }
    return out;
  }

  std::vector<GgufTensor> tensors;
  std::vector<std::string> faults;

 private:
  void add_rows(std::span<const PartName> rows, std::int64_t layer, bool in_layers) {
    for (const PartName& row : rows) {
      if ((row.hugging_face.find("{}") != std::string_view::npos) != in_layers || row.gguf.empty()) continue;
      if (rows.data() != names_.data() &&
          std::ranges::find(names_, row.part, &PartName::part) != names_.end()) {
        continue;  // the family's own row stands for it
      }
      if (row.part == "lm_head" && config_.tied.value_or(false)) continue;
      const std::string from = tensor_stem(names_, config_, row.part, layer);
      const std::string to = tensor_stem(names_, FileStyle::Gguf, row.part, layer);
      if (from.empty() || to.empty()) continue;
      for (const std::string_view suffix : {".weight", ".bias", ""}) {
        add(row.part, from + std::string(suffix), to + std::string(suffix));
      }
    }
  }

  void add(std::string_view part, const std::string& from, const std::string& to) {
    GgufTensor tensor;
    tensor.name = to;
    const bool stacked = is_stacked(from);
    for (std::int64_t i = 0; i < (stacked ? config_.experts.count : 1); ++i) {
      const std::string own = stacked ? name_in_stack(from, i) : from;
      const TensorEntry* entry = checkpoint_.find_tensor(own);
      // A name that the family's own row has taken is not what the common row means by it.
      if (entry == nullptr || !used_.insert(own).second) continue;
      if (!entry->dtype)
        faults.push_back(fmt::format("{} has type {}, which hone cannot decode", own, entry->type_name));
      tensor.parts.push_back(entry);
    }
    if (tensor.parts.empty()) return;
    const TensorEntry& first = *tensor.parts.front();
    const bool alike = std::ranges::all_of(tensor.parts, [&](const TensorEntry* other) {
      return other->shape == first.shape && other->dtype == first.dtype;
    });
    if (stacked && (!alike || static_cast<std::int64_t>(tensor.parts.size()) != config_.experts.count)) {
      faults.push_back(
          fmt::format("{}: {} experts of one shape and type are needed", from, config_.experts.count));
      return;
    }
    tensor.shape = first.shape;
    if (stacked) tensor.shape.insert(tensor.shape.begin(), config_.experts.count);
    if ((part == "q_proj" || part == "k_proj") && target_.rope.interleaved && !config_.rope.interleaved) {
      tensor.paired_rows = config_.head_dim;
    }
    if (part.ends_with("_norm") && config_.norm_offset != target_.norm_offset) {
      tensor.offset = config_.norm_offset - target_.norm_offset;
    }
    tensors.push_back(std::move(tensor));
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const ModelConfig& target_;
  std::span<const PartName> names_;
  std::set<std::string> used_;
};

GgufTensor computed(std::string name, const std::vector<double>& values) {
  GgufTensor out;
  out.name = std::move(name);
  out.shape = {static_cast<std::int64_t>(values.size())};
  out.values.assign(values.begin(), values.end());
  return out;
}

void add_rope_tensors(const ModelConfig& config, std::vector<GgufTensor>& out) {
  const RopeConfig& rope = config.rope;
  if (rope.kind == RopeKind::Llama3) {
    RopeConfig plain = rope;
    plain.kind = RopeKind::Plain;
    std::vector<double> divisors = rope_frequencies(plain);
    const std::vector<double> scaled = rope_frequencies(rope);
    for (std::size_t i = 0; i < divisors.size(); ++i) divisors[i] /= scaled[i];
    out.push_back(computed("rope_freqs.weight", divisors));
  }
  if (rope.kind == RopeKind::LongRope && !rope.long_factors.empty()) {
    out.push_back(computed("rope_factors_long.weight", rope.long_factors));
    out.push_back(computed("rope_factors_short.weight", rope.short_factors));
  }
}

}  // namespace

std::vector<GgufTensor> as_gguf_tensors(const Checkpoint& checkpoint) {
  std::vector<GgufTensor> out;
  out.reserve(checkpoint.tensors.size());
  for (const TensorEntry& entry : checkpoint.tensors) {
    GgufTensor tensor;
    tensor.name = entry.name;
    tensor.shape = entry.shape;
    tensor.parts = {&entry};
    out.push_back(std::move(tensor));
  }
  return out;
}

Result<GgufForm> gguf_form(const Checkpoint& checkpoint, const ModelConfig& config) {
  const Family* family = HONE_TRY(find_family(config.architecture, config.style, checkpoint.path));
  GgufForm form;
  form.architecture = gguf_architecture(*family);
  const Family* target_family =
      HONE_TRY(find_family(form.architecture, FileStyle::Gguf, fmt::format("{}, as GGUF", checkpoint.path)));
  const ModelConfig target = described(*target_family);
  Namer namer(checkpoint, config, target, family->names);
  namer.add_all();
  std::vector<std::string> faults = std::move(namer.faults);
  for (const std::string& refused : config.refused)
    faults.push_back(fmt::format("{} is not supported", refused));
  for (const std::string& name : not_in_gguf(config, target)) {
    faults.push_back(fmt::format("GGUF's architecture {} has no key for: {}", form.architecture, name));
  }
  const std::vector<std::string> left = namer.left_over();
  constexpr std::size_t kMostListed = 16;
  for (std::size_t i = 0; i < std::min(left.size(), kMostListed); ++i) {
    faults.push_back(fmt::format("{} has no name in GGUF", left[i]));
  }
  if (left.size() > kMostListed)
    faults.push_back(fmt::format("{} more tensors have none", left.size() - kMostListed));
  if (!faults.empty()) {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 checkpoint.path,
                 "the checkpoint cannot be written as GGUF",
                 fmt::format("what the architecture {} has names and keys for", form.architecture),
                 fmt::format("{}", fmt::join(faults, "; ")),
                 {}};
  }
  form.tensors = std::move(namer.tensors);
  add_rope_tensors(config, form.tensors);
  return form;
}

}  // namespace hone
