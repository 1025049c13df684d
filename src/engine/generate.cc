#include "engine/generate.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "tokens/stream_decoder.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Hands text on as it becomes certain. Without a tokenizer there is no text.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const GenerateOptions& options, const TextCallback& on_text)
      : on_text_(on_text) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer, options.stop);
  }
  // True if a stop text is complete or the caller wants no more.
  bool push(std::int32_t id) {
    if (!decoder_) return false;
    StreamPiece piece = decoder_->push(id);
    return !emit(piece.text) || piece.stopped;
  }
  void finish() {
    if (decoder_) emit(decoder_->finish().text);
  }
  std::string text;

 private:
  bool emit(const std::string& piece) {
    if (piece.empty()) return true;
    text += piece;
    return !on_text_ || on_text_(piece);
  }
  std::optional<StreamDecoder> decoder_;
  const TextCallback& on_text_;
};

bool ends_generation(const Session& session, std::int32_t id) {
  const std::vector<std::int32_t>& ends = session.generation_defaults().end_ids;
  if (std::ranges::find(ends, id) != ends.end()) return true;
  return session.tokenizer() != nullptr && session.tokenizer()->is_end_of_generation(id);
}

}  // namespace

Result<Generation> generate(Session& session, std::span<const std::int32_t> prompt, std::int64_t past,
                            const GenerateOptions& options, const TextCallback& on_text) {
  const Clock::time_point begin = Clock::now();
  Recorder* const recorder = session.recorder();
  if (recorder != nullptr) recorder->begin_phase(Phase::Prefill);
  PartClock clock(recorder);
  const Tokenizer* tokenizer = session.tokenizer();
  Sampler sampler = HONE_TRY(
      Sampler::create(options.sampler, static_cast<std::int32_t>(session.model().config.vocabulary)));
  clock.mark(Part::Sampling);
  Generation out;
  const auto held = static_cast<std::size_t>(std::clamp(past, std::int64_t{0}, std::ssize(prompt)));
  const std::span<const std::int32_t> fresh = prompt.subspan(held);
  out.prompt_tokens = std::ssize(fresh);
  std::span<const float> logits = HONE_TRY(session.prefill(fresh, past));
  out.prefill_tokens_per_s = static_cast<double>(fresh.size()) / seconds_since(begin);
  out.launches_per_token = session.launches_of_last_step();

  if (recorder != nullptr) recorder->begin_phase(Phase::Decode);
  clock.restart();
  TextStream stream(tokenizer, options, on_text);
  std::int64_t position = past + out.prompt_tokens;
  Clock::time_point first = Clock::now();
  std::int64_t decode_steps = 0;
  while (static_cast<std::int64_t>(out.ids.size()) < options.max_tokens) {
    const std::int32_t id =
        HONE_TRY(sampler.sample(logits, prompt, out.ids, static_cast<std::uint64_t>(position)));
    clock.mark(Part::Sampling);
    if (out.ids.empty()) {
      out.first_token_s = seconds_since(begin);
      first = Clock::now();
    }
    const bool end = !options.ignore_end_tokens && ends_generation(session, id);
    if (!end) out.ids.push_back(id);
    const bool stopped = end || stream.push(id);
    clock.mark(Part::Text);
    if (stopped) {
      out.finish = Finish::Stop;
      break;
    }
    // The last id of the budget needs no step of its own, and a full context has no room for one.
    if (static_cast<std::int64_t>(out.ids.size()) >= options.max_tokens ||
        position >= session.model().context)
      break;
    const std::vector<std::int32_t> next{id};
    const Session::Row row{0, 0};
    logits = HONE_TRY(session.step({&next, 1}, {&position, 1}, {&row, 1}));
    out.launches_per_token = session.launches_of_last_step();
    clock.restart();
    ++position;
    ++decode_steps;
  }
  if (decode_steps > 0) out.decode_tokens_per_s = static_cast<double>(decode_steps) / seconds_since(first);
  stream.finish();
  out.text = std::move(stream.text);
  clock.mark(Part::Text);
  return out;
}

}  // namespace hone
