// Any bytes as a tokenizer.json; what builds encodes and decodes a few texts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokens/tokenizer.h"
#include "tokens/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = hone::tokenizer_spec_from_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!spec.ok()) return 0;
  const auto tokenizer = hone::Tokenizer::build(*spec);
  if (!tokenizer.ok()) return 0;
  for (const std::string_view text : {"", " low  lower\n12 <s>", "e\xCC\x81 \xE4\xB8\xAD\xFF_x"}) {
    const auto ids = tokenizer->encode(text);
    if (ids.ok()) (void)tokenizer->decode(*ids);
  }
  return 0;
}
