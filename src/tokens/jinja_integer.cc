#include "tokens/jinja_integer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace hone::jinja {

void BigInteger::trim(Words& words) {
  while (!words.empty() && words.back() == 0) words.pop_back();
}

BigInteger BigInteger::make(bool negative, Words words) {
  trim(words);
  BigInteger out;
  out.negative_ = negative && !words.empty();
  out.words_ = std::move(words);
  return out;
}

BigInteger::BigInteger(std::int64_t value) : negative_(value < 0) {
  std::uint64_t magnitude = static_cast<std::uint64_t>(value);
  if (negative_) magnitude = ~magnitude + 1;
  for (; magnitude != 0; magnitude >>= 32) words_.push_back(static_cast<std::uint32_t>(magnitude));
}

std::optional<BigInteger> BigInteger::parse(std::string_view digits, std::uint32_t base) {
  BigInteger out;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.empty()) return std::nullopt;
  for (const char c : digits) {
    std::uint32_t digit = 36;
    if (c >= '0' && c <= '9') digit = static_cast<std::uint32_t>(c - '0');
    if (c >= 'a' && c <= 'z') digit = static_cast<std::uint32_t>(c - 'a') + 10;
    if (c >= 'A' && c <= 'Z') digit = static_cast<std::uint32_t>(c - 'A') + 10;
    if (digit >= base) return std::nullopt;
    std::uint64_t carry = digit;
    for (std::uint32_t& word : out.words_) {
      carry += std::uint64_t{word} * base;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) out.words_.push_back(static_cast<std::uint32_t>(carry));
  }
  out.negative_ = negative && !out.words_.empty();
  return out;
}

BigInteger BigInteger::from_double(double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::trunc(value), &exponent);
  // 53 bits of the magnitude, then zeros.
  auto bits53 = static_cast<std::int64_t>(std::ldexp(std::abs(fraction), 53));
  if (exponent < 53) bits53 >>= 53 - std::max(exponent, 0);
  BigInteger out(bits53);
  if (exponent > 53) out.words_ = shift_left(out.words_, static_cast<std::size_t>(exponent - 53));
  return make(value < 0, std::move(out.words_));
}

std::size_t BigInteger::bits() const {
  if (words_.empty()) return 0;
  return 32 * words_.size() - static_cast<std::size_t>(std::countl_zero(words_.back()));
}

std::optional<std::int64_t> BigInteger::small() const {
  if (words_.size() > 2) return std::nullopt;
  std::uint64_t magnitude = 0;
  for (std::size_t i = words_.size(); i-- > 0;) magnitude = (magnitude << 32) | words_[i];
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  if (magnitude > kLimit || (magnitude == kLimit && !negative_)) return std::nullopt;
  return static_cast<std::int64_t>(negative_ ? ~magnitude + 1 : magnitude);
}

double BigInteger::to_double() const {
  const std::size_t count = bits();
  if (count > 1100) return negative_ ? -HUGE_VAL : HUGE_VAL;
  // The upper 64 bits; what is below them only says whether it is a tie.
  std::uint64_t top = 0;
  const std::size_t dropped = count > 64 ? count - 64 : 0;
  bool rest = false;
  for (std::size_t i = 0; i < 32 * words_.size() && i < dropped; ++i) {
    rest = rest || ((words_[i / 32] >> (i % 32)) & 1U) != 0;
  }
  for (std::size_t i = count; i-- > dropped;) top = (top << 1) | ((words_[i / 32] >> (i % 32)) & 1U);
  if (rest) top |= 1U;
  const double magnitude = std::ldexp(static_cast<double>(top), static_cast<int>(dropped));
  return negative_ ? -magnitude : magnitude;
}

std::uint32_t BigInteger::divide_by_word(Words& a, std::uint32_t divisor) {
  std::uint64_t remainder = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    remainder = (remainder << 32) | a[i];
    a[i] = static_cast<std::uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  trim(a);
  return static_cast<std::uint32_t>(remainder);
}

std::string BigInteger::text(std::uint32_t base) const {
  if (words_.empty()) return "0";
  // As many digits at once as one word holds.
  std::uint32_t chunk = base;
  std::size_t digits = 1;
  while (std::uint64_t{chunk} * base <= 0xFFFFFFFFU) {
    chunk *= base;
    ++digits;
  }
  std::string out;
  Words left = words_;
  while (!left.empty()) {
    std::uint32_t part = divide_by_word(left, chunk);
    for (std::size_t i = 0; i < digits && (part != 0 || !left.empty()); ++i) {
      out += "0123456789abcdefghijklmnopqrstuvwxyz"[part % base];
      part /= base;
    }
  }
  if (negative_) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

BigInteger BigInteger::negated() const {
  return make(!negative_, words_);
}

int BigInteger::compare_words(const Words& a, const Words& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

int BigInteger::compare(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ != b.negative_) return a.negative_ ? -1 : 1;
  const int order = compare_words(a.words_, b.words_);
  return a.negative_ ? -order : order;
}

BigInteger::Words BigInteger::add_words(const Words& a, const Words& b) {
  Words out;
  out.reserve(std::max(a.size(), b.size()) + 1);
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < a.size() || i < b.size(); ++i) {
    carry += (i < a.size() ? std::uint64_t{a[i]} : 0) + (i < b.size() ? std::uint64_t{b[i]} : 0);
    out.push_back(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  }
  out.push_back(static_cast<std::uint32_t>(carry));
  trim(out);
  return out;
}

BigInteger::Words BigInteger::subtract_words(const Words& a, const Words& b) {
  Words out;
  out.reserve(a.size());
  std::uint32_t borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::uint64_t take = (i < b.size() ? std::uint64_t{b[i]} : 0) + borrow;
    out.push_back(static_cast<std::uint32_t>(a[i] - take));
    borrow = a[i] < take ? 1 : 0;
  }
  trim(out);
  return out;
}

