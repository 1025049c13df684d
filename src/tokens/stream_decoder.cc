#include "tokens/stream_decoder.h"

#include <algorithm>
#include <utility>

#include "tokens/utf8.h"

namespace hone {

namespace {

// Length of the longest suffix of `text` that is a true prefix of `stop`.
std::size_t held_suffix(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::vector<std::string> stops, bool skip_special)
    : tokenizer_(&tokenizer), stops_(std::move(stops)), skip_special_(skip_special) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StreamPiece StreamDecoder::release(std::string_view text) {
  const std::size_t old = held_.size();
  held_.append(text);
  // The first stop string to be complete decides. held_ had none before, so it ends inside `text`; ends are
  // tried in order, and at one end the longest stop string is the one that starts first.
  if (!stops_.empty()) {
    for (std::size_t end = old + 1; end <= held_.size(); ++end) {
      const std::string_view before = std::string_view(held_).substr(0, end);
      std::size_t longest = 0;
      for (const std::string& stop : stops_) {
        if (stop.size() > longest && before.ends_with(stop)) longest = stop.size();
      }
      if (longest == 0) continue;
      stopped_ = true;
      StreamPiece piece{held_.substr(0, end - longest), true};
      held_.clear();
      partial_.clear();
      return piece;
    }
  }
  std::size_t hold = 0;
  for (const std::string& stop : stops_) hold = std::max(hold, held_suffix(held_, stop));
  StreamPiece piece{held_.substr(0, held_.size() - hold), false};
  held_.erase(0, held_.size() - hold);
  return piece;
}

StreamPiece StreamDecoder::push(std::int32_t id) {
  if (stopped_) return {{}, true};
  const std::int32_t ids[] = {id};
  const std::string bytes =
      tokenizer_->decode(ids, {.skip_special = skip_special_, .at_start = at_start_, .raw_bytes = true});
  partial_ += bytes;
  const bool skipped = skip_special_ && tokenizer_->token_type(id) == TokenType::Control;
  at_start_ = at_start_ && (skipped || (bytes.empty() && tokenizer_->takes_all_blanks_off()));
  // All but a beginning of a character at the end is final.
  std::size_t whole = 0;
  while (whole < partial_.size()) {
    const Utf8Step step = utf8_step(std::string_view(partial_).substr(whole));
    if (step.kind == Utf8Step::Kind::Truncated) break;
    whole += step.length;
  }
  const std::string text = to_valid_utf8(std::string_view(partial_).substr(0, whole));
  partial_.erase(0, whole);
  return release(text);
}

StreamPiece StreamDecoder::finish() {
  if (stopped_) return {{}, true};
  StreamPiece piece = release(to_valid_utf8(partial_));
  partial_.clear();
  if (!piece.stopped) {
    piece.text += held_;
    held_.clear();
  }
  return piece;
}

}  // namespace hone
