// hone as a library: a checkpoint file in, text, token ids and logits out. Standard headers only.
//
// Nothing here throws: what can fail returns an Outcome, which holds either the value or an Error.
//
//   auto opened = hone::api::Engine::open("model.gguf");
//   if (const auto* error = std::get_if<hone::api::Error>(&opened)) return report(*error);
//   auto& engine = std::get<hone::api::Engine>(opened);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hone::api {

struct Error {
  std::string code;       // internal, usage, bad_file, bad_model, bad_input, does_not_fit or check_failed
  std::string fault;      // user, file or hone: whose fault it is
  std::string where;      // file and byte offset, flag, or op and module path
  std::string message;    // the rule that is broken
  std::string expected;   // may be empty
  std::string actual;     // may be empty
  std::string next_step;  // what to try; may be empty
};

template <class T>
using Outcome = std::variant<T, Error>;

struct Options {
  int level = 3;                  // 0 to 3: O0 to O3
  std::int64_t threads = 0;       // 0: all that this process may use
  std::int64_t context = 0;       // tokens per sequence; 0: min(the model's, 4096)
  std::int64_t chunk = 512;       // prompt tokens per step
  std::int64_t memory_bytes = 0;  // hard budget; 0: what the machine has
};

struct GenerateOptions {
  std::int64_t max_tokens = 512;
  bool raw = false;           // continue the prompt as it stands, without the checkpoint's chat template
  double temperature = 0;     // 0 is greedy
  std::int32_t top_k = 0;     // 0 is off
  double top_p = 1;           // 1 is off
  double min_p = 0;           // 0 is off
  double typical_p = 1;       // 1 is off
  double repeat_penalty = 1;  // 1 is off
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> stop{};  // texts that end the answer; not part of it
};

struct Answer {
  std::vector<std::int32_t> ids;  // without the end token
  std::string text;
  bool stopped =
      false;  // by an end token, a stop text or the callback; else at max_tokens or the end of the context
};

// Called with each piece of text as it becomes certain; false ends the answer. An exception it throws ends
// the call with an Error.
using TextCallback = std::function<bool(std::string_view text)>;

// A loaded model with room for one sequence. Calls on one engine must not overlap in time; each starts a
// sequence anew. An engine that was moved from answers every call with an Error.
class Engine {
 public:
  // Compiles the checkpoint at `path` (GGUF) for this machine and loads its weights.
  static Outcome<Engine> open(const std::string& path, const Options& options = {}) noexcept;

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Ids of `text`, with the begin token if the checkpoint asks for one.
  Outcome<std::vector<std::int32_t>> tokenize(std::string_view text) const noexcept;

  // Answers `prompt` as a user's message under the chat template, or continues it (`raw`).
  Outcome<Answer> generate(std::string_view prompt, const GenerateOptions& options = {},
                           const TextCallback& on_text = {}) noexcept;

  // Logits [V] of the token that follows `ids`.
  Outcome<std::vector<float>> logits(std::span<const std::int32_t> ids) noexcept;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace hone::api
