// The reader of SentencePiece models and its character map, on sound and on broken bytes.
#include "tokens/sentencepiece_model.h"

#include <gtest/gtest.h>
#include <limits>

#include "sentencepiece_sample.h"
#include "tokens/charsmap.h"
#include "tokens/spm_normaliser.h"

namespace hone {
namespace {

using namespace testing;

Result<SentencePieceModel> parse(std::string_view bytes) {
  return parse_sentencepiece_model(std::as_bytes(std::span(bytes)), "m");
}

const std::string kUnknown = piece("<unk>", 0, 2);

TEST(SentencePieceModel, FieldsAreRead) {
  const std::string bytes = kUnknown + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("a", -1.5F) +
                            piece("<x>", 0, 4) + piece("old", -3, 5) +
                            bytes_field(2, number_field(3, 2) + number_field(24, 1) + bytes_field(44, "?")) +
                            normalizer("map", false, false) + number_field(99, 7);
  const auto model = parse(bytes);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->kind, SentencePieceModel::Kind::Bpe);
  ASSERT_EQ(model->pieces.size(), 6U);
  EXPECT_EQ(model->pieces[3].text, "a");
  EXPECT_EQ(model->pieces[3].score, -1.5F);
  EXPECT_EQ(model->pieces[4].type, TokenType::UserDefined);
  EXPECT_EQ(model->pieces[5].type, TokenType::Unused);
  EXPECT_EQ(model->unknown, 0);
  EXPECT_EQ(model->bos, 1);
  EXPECT_EQ(model->eos, 2);
  EXPECT_FALSE(model->padding.has_value());
  EXPECT_EQ(model->unknown_surface, "?");
  EXPECT_TRUE(model->treat_whitespace_as_suffix);
  EXPECT_FALSE(model->normalizer.add_dummy_prefix);
  EXPECT_FALSE(model->normalizer.remove_extra_whitespaces);
  EXPECT_TRUE(model->normalizer.escape_whitespaces);
  EXPECT_EQ(model->normalizer.charsmap, "map");
}

TEST(SentencePieceModel, DefaultsAreThoseOfTheProto) {
  const auto model = parse(kUnknown);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->kind, SentencePieceModel::Kind::Unigram);
  EXPECT_TRUE(model->normalizer.add_dummy_prefix);
  EXPECT_TRUE(model->normalizer.remove_extra_whitespaces);
  EXPECT_FALSE(model->byte_fallback);
}

// "byte 7: message"
std::string fault_of(std::string_view bytes) {
  const auto model = parse(bytes);
  if (model.ok()) return "ok";
  EXPECT_EQ(model.error().code, ErrorCode::BadFile);
  EXPECT_EQ(model.error().fault, Fault::File);
  EXPECT_TRUE(model.error().where.starts_with("m, byte ")) << model.error().where;
  return model.error().where.substr(3) + ": " + model.error().message;
}

TEST(SentencePieceModel, BrokenRulesAreNamedWithTheirByte) {
  const std::size_t first = kUnknown.size();
  const auto at = [](std::size_t byte, const char* message) {
    return "byte " + std::to_string(byte) + ": " + message;
  };
  EXPECT_EQ(fault_of(""), at(0, "a SentencePiece model has pieces"));
  EXPECT_EQ(fault_of(kUnknown + piece("a", 0) + piece("a", 0)),
            at(first + piece("a", 0).size() + 4, "each piece stands once in a vocabulary"));
  EXPECT_EQ(fault_of(kUnknown + piece("a", std::numeric_limits<float>::quiet_NaN())),
            at(first + 5, "the score of a piece is a finite number"));
  EXPECT_EQ(fault_of(kUnknown + piece("a", std::numeric_limits<float>::infinity())),
            at(first + 5, "the score of a piece is a finite number"));
  EXPECT_EQ(fault_of(kUnknown + piece("a", 0, 7)),
            at(first + 10, "the type of a piece is a number from 1 to 6"));
  EXPECT_EQ(fault_of(kUnknown + piece("", 0)), at(first, "a piece has from 1 to 4096 bytes"));
  EXPECT_EQ(fault_of(kUnknown + piece(std::string(4097, 'a'), 0)),
            at(first, "a piece has from 1 to 4096 bytes"));
  EXPECT_EQ(fault_of(piece("a", 0)), at(0, "one piece stands for the unknown"));
  EXPECT_EQ(fault_of(kUnknown + piece("<u>", 0, 2)), at(first + 4, "one piece stands for the unknown"));
  EXPECT_EQ(fault_of(kUnknown + piece("<0x00>", 0, 6)), at(first + 4, "byte pieces go with byte_fallback"));
  EXPECT_EQ(fault_of(kUnknown + trainer(2, true)),
            at(0, "byte_fallback needs a piece for each of the 256 bytes"));
  EXPECT_EQ(fault_of(kUnknown + piece("<0x0g>", 0, 6) + trainer(2, true)),
            at(first + 4, "a byte piece is written <0x00> to <0xFF>"));
  EXPECT_EQ(fault_of(kUnknown + trainer(5)),
            at(first + 2, "the model type is 1 (unigram), 2 (bpe), 3 (word) or 4 (char)"));
  EXPECT_EQ(fault_of(kUnknown + byte_pieces() + trainer(2, true)), "ok");
  // A text may be reserved and a piece.
  EXPECT_EQ(fault_of(kUnknown + piece("a", 0) + piece("a", 0, 3)), "ok");
}

