// The model of a tokenizer: one word -> ids. What a word is, the pre-tokeniser has settled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"
#include "tokens/vocabulary.h"

namespace hone {

// Working memory of one encode call; its contents mean nothing between two words. Not to be shared between
// threads.
struct EncoderScratch {
  // One symbol per unit that the word starts with; merged ones drop out of the list.
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> previous;
  std::vector<std::uint32_t> rank;  // of the pair that starts here
  // The same of SentencePiece's BPE, together: a merge touches the four of a symbol and its neighbours, far
  // from the last one.
  struct Symbol {
    std::uint32_t begin;  // byte
    std::uint32_t next;
    std::uint32_t previous;
    std::uint32_t rank;  // of the pair that starts here
  };
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> queue;   // (rank << 32) | position, a min-heap
  std::vector<std::uint64_t> sorted;  // entries of the queue that were there at the start
  // Of words far too long for one heap: the positions of each rank, and which ranks have any.
  std::vector<std::vector<std::uint32_t>> buckets;
  std::vector<std::uint32_t> free_buckets;
  std::vector<std::uint32_t> bucket_of;  // by rank
  // The best cut of the text up to each byte offset: its score, last piece, and where that begins.
  struct Best {
    float score = 0;
    std::uint32_t id = 0;
    std::uint32_t begin = 0;
  };
  std::vector<Best> best;
  std::string text;
};

// Immutable; const members may be called from several threads at once.
class WordEncoder {
 public:
  virtual ~WordEncoder() = default;
  // Appends the ids of `word`, in the form that Vocabulary describes: bytes where the tokenizer is
  // byte-level, else UTF-8 text. The word may hold ill-formed UTF-8 and be as long as a text: time is n log n
  // at most.
  virtual void encode_word(std::string_view word, EncoderScratch& scratch,
                           std::vector<std::int32_t>& out) const = 0;
  // Capacity in bytes of the containers held, without the vocabulary's.
  virtual std::int64_t heap_bytes() const = 0;
};

// The encoder of model.kind, from a table with one row per kind. `vocabulary` must outlive it. Errors:
// BadModel, from the row: a merge that names no token, a missing score, ..
Result<std::unique_ptr<const WordEncoder>> make_word_encoder(const TokenizerSpec& spec,
                                                             const Vocabulary& vocabulary);

}  // namespace hone
