// Every fast kernel of every ISA level on random launches: within its bound of the reference kernel, reading
// and writing nothing but its operands.
//
// The kernels come from the registry and the launches from the generators of their op, so a new kernel is
// tested when it is listed. Each operand stands between pages that nothing may touch, once so that it ends
// at one, and once so that it starts at one or an element behind it: an access beyond the operand stops the
// program, which names the launch.
#include <array>
#include <deque>
#include <signal.h>

#include "guarded_memory.h"
#include "random_launches.h"

namespace hone::test {
namespace {

constexpr int kLaunches = HONE_TEST_SANITIZED ? 20 : 200;

// What runs now, for the handler of a fault.
std::array<char, 512>& running() {
  static std::array<char, 512> text{};
  return text;
}

void report_fault(int signal_number) {
  constexpr std::string_view kWhat = "\nan access outside of an operand, in ";
  ssize_t written = write(STDERR_FILENO, kWhat.data(), kWhat.size());
  written += write(STDERR_FILENO, running().data(), std::strlen(running().data()));
  written += write(STDERR_FILENO, "\n", 1);
  signal(signal_number, SIG_DFL);
  if (written > 0) raise(signal_number);
}

enum class Placement { End, Start };

// ---- operands

std::int64_t span_bytes(const TensorView& view) {
  if (view.layout == Layout::Panel16) {
    const std::int64_t matrices = view.rank == 3 ? view.shape[0] : 1;
    return matrices * panel_bytes(view.dtype, view.shape[view.rank - 2], view.shape[view.rank - 1]);
  }
  std::int64_t last = 0;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.shape[axis] == 0) return 0;
    last += (view.shape[axis] - 1) * view.strides[axis];
  }
  const std::int64_t block = dtype_row(view.dtype).block_elements;
  return dtype_bytes(view.dtype, (last + block) / block * block);
}

std::int64_t alignment_of(const TensorView& view) {
  if (view.layout == Layout::Panel16) return kPanelAlignment;
  if (dtype_row(view.dtype).is_quantised) return view.dtype == DType::Q8A ? 4 : 1;
  return dtype_row(view.dtype).block_bytes;
}

std::int64_t element_count_of(const TensorView& view) {
  std::int64_t count = 1;
  for (int axis = 0; axis < view.rank; ++axis) count *= view.shape[axis];
  return count;
}

// Of element `index`, row-major; of q8a, of its block.
std::int64_t byte_offset(const TensorView& view, std::int64_t index) {
  std::int64_t at = 0;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    at += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  const std::int64_t block = dtype_row(view.dtype).block_elements;
  return dtype_bytes(view.dtype, at / block * block);
}

template <class T>
double read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(value);
}

double number_at(DType dtype, const std::byte* at) {
  std::uint16_t half = 0;
  switch (dtype) {
    case DType::F64:
      return read_as<double>(at);
    case DType::F32:
      return read_as<float>(at);
    case DType::F16:
      std::memcpy(&half, at, 2);
      return static_cast<double>(f16_to_f32(half));
    case DType::BF16:
      std::memcpy(&half, at, 2);
      return static_cast<double>(bf16_to_f32(half));
    case DType::I8:
      return read_as<std::int8_t>(at);
    case DType::I16:
      return read_as<std::int16_t>(at);
    case DType::I32:
      return read_as<std::int32_t>(at);
    case DType::U32:
      return read_as<std::uint32_t>(at);
    case DType::I64:
      return read_as<std::int64_t>(at);
    default:
      return read_as<std::uint8_t>(at);
  }
}

BlockQ8A block_at(const TensorView& view, std::int64_t index) {
  BlockQ8A block;
  std::memcpy(&block, static_cast<const std::byte*>(view.data) + byte_offset(view, index), sizeof(block));
  return block;
}

// ---- a run between guard pages

// The bytes of each output, span by span.
using Outputs = std::vector<std::vector<std::byte>>;

