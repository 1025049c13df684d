// Cuts text into the words that byte-pair merges stay inside of: one table row per tokenizer.ggml.pre.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace hone {

// Working memory of one caller. Not to be shared between threads.
class PreTokenizerScratch {
 public:
  PreTokenizerScratch();

 private:
  friend class PreTokenizer;
  struct Free {
    void operator()(pcre2_real_match_data_8* data) const;
    void operator()(pcre2_real_match_context_8* context) const;
  };
  std::unique_ptr<pcre2_real_match_data_8, Free> match_data_;
  std::unique_ptr<pcre2_real_match_context_8, Free> match_context_;
  std::vector<std::uint32_t> previous_;
};

// Text is taken as it is. Models trained on text in Unicode normalisation form C (row qwen2) expect the
// caller to bring it there.
class PreTokenizer {
 public:
  // The row of that name, compiled on first use and kept for the life of the process. Errors: BadModel for a
  // name without a row, which lists those that there are.
  static Result<const PreTokenizer*> find(std::string_view name);

  std::string_view name() const { return name_; }

  // `text` must be well-formed UTF-8 under 2^31 bytes. Fills `ends` with the end offset of each word; the
  // words joined are the text. A match limit in proportion to the text bounds the time; beyond it, error
  // BadInput.
  Status split(std::string_view text, PreTokenizerScratch& scratch, std::vector<std::uint32_t>& ends) const;

 private:
  explicit PreTokenizer(std::string_view name) : name_(name) {}
  static Result<PreTokenizer> compile(std::string_view name, std::string_view first, std::string_view second);
  Status split_range(const pcre2_real_code_8* code, std::string_view text, std::uint32_t begin,
                     std::uint32_t end, PreTokenizerScratch& scratch, std::vector<std::uint32_t>& ends) const;

  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::string_view name_;
  // Applied in order, each inside the words that the one before it left.
  std::vector<std::unique_ptr<pcre2_real_code_8, Free>> steps_;
};

}  // namespace hone
