#include "tokens/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "tokens/utf8.h"
#include "vocab.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;

// One token per byte.
Ids byte_ids(std::string_view text) {
  Ids out;
  for (const char c : text) {
    const auto ids = vocab_tokenizer("llama-256").encode(std::string(1, c));
    out.insert(out.end(), ids->begin(), ids->end());
  }
  return out;
}

struct Streamed {
  std::string text;
  bool stopped = false;
  std::vector<std::string> pieces;
};

Streamed run(const Ids& ids, std::vector<std::string> stops) {
  StreamDecoder decoder(vocab_tokenizer("llama-256"), std::move(stops));
  Streamed out;
  const auto take = [&](const StreamPiece& piece) {
    out.text += piece.text;
    out.stopped = piece.stopped;
    out.pieces.push_back(piece.text);
    EXPECT_EQ(utf8_valid_prefix(piece.text), piece.text.size());
  };
  for (const std::int32_t id : ids) take(decoder.push(id));
  take(decoder.finish());
  return out;
}

TEST(StreamDecoder, OnlyWholeCharactersLeave) {
  const Streamed result = run(byte_ids("a\xE2\x82\xAC"
                                       "b"),
                              {});
  EXPECT_EQ(result.pieces, (std::vector<std::string>{"a", "", "", "\xE2\x82\xAC", "b", ""}));
}

TEST(StreamDecoder, InvalidAndUnfinishedBytesBecomeReplacements) {
  EXPECT_EQ(run(byte_ids("a\xFF"
                         "b\xE2\x82"),
                {})
                .text,
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(run(byte_ids("\xE2\x82"
                         "b"),
                {})
                .text,
            "\xEF\xBF\xBD"
            "b");
}

TEST(StreamDecoder, HoldsBackATruePrefixOnly) {
  const Streamed result = run(byte_ids("xSTOyST"), {"STOP"});
  EXPECT_EQ(result.pieces, (std::vector<std::string>{"x", "", "", "", "STOy", "", "", "ST"}));
  EXPECT_FALSE(result.stopped);
}

TEST(StreamDecoder, NothingLeavesPastAStopString) {
  const Streamed result = run(byte_ids("abSTOPcdSTOP"), {"STOP"});
  EXPECT_EQ(result.text, "ab");
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(run(byte_ids("SSTOP"), {"STOP"}).text, "S");
  EXPECT_EQ(run(byte_ids("xabcd"), {"bc", "abcd"}).text, "xa");  // the first to be complete
  EXPECT_EQ(run(byte_ids("xabc"), {"bc", "abc"}).text, "x");     // both at once: the one that starts first
  EXPECT_EQ(run(byte_ids("x\xC3\xA9y"), {"\xC3\xA9"}).text, "x");
  EXPECT_EQ(run(byte_ids("abc"), {""}).text, "abc");
}

// Against the definition, on random texts over a small alphabet.
TEST(StreamDecoder, AgreesWithSearchingTheWholeText) {
  for (std::uint64_t round = 0; round < 500; ++round) {
    std::uint64_t position = 0;
    const auto draw = [&](int n) { return static_cast<int>(philox_uniform(round, position++) * n); };
    const auto word = [&](int length) {
      std::string out;
      for (int i = 0; i < length; ++i) out += "ab\xC3\xA9"[draw(4)];
      return out;
    };
    const std::string text = word(24);
    const std::vector<std::string> stops{to_valid_utf8(word(1 + draw(4))), to_valid_utf8(word(2 + draw(3)))};
    const std::string whole = to_valid_utf8(text);
    std::string expected = whole;
    for (std::size_t end = 1; end <= whole.size(); ++end) {
      std::size_t longest = 0;
      for (const auto& stop : stops) {
        if (std::string_view(whole).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      }
      if (longest > 0) {
        expected = whole.substr(0, end - longest);
        break;
      }
    }
    EXPECT_EQ(run(byte_ids(text), stops).text, expected) << round;
  }
}

TEST(StreamDecoder, ControlTokensGiveNoTextUnlessAsked) {
  const Tokenizer& tokenizer = vocab_tokenizer("llama-256");
  const std::int32_t end = *tokenizer.special_token_id("<|im_end|>");
  StreamDecoder hides(tokenizer, {});
  EXPECT_EQ(hides.push(end).text, "");
  StreamDecoder shows(tokenizer, {}, false);
  EXPECT_EQ(shows.push(end).text, "<|im_end|>");
}

}  // namespace
}  // namespace hone