class GuardedRun {
 public:
  // Runs all tiles, last first. Fails the test if an input or the bytes about an operand change.
  Outputs run(const Kernel& kernel, const Launch& launch, Placement placement, std::int64_t distance) {
    placement_ = placement;
    distance_ = distance;
    used_ = 0;
    std::vector<TensorView> outputs;
    for (const TensorView& view : launch.outputs) outputs.push_back(place(view, is_input(launch, view)));
    std::vector<TensorView> inputs;
    for (const TensorView& view : launch.inputs) {
      const std::size_t output = output_at(launch, view);
      inputs.push_back(output < outputs.size() ? moved(view, outputs[output].data) : place(view, true));
    }
    run_tiles(kernel, launch, inputs, outputs);
    for (std::size_t i = 0; i < used_; ++i)
      EXPECT_TRUE(slots_[i].margins_untouched()) << running().data() << ": bytes about operand " << i;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(span_bytes(inputs[i]));
      if (bytes == 0 || output_at(launch, launch.inputs[i]) < outputs.size()) continue;
      EXPECT_EQ(std::memcmp(inputs[i].data, launch.inputs[i].data, bytes), 0)
          << running().data() << ": input " << i << " was written";
    }
    Outputs results;
    for (const TensorView& view : outputs) {
      const auto* data = static_cast<const std::byte*>(view.data);
      results.emplace_back(data, data + span_bytes(view));
    }
    return results;
  }

 private:
  static TensorView moved(TensorView view, void* data) {
    view.data = data;
    return view;
  }
  static bool is_input(const Launch& launch, const TensorView& output) {
    return std::any_of(launch.inputs.begin(), launch.inputs.end(),
                       [&](const TensorView& input) { return input.data == output.data; });
  }
  // The output in the same place, or their number.
  static std::size_t output_at(const Launch& launch, const TensorView& input) {
    const auto found = std::find_if(launch.outputs.begin(), launch.outputs.end(),
                                    [&](const TensorView& output) { return output.data == input.data; });
    return static_cast<std::size_t>(found - launch.outputs.begin());
  }
  std::byte* place_bytes(std::int64_t bytes, std::int64_t alignment) {
    if (used_ == slots_.size()) slots_.emplace_back();
    GuardedMemory& slot = slots_[used_++];
    if (placement_ == Placement::End) return slot.at_the_end(bytes, alignment);
    return slot.at_the_start(bytes, alignment == kPanelAlignment ? 0 : distance_ * alignment);
  }
  TensorView place(const TensorView& view, bool with_contents) {
    const std::int64_t bytes = span_bytes(view);
    std::byte* data = place_bytes(bytes, alignment_of(view));
    if (with_contents && bytes > 0) std::memcpy(data, view.data, static_cast<std::size_t>(bytes));
    return moved(view, data);
  }
  void run_tiles(const Kernel& kernel, const Launch& launch, const std::vector<TensorView>& inputs,
                 const std::vector<TensorView>& outputs) {
    Call call;
    call.attributes = &launch.attributes;
    call.program = launch.program;
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    call.input_count = static_cast<int>(inputs.size());
    call.output_count = static_cast<int>(outputs.size());
    const std::int64_t bytes = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call);
    call.scratch = place_bytes(bytes, kPanelAlignment);
    for (std::int64_t tile = kernel.tile_count(call) - 1; tile >= 0; --tile) {
      std::memset(call.scratch, 0xff, static_cast<std::size_t>(bytes));
      kernel.run(call, tile);
    }
  }

  Placement placement_ = Placement::End;
  std::int64_t distance_ = 0;
  std::deque<GuardedMemory> slots_;
  std::size_t used_ = 0;
};

// ---- comparison

// Blocks of one value each have half a scale of it, and their own scale and sum.
void expect_block(const BlockQ8A& actual, const BlockQ8A& expected, const RandomLaunch& random,
                  std::size_t output, std::int64_t index) {
  if (std::isnan(expected.scale)) {
    ASSERT_TRUE(std::isnan(actual.scale) && std::isnan(actual.sum)) << running().data() << " at " << index;
    return;
  }
  std::int32_t sum = 0;
  for (int j = 0; j < 32; ++j) {
    sum += actual.quants[j];
    const double value = static_cast<double>(actual.scale) * actual.quants[j];
    const double wanted = static_cast<double>(expected.scale) * expected.quants[j];
    const double rounded = 0.505 * static_cast<double>(actual.scale + expected.scale);
    const double bound = random.bound ? random.bound(output, index + j, wanted) + rounded : 0;
    ASSERT_LE(std::fabs(value - wanted), bound)
        << running().data() << ": output " << output << " at " << index + j;
  }
  ASSERT_EQ(actual.offset, -128 * sum) << running().data() << " at " << index;
  ASSERT_EQ(actual.sum, actual.scale * static_cast<float>(sum)) << running().data() << " at " << index;
}

