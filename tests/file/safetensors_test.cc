#include "file/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "walk.h"

namespace hone::testing {
namespace {

// Header length, header, data of zeros.
std::vector<std::byte> file_of(std::string_view header, std::size_t data) {
  std::vector<std::byte> out(8 + header.size() + data);
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}

Result<Checkpoint> parse(std::string_view header, std::size_t data) {
  return parse_safetensors(file_of(header, data), "x.safetensors");
}

constexpr std::string_view kValid =
    R"({"__metadata__":{"format":"pt","a\"b":"ü"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"data_offsets":[24,28],"shape":[2],"dtype":"BF16"},"e":{"dtype":"I64","shape":[0,5],"data_offsets":[28,28]}})"
    "  ";

TEST(Safetensors, ReadsAValidFile) {
  const Result<Checkpoint> result = parse(kValid, 28);
  ASSERT_TRUE(result.ok()) << result.error().message << result.error().actual;
  EXPECT_EQ(result->format, "safetensors");
  EXPECT_EQ(result->header_bytes, 8 + kValid.size());
  EXPECT_EQ(*result->metadata.required_string("format"), "pt");
  EXPECT_EQ(*result->metadata.required_string("a\"b"), "ü");
  ASSERT_EQ(result->tensors.size(), 3U);
  const TensorEntry* b = result->find_tensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, DType::BF16);
  EXPECT_EQ(b->shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(b->offset, result->header_bytes + 24);
  EXPECT_EQ(b->bytes, 4U);
  EXPECT_EQ(result->find_tensor("e")->bytes, 0U);
  std::uint64_t sum = 0;
  EXPECT_TRUE(walk(*result, result->header_bytes + 28, sum));
}

TEST(Safetensors, AnEmptyFileOfTensorsIsValid) {
  EXPECT_TRUE(parse("{}", 0).ok());
}

TEST(Safetensors, KeepsTypesItCannotDecode) {
  const auto result = parse(R"({"s":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})", 3);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tensors[0].dtype, std::nullopt);
  EXPECT_EQ(result->tensors[0].type_name, "f4");
  EXPECT_EQ(result->tensors[0].bytes, 3U);
}

struct BrokenFile {
  const char* name;
  std::string header;
  std::size_t data;
  const char* rule;
  // The byte of the error: behind this text of the header; empty: 0.
  const char* behind;
};

void PrintTo(const BrokenFile& broken, std::ostream* out) {
  *out << broken.name;
}

class SafetensorsBroken : public ::testing::TestWithParam<BrokenFile> {};

TEST_P(SafetensorsBroken, NamesRuleAndByte) {
  const BrokenFile& broken = GetParam();
  const Result<Checkpoint> result = parse(broken.header, broken.data);
  ASSERT_FALSE(result.ok());
  const Error& error = result.error();
  EXPECT_EQ(error.code, ErrorCode::BadFile);
  EXPECT_EQ(error.fault, Fault::File);
  EXPECT_EQ(error.message, broken.rule);
  const std::string_view behind = broken.behind;
  const std::size_t at = 8 + broken.header.find(behind) + behind.size();
  EXPECT_EQ(error.where, fmt::format("x.safetensors, byte {}", at));
  EXPECT_FALSE(error.expected.empty());
  EXPECT_FALSE(error.actual.empty());
}

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

constexpr const char* kFields = "a tensor must have the fields dtype, shape and data_offsets and no others";
constexpr const char* kKinds = "a tensor's fields must be a string dtype, and arrays shape and data_offsets";
constexpr const char* kNumbers = "shape and data_offsets must hold unsigned integers below 2^63";
constexpr const char* kHeaderRules = "the header must be valid JSON";
constexpr const char* kSpan = "data_offsets must span exactly the bytes of dtype and shape";
constexpr const char* kHoles = "the tensors must cover the data without holes";

