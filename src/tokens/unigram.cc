#include "tokens/unigram.h"

#include <algorithm>
#include <limits>

#include "tokens/prefix_index.h"
#include "tokens/spm_unknown.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

constexpr std::uint32_t kUnknownPiece = 0xFFFFFFFFU;
constexpr std::uint32_t kNoBegin = 0xFFFFFFFFU;
constexpr float kUnknownPenalty = 10.0F;
constexpr double kUserDefinedPenalty = 0.1;

class UnigramEncoder : public WordEncoder {
 public:
  UnigramEncoder(const Vocabulary& vocabulary, SpmUnknown unknown)
      : vocabulary_(vocabulary), unknown_(unknown) {}

  void prepare(const TokenizerSpec& spec) {
    scores_ = spec.model.scores;
    scores_.resize(static_cast<std::size_t>(vocabulary_.size()));
    // The largest score begins at the least positive f32, as in SentencePiece.
    float least = std::numeric_limits<float>::max();
    largest_ = std::numeric_limits<float>::min();
    std::vector<PrefixIndex::Key> keys;
    keys.reserve(scores_.size());
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
      const TokenType type = vocabulary_.type(id);
      const float score = scores_[static_cast<std::size_t>(id)];
      if (type == TokenType::Normal) {
        least = std::min(least, score);
        largest_ = std::max(largest_, score);
      }
      const bool usable = type == TokenType::Normal || type == TokenType::UserDefined;
      if (usable && !vocabulary_.bytes(id).empty()) {
        keys.push_back({vocabulary_.bytes(id), static_cast<std::uint32_t>(id)});
      }
    }
    unknown_score_ = least - kUnknownPenalty;
    index_ = PrefixIndex(std::move(keys));
  }

  void encode_word(std::string_view word, EncoderScratch& s, std::vector<std::int32_t>& out) const override {
    s.best.assign(word.size() + 1, {0, kUnknownPiece, kNoBegin});
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = spm_character(word.substr(at));
      const float here = s.best[at].score;
      bool single = false;
      index_.for_each_prefix(word.substr(at), [&](std::size_t bytes, std::uint32_t id) {
        offer(s, at, bytes, id, score_of(id, bytes) + static_cast<double>(here));
        single = single || bytes == length;
      });
      if (!single) {
        offer(s, at, length, kUnknownPiece, unknown_score_ + here);
      }
      at += length;
    }
    append_path(word, s, out);
  }

  std::int64_t heap_bytes() const override {
    return index_.heap_bytes() + static_cast<std::int64_t>(scores_.capacity() * sizeof(float));
  }

 private:
  double score_of(std::uint32_t id, std::size_t bytes) const {
    if (vocabulary_.type(static_cast<std::int32_t>(id)) == TokenType::UserDefined) {
      return static_cast<float>(bytes) * largest_ - kUserDefinedPenalty;
    }
    return scores_[id];
  }

  // Sums are rounded before they are compared: the cuts "a bb" and "bb a" of one text then tie in most cases,
  // and the first stays.
  static void offer(EncoderScratch& s, std::size_t at, std::size_t bytes, std::uint32_t id, double exact) {
    const auto sum = static_cast<float>(exact);
    EncoderScratch::Best& best = s.best[at + bytes];
    if (best.begin != kNoBegin && !(sum > best.score)) return;
    best = {sum, id, static_cast<std::uint32_t>(at)};
  }

  void append_path(std::string_view word, EncoderScratch& s, std::vector<std::int32_t>& out) const {
    // The ends of the pieces, last first; then forward.
    s.ids.clear();
    for (std::size_t end = word.size(); end > 0; end = s.best[end].begin) {
      s.ids.push_back(static_cast<std::uint32_t>(end));
    }
    bool after_unknown = false;
    for (std::size_t i = s.ids.size(); i-- > 0;) {
      const std::uint32_t end = s.ids[i];
      const EncoderScratch::Best& best = s.best[end];
      if (best.id == kUnknownPiece) {
        unknown_.append(word.substr(best.begin, end - best.begin), after_unknown, out);
      } else {
        out.push_back(static_cast<std::int32_t>(best.id));
      }
      after_unknown = best.id == kUnknownPiece;
    }
  }

  const Vocabulary& vocabulary_;
  SpmUnknown unknown_;
  PrefixIndex index_;
  std::vector<float> scores_;  // [V]
  float largest_ = 0;
  float unknown_score_ = 0;
};

}  // namespace

Result<std::unique_ptr<const WordEncoder>> make_unigram_encoder(const TokenizerSpec& spec,
                                                                const Vocabulary& vocabulary) {
  HONE_TRY(check_scores(spec, vocabulary));
  SpmUnknown unknown = HONE_TRY(SpmUnknown::build(spec, vocabulary));
  auto out = std::make_unique<UnigramEncoder>(vocabulary, unknown);
  out->prepare(spec);
  return std::unique_ptr<const WordEncoder>(std::move(out));
}

}  // namespace hone
