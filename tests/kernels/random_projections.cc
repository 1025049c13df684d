// Random projections: products with a random choice of what may follow them.
#include "projection_bound.h"
#include "random_launches.h"

namespace hone::test {
namespace {

SectionSpec random_section(Draw& draw, DType weight) {
  SectionSpec section;
  section.weight = weight;
  section.bias = draw.up_to(2) == 0;
  section.n = draw.at_least_one(32);
  if (draw.up_to(9) == 0) section.n = draw.at_least_one(128);
  const std::int64_t kind = draw.up_to(5);
  if (kind == 0) section.gate = draw.coin() ? ProjectionActivation::Silu : ProjectionActivation::GeluTanh;
  if (kind == 1 || kind == 2) {
    section.head = draw.between(1, 4) * 16;
    section.n = section.head * draw.between(1, 3);
    section.rotary = kind == 1 ? draw.between(1, section.head / 2) * 2 : 0;
    if (section.rotary == 0) section.head = 0;
    section.interleaved = draw.coin();
  }
  if (kind == 2 || draw.up_to(5) == 0) {
    static constexpr DType kStates[] = {DType::F32, DType::F16, DType::BF16};
    section.state = draw.of(std::span<const DType>(kStates));
    return section;
  }
  section.residual = draw.up_to(2) == 0;
  static constexpr DType kOutputs[] = {DType::F32, DType::F32, DType::F16, DType::BF16, DType::Q8A};
  const DType output = draw.of(std::span<const DType>(kOutputs));
  const bool whole_blocks = section.n % 32 == 0 && (section.rotary == 0 || section.head % 32 == 0);
  section.output = output == DType::Q8A && !whole_blocks ? DType::F32 : output;
  section.next_norm =
      whole_blocks && draw.up_to(3) == 0 && (section.output == DType::F32 || section.output == DType::Q8A);
  return section;
}

struct ProjectionShape {
  std::int64_t batch, tokens;
};

std::int64_t columns_of(const ProjectionSpec& spec) {
  std::int64_t n = 0;
  for (const SectionSpec& section : spec.sections)
    n += section.n * (section.gate == ProjectionActivation::None ? 1 : 2);
  return n;
}

// Two problems of one seed: the outputs of the one are the fast kernel's, those of the other the reference
// kernel's.
struct ProjectionPair {
  ProjectionPair(const ProjectionSpec& spec, const ProjectionShape& shape, std::uint64_t seed)
      : draw(seed),
        same(seed),
        fast(spec, shape.batch, shape.tokens, draw),
        reference(spec, shape.batch, shape.tokens, same) {}

  void check() {
    if (!reference_has_run) run_reference(reference.launch());
    reference_has_run = true;
    for (std::size_t s = 0; s < fast.section_count(); ++s) {
      for (std::int64_t row = 0; row < fast.rows() && !testing::Test::HasFatalFailure(); ++row)
        expect_section_within_bound(fast, reference, s, row);
      expect_other_rows_untouched(fast, s);
    }
  }

  std::mt19937_64 draw, same;
  ProjectionProblem fast, reference;
  bool reference_has_run = false;
};

RandomLaunch random_projection(Draw& draw, std::string_view stem) {
  static constexpr DType kDots[] = {DType::Q4_0, DType::Q4_1, DType::Q8_0, DType::Q5_0,
                                    DType::Q5_1, DType::Q4_K, DType::Q5_K, DType::Q6_K};
  static constexpr DType kEncoded[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q4_0,
                                       DType::Q4_1, DType::Q5_0, DType::Q5_1, DType::Q8_0,
                                       DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_NL};
  ProjectionSpec spec;
  spec.name = std::string(stem) + " " + std::to_string(draw.number);
  spec.q8a = takes_q8a(stem);
  spec.bf16 = x_type_of(stem) == DType::BF16;
  const DType weight = spec.bf16  ? DType::BF16
                       : spec.q8a ? draw.in_turn(std::span<const DType>(kDots))
                                  : draw.in_turn(std::span<const DType>(kEncoded));
  ProjectionShape shape{};
  do {
    const std::int64_t block = std::max<std::int64_t>(dtype_row(weight).block_elements, 32);
    spec.k = draw.at_least_one(256 / block) * block;
    spec.row_sums = draw.up_to(3) == 0;
    spec.terms = spec.q8a && !spec.row_sums && draw.up_to(3) == 0 ? 2 : 1;
    spec.next_offset = draw.coin() ? 1 : 0;
    spec.sections.clear();
    for (std::int64_t s = draw.between(1, 3); s > 0; --s)
      spec.sections.push_back(random_section(draw, weight));
    const std::int64_t rows = draw.at_least_one(96);
    shape.batch = draw.between(1, 2);
    shape.tokens = std::max<std::int64_t>(1, rows / shape.batch);
  } while (shape.batch * shape.tokens * columns_of(spec) * spec.k > 100000);
  auto pair = std::make_shared<ProjectionPair>(spec, shape, draw.random());
  RandomLaunch made;
  made.launch = pair->fast.launch();
  made.owners = {pair};
  made.check = [pair] { pair->check(); };
  made.what = std::string(dtype_name(weight)) + ", " + std::to_string(shape.batch * shape.tokens) +
              " rows of " + std::to_string(spec.k) + ", " + std::to_string(spec.sections.size()) +
              " sections, the first of " + std::to_string(spec.sections[0].n);
  return made;
}

constexpr Generator kProjectionGenerators[] = {{"projection", random_projection}};

}  // namespace

std::span<const Generator> projection_generators() {
  return kProjectionGenerators;
}

}  // namespace hone::test
