// projection of every ISA level against the launches it replaces, bit by bit, and row by row.
#include "projection_test_support.h"

namespace hone::test {
namespace {

class Projection : public PerLevel {
 protected:
  std::mt19937_64 random_{31};
};
INSTANTIATE_TEST_SUITE_P(Levels, Projection, testing::ValuesIn(kIsaLevels), level_name);

using Floats = std::vector<float>;

std::size_t index_of(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// x [rows,terms,K] as rows of one axis.
TensorView rows_of_x(ProjectionProblem& p) {
  TensorView x = p.input(0).view();
  x.rank = 2;
  x.shape[0] = p.rows() * p.spec().terms;
  x.shape[1] = p.spec().k;
  x.strides[0] = p.spec().k;
  x.strides[1] = 1;
  return x;
}

// x W^T by the matmul kernel; of two terms the sum of both products.
Floats product_of(ProjectionProblem& p, std::int64_t weight, Isa isa) {
  const TensorView& w = p.weight(weight).view();
  const std::int64_t n = w.shape[0];
  Tensor out(DType::F32, {p.rows() * p.spec().terms, n});
  run_fast(matmul_launch(rows_of_x(p), w, out.view()), isa);
  Floats values(index_of(p.rows() * n));
  for (std::int64_t i = 0; i < p.rows() * n; ++i) {
    const float* first = out.data<float>() + i / n * p.spec().terms * n + i % n;
    values[index_of(i)] = p.spec().terms == 2 ? first[0] + first[n] : first[0];
  }
  return values;
}

// activation(gate) * up by the kernel of the gated MLP: of rows [gate, up] by the halves of the unit matrix,
// whose products are exact.
Floats gated_by_kernel(ProjectionActivation activation, const Floats& gate, const Floats& up, std::int64_t n,
                       Isa isa) {
  const auto rows = static_cast<std::int64_t>(gate.size()) / n;
  Tensor x(DType::F32, {rows, 2 * n});
  for (std::int64_t i = 0; i < rows * n; ++i) {
    x.data<float>()[i / n * 2 * n + i % n] = gate[index_of(i)];
    x.data<float>()[i / n * 2 * n + n + i % n] = up[index_of(i)];
  }
  std::vector<std::byte> halves[2];
  for (std::int64_t half = 0; half < 2; ++half) {
    Floats unit(index_of(n * 2 * n), 0.0F);
    for (std::int64_t i = 0; i < n; ++i) unit[index_of(i * 2 * n + half * n + i)] = 1;
    halves[half].resize(unit.size() * 4);
    std::memcpy(halves[half].data(), unit.data(), halves[half].size());
  }
  const Weights first(DType::F32, n, 2 * n, halves[0]);
  const Weights second(DType::F32, n, 2 * n, halves[1]);
  Tensor out(DType::F32, {rows, n});
  const std::string op = activation == ProjectionActivation::Silu ? "swiglu_mlp" : "geglu_mlp";
  run_fast({op, {}, {x.view(), first.view(), second.view()}, {out.view()}}, isa);
  return {out.data<float>(), out.data<float>() + rows * n};
}

// 1 / sqrt(mean + eps) of each row, in the order that fast/projection.cc states.
Floats factors_of(ProjectionProblem& p) {
  const std::int64_t blocks = p.spec().k / kSquaresBlock;
  Floats factors(index_of(p.rows()));
  for (std::int64_t row = 0; row < p.rows(); ++row) {
    float lanes[16] = {};
    for (std::int64_t i = 0; i < blocks; ++i)
      lanes[i % 16] += p.input(p.row_sums()).data<float>()[row * blocks + i];
    const double mean = static_cast<double>(folded(lanes)) / static_cast<double>(p.spec().k);
    factors[index_of(row)] = static_cast<float>(1 / std::sqrt(mean + kProjectionEps));
  }
  return factors;
}

// What the section's products give: with the rows' factors, and gated.
Floats products_of(ProjectionProblem& p, std::size_t s, Isa isa) {
  const ProjectionSection& section = p.section(s);
  const std::int64_t n = p.spec().sections[s].n;
  const bool scaled = p.spec().row_sums;
  const Floats factors = scaled ? factors_of(p) : Floats{};
  const auto scale = [&](Floats& values) {
    for (std::size_t i = 0; scaled && i < values.size(); ++i) values[i] *= factors[i / index_of(n)];
  };
  Floats values = product_of(p, section.weight, isa);
  scale(values);
  if (section.gate < 0) return values;
  Floats gates = product_of(p, section.gate, isa);
  scale(gates);
  return gated_by_kernel(p.spec().sections[s].gate, gates, values, n, isa);
}

Floats normed_by_kernel(ProjectionProblem& p, const ProjectionSection& section, const Floats& values,
                        Isa isa) {
  Tensor x(DType::F32, {static_cast<std::int64_t>(values.size()) / section.head, section.head});
  Tensor out(DType::F32, x.sizes());
  std::memcpy(x.data<float>(), values.data(), values.size() * 4);
  Attributes attributes{{"eps", kHeadEps}};
  if (p.spec().head_offset != 0) attributes.set("offset", p.spec().head_offset);
  run_fast({"rms_norm", attributes, {x.view(), p.input(section.head_norm).view()}, {out.view()}}, isa);
  return {out.data<float>(), out.data<float>() + values.size()};
}

Floats rotated_by_kernel(ProjectionProblem& p, const ProjectionSection& section, const Floats& values,
                         std::int64_t n, Isa isa) {
  Tensor x(DType::F32, {p.batch(), p.tokens(), n / section.head, section.head});
  Tensor out(DType::F32, x.sizes());
  std::memcpy(x.data<float>(), values.data(), values.size() * 4);
  run_fast({"rope",
            {{"interleaved", section.interleaved}},
            {x.view(), p.input(section.cosine).view(), p.input(section.sine).view()},
            {out.view()}},
           isa);
  return {out.data<float>(), out.data<float>() + values.size()};
}

// `values` in `dtype` at `to`.
void convert(const Floats& values, DType dtype, std::byte* to) {
  const auto count = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < count && dtype != DType::Q8A; ++i) {
    const float value = values[index_of(i)];
    const std::uint16_t half = dtype == DType::F16 ? f32_to_f16(value) : f32_to_bf16(value);
    if (dtype == DType::F32) {
      std::memcpy(to + i * 4, &value, 4);
    } else {
      std::memcpy(to + i * 2, &half, 2);
    }
  }
}

// As the quantize_q8a kernel rounds [rows,N], or as convert() does.
void write(const Floats& values, std::int64_t n, Guarded& out, Isa isa) {
  if (out.view().dtype != DType::Q8A) {
    return convert(values, out.view().dtype, static_cast<std::byte*>(out.view().data));
  }
  Tensor x(DType::F32, {static_cast<std::int64_t>(values.size()) / n, n});
  std::memcpy(x.data<float>(), values.data(), values.size() * 4);
  TensorView rows = out.view();
  const std::int64_t terms = rows.rank - 2;  // [B,T,N] or [B,T,2,N]
  rows.rank = terms == 2 ? 3 : 2;
  rows.shape[0] = x.sizes()[0];
  rows.shape[1] = terms;
  rows.strides[0] = terms * n;
  rows.strides[1] = n;
  rows.shape[rows.rank - 1] = n;
  rows.strides[rows.rank - 1] = 1;
  run_fast({"quantize_q8a", {{"terms", terms}}, {x.view()}, {rows}}, isa);
}

void append(ProjectionProblem& p, const ProjectionSection& section, const Floats& values, std::int64_t n,
            Guarded& state, Isa isa) {
  const TensorView view = state.view();
  Tensor rows(view.dtype, {p.batch(), p.tokens(), view.shape[2], view.shape[3]});
  convert(values, view.dtype, static_cast<std::byte*>(rows.view().data));
  ASSERT_EQ(view.shape[2] * view.shape[3], n);
  run_fast({"state_append", {}, {view, rows.view(), p.input(section.positions).view()}, {view}}, isa);
}

// v * (w + offset) and the sums of 32 squares.
void write_normed(ProjectionProblem& p, const ProjectionSection& section, const Floats& values,
                  std::int64_t n, std::deque<Guarded>& outputs, Isa isa) {
  const float* w = p.input(section.next_norm).data<float>();
  const auto offset = static_cast<float>(p.spec().next_offset);
  Floats scaled(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float factor = w[i % index_of(n)];
    scaled[i] = values[i] * (offset != 0 ? factor + offset : factor);
  }
  write(scaled, n, outputs[index_of(section.output + 1)], isa);
  for (std::size_t block = 0; block < values.size() / 32; ++block) {
    float lanes[16];
    for (std::size_t i = 0; i < 16; ++i) {
      const float low = values[block * 32 + i] * values[block * 32 + i];
      const float high = values[block * 32 + 16 + i] * values[block * 32 + 16 + i];
      lanes[i] = low + high;
    }
    outputs[index_of(section.output + 2)].data<float>()[block] = folded(lanes);
  }
}

// The outputs of the launches that the projection replaces.
std::deque<Guarded> separate_launches(ProjectionProblem& p, Isa isa) {
  std::deque<Guarded> outputs = p.outputs();
  for (Guarded& output : outputs) output.clear();
  for (std::size_t s = 0; s < p.section_count(); ++s) {
    const ProjectionSection& section = p.section(s);
    const std::int64_t n = p.spec().sections[s].n;
    Floats values = products_of(p, s, isa);
    for (std::size_t i = 0; section.bias >= 0 && i < values.size(); ++i)
      values[i] += p.input(section.bias).data<float>()[i % index_of(n)];
    if (section.head_norm >= 0) values = normed_by_kernel(p, section, values, isa);
    if (section.cosine >= 0) values = rotated_by_kernel(p, section, values, n, isa);
    for (std::size_t i = 0; section.residual >= 0 && i < values.size(); ++i)
      values[i] += p.input(section.residual).data<float>()[i];
    Guarded& out = outputs[index_of(section.output)];
    if (section.state >= 0) {
      append(p, section, values, n, out, isa);
      continue;
    }
    write(values, n, out, isa);
    if (section.next_norm >= 0) write_normed(p, section, values, n, outputs, isa);
  }
  return outputs;
}

void expect_same(std::deque<Guarded>& actual, const std::deque<Guarded>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::vector<std::byte>& bytes = actual[i].bytes();
    const auto differs = std::mismatch(bytes.begin(), bytes.end(), expected[i].bytes().begin());
    ASSERT_TRUE(differs.first == bytes.end())
        << what << ": output " << i << " differs at byte " << differs.first - bytes.begin() << " of "
        << bytes.size() << ", 64 of them before it and behind it";
  }
}

struct Rows {
  std::int64_t batch, tokens;
};
// 1, 2, 7, 9, 49, 96 and 100: about the rows that take narrow tiles, and about the tile of 96.
constexpr Rows kRows[] = {{1, 1}, {2, 1}, {1, 7}, {3, 3}, {7, 7}, {4, 24}, {4, 25}};

std::string name_of(const ProjectionSpec& spec, const Rows& rows, Isa isa) {
  return spec.name + ", " + std::to_string(rows.batch * rows.tokens) + " rows, " + std::string(isa_name(isa));
}

// Every level has the bits of the launches replaced, whatever the threads, of each token run alone, and of
// all of them in a flattened step.
void check_bits(const ProjectionSpec& spec, std::mt19937_64& random, Isa isa) {
  for (const Rows& rows : kRows) {
    ProjectionProblem p(spec, rows.batch, rows.tokens, random);
    const std::string name = name_of(spec, rows, isa);
    const std::deque<Guarded> expected = separate_launches(p, Isa::Portable);
    run_fast(p.launch(), isa);
    expect_same(p.outputs(), expected, name);
    p.clear();
    run_fast(p.launch(), isa, 3);
    expect_same(p.outputs(), expected, name + ", three threads");
    p.clear();
    for (std::int64_t row = 0; row < p.rows(); ++row)
      run_fast(p.launch_of_token(row / rows.tokens, row % rows.tokens), isa);
    expect_same(p.outputs(), expected, name + ", one by one");
    p.clear();
    Guarded sequence(DType::I32, {1, p.rows()}, 0);
    run_fast(p.flat_launch(sequence), isa);
    expect_same(p.outputs(), expected, name + ", flattened");
  }
}

// x f32, x q8a with a weight for its dots, and x bf16.
void check_both(ProjectionSpec spec, std::mt19937_64& random, Isa isa, DType blocks = DType::Q8_0) {
  check_bits(spec, random, isa);
  spec.name += ", int8";
  spec.q8a = true;
  for (SectionSpec& section : spec.sections) section.weight = blocks;
  check_bits(spec, random, isa);
  spec.name += " and bf16";
  spec.q8a = false;
  spec.bf16 = true;
  for (SectionSpec& section : spec.sections) section.weight = DType::BF16;
  check_bits(spec, random, isa);
}

TEST_P(Projection, OfEveryWeightType) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    const std::string name(dtype_name(dtype));
    check_bits({.name = name, .k = 288, .sections = {{.n = 33, .weight = dtype}}}, random_, GetParam());
    if (dtype_row(dtype).block_elements == 1) continue;
    check_bits({.name = name + ", int8", .k = 288, .q8a = true, .sections = {{.n = 33, .weight = dtype}}},
               random_, GetParam());
  }
  for (const DType dtype : {DType::Q4_K, DType::Q6_K}) {
    check_bits({.name = std::string(dtype_name(dtype)), .k = 512, .sections = {{.n = 17, .weight = dtype}}},
               random_, GetParam());
  }
}

