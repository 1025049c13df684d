// The vocabulary of a random-weight model: byte-level BPE in which every id is a real token, so that hone and
// other engines open the file, and its text and ids turn into each other.
#pragma once

#include <cstdint>

#include "file/gguf_writer.h"

namespace hone {

// Adds the tokenizer's metadata for `vocabulary` ids (at least 257): the 256 bytes, then pairs and triples of
// them in order, each by one merge; the last id is <|endoftext|>.
void add_random_vocabulary(std::int64_t vocabulary, GgufWriter& writer);

}  // namespace hone