// Element by element, and byte by byte between them.
void expect_output(const TensorView& view, std::vector<std::byte> actual, std::vector<std::byte> expected,
                   const RandomLaunch& random, std::size_t output) {
  TensorView actual_view = view;
  TensorView expected_view = view;
  actual_view.data = actual.data();
  expected_view.data = expected.data();
  const DTypeRow& row = dtype_row(view.dtype);
  for (std::int64_t i = 0; i < element_count_of(view); i += row.block_elements) {
    std::byte* at = actual.data() + byte_offset(view, i);
    const std::byte* wanted_at = expected.data() + byte_offset(view, i);
    if (view.dtype == DType::Q8A) {
      expect_block(block_at(actual_view, i), block_at(expected_view, i), random, output, i);
      if (testing::Test::HasFatalFailure()) return;
    } else {
      const double value = number_at(view.dtype, at);
      const double wanted = number_at(view.dtype, wanted_at);
      const double bound = random.bound ? random.bound(output, i, wanted) : 0;
      ASSERT_TRUE(std::fabs(value - wanted) <= bound || value == wanted ||
                  (std::isnan(value) && std::isnan(wanted)))
          << running().data() << ": output " << output << " at " << i << " is " << value << ", not " << wanted
          << " within " << bound;
    }
    std::memcpy(at, wanted_at, static_cast<std::size_t>(row.block_bytes));
  }
  ASSERT_EQ(actual, expected) << running().data() << ": output " << output << ", between its elements";
}

// ---- every kernel

// Kernels of one name, of the levels that can run here.
struct Family {
  std::string stem;
  std::vector<const Kernel*> levels;
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.stem;
}

std::vector<Family> families() {
  std::vector<Family> all;
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.reference || kernel.isa > highest_level()) continue;
    const std::string stem(kernel.name.substr(0, kernel.name.rfind('.')));
    auto family = std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.stem == stem; });
    if (family == all.end()) family = all.insert(all.end(), Family{stem, {}});
    family->levels.push_back(&kernel);
  }
  return all;
}

const Generator* generator_of(std::string_view op) {
  for (const auto& generators : {matmul_generators(), projection_generators(), attention_generators(),
                                 row_generators(), move_generators()}) {
    for (const Generator& generator : generators) {
      if (generator.op == op) return &generator;
    }
  }
  return nullptr;
}

bool accepts(const Kernel& kernel, const Launch& launch) {
  std::vector<OperandSpec> inputs;
  std::vector<OperandSpec> outputs;
  for (const TensorView& view : launch.inputs) inputs.push_back(spec_of(view));
  for (const TensorView& view : launch.outputs) outputs.push_back(spec_of(view));
  return kernel.accepts(Signature{launch.op, &launch.attributes, inputs, outputs}).empty();
}