// Tiles of 32 and of 128 columns that end in the middle of a panel, with one, and with a block.
TEST_P(Projection, OfEveryWidth) {
  for (const std::int64_t n : {1, 15, 16, 31, 32, 48, 127, 128, 129, 160, 272}) {
    check_both({.name = std::to_string(n), .sections = {{.n = n, .bias = true, .residual = true}}}, random_,
               GetParam());
  }
}

TEST_P(Projection, WithBiasOrResidual) {
  check_both({.name = "bias", .sections = {{.n = 40, .bias = true}}}, random_, GetParam(), DType::Q4_0);
  check_both({.name = "residual", .sections = {{.n = 40, .residual = true}}}, random_, GetParam());
}

TEST_P(Projection, Gated) {
  for (const ProjectionActivation gate : {ProjectionActivation::Silu, ProjectionActivation::GeluTanh}) {
    const std::string name = gate == ProjectionActivation::Silu ? "silu" : "gelu";
    check_both({.name = name, .sections = {{.n = 40, .gate = gate}}}, random_, GetParam());
    check_both({.name = name + " to q8a", .sections = {{.n = 160, .gate = gate, .output = DType::Q8A}}},
               random_, GetParam(), DType::Q4_1);
  }
}

TEST_P(Projection, ToEveryType) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::Q8A}) {
    check_both(
        {.name = std::string(dtype_name(dtype)), .sections = {{.n = 96, .bias = true, .output = dtype}}},
        random_, GetParam());
  }
}