const BrokenFile kBrokenFiles[] = {
    {"NotAnObject", "[]", 0, "the header must begin with {", ""},
    {"LeadingSpace", " {}", 0, "the header must begin with {", ""},
    {"CutJson", R"({"w":)", 0, kHeaderRules, R"({"w":)"},
    {"TrailingText", "{} x", 0, kHeaderRules, "{} x"},
    {"ZeroByteBehind", std::string("{}\0}}", 5), 0, kHeaderRules, "{}"},
    {"ZeroByteLast", std::string("{}\0", 3), 0, kHeaderRules, "{}"},
    {"InvalidUtf8", "{\"w\xff\":1}", 0, kHeaderRules, "{\"w\xff"},
    {"TensorIsNumber", R"({"w":12})", 0, "a tensor must be described by an object", R"({"w":12})"},
    {"TensorIsArray", R"({"w":[]})", 0, "a tensor must be described by an object", R"({"w":[)"},
    {"TensorIsNull", R"({"w":null})", 0, "a tensor must be described by an object", R"({"w":null)"},
    {"MetadataIsString", R"({"__metadata__":"x"})", 0, "__metadata__ must be an object of strings",
     R"(:"x")"},
    {"MetadataOfNumber", R"({"__metadata__":{"a":true}})", 0, "the values of __metadata__ must be strings",
     "true"},
    {"MetadataNested", R"({"__metadata__":{"a":{}}})", 0, "the values of __metadata__ must be strings",
     R"("a":{)"},
    {"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ must not repeat",
     R"({},"__metadata__")"},
    {"MetadataKeyTwice", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "a metadata key must not repeat", ""},
    {"EmptyName", R"({"":{}})", 0, "a tensor name must be text without control characters", R"({"")"},
    {"ControlName", R"({"a\u0001":{}})", 0, "a tensor name must be text without control characters",
     R"({"a\u0001")"},
    {"LongName", "{\"" + std::string(257, 'n') + "\":{}}", 0, "a tensor name must not exceed 256 bytes",
     "n\""},
    {"NameTwice",
     R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2, "a tensor name must not repeat", R"(},"w")"},
    {"UnknownField", R"({"w":{"dtype":"U8","strides":[1]}})", 0, kFields, R"("strides")"},
    {"MissingDtype", R"({"w":{"shape":[],"data_offsets":[0,1]}})", 1, kFields, R"([0,1]})"},
    {"MissingShape", R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1, kFields, R"([0,1]})"},
    {"MissingOffsets", R"({"w":{"dtype":"U8","shape":[]}})", 1, kFields, R"([]})"},
    {"FieldTwice", R"({"w":{"dtype":"U8","dtype":"U8"}})", 1, "a tensor's field must not repeat",
     R"("U8","dtype")"},
    {"ShapeTwice", R"({"w":{"shape":[],"shape":[]}})", 1, "a tensor's field must not repeat",
     R"([],"shape")"},
    {"OffsetsTwice", R"({"w":{"data_offsets":[0,1],"data_offsets":[0,1]}})", 1,
     "a tensor's field must not repeat", R"(,"data_offsets")"},
    {"UnknownDtype", one("F31", "[1]", "[0,4]"), 4, "a tensor's dtype must be one that safetensors defines",
     R"("F31")"},
    {"DtypeIsArray", R"({"w":{"dtype":[]}})", 0, kKinds, R"("dtype":[)"},
    {"ShapeIsObject", one("F32", "{}", "[0,4]"), 4, kKinds, R"("shape":{)"},
    {"OffsetsAreString", one("F32", "[1]", "\"x\""), 4, kKinds, R"("x")"},
    {"NegativeDimension", one("F32", "[-1 ]", "[0,4]"), 4, kNumbers, "[-1 "},
    {"FractionalDimension", one("F32", "[1.5 ]", "[0,4]"), 4, kNumbers, "[1.5 "},
    {"Dimension2To63", one("F32", "[9223372036854775808 ]", "[0,4]"), 4, kNumbers, "[9223372036854775808 "},
    {"NestedShape", one("F32", "[[1]]", "[0,4]"), 4, kNumbers, "[["},
    {"NineDimensions", one("F32", "[1,1,1,1,1,1,1,1,1 ]", "[0,4]"), 4,
     "a tensor must have at most 8 dimensions", "1,1 "},
    {"ProductOverflows", one("U8", "[4294967296,4294967296]", "[0,4]"), 4,
     "the size of a tensor in bits must be below 2^64", "[0,4]}"},
    {"ZeroDoesNotExcuseOverflow", one("U8", "[0,4294967296,4294967296]", "[0,0]"), 0,
     "the size of a tensor in bits must be below 2^64", "[0,0]}"},
    {"HalfAByte", one("F4", "[3]", "[0,2]"), 2, "a tensor must fill whole bytes", "[0,2]}"},
    {"OneOffset", one("F32", "[1]", "[0]"), 4, "data_offsets must hold two numbers, begin and end", "[0]"},
    {"ThreeOffsets", one("F32", "[1]", "[0,4,8 ]"), 4, "data_offsets must hold two numbers, begin and end",
     "4,8 "},
    {"OffsetsBackwards", one("F32", "[1]", "[4,0]"), 4, kSpan, "[4,0]}"},
    {"SpanNotTheShape", one("F32", "[2]", "[0,4]"), 4, kSpan, "[0,4]}"},
    {"DataBehindTheEnd", one("F32", "[1]", "[0,4]"), 3, "tensor data must end inside the file", R"({"w")"},
    {"Overlap",
     R"({"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
     3, "the data of two tensors must not overlap", R"(},"w")"},
    {"HoleAtTheStart", one("U8", "[1]", "[1,2]"), 2, kHoles, R"({"w")"},
};
INSTANTIATE_TEST_SUITE_P(Header, SafetensorsBroken, ::testing::ValuesIn(kBrokenFiles),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(SafetensorsHostile, HeaderLengthLies) {
  std::vector<std::byte> bytes = file_of("{}", 0);
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
    std::memcpy(bytes.data(), &length, sizeof length);
    const auto result = parse_safetensors(bytes, "x");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "the header must end inside the file");
    EXPECT_EQ(result.error().where, "x, byte 0");
  }
}

TEST(SafetensorsHostile, DataBehindTheLastTensorIsNamed) {
  const std::string header = one("U8", "[1]", "[0,1]");
  const auto result = parse(header, 2);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, kHoles);
  EXPECT_EQ(result.error().where, fmt::format("x.safetensors, byte {}", 8 + header.size() + 1));
}