TEST(SentencePieceModel, BrokenWireFormatIsNamedWithItsByte) {
  EXPECT_EQ(fault_of("\x0A"), "byte 1: a varint must end inside its message");
  EXPECT_EQ(fault_of("\x0A\x7F"
                     "ab"),
            "byte 0: a field must end inside its message");
  // A length of 2^63, and a varint of more than 64 bits.
  EXPECT_EQ(fault_of("\x0A" + varint(std::uint64_t{1} << 63) + "x"),
            "byte 0: a field must end inside its message");
  EXPECT_EQ(fault_of("\x08" + std::string(9, '\xFF') + "\x02"), "byte 1: a varint has at most 64 bits");
  EXPECT_EQ(fault_of("\x08" + std::string(20, '\xFF')), "byte 1: a varint has at most 64 bits");
  EXPECT_EQ(fault_of(std::string(1, '\0')), "byte 0: a field has a number from 1 to 2^29 - 1");
  EXPECT_EQ(fault_of("\x0B"), "byte 0: the wire type of a field is 0, 1, 2 or 5");
  EXPECT_EQ(fault_of("\x19"
                     "1234567"),
            "byte 0: a field must end inside its message");
  EXPECT_EQ(fault_of("\x1D"
                     "123"),
            "byte 0: a field must end inside its message");
  EXPECT_EQ(fault_of(number_field(1, 5)), "byte 0: field 1 has the wire type that its message declares");
  EXPECT_EQ(
      fault_of(kUnknown + number_field(2, 5)),
      "byte " + std::to_string(kUnknown.size()) + ": field 2 has the wire type that its message declares");
  // Inside of a piece: the field of the text ends past the piece.
  EXPECT_EQ(fault_of(bytes_field(1,
                                 "\x0A\x09"
                                 "abc")),
            "byte 2: a field must end inside its message");
}

// Cut anywhere, it is an error or a shorter model, never a read past the end (asan).
TEST(SentencePieceModel, EveryCutIsAnswered) {
  const std::string bytes = kUnknown + byte_pieces() + piece("ab", -1) + trainer(2, true) + normalizer("x");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto model = parse(cut);
    EXPECT_TRUE(model.ok() || !model.error().where.empty());
  }
}

TEST(Charsmap, LongestRuleWins) {
  const auto map = Charsmap::parse(two_rules_map(), "map");
  ASSERT_TRUE(map.ok()) << map.error().message << map.error().where;
  EXPECT_EQ(map->longest("ac")->length, 1U);
  EXPECT_EQ(map->longest("ac")->replacement, "xy");
  EXPECT_EQ(map->longest("abc")->length, 2U);
  EXPECT_EQ(map->longest("abc")->replacement, "z");
  EXPECT_EQ(map->shortest("abc")->replacement, "xy");
  EXPECT_FALSE(map->longest("b").has_value());
  EXPECT_FALSE(map->longest("").has_value());
}