// Heads of one panel, of three, and of the widest tile; all columns of a head turn, or the first R.
TEST_P(Projection, Turned) {
  for (const bool interleaved : {false, true}) {
    for (const std::int64_t head : {16, 48, 256}) {
      for (const std::int64_t rotary : {head, head / 2, std::int64_t{2}}) {
        SectionSpec section{.n = head * 3, .rotary = rotary, .head = head, .interleaved = interleaved};
        section.bias = rotary == head;
        section.residual = rotary == head / 2;
        const std::string name = std::string(interleaved ? "pairs" : "halves") + " R " +
                                 std::to_string(rotary) + " E " + std::to_string(head);
        check_both({.name = name, .k = 32, .sections = {section}}, random_, GetParam());
      }
    }
  }
}

// As Turned, with a norm of each head in front of the rope.
TEST_P(Projection, NormedHeads) {
  for (const double offset : {0.0, 1.0}) {
    for (const std::int64_t head : {16, 48, 64, 256}) {
      const SectionSpec section{
          .n = head * 3, .bias = head == 48, .rotary = head, .head = head, .head_norm = true};
      SectionSpec appended = section;
      appended.n = head;
      appended.state = DType::F16;
      check_both({.name = "heads of " + std::to_string(head) + ", offset " + std::to_string(offset),
                  .k = 32,
                  .head_offset = offset,
                  .sections = {section, appended, {.n = 24, .state = DType::F16}}},
                 random_, GetParam());
    }
  }
}

