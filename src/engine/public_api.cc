#include <array>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "engine/generate.h"
#include "engine/session.h"
#include "hone/hone.h"
#include "tokens/chat.h"

namespace hone::api {

struct Engine::State {
  std::unique_ptr<Session> session;
};

namespace {

std::string code_name(ErrorCode code) {
  constexpr std::array kNames{"internal",  "usage",        "bad_file",     "bad_model",
                              "bad_input", "does_not_fit", "check_failed", "interrupted"};
  return kNames[static_cast<std::size_t>(code)];
}

std::string fault_name(Fault fault) {
  constexpr std::array kNames{"user", "file", "hone"};
  return kNames[static_cast<std::size_t>(fault)];
}

Error to_public(hone::Error error) {
  return Error{code_name(error.code),     fault_name(error.fault),   std::move(error.where),
               std::move(error.message),  std::move(error.expected), std::move(error.actual),
               std::move(error.next_step)};
}

// Texts this short lie inside the string itself: this cannot throw even when no memory is left.
Error caught(const char* message) noexcept {
  return Error{"internal", "hone", "hone.h", message, {}, {}, {}};
}

// The Outcome of `body`, which returns a Result. What it throws becomes an Error.
template <class Body>
auto guarded(const Body& body) noexcept {
  using Value = std::remove_cvref_t<decltype(body().value())>;
  try {
    auto result = body();
    if (result.ok()) return Outcome<Value>(std::move(result).value());
    return Outcome<Value>(to_public(std::move(result).error()));
  } catch (const std::bad_alloc&) {
    return Outcome<Value>(caught("out of memory"));
  } catch (const std::exception& exception) {
    try {
      return Outcome<Value>(to_public(internal_error("exception", exception.what())));
    } catch (...) {
      return Outcome<Value>(caught("out of memory"));
    }
  } catch (...) {
    return Outcome<Value>(caught("an exception"));
  }
}

hone::Error moved_from() {
  return hone::Error{ErrorCode::Usage,
                     Fault::User,
                     "Engine",
                     "an engine that was moved from cannot be used",
                     "an open engine",
                     "an empty one",
                     "call the engine it was moved to"};
}

Result<EngineOptions> engine_options(const Options& options) {
  if (options.level < 0 || options.level > 3) {
    return hone::Error{ErrorCode::Usage,
                       Fault::User,
                       "Options::level",
                       "there is no such level",
                       "0 to 3",
                       std::to_string(options.level),
                       {}};
  }
  EngineOptions out;
  out.level = static_cast<Level>(options.level);
  out.threads = options.threads;
  out.context = options.context;
  out.chunk = options.chunk;
  out.memory = options.memory_bytes;
  return out;
}

Result<const Tokenizer*> tokenizer_of(const Session& session) {
  if (session.tokenizer() != nullptr) return session.tokenizer();
  return hone::Error{
      ErrorCode::BadModel,     Fault::File, "tokenizer.ggml.model",    "the file carries no tokenizer",
      "tokenizer.ggml.* keys", "none",      "pass token ids to logits"};
}

Result<std::vector<std::int32_t>> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt, bool raw) {
  if (raw) return tokenizer.encode(prompt);
  if (tokenizer.chat_template().empty()) {
    return hone::Error{ErrorCode::BadModel,
                       Fault::File,
                       "tokenizer.chat_template",
                       "the file carries no chat template",
                       "a template",
                       "none",
                       "continue the text as it stands: GenerateOptions::raw"};
  }
  const auto messages = nlohmann::ordered_json::array({{{"role", "user"}, {"content", prompt}}});
  ChatOptions options;
  options.fuel.now = local_seconds();
  const std::string text = HONE_TRY(
      render_chat(tokenizer.chat_template(), messages, nullptr, special_token_texts(tokenizer), options));
  // The template writes the begin token itself.
  return tokenizer.encode(text, {.parse_special = true, .add_special = false});
}

hone::GenerateOptions generate_options(const GenerateOptions& options) {
  hone::GenerateOptions out;
  out.max_tokens = options.max_tokens;
  out.sampler = {.temperature = options.temperature,
                 .top_k = options.top_k,
                 .top_p = options.top_p,
                 .min_p = options.min_p,
                 .typical_p = options.typical_p,
                 .repeat_penalty = options.repeat_penalty,
                 .presence_penalty = options.presence_penalty,
                 .frequency_penalty = options.frequency_penalty,
                 .seed = options.seed};
  out.stop = options.stop;
  return out;
}

Result<Answer> answer(Session& session, std::string_view prompt, const GenerateOptions& options,
                      const TextCallback& on_text) {
  const Tokenizer* tokenizer = HONE_TRY(tokenizer_of(session));
  const std::vector<std::int32_t> ids = HONE_TRY(prompt_ids(*tokenizer, prompt, options.raw));
  Generation made = HONE_TRY(hone::generate(session, ids, 0, generate_options(options), on_text));
  return Answer{std::move(made.ids), std::move(made.text), made.finish == Finish::Stop};
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Outcome<Engine> Engine::open(const std::string& path, const Options& options) noexcept {
  return guarded([&]() -> Result<Engine> {
    auto state = std::make_unique<State>();
    const EngineOptions checked = HONE_TRY(engine_options(options));
    state->session = HONE_TRY(Session::open(path, checked));
    return Engine(std::move(state));
  });
}

Outcome<std::vector<std::int32_t>> Engine::tokenize(std::string_view text) const noexcept {
  return guarded([&]() -> Result<std::vector<std::int32_t>> {
    if (!state_) return moved_from();
    return HONE_TRY(tokenizer_of(*state_->session))->encode(text);
  });
}

Outcome<Answer> Engine::generate(std::string_view prompt, const GenerateOptions& options,
                                 const TextCallback& on_text) noexcept {
  return guarded([&]() -> Result<Answer> {
    if (!state_) return moved_from();
    return answer(*state_->session, prompt, options, on_text);
  });
}

Outcome<std::vector<float>> Engine::logits(std::span<const std::int32_t> ids) noexcept {
  return guarded([&]() -> Result<std::vector<float>> {
    if (!state_) return moved_from();
    const std::span<const float> row = HONE_TRY(state_->session->prefill(ids, 0));
    return std::vector<float>(row.begin(), row.end());
  });
}

}  // namespace hone::api
