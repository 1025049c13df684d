// projection of every ISA level against the reference kernel, within the roundings of its order; and what it
// refuses.
#include "projection_bound.h"

namespace hone::test {
namespace {

class ProjectionBound : public PerLevel {
 protected:
  std::mt19937_64 random_{37};
};
INSTANTIATE_TEST_SUITE_P(Levels, ProjectionBound, testing::ValuesIn(kIsaLevels), level_name);

void check(ProjectionSpec spec, std::uint64_t seed, Isa isa) {
  for (const std::int64_t tokens : {1, 25}) {
    std::mt19937_64 draw(seed);
    std::mt19937_64 same(seed);
    ProjectionProblem fast(spec, 2, tokens, draw);
    ProjectionProblem reference(spec, 2, tokens, same);
    run_fast(fast.launch(), isa);
    run_reference(reference.launch());
    for (std::size_t s = 0; s < fast.section_count(); ++s) {
      for (std::int64_t row = 0; row < fast.rows() && !testing::Test::HasFatalFailure(); ++row)
        expect_section_within_bound(fast, reference, s, row);
      expect_other_rows_untouched(reference, s);
    }
    for (std::size_t i = 0; i < fast.outputs().size(); ++i) {
      const std::vector<std::byte>& bytes = reference.outputs()[i].bytes();
      for (std::size_t at = 0; at < 64; ++at) {
        ASSERT_EQ(bytes[at], std::byte{0x55}) << spec.name << ", reference kernel, in front of " << i;
        ASSERT_EQ(bytes[bytes.size() - 1 - at], std::byte{0x55}) << spec.name << ", behind " << i;
      }
    }
  }
}

// With x f32 and weights as they are, and with q8a and each weight type of int8 dots in turn.
void check_all(const ProjectionSpec& spec, Isa isa) {
  check(spec, 1, isa);
  for (const DType dtype : {DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    ProjectionSpec blocks = spec;
    blocks.name += ", " + std::string(dtype_name(dtype));
    for (SectionSpec& section : blocks.sections) section.weight = dtype;
    check(blocks, 2, isa);
    blocks.name += " int8";
    blocks.q8a = true;
    check(blocks, 3, isa);
    if (spec.row_sums) continue;
    blocks.name += " two terms";
    blocks.terms = 2;
    check(blocks, 4, isa);
  }
}

TEST_P(ProjectionBound, OfItsOrder) {
  constexpr ProjectionActivation kSilu = ProjectionActivation::Silu;
  constexpr ProjectionActivation kGelu = ProjectionActivation::GeluTanh;
  const Isa isa = GetParam();
  check_all({.name = "plain", .k = 288, .sections = {{.n = 33}}}, isa);
  check_all({.name = "added", .sections = {{.n = 33, .bias = true, .residual = true}}}, isa);
  check_all({.name = "gated", .sections = {{.n = 48, .gate = kSilu}, {.n = 16, .gate = kGelu}}}, isa);
  check_all({.name = "to blocks", .sections = {{.n = 64, .gate = kSilu, .output = DType::Q8A}}}, isa);
  check_all({.name = "to halves", .sections = {{.output = DType::F16}, {.output = DType::BF16}}}, isa);
  check_all(
      {.name = "norm in", .k = 544, .row_sums = true, .sections = {{.n = 33}, {.n = 32, .gate = kGelu}}},
      isa);
}

TEST_P(ProjectionBound, TurnedAndAppended) {
  for (const bool interleaved : {false, true}) {
    check_all({.name = interleaved ? "pairs" : "halves",
               .sections = {{.n = 96, .rotary = 32, .head = 32, .interleaved = interleaved, .residual = true},
                            {.n = 64,
                             .bias = true,
                             .rotary = 12,
                             .head = 32,
                             .interleaved = interleaved,
                             .state = DType::F16},
                            {.n = 40, .state = DType::BF16},
                            {.n = 24, .state = DType::F32}}},
              GetParam());
  }
}

TEST_P(ProjectionBound, NormedHeads) {
  for (const double offset : {0.0, 1.0}) {
    check_all({.name = "heads",
               .head_offset = offset,
               .sections = {{.n = 96, .bias = true, .rotary = 32, .head = 32, .head_norm = true},
                            {.n = 64, .rotary = 12, .head = 32, .head_norm = true, .state = DType::F16}}},
              GetParam());
  }
}

TEST_P(ProjectionBound, WithTheNextNormFoldedOut) {
  for (const DType scaled : {DType::F32, DType::Q8A}) {
    for (const double offset : {0.0, 1.0}) {
      check_all({.name = "norm out",
                 .next_offset = offset,
                 .sections = {{.n = 96, .residual = true, .next_norm = true, .output = scaled}}},
                GetParam());
    }
  }
}

// What the fast kernel says to a launch, empty if it takes it.
std::string answer(const Launch& launch, Isa isa) {
  std::string_view refusal;
  return find_kernel(launch, isa, false, &refusal) == nullptr ? std::string(refusal) : std::string();
}

TEST_P(ProjectionBound, WhatTheFastKernelsDoNotTakeTheyRefuse) {
  const ProjectionSpec spec{
      .name = "refused",
      .sections = {{.n = 64, .bias = true, .residual = true},
                   {.n = 64, .rotary = 16, .head = 32, .head_norm = true, .state = DType::F16}}};
  ProjectionProblem p(spec, 2, 3, random_);
  const Isa isa = GetParam();
  EXPECT_EQ(answer(p.launch(), isa), "");
  const auto refused = [&](const auto& change) {
    Launch launch = p.launch();
    std::vector<ProjectionSection> sections{p.section(0), p.section(1)};
    change(launch, sections);
    std::vector<std::int64_t> fields(sections.size() * kProjectionFields);
    if (!fields.empty()) std::memcpy(fields.data(), sections.data(), fields.size() * 8);
    launch.attributes.set("sections", std::move(fields));
    return answer(launch, isa);
  };
  using Sections = std::vector<ProjectionSection>;
  const auto input = [](Launch& launch, std::int64_t number) -> TensorView& {
    return launch.inputs[static_cast<std::size_t>(number)];
  };
  EXPECT_EQ(refused([&](Launch& launch, Sections& s) {
              TensorView& w = input(launch, s[0].weight);
              w.layout = Layout::Strided;
              w.strides[0] = w.shape[1];
              w.strides[1] = 1;
            }),
            "needs weights in panels of 16 columns, or rows [N,K] of the file");
  EXPECT_EQ(refused([&](Launch& launch, Sections& s) { input(launch, s[0].bias).dtype = DType::F16; }),
            "needs an f32 bias [N], contiguous");
  EXPECT_EQ(refused([&](Launch& launch, Sections& s) {
              std::swap(input(launch, s[0].residual).strides[0], input(launch, s[0].residual).strides[1]);
            }),
            "needs residual rows of f32 at one distance");
  EXPECT_EQ(refused([&](Launch& launch, Sections& s) {
              s[0].cosine = s[1].cosine;
              s[0].sine = s[1].sine;
              s[0].head = 16;
              launch.outputs[0].dtype = DType::Q8A;
            }),
            "needs heads of whole blocks where they are rounded or squared");
  EXPECT_EQ(refused([&](Launch& launch, Sections& s) { input(launch, s[1].head_norm).dtype = DType::F16; }),
            "needs f32 norm weights of heads, contiguous, and a rope");
  EXPECT_EQ(refused([&](Launch&, Sections& s) { s[0].head_norm = s[1].head_norm; }),
            "needs f32 norm weights of heads, contiguous, and a rope");
  EXPECT_EQ(refused([&](Launch&, Sections& s) { s[1].head = 24; }),
            "needs heads of whole panels, at most 256 columns");
  EXPECT_EQ(refused([&](Launch&, Sections& s) { s[1].head = 272; }),
            "needs heads of whole panels, at most 256 columns");
  EXPECT_EQ(refused([&](Launch& launch, Sections&) { launch.outputs[1].strides[2] += 16; }),
            "needs the rows of the state contiguous");
  EXPECT_EQ(refused([&](Launch& launch, Sections&) { launch.outputs[1].dtype = DType::F64; }),
            "needs a state [B,C,..] of f32, f16 or bf16");
  EXPECT_EQ(refused([&](Launch& launch, Sections&) { launch.outputs[0].strides[1] += 16; }),
            "needs contiguous outputs");
  EXPECT_EQ(refused([&](Launch& launch, Sections&) { launch.outputs[0].dtype = DType::F64; }),
            "needs outputs of f32, f16, bf16, or q8a in whole blocks");
  EXPECT_EQ(refused([&](Launch& launch, Sections& s) {
              input(launch, s[0].weight).shape[0] = 48;
              launch.outputs[0].dtype = DType::Q8A;
            }),
            "needs outputs of f32, f16, bf16, or q8a in whole blocks");
  EXPECT_EQ(refused([&](Launch& launch, Sections&) { launch.attributes.set("terms", std::int64_t{2}); }),
            "needs one term, or two of q8a");
  EXPECT_EQ(refused([](Launch&, Sections& s) { s.clear(); }), "needs the attribute `sections`");
}

}  // namespace
}  // namespace hone::test