TEST_P(Projection, AppendedToStates) {
  for (const DType state : {DType::F32, DType::F16, DType::BF16}) {
    const std::string name = "state of " + std::string(dtype_name(state));
    check_both({.name = name, .sections = {{.n = 56, .bias = true, .state = state}}}, random_, GetParam());
    check_both({.name = name + ", turned", .sections = {{.n = 96, .rotary = 20, .head = 48, .state = state}}},
               random_, GetParam());
  }
}

// q8a [..,2,N] behind one term of x and behind two, of a gated MLP and of a norm that is folded out.
TEST_P(Projection, ToTwoTerms) {
  for (const std::int64_t terms : {1, 2}) {
    const std::string name = std::to_string(terms) + " to two terms";
    ProjectionSpec spec{.name = name, .k = 96, .q8a = true, .terms = terms};
    SectionSpec section{.n = 160, .weight = DType::Q4_0, .output = DType::Q8A, .two_terms = true};
    spec.sections = {section, section};
    spec.sections[0].gate = ProjectionActivation::Silu;
    spec.row_sums = terms == 2;
    check_bits(spec, random_, GetParam());
    spec.name += ", norm out";
    spec.sections = {section};
    spec.sections[0].next_norm = true;
    check_bits(spec, random_, GetParam());
  }
}

