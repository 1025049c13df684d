// Writes SentencePiece models, sound and broken ones, for tests.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hone::testing {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(static_cast<unsigned char>(0x80 | (value & 0x7F)));
  return out + static_cast<char>(static_cast<unsigned char>(value));
}
inline std::string number_field(unsigned number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}
inline std::string bytes_field(unsigned number, std::string_view bytes) {
  return varint((number << 3) | 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string float_field(unsigned number, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint((number << 3) | 5) + bytes;
}

// Types: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
inline std::string piece(std::string_view text, float score, unsigned type = 1) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + number_field(3, type));
}

// Kinds: 1 unigram, 2 bpe, 3 word, 4 char.
inline std::string trainer(unsigned kind, bool byte_fallback = false) {
  return bytes_field(2, number_field(3, kind) + number_field(35, byte_fallback ? 1 : 0));
}

inline std::string normalizer(std::string_view charsmap, bool dummy_prefix = true, bool remove_extra = true) {
  return bytes_field(3, bytes_field(1, "test") + (charsmap.empty() ? "" : bytes_field(2, charsmap)) +
                            number_field(4, remove_extra ? 1 : 0) + number_field(3, dummy_prefix ? 1 : 0));
}

inline std::string byte_pieces() {
  std::string out;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    out += piece(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, 6);
  }
  return out;
}

// A double array by Darts-clone's rules with one rule for one byte, in blocks of 256 units.
struct TrieSample {
  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(1024);

  // Leads the node at `at` to children at base ^ byte.
  void lead(std::size_t at, std::size_t base) {
    units[at] = (units[at] & 0x800001FFU) | (static_cast<std::uint32_t>(at ^ base) << 10);
  }
  void label(std::size_t at, unsigned char byte) { units[at] = (units[at] & ~0xFFU) | byte; }
  void leaf(std::size_t at, std::size_t base, std::uint32_t value) {
    units[at] |= 1U << 8;
    units[base] = value | 0x80000000U;
  }

  std::string map(std::string_view texts) const {
    std::string out(4 + units.size() * 4, '\0');
    const auto size = static_cast<std::uint32_t>(units.size() * 4);
    std::memcpy(out.data(), &size, 4);
    std::memcpy(out.data() + 4, units.data(), units.size() * 4);
    return out + std::string(texts);
  }
};

// "a" becomes "xy", "ab" becomes "z".
inline TrieSample two_rules() {
  TrieSample out;
  for (std::uint32_t& unit : out.units) unit = 0x80000000U;  // no label matches
  out.units[0] = 0;
  out.lead(0, 256);
  out.units[256 ^ 'a'] = 'a';
  out.lead(256 ^ 'a', 512);
  out.leaf(256 ^ 'a', 512, 0);
  out.units[512 ^ 'b'] = 'b';
  out.lead(512 ^ 'b', 768);
  out.leaf(512 ^ 'b', 768, 3);
  return out;
}
inline std::string two_rules_map() {
  return two_rules().map(std::string_view("xy\0z\0", 5));
}

}  // namespace hone::testing