class EveryKernel : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (HONE_TEST_SANITIZED) return;  // AddressSanitizer reports the fault itself
    signal(SIGSEGV, report_fault);
  }
  void TearDown() override {
    if (!HONE_TEST_SANITIZED) signal(SIGSEGV, SIG_DFL);
  }

  void say(const Kernel& kernel, const RandomLaunch& random, std::int64_t seed, Placement placement) {
    const std::string text = std::string(kernel.name) + ", launch " + std::to_string(seed) + " (" +
                             random.what + "), operands " + (placement == Placement::End ? "end" : "start") +
                             " at a guard page";
    const std::size_t length = std::min(text.size(), running().size() - 1);
    std::memcpy(running().data(), text.data(), length);
    running()[length] = 0;
  }

  // All levels in both placements. Outputs that have been compared once are not compared again.
  void check(const std::vector<const Kernel*>& kernels, const RandomLaunch& random, std::int64_t seed) {
    Outputs expected;
    if (!random.check) {
      const Kernel* reference = find_kernel(random.launch, Isa::Portable, true);
      ASSERT_NE(reference, nullptr) << "no reference kernel takes " << random.launch.op << " " << random.what;
      say(*reference, random, seed, Placement::End);
      expected = run_.run(*reference, random.launch, Placement::End, 0);
    }
    std::vector<Outputs> taken;
    for (const Kernel* kernel : kernels) {
      for (const Placement placement : {Placement::End, Placement::Start}) {
        say(*kernel, random, seed, placement);
        const Outputs outputs = run_.run(*kernel, random.launch, placement, seed % 2);
        if (std::find(taken.begin(), taken.end(), outputs) != taken.end()) continue;
        compare(random, outputs, expected);
        if (HasFatalFailure()) return;
        taken.push_back(outputs);
      }
    }
  }

 private:
  static void compare(const RandomLaunch& random, const Outputs& outputs, const Outputs& expected) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorView& view = random.launch.outputs[i];
      if (!random.check) {
        expect_output(view, outputs[i], expected[i], random, i);
        if (HasFatalFailure()) return;
      } else if (!outputs[i].empty()) {
        std::memcpy(view.data, outputs[i].data(), outputs[i].size());
      }
    }
    if (random.check) {
      random.check();
      EXPECT_FALSE(HasFatalFailure()) << running().data();
    }
  }

  GuardedRun run_;
};

TEST_P(EveryKernel, IsWithinItsBoundAndItsOperands) {
  const Family& family = GetParam();
  const std::string_view op = family.levels[0]->op;
  const Generator* generator = generator_of(op);
  ASSERT_NE(generator, nullptr) << "no generator of random launches for " << op;
  int taken = 0;
  for (std::int64_t seed = 0; taken < kLaunches; ++seed) {
    ASSERT_LT(seed, 10 * kLaunches) << family.stem << " takes hardly any of the launches drawn for " << op;
    Draw draw(static_cast<std::uint64_t>(seed), seed);
    const RandomLaunch random = generator->make(draw, family.stem);
    std::vector<const Kernel*> kernels;
    for (const Kernel* kernel : family.levels) {
      if (accepts(*kernel, random.launch)) kernels.push_back(kernel);
    }
    if (kernels.empty()) continue;
    ASSERT_EQ(kernels.size(), family.levels.size()) << "levels differ in what they take: " << random.what;
    ++taken;
    check(kernels, random, seed);
    if (HasFailure()) return;
  }
}

std::string family_name(const testing::TestParamInfo<Family>& info) {
  std::string name = info.param.stem;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, testing::ValuesIn(families()), family_name);

// ---- the guards themselves

TEST(GuardedMemory, StopsAnAccessBeyondEitherEnd) {
  GuardedMemory memory;
  const volatile std::byte* end = memory.at_the_end(100, 4) + 100;
  EXPECT_TRUE(end[-1] == GuardedMemory::kFill);
  EXPECT_DEATH(static_cast<void>(end[0]), "");
  const volatile std::byte* start = memory.at_the_start(100, 0);
  EXPECT_DEATH(static_cast<void>(start[-1]), "");
}

TEST(GuardedMemory, SeesAWriteAboutTheOperand) {
  GuardedMemory memory;
  std::byte* data = memory.at_the_end(100, 4);
  std::memset(data, 1, 100);
  EXPECT_TRUE(memory.margins_untouched());
  data[-1] = std::byte{1};
  EXPECT_FALSE(memory.margins_untouched());
  data = memory.at_the_start(100, 8);
  EXPECT_TRUE(memory.margins_untouched());
  data[100] = std::byte{1};
  EXPECT_FALSE(memory.margins_untouched());
  data = memory.at_the_start(100, 8);
  data[-1] = std::byte{1};
  EXPECT_FALSE(memory.margins_untouched());
}

}  // namespace
}  // namespace hone::test
