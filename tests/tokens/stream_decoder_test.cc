#include "tokens/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "byte_vocabulary.h"
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

// The pieces that tokens of these texts give, the last one by finish.
std::vector<std::string> pieces_of(const std::vector<std::string>& tokens, std::vector<std::string> stops) {
  const Result<Tokenizer> tokenizer = tokenizer_of_texts(tokens);
  EXPECT_TRUE(tokenizer.ok());
  StreamDecoder decoder(*tokenizer, std::move(stops));
  std::vector<std::string> out;
  for (std::int32_t id = 0; id < std::ssize(tokens); ++id) out.push_back(decoder.push(id).text);
  out.push_back(decoder.finish().text);
  return out;
}

using Pieces = std::vector<std::string>;

TEST(StreamDecoder, CharactersAcrossTokensLeaveWithTheirLastByte) {
  EXPECT_EQ(pieces_of({"\xE6\xAD", "\xAA", " ", "\xF0\x9F", "\x98", "\x8A"}, {}),
            (Pieces{"", "\xE6\xAD\xAA", " ", "", "", "\xF0\x9F\x98\x8A", ""}));
}

// The rule for an answer that its budget of tokens cuts inside of a character: the bytes that are there
// become one U+FFFD.
TEST(StreamDecoder, ACharacterThatTheEndCutsIsOneReplacement) {
  EXPECT_EQ(pieces_of({"a", "\xF0\x9F", "\x98"}, {}), (Pieces{"a", "", "", "\xEF\xBF\xBD"}));
  EXPECT_EQ(pieces_of({"a\xE6\xAD"}, {}), (Pieces{"a", "\xEF\xBF\xBD"}));
  // After an unfinished stop text, which leaves first.
  EXPECT_EQ(pieces_of({"ST\xE6\xAD"}, {"STOP"}), (Pieces{"", "ST\xEF\xBF\xBD"}));
}

TEST(StreamDecoder, AStopTextAcrossTokensIsCutExactly) {
  EXPECT_EQ(pieces_of({"alpha ", "be", "ta ga", "mma", " delta"}, {"beta gamma"}),
            (Pieces{"alpha ", "", "", "", "", ""}));
  // It was none after all: what was held leaves as soon as that is certain.
  EXPECT_EQ(pieces_of({"alpha ", "be", "ta ga", "ble", " delta"}, {"beta gamma"}),
            (Pieces{"alpha ", "", "", "beta gable", " delta", ""}));
}

TEST(StreamDecoder, AStopTextMayEndOrBeginInsideOfACharactersTokens) {
  // The second token ends the stop text and begins a character.
  EXPECT_EQ(pieces_of({"x ST", "OP\xE6\xAD", "\xAA"}, {"STOP"}), (Pieces{"x ", "", "", ""}));
  // The stop text itself ends with a character of two tokens.
  EXPECT_EQ(pieces_of({"x\xE6\xAD", "\xAAy"}, {"\xE6\xAD\xAA"}), (Pieces{"x", "", ""}));
}

// After each token exactly the longest suffix that begins a stop text is still held.
TEST(StreamDecoder, HoldsNoMoreThanAStopTextNeeds) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::uint64_t position = 0;
    const auto draw = [&](int n) { return static_cast<int>(philox_uniform(round, position++) * n); };
    const auto word = [&](int length) {
      std::string out;
      for (int i = 0; i < length; ++i) out += "ab"[draw(2)];
      return out;
    };
    const Pieces stops{word(2 + draw(4)), word(3 + draw(4))};
    StreamDecoder decoder(vocab_tokenizer("llama-256"), stops);
    std::string seen;
    std::string left;
    for (int step = 0; step < 30; ++step) {
      const std::string next = word(1);
      seen += next;
      const StreamPiece piece = decoder.push(byte_ids(next)[0]);
      left += piece.text;
      if (piece.stopped) break;
      std::size_t hold = 0;
      for (const std::string& stop : stops) {
        for (std::size_t length = 1; length < stop.size(); ++length) {
          if (seen.ends_with(stop.substr(0, length))) hold = std::max(hold, length);
        }
      }
      EXPECT_EQ(left, seen.substr(0, seen.size() - hold)) << round;
    }
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