// A norm folded in, out, and both; with Gemma's 1 + w.
TEST_P(Projection, WithNormsFoldedIntoIt) {
  constexpr ProjectionActivation kSilu = ProjectionActivation::Silu;
  for (const std::int64_t k : {32, 96, 544, 1056}) {
    check_both({.name = "norm of " + std::to_string(k),
                .k = k,
                .row_sums = true,
                .sections = {{.n = 40}, {.n = 32, .gate = kSilu, .output = DType::Q8A}}},
               random_, GetParam());
  }
  for (const DType scaled : {DType::F32, DType::Q8A}) {
    for (const double offset : {0.0, 1.0}) {
      const std::string name =
          "norm out, " + std::string(dtype_name(scaled)) + ", offset " + std::to_string(offset);
      ProjectionSpec spec{
          .name = name,
          .next_offset = offset,
          .sections = {{.n = 160, .bias = true, .residual = true, .next_norm = true, .output = scaled}}};
      check_both(spec, random_, GetParam());
      spec.name += " and in";
      spec.row_sums = true;
      check_both(spec, random_, GetParam());
    }
  }
}

TEST_P(Projection, OfTwoTerms) {
  for (const DType dtype : {DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    check_bits({.name = "two terms, " + std::string(dtype_name(dtype)),
                .k = 96,
                .q8a = true,
                .terms = 2,
                .sections = {{.n = 145, .weight = dtype}}},
               random_, GetParam());
  }
  check_bits({.name = "two terms, gated",
              .q8a = true,
              .terms = 2,
              .sections = {{.n = 40,
                            .weight = DType::Q8_0,
                            .gate = ProjectionActivation::Silu,
                            .bias = true,
                            .residual = true}}},
             random_, GetParam());
}

// q, k and v of one x: turned, turned and appended, appended; and a fourth, gated, of another weight type.
TEST_P(Projection, OfSeveralSections) {
  ProjectionSpec spec{.name = "sections",
                      .k = 96,
                      .sections = {{.n = 192, .rotary = 64, .head = 64},
                                   {.n = 64, .bias = true, .rotary = 32, .head = 64, .state = DType::F16},
                                   {.n = 64, .bias = true, .state = DType::F16},
                                   {.n = 33, .gate = ProjectionActivation::GeluTanh}}};
  check_both(spec, random_, GetParam());
  spec.sections[1].weight = DType::Q4_0;
  spec.sections[3].weight = DType::BF16;
  check_bits(spec, random_, GetParam());
}

// Rows of x and of the residual at a distance, as slices of a wider value.
TEST_P(Projection, OfRowsAtADistance) {
  const ProjectionSpec spec{.name = "apart", .sections = {{.n = 40, .residual = true}}};
  ProjectionProblem p(spec, 2, 9, random_);
  const std::deque<Guarded> expected = separate_launches(p, Isa::Portable);
  Launch launch = p.launch();
  std::deque<Tensor> apart;
  for (const std::int64_t number : {std::int64_t{0}, p.section(0).residual}) {
    TensorView& view = launch.inputs[index_of(number)];
    Tensor& wide = apart.emplace_back(DType::F32, Sizes{2, 9, view.shape[2]}, 5, 4);
    for (std::int64_t i = 0; i < 18 * view.shape[2]; ++i) wide.set(i, p.input(number).get(i));
    view = wide.view();
  }
  run_fast(launch, GetParam());
  expect_same(p.outputs(), expected, spec.name);
}

// The sum takes the residual's place, as the planner lets it where nobody reads the residual afterwards.
TEST_P(Projection, InTheResidualsPlace) {
  for (const DType scaled : {DType::F32, DType::Q8A}) {
    ProjectionSpec spec{.name = "in place", .sections = {{.n = 160, .residual = true}}};
    if (scaled == DType::Q8A) {
      spec.sections[0].next_norm = true;
      spec.sections[0].output = scaled;
    }
    for (const Rows& rows : kRows) {
      ProjectionProblem p(spec, rows.batch, rows.tokens, random_);
      const std::deque<Guarded> expected = separate_launches(p, Isa::Portable);
      Launch launch = p.launch();
      std::memcpy(launch.outputs[0].data, p.input(p.section(0).residual).view().data,
                  index_of(p.rows() * 160 * 4));
      launch.inputs[index_of(p.section(0).residual)] = launch.outputs[0];
      run_fast(launch, GetParam(), 2);
      expect_same(p.outputs(), expected, name_of(spec, rows, GetParam()));
    }
  }
}

}  // namespace
}  // namespace hone::test
