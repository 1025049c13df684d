// Any bytes: the reader answers with an Error, or with a model whose character map and normaliser can be
// used.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "tokens/charsmap.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/spm_normaliser.h"
#include "tokens/utf8.h"

namespace {

// What a user of the model does with it.
void use(const hone::SentencePieceModel& model) {
  hone::StringTable fixed;
  for (const auto& piece : model.pieces) {
    if (piece.text.empty()) std::abort();
    if (piece.type == hone::TokenType::UserDefined) fixed.push_back(piece.text);
  }
  const hone::SpmNormaliserOptions options{
      model.normalizer.add_dummy_prefix, model.normalizer.remove_extra_whitespaces,
      model.normalizer.escape_whitespaces, model.treat_whitespace_as_suffix};
  const auto normaliser =
      hone::SpmNormaliser::build(options, model.normalizer.charsmap, std::move(fixed), "fuzz");
  if (!normaliser.ok()) {
    if (normaliser.error().code != hone::ErrorCode::BadModel || normaliser.error().where.empty())
      std::abort();
    return;
  }
  std::string out;
  for (const std::string_view text : {"ab aab\xFF  b ", "a", "", "<x> "}) {
    normaliser->apply(text, out);
    // A rule makes at most 256 bytes of one, and a blank three.
    if (out.size() > 3 * 257 * (text.size() + 1)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = hone::parse_sentencepiece_model(std::as_bytes(std::span(data, size)), "fuzz");
  if (model.ok()) {
    use(*model);
  } else if (model.error().code != hone::ErrorCode::BadFile || model.error().where.empty()) {
    std::abort();
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto map = hone::Charsmap::parse(bytes, "fuzz");
  if (map.ok() && map->longest("ab").has_value() != map->shortest("ab").has_value()) std::abort();
  return 0;
}
