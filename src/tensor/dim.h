// Symbolic sizes. A Dim is an integer or an expression (sum, product, max, ceil-div) over symbols, kept in a
// normal form, so that equal expressions compare equal: a sum of terms, each an integer times a sorted
// product of atoms; an atom is a symbol, a max or a ceil-div.
//
//   2*T*64 + T*128   ->   256*T            max(T, 3*T + 1)   ->   3*T + 1
//
// Every symbol stands for an integer >= 1 (a step has at least one sequence, one token, one token of
// context); the simplification of max relies on it. Arithmetic is exact in int64. A coefficient that
// overflows turns the whole expression into "overflow", which spreads, prints as `overflow` and equals
// itself; evaluation reports it, as it reports an overflow of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hone {

// A symbol: one letter, the axis letter of docs/words.md. B sequences, T tokens of each in this step, C
// context after it, N tokens of all of them.
struct Binding {
  char symbol;
  std::int64_t value;
};

// Values for symbols, at most a handful: looked up linearly.
class Bindings {
 public:
  Bindings() = default;
  Bindings(std::initializer_list<Binding> list) : items_(list) {}
  std::optional<std::int64_t> find(char symbol) const {
    for (const Binding& item : items_) {
      if (item.symbol == symbol) return item.value;
    }
    return std::nullopt;
  }
  void set(char symbol, std::int64_t value);
  std::span<const Binding> items() const { return items_; }

 private:
  std::vector<Binding> items_;
};

class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t constant) : constant_(constant) {}  // NOLINT(google-explicit-constructor)
  static Dim symbol(char letter);

  // The text form: `3`, `B`, `2*B*T + 64`, `max(B*T, C)`, `ceil_div(T, 16)`. parse() reads what to_string()
  // writes.
  std::string to_string() const;
  static Result<Dim> parse(std::string_view text);

  bool is_constant() const { return terms_.empty() && !overflowed_; }
  bool overflowed() const { return overflowed_; }
  std::optional<std::int64_t> as_constant() const;
  bool mentions(char letter) const;
  // Adds each symbol that occurs to `letters`, once.
  void collect_symbols(std::string& letters) const;
  // With `replacement` wherever the symbol `letter` occurs.
  Dim substitute(char letter, const Dim& replacement) const;

  // Bytes on the heap: its terms and their atoms (compounds, shared between dims, are not counted).
  std::int64_t heap_bytes() const;

  // The value under `bindings`; an error (Fault::Hone) for an unbound symbol, or for overflow of int64.
  Result<std::int64_t> evaluate(const Bindings& bindings) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);

  friend Dim max(const Dim& a, const Dim& b);
  // ceil(a / divisor), divisor >= 1. Whole multiples leave it and common factors cancel:
  // ceil_div(32*B + 2*T + 21, 16) -> 2*B + ceil_div(T + 3, 8) + 1.
  friend Dim ceil_div(const Dim& a, std::int64_t divisor);
  // a / b where the division is exact for every value of the symbols; nullopt where that cannot be shown.
  friend std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);
  // True if a >= b for every value >= 1 of the symbols; false if that cannot be shown.
  // Shown by: each term of a - b is at least its coefficient times the least values of its atoms.
  friend bool always_at_least(const Dim& a, const Dim& b);

 private:
  struct Compound;
  struct Atom {
    char letter = 0;                           // a symbol, or 0
    std::shared_ptr<const Compound> compound;  // a max or a ceil-div
    std::string key() const;
  };
  struct Term {
    std::int64_t coefficient = 0;
    std::vector<Atom> atoms;  // sorted by key
    std::string key() const;
  };

  static Dim from_terms(std::vector<Term> terms, std::int64_t constant);
  static Dim from_atom(Atom atom);
  static Dim overflow();
  static std::vector<Atom> multiply_atoms(const Term& a, const Term& b);
  static bool same_atoms(const Term& a, const Term& b);
  static Result<std::int64_t> evaluate_atom(const Atom& atom, const Bindings& bindings);
  // A value that the atom, the expression never goes below; nullopt where none is found.
  static std::optional<std::int64_t> least_value(const Atom& atom);
  std::optional<std::int64_t> least_value() const;
  friend class DimParser;

  bool overflowed_ = false;  // then constant_ is 0 and there are no terms
  std::int64_t constant_ = 0;
  std::vector<Term> terms_;  // sorted by key, no zero coefficient
};

Dim max(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, std::int64_t divisor);
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);
bool always_at_least(const Dim& a, const Dim& b);

// a rounded up to a multiple of `multiple`.
inline Dim round_up(const Dim& a, std::int64_t multiple) {
  return ceil_div(a, multiple) * Dim(multiple);
}

// Row-major, outermost axis first.
using Shape = std::vector<Dim>;

std::string shape_to_string(std::span<const Dim> shape);  // "[B,T,576]"
Dim element_count(std::span<const Dim> shape);

}  // namespace hone