std::string map_fault(const std::string& bytes) {
  const auto map = Charsmap::parse(bytes, "map");
  if (map.ok()) return "ok";
  EXPECT_EQ(map.error().code, ErrorCode::BadModel);
  return map.error().where + ": " + map.error().message;
}

TEST(Charsmap, BrokenTriesAreNamedWithTheirUnit) {
  constexpr std::string_view kTexts("xy\0z\0", 5);
  const std::string kSizes = "map: a character map is the size of its trie, the trie and the replacements";
  EXPECT_EQ(map_fault("abc"), kSizes);
  EXPECT_EQ(map_fault(two_rules_map().substr(0, 4 + 4096)), kSizes);  // no replacements
  std::string odd = two_rules_map();
  odd[0] = 4;
  EXPECT_EQ(map_fault(odd), kSizes);

  TrieSample trie = two_rules();
  trie.lead(512 ^ 'b', 256);  // back to the children of the root: a cycle
  trie.units[512 ^ 'b'] &= ~(1U << 8);
  EXPECT_EQ(map_fault(trie.map(kTexts)), "map, unit 353: a trie has no cycle");
  trie = two_rules();
  trie.lead(512 ^ 'b', 4096);
  EXPECT_EQ(map_fault(trie.map(kTexts)), "map, unit 610: a unit leads to a place inside of the trie");
  trie = two_rules();
  trie.leaf(512 ^ 'b', 768, 5);
  EXPECT_EQ(map_fault(trie.map(kTexts)), "map, unit 768: a rule's value is an offset of its replacement");
  EXPECT_EQ(map_fault(two_rules().map("xy\0z")),
            "map, unit 512: a replacement has at most 256 bytes and then a zero byte");
  EXPECT_EQ(map_fault(two_rules().map(std::string(300, 'x') + std::string(1, '\0'))),
            "map, unit 512: a replacement has at most 256 bytes and then a zero byte");
}

TEST(Charsmap, ARuleThatIsTooLongIsAnError) {
  TrieSample trie;
  trie.units.assign(256 * 400, 0x80000000U);
  trie.units[0] = 0;
  trie.lead(0, 256);
  std::size_t at = 0;
  for (std::size_t depth = 1; depth <= 300; ++depth) {
    at = (256 * depth) ^ 'a';
    trie.units[at] = 'a';
    // Offsets of 256 units and more are written in whole blocks.
    const std::size_t offset = at ^ (256 * (depth + 1));
    trie.units[at] |= static_cast<std::uint32_t>(offset << 10);
  }
  EXPECT_NE(map_fault(trie.map("x")).find("a rule replaces at most 256 bytes"), std::string::npos)
      << map_fault(trie.map("x"));
}

std::string normalised(const SpmNormaliserOptions& options, std::string_view text,
                       std::string_view map = {}) {
  StringTable fixed;
  fixed.push_back("<ab>");
  const auto normaliser = SpmNormaliser::build(options, map, std::move(fixed), "map");
  EXPECT_TRUE(normaliser.ok());
  std::string out;
  normaliser->apply(text, out);
  return out;
}

TEST(SpmNormaliser, WhiteSpace) {
  const std::string s(kSpmSpace);
  EXPECT_EQ(normalised({}, "  a  b "), s + "a" + s + "b");
  EXPECT_EQ(normalised({}, ""), "");
  EXPECT_EQ(normalised({}, "   "), "");
  EXPECT_EQ(normalised({true, false, true, false}, " a  b "), s + s + "a" + s + s + "b" + s);
  EXPECT_EQ(normalised({false, false, true, false}, " a"), s + "a");
  EXPECT_EQ(normalised({true, true, true, true}, "a b"), "a" + s + "b" + s);
  EXPECT_EQ(normalised({true, true, false, false}, "a  b"), " a b");
}

TEST(SpmNormaliser, MapAndFixedTexts) {
  const SpmNormaliserOptions plain{false, false, true, false};
  EXPECT_EQ(normalised(plain, "aabc<ab>ab", two_rules_map()), "xyzc<ab>z");
  EXPECT_EQ(normalised(plain, "\xFFz\xE2\x82"), "\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace hone
