// Projections (tensor/projection.h) made from a few words, and what the launches they replace compute.
#pragma once

#include <deque>
#include <optional>

#include "matmul_test_support.h"
#include "tensor/projection.h"

namespace hone::test {

struct SectionSpec {
  std::int64_t n = 32;
  DType weight = DType::F32;
  ProjectionActivation gate = ProjectionActivation::None;
  bool bias = false;
  std::int64_t rotary = 0;  // R; 0: no rope
  std::int64_t head = 0;    // columns of a head, where there is a rope
  bool head_norm = false;
  bool interleaved = false;
  bool residual = false;
  std::optional<DType> state = std::nullopt;  // of the state that it appends to
  bool next_norm = false;
  DType output = DType::F32;  // of x * w where a norm is folded out
  bool two_terms = false;     // q8a output [..,2,N]
};

struct ProjectionSpec {
  std::string name;
  std::int64_t k = 64;
  bool q8a = false;   // x
  bool bf16 = false;  // x
  std::int64_t terms = 1;
  bool row_sums = false;
  double next_offset = 0;
  double head_offset = 0;
  std::vector<SectionSpec> sections = {};
};

// Memory of an operand between 64 bytes on either side that must stay as they are; of one that is only read,
// without those behind it, so that AddressSanitizer sees a read beyond its end.
class Guarded {
 public:
  Guarded(DType dtype, Sizes sizes, std::size_t behind = kGuard)
      : bytes_(static_cast<std::size_t>(dtype_bytes(dtype, product(sizes))) + kGuard + behind,
               std::byte{0x55}) {
    view_.dtype = dtype;
    view_.rank = static_cast<int>(sizes.size());
    std::int64_t stride = 1;
    for (int axis = view_.rank - 1; axis >= 0; --axis) {
      view_.shape[axis] = sizes[static_cast<std::size_t>(axis)];
      view_.strides[axis] = stride;
      stride *= view_.shape[axis];
    }
  }
  TensorView view() {
    view_.data = bytes_.data() + kGuard;
    return view_;
  }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes_.data() + kGuard);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), std::byte{0x55}); }
  // Element `index`, row-major.
  double get(std::int64_t index) {
    switch (view_.dtype) {
      case DType::F16:
        return static_cast<double>(f16_to_f32(data<std::uint16_t>()[index]));
      case DType::BF16:
        return static_cast<double>(bf16_to_f32(data<std::uint16_t>()[index]));
      case DType::Q8A: {
        const BlockQ8A& block = data<BlockQ8A>()[index / 32];
        return static_cast<double>(block.scale * static_cast<float>(block.quants[index % 32]));
      }
      default:
        return static_cast<double>(data<float>()[index]);
    }
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::vector<std::byte> bytes_;
  TensorView view_;
};

// Token (b, t) alone of a view [B,T,..].
inline TensorView token_of(TensorView view, std::int64_t b, std::int64_t t) {
  view.data =
      static_cast<std::byte*>(view.data) + dtype_bytes(view.dtype, b * view.strides[0] + t * view.strides[1]);
  view.shape[0] = 1;
  view.shape[1] = 1;
  return view;
}
// The view [B,T,..] as [1,B*T,..].
inline TensorView flat_tokens(TensorView view) {
  view.strides[0] *= view.shape[0];
  view.shape[1] *= view.shape[0];
  view.shape[0] = 1;
  return view;
}
// Sequence b alone of a state [B,C,..].
inline TensorView sequence_of(TensorView view, std::int64_t b) {
  view.data = static_cast<std::byte*>(view.data) + dtype_bytes(view.dtype, b * view.strides[0]);
  view.shape[0] = 1;
  return view;
}

inline constexpr double kProjectionEps = 1e-5;
inline constexpr double kHeadEps = 0.25;  // of norms of heads; another, and large enough to be missed

// One launch of a projection with random operands. Outputs start as bytes of 0x55.
class ProjectionProblem {
 public:
  ProjectionProblem(const ProjectionSpec& spec, std::int64_t batch, std::int64_t tokens,
                    std::mt19937_64& random)
      : spec_(spec), batch_(batch), tokens_(tokens) {
    make_x(random);
    for (const SectionSpec& section : spec.sections) add_section(section, random);
    if (spec.row_sums) {
      row_sums_ = add_input(DType::F32, {batch, tokens, spec.k / kSquaresBlock});
      std::uniform_real_distribution<float> squares(8.0F, 60.0F);
      float* sums = inputs_[static_cast<std::size_t>(row_sums_)].data<float>();
      for (std::int64_t i = 0; i < rows() * spec.k / kSquaresBlock; ++i) sums[i] = squares(random);
      attributes_.set("row_sums", row_sums_);
      attributes_.set("eps", kProjectionEps);
    }
    if (spec.next_offset != 0) attributes_.set("next_offset", spec.next_offset);
    if (spec.head_offset != 0) attributes_.set("head_offset", spec.head_offset);
    if (std::ranges::any_of(spec.sections, &SectionSpec::head_norm)) attributes_.set("head_eps", kHeadEps);
    if (spec.terms != 1) attributes_.set("terms", spec.terms);
    std::vector<std::int64_t> fields(sections_.size() * kProjectionFields);
    std::memcpy(fields.data(), sections_.data(), sections_.size() * sizeof(ProjectionSection));
    attributes_.set("sections", std::move(fields));
  }

