// GPT-2's byte alphabet (Radford et al. 2019, `bytes_to_unicode`): byte-level vocabularies are written in it.
// A printable Latin-1 byte stands for itself, the others for U+0100 onwards in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokens/utf8.h"

namespace hone {

constexpr bool is_own_letter(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

inline constexpr std::size_t kAlphabetEnd = 0x100 + 68;

constexpr std::array<std::uint16_t, 256> make_byte_letters() {
  std::array<std::uint16_t, 256> letters{};
  std::uint16_t other = 0x100;
  for (std::uint16_t byte = 0; byte < 256; ++byte) letters[byte] = is_own_letter(byte) ? byte : other++;
  return letters;
}

inline constexpr auto kByteLetters = make_byte_letters();

constexpr std::array<std::int16_t, kAlphabetEnd> make_letter_bytes() {
  std::array<std::int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) bytes[kByteLetters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}

inline constexpr auto kLetterBytes = make_letter_bytes();

// Calls put(char) with the byte of each letter. False if `text` has a character outside of the alphabet.
template <class Put>
bool decode_letters(std::string_view text, Put&& put) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    std::size_t letter = lead;
    if (lead >= 0x80) {
      // Every letter beyond ASCII has two bytes.
      if (lead < 0xC2 || lead > 0xDF || at + 1 == text.size()) return false;
      const auto second = static_cast<unsigned char>(text[at + 1]);
      if ((second & 0xC0U) != 0x80) return false;
      letter = ((lead & 0x1FU) << 6) | (second & 0x3FU);
      ++at;
    }
    ++at;
    if (letter >= kAlphabetEnd || kLetterBytes[letter] < 0) return false;
    put(static_cast<char>(static_cast<unsigned char>(kLetterBytes[letter])));
  }
  return true;
}

inline void append_letter(std::string& out, char byte) {
  append_utf8(out, kByteLetters[static_cast<unsigned char>(byte)]);
}

}  // namespace hone