BigInteger operator+(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ == b.negative_)
    return BigInteger::make(a.negative_, BigInteger::add_words(a.words_, b.words_));
  if (BigInteger::compare_words(a.words_, b.words_) >= 0) {
    return BigInteger::make(a.negative_, BigInteger::subtract_words(a.words_, b.words_));
  }
  return BigInteger::make(b.negative_, BigInteger::subtract_words(b.words_, a.words_));
}

BigInteger operator-(const BigInteger& a, const BigInteger& b) {
  return a + b.negated();
}

BigInteger operator*(const BigInteger& a, const BigInteger& b) {
  BigInteger::Words out(a.words_.size() + b.words_.size(), 0);
  for (std::size_t i = 0; i < a.words_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.words_.size(); ++j) {
      carry += std::uint64_t{a.words_[i]} * b.words_[j] + out[i + j];
      out[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    out[i + b.words_.size()] = static_cast<std::uint32_t>(carry);
  }
  return BigInteger::make(a.negative_ != b.negative_, std::move(out));
}

BigInteger::Words BigInteger::shift_left(const Words& a, std::size_t bits) {
  Words out(bits / 32, 0);
  const std::size_t shift = bits % 32;
  std::uint64_t carry = 0;
  for (const std::uint32_t word : a) {
    carry |= std::uint64_t{word} << shift;
    out.push_back(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  }
  out.push_back(static_cast<std::uint32_t>(carry));
  trim(out);
  return out;
}

// Algorithm D: the divisor is shifted so that its highest bit is set; a digit estimated from the two highest
// words is then at most two too large.
void BigInteger::divide_words(const Words& a, const Words& b, Words& quotient, Words& remainder) {
  quotient.clear();
  if (compare_words(a, b) < 0) {
    remainder = a;
    return;
  }
  if (b.size() == 1) {
    quotient = a;
    const std::uint32_t rest = divide_by_word(quotient, b[0]);
    remainder = rest == 0 ? Words{} : Words{rest};
    return;
  }
  const auto shift = static_cast<std::size_t>(std::countl_zero(b.back()));
  const Words v = shift_left(b, shift);
  Words u = shift_left(a, shift);
  u.resize(a.size() + 1, 0);
  const std::size_t n = v.size();
  quotient.assign(u.size() - n, 0);
  for (std::size_t j = u.size() - n; j-- > 0;) {
    const std::uint64_t top = (std::uint64_t{u[j + n]} << 32) | u[j + n - 1];
    std::uint64_t digit = top / v[n - 1];
    std::uint64_t rest = top % v[n - 1];
    while (digit > 0xFFFFFFFFU || digit * v[n - 2] > ((rest << 32) | u[j + n - 2])) {
      --digit;
      rest += v[n - 1];
      if (rest > 0xFFFFFFFFU) break;
    }
    std::uint64_t carry = 0;
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < n; ++i) {
      carry += digit * v[i];
      const std::uint64_t take = (carry & 0xFFFFFFFFU) + borrow;
      borrow = u[i + j] < take ? 1 : 0;
      u[i + j] = static_cast<std::uint32_t>(u[i + j] - take);
      carry >>= 32;
    }
    const std::uint64_t take = carry + borrow;
    const bool below = u[j + n] < take;
    u[j + n] = static_cast<std::uint32_t>(u[j + n] - take);
    if (below) {
      --digit;
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        sum += std::uint64_t{u[i + j]} + v[i];
        u[i + j] = static_cast<std::uint32_t>(sum);
        sum >>= 32;
      }
      u[j + n] = static_cast<std::uint32_t>(u[j + n] + sum);
    }
    quotient[j] = static_cast<std::uint32_t>(digit);
  }
  trim(quotient);
  remainder.clear();
  remainder.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t pair = u[i] | (std::uint64_t{i + 1 < n ? u[i + 1] : 0} << 32);
    remainder.push_back(static_cast<std::uint32_t>(pair >> shift));
  }
  trim(remainder);
}

void BigInteger::divide(const BigInteger& a, const BigInteger& b, BigInteger& quotient,
                        BigInteger& remainder) {
  Words q;
  Words r;
  divide_words(a.words_, b.words_, q, r);
  const bool down = !r.empty() && a.negative_ != b.negative_;
  quotient = make(a.negative_ != b.negative_, std::move(q));
  remainder = make(a.negative_, std::move(r));
  if (!down) return;
  quotient = quotient - BigInteger(1);
  remainder = remainder + b;
}

double BigInteger::true_divide(const BigInteger& a, const BigInteger& b) {
  // A quotient of 66 bits or more; a remainder makes its last bit odd, which is enough to round it once.
  const std::size_t want = b.bits() + 66;
  const std::size_t shift = a.bits() < want ? want - a.bits() : 0;
  Words quotient;
  Words remainder;
  divide_words(shift_left(a.words_, shift), b.words_, quotient, remainder);
  if (quotient.empty()) return a.negative_ != b.negative_ ? -0.0 : 0.0;
  if (!remainder.empty()) quotient[0] |= 1U;
  const BigInteger scaled = make(a.negative_ != b.negative_, std::move(quotient));
  return std::ldexp(scaled.to_double(), -static_cast<int>(std::min<std::size_t>(shift, 1U << 20)));
}

BigInteger BigInteger::power(const BigInteger& base, std::uint64_t exponent) {
  BigInteger out(1);
  BigInteger square = base;
  while (exponent != 0) {
    if ((exponent & 1U) != 0) out = out * square;
    exponent >>= 1;
    if (exponent != 0) square = square * square;
  }
  return out;
}

}  // namespace hone::jinja
