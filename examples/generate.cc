// Answers one prompt with the public API: hone_example_generate MODEL PROMPT
#include <cstdio>
#include <string_view>

#include "hone/hone.h"

namespace {

int fail(const hone::api::Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.where.c_str(), error.message.c_str());
  if (!error.next_step.empty()) std::fprintf(stderr, "try: %s\n", error.next_step.c_str());
  return 1;
}

bool print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hone_example_generate MODEL PROMPT\n");
    return 2;
  }
  auto opened = hone::api::Engine::open(argv[1]);
  if (const auto* error = std::get_if<hone::api::Error>(&opened)) return fail(*error);
  auto& engine = *std::get_if<hone::api::Engine>(&opened);

  const hone::api::GenerateOptions options{.max_tokens = 64};
  const auto answer = engine.generate(argv[2], options, print);
  if (const auto* error = std::get_if<hone::api::Error>(&answer)) return fail(*error);
  std::fputc('\n', stdout);
  return 0;
}