TEST(SafetensorsHostile, LongHeadersAndStringsAreRefused) {
  const auto header = parse("{" + std::string(16U << 20U, ' ') + "}", 0);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().message, "the header must fit in 16 MiB");
  const auto text = parse(R"({"__metadata__":{"a":")" + std::string(5U << 20U, 'x') + "\"}}", 0);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, "a string of the header must fit in 4 MiB");
  EXPECT_EQ(text.error().where, "x.safetensors, byte 29");
}

TEST(SafetensorsHostile, CutAtEveryByteIsAnError) {
  const std::vector<std::byte> whole = file_of(kValid, 28);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<Checkpoint> result = parse_safetensors(cut, "cut");
    ASSERT_FALSE(result.ok()) << length;
    EXPECT_EQ(result.error().code, ErrorCode::BadFile) << length;
  }
}

TEST(SafetensorsHostile, ChangedBytesNeverBreakAPromise) {
  const std::vector<std::byte> whole = file_of(kValid, 28);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < 8 + kValid.size(); ++at) {
    for (unsigned change = 1; change < 256; change += change < 8 ? 1 : 9) {
      std::vector<std::byte> bytes = whole;
      bytes[at] ^= static_cast<std::byte>(change);
      const Result<Checkpoint> result = parse_safetensors(bytes, "flip");
      if (result.ok()) {
        EXPECT_TRUE(walk(*result, bytes.size(), sum)) << at;
      } else {
        EXPECT_EQ(result.error().code, ErrorCode::BadFile);
      }
    }
  }
}

TEST(SafetensorsWriter, RoundTrip) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<float> floats{1.5F, -2.0F, 0.0F, 4.0F};
  const std::vector<std::int64_t> integers{-7};
  const std::vector<SafetensorsTensor> tensors{
      {"bytes", DType::U8, {3}, std::as_bytes(std::span(bytes))},
      {"floats", DType::F32, {2, 2}, std::as_bytes(std::span(floats))},
      {"scalar", DType::I64, {}, std::as_bytes(std::span(integers))},
      {"empty", DType::F16, {4, 0}, {}},
  };
  const std::vector<std::pair<std::string, std::string>> metadata{{"format", "pt"}, {"q\"", "line\nbreak"}};
  const std::string path = folder.path("out.safetensors");
  ASSERT_TRUE(write_safetensors(path, tensors, metadata).ok());
  const Result<Checkpoint> result = read_safetensors(path);
  ASSERT_TRUE(result.ok()) << result.error().message << result.error().actual;
  EXPECT_EQ(result->header_bytes % 8, 0U);
  EXPECT_EQ(*result->metadata.required_string("q\""), "line\nbreak");
  ASSERT_EQ(result->tensors.size(), 4U);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& entry = result->tensors[i];
    EXPECT_EQ(entry.name, tensors[i].name);
    EXPECT_EQ(entry.dtype, tensors[i].dtype);
    EXPECT_EQ(entry.shape, tensors[i].shape);
    EXPECT_EQ(entry.offset % static_cast<std::uint64_t>(dtype_row(tensors[i].dtype).block_bytes), 0U)
        << "aligned";
    std::vector<std::byte> data(entry.bytes);
    ASSERT_TRUE(result->read_tensor(entry, 0, data).ok());
    EXPECT_TRUE(std::ranges::equal(data, tensors[i].data)) << entry.name;
  }
}

TEST(SafetensorsWriter, RefusesWhatDoesNotFitTogether) {
  const TemporaryFolder folder;
  const std::vector<std::byte> data(16);
  const auto error_of = [&](std::vector<SafetensorsTensor> tensors) {
    const Status status = write_safetensors(folder.path("out"), tensors);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(status.ok() || status.error().code == ErrorCode::Usage);
    return status.ok() ? std::string() : status.error().message;
  };
  const std::string size_rule = "the data must have the size of the shape";
  EXPECT_EQ(error_of({{"a", DType::F32, {5}, data}}), size_rule);
  EXPECT_EQ(error_of({{"a", DType::F32, {3}, data}}), size_rule);
  EXPECT_EQ(error_of({{"a", DType::F32, {-4}, data}}), size_rule);
  EXPECT_EQ(error_of({{"a", DType::F32, {0}, data}}), size_rule);
  EXPECT_EQ(error_of({{"a", DType::U8, {17}, data}}), size_rule);
  EXPECT_EQ(error_of({{"a", DType::F32, {1LL << 62, 16}, data}}), size_rule);
  EXPECT_EQ(error_of({{"a", DType::Q8_0, {1}, data}}), "the type must be one that safetensors has");
  EXPECT_EQ(error_of({{"__metadata__", DType::F32, {4}, data}}),
            "a tensor name must be one that readers accept");
  EXPECT_EQ(error_of({{"a", DType::F32, {4}, data}, {"a", DType::F32, {4}, data}}),
            "a tensor name must not repeat");
  EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
}

}  // namespace
}  // namespace hone::testing
