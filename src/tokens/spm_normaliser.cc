#include "tokens/spm_normaliser.h"

#include <limits>
#include <utility>

#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::string_view kReplacementText = "\xEF\xBF\xBD";
constexpr std::size_t kMaxSpmText = std::numeric_limits<std::int32_t>::max();

}  // namespace

Result<SpmNormaliser> SpmNormaliser::build(const SpmNormaliserOptions& options, std::string_view charsmap,
                                           StringTable fixed, std::string_view place) {
  SpmNormaliser out;
  out.options_ = options;
  if (!charsmap.empty()) out.charsmap_ = HONE_TRY(Charsmap::parse(charsmap, place));
  out.fixed_texts_ = std::move(fixed);
  std::vector<PrefixIndex::Key> keys;
  keys.reserve(out.fixed_texts_.size());
  for (std::size_t i = 0; i < out.fixed_texts_.size(); ++i) {
    if (!out.fixed_texts_[i].empty()) keys.push_back({out.fixed_texts_[i], static_cast<std::uint32_t>(i)});
  }
  out.fixed_ = PrefixIndex(std::move(keys));
  return out;
}

// A user-defined symbol, the longest rule, or one character.
SpmNormaliser::Unit SpmNormaliser::next_unit(std::string_view text) const {
  if (!fixed_.empty()) {
    if (const auto match = fixed_.longest(text)) return {match->length, text.substr(0, match->length)};
  }
  if (charsmap_) {
    if (const auto match = charsmap_->longest(text)) return {match->length, match->replacement};
  }
  const Utf8Step step = utf8_step(text);
  if (step.kind == Utf8Step::Kind::Valid) return {step.length, text.substr(0, step.length)};
  return {1, kReplacementText};
}

void SpmNormaliser::apply(std::string_view text, std::string& out) const {
  out.clear();
  const bool trim = options_.remove_extra_whitespaces;
  while (trim && !text.empty()) {
    const Unit unit = next_unit(text);
    if (unit.text != " ") break;
    text.remove_prefix(unit.length);
  }
  if (text.empty()) return;
  const std::string_view blank = options_.escape_whitespaces ? kSpmSpace : std::string_view(" ");
  if (options_.add_dummy_prefix && !options_.whitespace_as_suffix) out += blank;
  bool after_blank = trim;
  while (!text.empty() && out.size() <= kMaxSpmText) {
    const Unit unit = next_unit(text);
    text.remove_prefix(unit.length);
    std::string_view put = unit.text;
    while (after_blank && put.starts_with(' ')) put.remove_prefix(1);
    if (put.empty()) continue;
    for (const char c : put) {
      if (c == ' ') {
        out += blank;
      } else {
        out.push_back(c);
      }
    }
    after_blank = trim && put.ends_with(' ');
  }
  while (trim && out.ends_with(blank)) out.erase(out.size() - blank.size());
  if (options_.add_dummy_prefix && options_.whitespace_as_suffix) out += blank;
}

std::int64_t SpmNormaliser::heap_bytes() const {
  return (charsmap_ ? charsmap_->heap_bytes() : 0) + fixed_.heap_bytes() + fixed_texts_.heap_bytes();
}

}  // namespace hone
