// Whole numbers without a limit, as Python has them: sign and magnitude, by the schoolbook algorithms (Knuth,
// The Art of Computer Programming, volume 2, section 4.3.1). The caller bounds their size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::jinja {

class BigInteger {
 public:
  BigInteger() = default;
  explicit BigInteger(std::int64_t value);
  // Digits of base 2 to 36 after an optional '-'; nullopt for anything else or no digit.
  static std::optional<BigInteger> parse(std::string_view digits, std::uint32_t base = 10);
  // The whole part of a finite `value`.
  static BigInteger from_double(double value);

  bool is_negative() const { return negative_; }
  bool is_zero() const { return words_.empty(); }
  std::size_t bits() const;
  // nullopt: beyond 64 bits.
  std::optional<std::int64_t> small() const;
  // Rounded to nearest, ties to even; infinite beyond the range of a double.
  double to_double() const;
  std::string text(std::uint32_t base = 10) const;

  BigInteger negated() const;
  friend BigInteger operator+(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b);
  // -1, 0 or 1.
  static int compare(const BigInteger& a, const BigInteger& b);
  // Python's // and %: the quotient is rounded down. `b` is not zero.
  static void divide(const BigInteger& a, const BigInteger& b, BigInteger& quotient, BigInteger& remainder);
  // a / b rounded once.
  static double true_divide(const BigInteger& a, const BigInteger& b);
  static BigInteger power(const BigInteger& base, std::uint64_t exponent);

 private:
  using Words = std::vector<std::uint32_t>;
  static int compare_words(const Words& a, const Words& b);
  static Words add_words(const Words& a, const Words& b);
  static Words subtract_words(const Words& a, const Words& b);  // a >= b
  static Words shift_left(const Words& a, std::size_t bits);
  static void divide_words(const Words& a, const Words& b, Words& quotient, Words& remainder);
  static std::uint32_t divide_by_word(Words& a, std::uint32_t divisor);
  static void trim(Words& words);
  static BigInteger make(bool negative, Words words);

  bool negative_ = false;
  Words words_;  // least significant first, no zero at the end
};

}  // namespace hone::jinja
