// Each rule of the GGUF reader, broken alone: the error must name that rule and the byte where it is broken.
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>

#include "gguf_sample.h"
#include "walk.h"

namespace hone::testing {
namespace {

struct Broken {
  const char* name;
  // Breaks the sample and returns the byte that the error must name.
  std::function<std::uint64_t(GgufSample&)> edit;
  const char* rule;
  const char* actual;  // a part of it
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

class GgufBroken : public ::testing::TestWithParam<Broken> {};

TEST_P(GgufBroken, NamesRuleAndByte) {
  GgufSample sample;
  ASSERT_TRUE(sample.parse().ok()) << sample.parse().error().message;
  const std::uint64_t at = GetParam().edit(sample);
  const Result<Checkpoint> result = sample.parse();
  ASSERT_FALSE(result.ok());
  const Error& error = result.error();
  EXPECT_EQ(error.code, ErrorCode::BadFile);
  EXPECT_EQ(error.fault, Fault::File);
  EXPECT_EQ(error.message, GetParam().rule);
  // What is wrong inside of a metadata value is said with its key.
  const std::string place = error.where.substr(0, error.where.find(", value of "));
  EXPECT_EQ(place, fmt::format("sample.gguf, byte {}", at));
  const std::string_view name = GetParam().name;
  const bool inside = name.starts_with("Array") || name.starts_with("BoolOf") ||
                      name.starts_with("StringL") || name.starts_with("StringA") ||
                      name.starts_with("StringO");
  EXPECT_EQ(place != error.where, inside) << error.where;
  EXPECT_NE(error.actual.find(GetParam().actual), std::string::npos) << error.actual;
  EXPECT_FALSE(error.expected.empty());
  EXPECT_FALSE(error.next_step.empty());
}

template <class T>
auto set(std::uint64_t at, T value) {
  return [=](GgufSample& sample) {
    sample.put(at, value);
    return at;
  };
}

// Writes `value` at the place that `where` finds; the error is expected there.
template <class T>
auto set(std::uint64_t (GgufSample::*where)(std::string_view) const, std::string_view name, T value) {
  return [=](GgufSample& sample) {
    const std::uint64_t at = (sample.*where)(name);
    sample.put(at, value);
    return at;
  };
}

auto set_dimension(std::string_view name, std::uint64_t i, std::uint64_t value) {
  return [=](GgufSample& sample) {
    const std::uint64_t at = sample.dimension_at(name, i);
    sample.put(at, value);
    return at;
  };
}

constexpr std::uint64_t kHuge = 1ULL << 63U;
using S = GgufSample;

const Broken kStart[] = {
    {"Magic", set(0, 'X'), "a GGUF file must begin with the bytes \"GGUF\"", "XGUF"},
    {"BigEndianMagic",
     [](S& s) {
       s.put_text(0, "FUGG");
       return std::uint64_t{0};
     },
     "a GGUF file must be little-endian", "FUGG"},
    {"BigEndianVersion", set(4, std::uint32_t{0x03000000}), "a GGUF file must be little-endian", "version 3"},
    {"Version0", set(4, std::uint32_t{0}), "the GGUF version must be 2 or 3", "0"},
    {"Version1", set(4, std::uint32_t{1}), "the GGUF version must be 2 or 3", "1"},
    {"Version4", set(4, std::uint32_t{4}), "the GGUF version must be 2 or 3", "4"},
    {"TensorCount2To63", set(8, kHuge), "the tensor count must fit in the bytes left", "9223372036854775808"},
    {"TensorCountBeyondFile", set(8, std::uint64_t{1000}), "the tensor count must fit in the bytes left",
     "1000"},
    {"MetadataCount2To63", set(16, kHuge), "the metadata count must fit in the bytes left",
     "9223372036854775808"},
    {"MetadataCountBeyondFile", set(16, std::uint64_t{1000}), "the metadata count must fit in the bytes left",
     "1000"},
};
INSTANTIATE_TEST_SUITE_P(Start, GgufBroken, ::testing::ValuesIn(kStart),
                         [](const auto& param) { return std::string(param.param.name); });

const Broken kMetadata[] = {
    {"KeyLongerThanFile", set(&S::key_at, "test.count", std::uint64_t{100'000}),
     "a metadata key must end inside the file", "bytes left"},
    {"KeyLength2To64Less1", set(&S::key_at, "test.count", ~std::uint64_t{0}),
     "a metadata key must end inside the file", "bytes left"},
    {"KeyTooLong", set(&S::key_at, "test.count", std::uint64_t{257}),
     "a metadata key must not exceed 256 bytes", "257 bytes"},
    {"KeyEmpty", set(&S::key_at, "test.count", std::uint64_t{0}),
     "a metadata key must be UTF-8 text without control characters", "\"\""},
    {"KeyNotUtf8",
     [](S& s) {
       s.put(s.key_at("test.count") + 8, '\xff');
       return s.find("est.count") - 9;
     },
     "a metadata key must be UTF-8 text without control characters", "\\xffest.count"},
    {"KeyTwice",
     [](S& s) {
       const std::uint64_t at = s.key_at("test.scale");
       s.put_text(at + 8, "test.count");
       return at;
     },
     "a metadata key must not repeat", "test.count"},
    {"ValueType13", set(&S::type_at, "test.count", std::uint32_t{13}),
     "a metadata value type must be one that GGUF defines", "13"},
    {"ValueTypeHuge", set(&S::type_at, "test.count", ~std::uint32_t{0}),
     "a metadata value type must be one that GGUF defines", "4294967295"},
    {"StringLongerThanFile", set(&S::value_at, "general.architecture", std::uint64_t{100'000}),
     "a metadata value must end inside the file", "bytes left"},
    {"StringLength2To63", set(&S::value_at, "general.architecture", kHuge),
     "a metadata value must end inside the file", "bytes left"},
    {"BoolOf2", set(&S::value_at, "test.flag", std::uint8_t{2}), "a bool must be 0 or 1", "2"},
    {"ArrayOfArrays", set(&S::element_type_at, "test.words", std::uint32_t{9}),
     "an array must not hold arrays", "array"},
    {"ArrayElementType", set(&S::element_type_at, "test.words", std::uint32_t{77}),
     "an array's element type must be one that GGUF defines", "77"},
    {"ArrayCount2To63", set(&S::array_count_at, "test.scores", kHuge),
     "the array count must fit in the bytes left", "9223372036854775808"},
    {"ArrayCountTimesFourWraps", set(&S::array_count_at, "test.scores", (1ULL << 62U) + 1),
     "the array count must fit in the bytes left", "4611686018427387905"},
    {"StringArrayCount", set(&S::array_count_at, "test.words", std::uint64_t{1} << 40U),
     "the array count must fit in the bytes left", "1099511627776"},
    {"StringOfArrayLongerThanFile", set(&S::elements_at, "test.words", std::uint64_t{1} << 40U),
     "a string of an array must end inside the file", "bytes left"},
    {"BoolOfArray",
     [](S& s) {
       const std::uint64_t at = s.elements_at("test.flags") + 2;
       s.put(at, std::uint8_t{255});
       return at;
     },
     "a bool must be 0 or 1", "255"},
    {"Alignment0", set(&S::value_at, "general.alignment", std::uint32_t{0}),
     "general.alignment must be a u32 power of two of at least 8", "0"},
    {"Alignment3", set(&S::value_at, "general.alignment", std::uint32_t{3}),
     "general.alignment must be a u32 power of two of at least 8", "3"},
    {"Alignment4", set(&S::value_at, "general.alignment", std::uint32_t{4}),
     "general.alignment must be a u32 power of two of at least 8", "4"},
    {"Alignment96", set(&S::value_at, "general.alignment", std::uint32_t{96}),
     "general.alignment must be a u32 power of two of at least 8", "96"},
    {"AlignmentOfAnotherType",
     [](S& s) {
       s.put(s.type_at("general.alignment"), std::uint32_t{6});
       return s.value_at("general.alignment");
     },
     "general.alignment must be a u32 power of two of at least 8", "f32"},
};
INSTANTIATE_TEST_SUITE_P(Metadata, GgufBroken, ::testing::ValuesIn(kMetadata),
                         [](const auto& param) { return std::string(param.param.name); });

const Broken kTensors[] = {
    {"NameLongerThanFile", set(&S::name_at, "tensor.b", std::uint64_t{100'000}),
     "a tensor name must end inside the file", "bytes left"},
    {"NameEmpty", set(&S::name_at, "tensor.b", std::uint64_t{0}),
     "a tensor name must be UTF-8 text without control characters", "\"\""},
    {"NameTwice",
     [](S& s) {
       const std::uint64_t at = s.name_at("tensor.b");
       s.put_text(at + 8, "tensor.a");
       return at;
     },
     "a tensor name must not repeat", "tensor.a"},
    {"NineDimensions", set(&S::dimensions_at, "tensor.b", std::uint32_t{9}),
     "a tensor must have at most 4 dimensions", "9"},
    {"FiveDimensions", set(&S::dimensions_at, "tensor.b", std::uint32_t{5}),
     "a tensor must have at most 4 dimensions", "5"},
    {"Dimension0", set_dimension("tensor.b", 1, 0), "a tensor's dimension must be at least 1",
     "0 in \"tensor.b\""},
    {"Dimension2To63", set_dimension("tensor.b", 0, kHuge),
     "the product of a tensor's dimensions must be below 2^63", "9223372036854775808"},
    {"ProductOverflows", set_dimension("tensor.c", 1, 1ULL << 61U),
     "the product of a tensor's dimensions must be below 2^63", "2305843009213693952"},
    {"RowNotWholeBlocks", set_dimension("tensor.b", 0, 33), "a tensor's row must be a whole number of blocks",
     "33 in \"tensor.b\""},
    {"BytesOverflow",
     [](S& s) {
       const std::uint64_t at = s.dimension_at("tensor.a", 0);
       s.put(at, std::uint64_t{1} << 61U);
       s.put(at + 8, std::uint64_t{2});
       return at;
     },
     "a tensor's size in bytes must be below 2^64", "f32"},
    {"Type4WasWithdrawn", set(&S::tensor_type_at, "tensor.b", std::uint32_t{4}),
     "a tensor's type must be one that ggml defines", "4 in \"tensor.b\""},
    {"Type1000", set(&S::tensor_type_at, "tensor.b", std::uint32_t{1000}),
     "a tensor's type must be one that ggml defines", "1000"},
    {"OffsetNotAligned", set(&S::offset_at, "tensor.b", std::uint64_t{65}),
     "a tensor's offset must be a multiple of the alignment", "65 in \"tensor.b\""},
    {"OffsetBehindTheEnd", set(&S::offset_at, "tensor.c", std::uint64_t{6400}),
     "tensor data must end inside the file", "6400"},
    {"OffsetWraps", set(&S::offset_at, "tensor.c", ~std::uint64_t{63}),
     "tensor data must end inside the file", "18446744073709551552"},
    {"DataOverlaps", set(&S::offset_at, "tensor.c", std::uint64_t{128}),
     "the data of two tensors must not overlap", "inside \"tensor.b\""},
    {"DataTwice", set(&S::offset_at, "tensor.b", std::uint64_t{0}),
     "the data of two tensors must not overlap", "inside \"tensor.a\""},
    {"DataCut",
     [](S& s) {
       s.bytes.pop_back();
       return s.offset_at("tensor.c");
     },
     "tensor data must end inside the file", "60 bytes"},
};
INSTANTIATE_TEST_SUITE_P(Tensors, GgufBroken, ::testing::ValuesIn(kTensors),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(GgufHostile, CutAtEveryByteIsAnError) {
  const GgufSample sample;
  for (std::size_t length = 0; length < sample.bytes.size(); ++length) {
    // A copy of exactly that length: a read past it is seen by AddressSanitizer.
    const std::vector<std::byte> cut(sample.bytes.begin(),
                                     sample.bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<Checkpoint> result = parse_gguf(cut, "cut.gguf");
    ASSERT_FALSE(result.ok()) << length;
    EXPECT_EQ(result.error().code, ErrorCode::BadFile) << length;
    EXPECT_NE(result.error().message.find("must"), std::string::npos) << result.error().message;
  }
}

TEST(GgufHostile, ChangedHeaderBytesNeverBreakAPromise) {
  const GgufSample sample;
  std::uint64_t sum = 0;
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < sample.header_bytes; ++at) {
    for (const unsigned change : {0x01U, 0x02U, 0x04U, 0x08U, 0x10U, 0x20U, 0x40U, 0x80U, 0xffU}) {
      std::vector<std::byte> bytes = sample.bytes;
      bytes[at] ^= static_cast<std::byte>(change);
      const Result<Checkpoint> result = parse_gguf(bytes, "flip.gguf");
      if (!result.ok()) {
        EXPECT_EQ(result.error().code, ErrorCode::BadFile);
        continue;
      }
      ++accepted;
      EXPECT_TRUE(walk(*result, bytes.size(), sum)) << "byte " << at << " ^ " << change;
    }
  }
  // A change of a letter in a text or of padding is no fault that a reader could see.
  EXPECT_GT(accepted, 100U);
}

}  // namespace
}  // namespace hone::testing
