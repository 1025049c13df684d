#include "tokens/added_tokens.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tokens/normaliser.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

// Start of the last character of `text`, which is not empty; an ill-formed byte counts as one.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) --at;
  const Utf8Step step = utf8_step(text.substr(at));
  return step.kind == Utf8Step::Kind::Valid && at + step.length == text.size() ? at : text.size() - 1;
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Step step = utf8_step(text.substr(last_character(text)));
  return step.kind == Utf8Step::Kind::Valid && is_word_character(step.code_point);
}

bool starts_with_word(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Step step = utf8_step(text);
  return step.kind == Utf8Step::Kind::Valid && is_word_character(step.code_point);
}

std::size_t spaces_at_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::Valid || !is_white_space(step.code_point)) break;
    at += step.length;
  }
  return at;
}

// Where the white space at the end of `text` begins, not before `floor`.
std::size_t spaces_at_end(std::string_view text, std::size_t floor) {
  std::size_t end = text.size();
  while (end > floor) {
    const std::size_t at = last_character(text.substr(0, end));
    const Utf8Step step = utf8_step(text.substr(at));
    if (at < floor || step.kind != Utf8Step::Kind::Valid || !is_white_space(step.code_point)) break;
    end = at;
  }
  return end;
}

}  // namespace

Result<AddedTokens> AddedTokens::build(const TokenizerSpec& spec, bool normalized,
                                       const Normaliser& normaliser) {
  struct Row {
    std::string text;
    const AddedToken* token;
  };
  std::vector<Row> rows;
  NormaliserScratch scratch;
  std::size_t bytes = 0;
  for (const AddedToken& token : spec.added_tokens) {
    if (token.normalized != normalized) continue;
    Row row{token.content, &token};
    if (normalized && utf8_valid_prefix(row.text) == row.text.size())
      HONE_TRY(normaliser.apply(row.text, scratch));
    if (row.text.empty()) continue;
    bytes += row.text.size();
    rows.push_back(std::move(row));
  }
  // Of two tokens with one text, the later one counts.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.text < b.text; });
  AddedTokens out;
  out.texts_.reserve(rows.size(), bytes);
  out.entries_.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + 1 < rows.size() && rows[i + 1].text == rows[i].text) continue;
    const AddedToken& token = *rows[i].token;
    out.texts_.push_back(rows[i].text);
    out.entries_.push_back({token.id, token.single_word, token.lstrip, token.rstrip, token.special});
    out.first_bytes_[static_cast<unsigned char>(rows[i].text[0])] = true;
  }
  return out;
}

// texts_ is sorted by bytes, so the tokens that agree with the first k bytes of the text are a range that
// shrinks as k grows; a token of length k stands first in its range.
const AddedTokens::Entry* AddedTokens::longest_at(std::string_view text, std::size_t& length) const {
  const Entry* best = nullptr;
  std::size_t low = 0;
  std::size_t high = texts_.size();
  for (std::size_t k = 0; k < text.size() && low < high; ++k) {
    const int wanted = static_cast<unsigned char>(text[k]);
    const auto byte_at = [&](std::size_t i) {
      const std::string_view bytes = texts_[i];
      return k < bytes.size() ? int{static_cast<unsigned char>(bytes[k])} : -1;
    };
    const auto bound = [&](std::size_t from,
                           int limit) {  // the first in [from, high) whose byte exceeds limit
      std::size_t count = high - from;
      while (count > 0) {
        const std::size_t half = count / 2;
        if (byte_at(from + half) <= limit) {
          from += half + 1;
          count -= half + 1;
        } else {
          count = half;
        }
      }
      return from;
    };
    low = bound(low, wanted - 1);
    high = bound(low, wanted);
    if (low < high && texts_[low].size() == k + 1) {
      best = &entries_[low];
      length = k + 1;
    }
  }
  return best;
}

void AddedTokens::find_all(std::string_view text, bool special_too, std::vector<AddedMatch>& out) const {
  out.clear();
  if (empty()) return;
  std::size_t taken = 0;  // end of the last token, with its white space
  for (std::size_t at = 0; at < text.size();) {
    if (!first_bytes_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    std::size_t length = 0;
    const Entry* entry = longest_at(text.substr(at), length);
    if (entry == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + length;
    at = end;
    if (entry->special && !special_too) continue;
    if (entry->single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (entry->lstrip) begin = spaces_at_end(text.substr(0, begin), taken);
    if (entry->rstrip) end += spaces_at_start(text.substr(end));
    begin = std::max(begin, taken);
    if (end <= taken) continue;
    out.push_back({{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)}, entry->id});
    taken = end;
  }
}

std::int64_t AddedTokens::heap_bytes() const {
  return texts_.heap_bytes() + static_cast<std::int64_t>(entries_.capacity() * sizeof(Entry));
}

}  // namespace hone