  const ProjectionSpec& spec() const { return spec_; }
  std::int64_t rows() const { return batch_ * tokens_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t batch() const { return batch_; }
  std::size_t section_count() const { return sections_.size(); }
  const ProjectionSection& section(std::size_t s) const { return sections_[s]; }
  Guarded& input(std::int64_t number) { return inputs_[static_cast<std::size_t>(number)]; }
  const Weights& weight(std::int64_t number) const { return *weights_[static_cast<std::size_t>(number)]; }
  std::deque<Guarded>& outputs() { return outputs_; }
  std::int64_t row_sums() const { return row_sums_; }
  const Attributes& attributes() const { return attributes_; }
  std::int64_t capacity() const { return tokens_ + 3; }
  void clear() {
    for (Guarded& output : outputs_) output.clear();
  }

  Launch launch() {
    return launch_of([](const TensorView& view, bool) { return view; });
  }
  // Token (b, t) alone, into its place in the same outputs.
  Launch launch_of_token(std::int64_t b, std::int64_t t) {
    return launch_of([b, t](const TensorView& view, bool is_state) {
      return is_state ? sequence_of(view, b) : token_of(view, b, t);
    });
  }
  // As a flattened step: `sequence` i32 [1,B*T] says whose state each row is for.
  Launch flat_launch(Guarded& sequence) {
    for (std::int64_t i = 0; i < rows(); ++i)
      sequence.data<std::int32_t>()[i] = static_cast<std::int32_t>(i / tokens_);
    Launch launch =
        launch_of([](const TensorView& view, bool is_state) { return is_state ? view : flat_tokens(view); });
    launch.attributes.set("sequence", std::ssize(launch.inputs));
    launch.inputs.push_back(sequence.view());
    return launch;
  }

 private:
  template <class Part>
  Launch launch_of(const Part& part) {
    Launch launch{"projection", attributes_, {}, {}, nullptr};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (state_outputs_[i] >= 0) {
        launch.inputs.push_back(part(outputs_[static_cast<std::size_t>(state_outputs_[i])].view(), true));
      } else if (weights_[i] != nullptr) {
        launch.inputs.push_back(weights_[i]->view());
      } else {
        const TensorView view = inputs_[i].view();
        launch.inputs.push_back(view.rank == 1 ? view : part(view, false));
      }
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      launch.outputs.push_back(part(outputs_[i].view(), is_state_[i]));
    return launch;
  }

  std::int64_t add_input(DType dtype, Sizes sizes) {
    inputs_.emplace_back(dtype, std::move(sizes), 0);
    weights_.emplace_back();
    state_outputs_.push_back(-1);
    return static_cast<std::int64_t>(inputs_.size()) - 1;
  }
  std::int64_t add_normal(Sizes sizes, std::mt19937_64& random, double deviation = 1.0) {
    const std::vector<float> values = normal_values(random, product(sizes), deviation);
    const std::int64_t number = add_input(DType::F32, std::move(sizes));
    std::memcpy(inputs_.back().data<float>(), values.data(), values.size() * 4);
    return number;
  }
  std::int64_t add_weight(DType dtype, std::int64_t n, std::mt19937_64& random) {
    const std::int64_t number = add_input(DType::F32, {1});
    weights_.back() = std::make_unique<Weights>(dtype, n, spec_.k, normal_values_of(dtype, n, random));
    return number;
  }
  std::vector<std::byte> normal_values_of(DType dtype, std::int64_t n, std::mt19937_64& random) const {
    const std::vector<float> values = normal_values(random, n * spec_.k, 0.3);
    std::vector<std::byte> rows(static_cast<std::size_t>(dtype_bytes(dtype, n * spec_.k)));
    EXPECT_TRUE(encode_row(dtype, values.data(), n * spec_.k, rows.data()).ok());
    return rows;
  }
  std::int64_t add_output(DType dtype, Sizes sizes, bool is_state = false) {
    outputs_.emplace_back(dtype, std::move(sizes));
    is_state_.push_back(is_state);
    return static_cast<std::int64_t>(outputs_.size()) - 1;
  }

  void make_x(std::mt19937_64& random) {
    const std::vector<float> values = normal_values(random, rows() * spec_.k);
    if (spec_.bf16) {
      add_input(DType::BF16, {batch_, tokens_, spec_.k});
      for (std::size_t i = 0; i < values.size(); ++i)
        inputs_[0].data<std::uint16_t>()[i] = f32_to_bf16(values[i]);
      return;
    }
    if (!spec_.q8a) {
      add_input(DType::F32, {batch_, tokens_, spec_.k});
      std::memcpy(inputs_[0].data<float>(), values.data(), values.size() * 4);
      return;
    }
    add_input(DType::Q8A,
              spec_.terms == 2 ? Sizes{batch_, tokens_, 2, spec_.k} : Sizes{batch_, tokens_, spec_.k});
    auto* blocks = inputs_[0].data<BlockQ8A>();
    const std::int64_t row_blocks = spec_.k / 32;
    for (std::int64_t i = 0; i < rows() * row_blocks; ++i) {
      float block[32];
      std::memcpy(block, values.data() + i * 32, sizeof(block));
      for (std::int64_t term = 0; term < spec_.terms; ++term) {
        BlockQ8A& to = blocks[(i / row_blocks * spec_.terms + term) * row_blocks + i % row_blocks];
        to = encode_q8a_block(block);
        for (int j = 0; j < 32; ++j) block[j] -= to.scale * static_cast<float>(to.quants[j]);
      }
    }
  }

  // Cosines and sines of angles that are spread over the circle.
  void add_turns(const SectionSpec& spec, ProjectionSection& section, std::mt19937_64& random) {
    section.cosine = add_input(DType::F32, {batch_, tokens_, spec.rotary / 2});
    section.sine = add_input(DType::F32, {batch_, tokens_, spec.rotary / 2});
    section.head = spec.head;
    section.interleaved = spec.interleaved ? 1 : 0;
    std::uniform_real_distribution<double> angles(0, 6.28);
    for (std::int64_t i = 0; i < rows() * spec.rotary / 2; ++i) {
      const double angle = angles(random);
      input(section.cosine).data<float>()[i] = static_cast<float>(std::cos(angle));
      input(section.sine).data<float>()[i] = static_cast<float>(std::sin(angle));
    }
  }
  // Every fifth token is padding; the others stand apart and in no order.
  void add_state(const SectionSpec& spec, ProjectionSection& section) {
    section.positions = add_input(DType::I32, {batch_, tokens_});
    for (std::int64_t i = 0; i < rows(); ++i) {
      const std::int64_t mirrored = capacity() - 1 - i % tokens_ - (i % 2 == 0 ? 0 : 2);
      input(section.positions).data<std::int32_t>()[i] =
          static_cast<std::int32_t>(i % 5 == 4 ? -1 - i : mirrored);
    }
    const std::int64_t head = spec.head == 0 ? spec.n : spec.head;
    section.output = add_output(*spec.state, {batch_, capacity(), spec.n / head, head}, true);
    section.state = add_input(DType::F32, {1});
    state_outputs_.back() = section.output;
  }

  std::int64_t add_result(const SectionSpec& spec) {
    return add_output(spec.output,
                      spec.two_terms ? Sizes{batch_, tokens_, 2, spec.n} : Sizes{batch_, tokens_, spec.n});
  }

  void add_section(const SectionSpec& spec, std::mt19937_64& random) {
    ProjectionSection section;
    section.weight = add_weight(spec.weight, spec.n, random);
    if (spec.gate != ProjectionActivation::None) {
      section.gate = add_weight(spec.weight, spec.n, random);
      section.activation = static_cast<std::int64_t>(spec.gate);
    }
    if (spec.bias) section.bias = add_normal({spec.n}, random);
    if (spec.head_norm) section.head_norm = add_normal({spec.head}, random);
    if (spec.rotary > 0) add_turns(spec, section, random);
    if (spec.residual) section.residual = add_normal({batch_, tokens_, spec.n}, random, 3.0);
    if (spec.state) {
      add_state(spec, section);
    } else {
      section.output = spec.next_norm ? add_output(DType::F32, {batch_, tokens_, spec.n}) : add_result(spec);
    }
    if (spec.next_norm) {
      section.next_norm = add_normal({spec.n}, random);
      add_result(spec);
      add_output(DType::F32, {batch_, tokens_, spec.n / kSquaresBlock});
    }
    sections_.push_back(section);
  }

  ProjectionSpec spec_;
  std::int64_t batch_, tokens_;
  std::deque<Guarded> inputs_;  // number 0: x; the memory of a weight or a state lies elsewhere
  std::vector<std::unique_ptr<Weights>> weights_;
  std::vector<std::int64_t> state_outputs_;
  std::deque<Guarded> outputs_;
  std::vector<bool> is_state_;
  std::vector<ProjectionSection> sections_;
  std::int64_t row_sums_ = -1;
  Attributes attributes_;
};

// sum(Vec16): lane i takes lane i + width for widths 8, 4, 2, 1.
inline float folded(float (&lanes)[16]) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace hone::test
