// Loading and encoding, in processor time of the one thread:
//   tokenizer_bench MODEL FILE...
// Prints one line of JSON: load_ms, then for each FILE its name, bytes, ids and mb_per_s (best of five).
// compare.py beside this file runs it and the `tokenizers` package in turn.
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <limits>
#include <string>

#include "file/open.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Status bench_tokenizer(int count, char** arguments) {
  double begin = thread_seconds();
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(arguments[1]));
  const Tokenizer tokenizer = HONE_TRY(require_tokenizer(checkpoint));
  fmt::print("{{\"load_ms\": {:.1f}, \"files\": [", (thread_seconds() - begin) * 1e3);
  for (int i = 2; i < count; ++i) {
    const std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(arguments[i]));
    const std::string text(reinterpret_cast<const char*>(file->data().data()), file->size());
    double best = std::numeric_limits<double>::infinity();
    std::size_t ids = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      begin = thread_seconds();
      ids = HONE_TRY(tokenizer.encode(text, {.add_special = false})).size();
      best = std::min(best, thread_seconds() - begin);
    }
    fmt::print("{}{{\"file\": \"{}\", \"bytes\": {}, \"ids\": {}, \"mb_per_s\": {:.2f}}}", i == 2 ? "" : ", ",
               arguments[i], text.size(), ids, static_cast<double>(text.size()) / best * 1e-6);
  }
  fmt::print("]}}\n");
  return {};
}

}  // namespace
}  // namespace hone

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: tokenizer_bench MODEL FILE...\n");
    return 2;
  }
  const hone::Status status = hone::bench_tokenizer(count, arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: {}\n", status.error().where, status.error().message);
  return 3;
}
