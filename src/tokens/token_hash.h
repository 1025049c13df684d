// The hash functions of the flat tables in tokens/vocabulary.h and tokens/bpe.cc.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone {

// Slots for `count` entries: the power of two that keeps the table at most half full, at least 2.
constexpr std::uint64_t slots_for(std::uint64_t count) {
  std::uint64_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  return slots;
}

// Finaliser of SplitMix64 (Steele, Lea and Flood 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// FNV-1a, 64 bits, then mixed.
constexpr std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return mix_bits(hash);
}

constexpr std::uint64_t hash_pair(std::uint32_t left, std::uint32_t right) {
  return mix_bits(((static_cast<std::uint64_t>(left) << 32) | right) + 0x9E3779B97F4A7C15U);
}

}  // namespace hone
