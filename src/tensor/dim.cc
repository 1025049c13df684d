#include "tensor/dim.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace hone {
namespace {

// Coefficients stay within +-(2^63 - 1), so that each can be negated. False on overflow.
bool add_exactly(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_add_overflow(a, b, &out) && out != std::numeric_limits<std::int64_t>::min();
}
bool multiply_exactly(std::int64_t a, std::int64_t b, std::int64_t& out) {
  return !__builtin_mul_overflow(a, b, &out) && out != std::numeric_limits<std::int64_t>::min();
}

// Rounded up and down, for a divisor >= 1.
std::int64_t divide_up(std::int64_t a, std::int64_t divisor) {
  return a / divisor + (a % divisor > 0 ? 1 : 0);
}
std::int64_t divide_down(std::int64_t a, std::int64_t divisor) {
  return a / divisor - (a % divisor < 0 ? 1 : 0);
}

}  // namespace

struct Dim::Compound {
  enum class Kind { Max, CeilDiv } kind;
  std::vector<Dim> arguments;  // Max: two or more, sorted by text; CeilDiv: one
  std::int64_t divisor = 1;    // CeilDiv
};

void Bindings::set(char symbol, std::int64_t value) {
  for (Binding& item : items_) {
    if (item.symbol == symbol) {
      item.value = value;
      return;
    }
  }
  items_.push_back({symbol, value});
}

std::string Dim::Atom::key() const {
  if (letter != 0) return std::string(1, letter);
  std::string text = compound->kind == Compound::Kind::Max ? "max(" : "ceil_div(";
  for (std::size_t i = 0; i < compound->arguments.size(); ++i) {
    if (i > 0) text += ", ";
    text += compound->arguments[i].to_string();
  }
  if (compound->kind == Compound::Kind::CeilDiv) text += fmt::format(", {}", compound->divisor);
  return text + ")";
}

std::string Dim::Term::key() const {
  std::string text;
  for (const Atom& atom : atoms) {
    if (!text.empty()) text += '*';
    text += atom.key();
  }
  return text;
}

Dim Dim::symbol(char letter) {
  return from_atom(Atom{letter, nullptr});
}

Dim Dim::from_atom(Atom atom) {
  Dim out;
  out.terms_.push_back(Term{1, {std::move(atom)}});
  return out;
}

Dim Dim::overflow() {
  Dim out;
  out.overflowed_ = true;
  return out;
}

Dim Dim::from_terms(std::vector<Term> terms, std::int64_t constant) {
  if (terms.size() <= 1) {  // most of them: no keys are needed
    Dim out(constant);
    if (!terms.empty() && terms.front().coefficient != 0) out.terms_ = std::move(terms);
    return out;
  }
  std::vector<std::pair<std::string, Term>> keyed;
  keyed.reserve(terms.size());
  for (Term& term : terms) {
    std::string key = term.key();
    keyed.emplace_back(std::move(key), std::move(term));
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Dim out(constant);
  std::string last;
  for (auto& [key, term] : keyed) {
    if (!out.terms_.empty() && key == last) {
      std::int64_t& sum = out.terms_.back().coefficient;
      if (!add_exactly(sum, term.coefficient, sum)) return overflow();
    } else {
      out.terms_.push_back(std::move(term));
      last = key;
    }
  }
  std::erase_if(out.terms_, [](const Term& term) { return term.coefficient == 0; });
  return out;
}

// As their keys compare: those are what the normal form of equal atoms is written from.
bool Dim::same_atoms(const Term& a, const Term& b) {
  return std::ranges::equal(a.atoms, b.atoms, [](const Atom& x, const Atom& y) {
    if (x.letter != y.letter) return false;
    if (x.letter != 0 || x.compound == y.compound) return true;
    return x.compound->kind == y.compound->kind && x.compound->divisor == y.compound->divisor &&
           x.compound->arguments == y.compound->arguments;
  });
}

std::vector<Dim::Atom> Dim::multiply_atoms(const Term& a, const Term& b) {
  std::vector<Atom> atoms = a.atoms;
  atoms.insert(atoms.end(), b.atoms.begin(), b.atoms.end());
  std::sort(atoms.begin(), atoms.end(), [](const Atom& x, const Atom& y) {
    if (x.letter != 0 && y.letter != 0) return x.letter < y.letter;
    return x.key() < y.key();
  });
  return atoms;
}

std::string Dim::to_string() const {
  if (overflowed_) return "overflow";
  std::string text;
  for (const Term& term : terms_) {
    if (!text.empty()) text += term.coefficient < 0 ? " - " : " + ";
    const std::int64_t shown = text.empty() ? term.coefficient : std::abs(term.coefficient);
    if (shown != 1) text += fmt::format("{}*", shown);
    text += term.key();
  }
  if (terms_.empty()) return fmt::format("{}", constant_);
  if (constant_ > 0) text += fmt::format(" + {}", constant_);
  if (constant_ < 0) text += fmt::format(" - {}", -constant_);
  return text;
}

std::int64_t Dim::heap_bytes() const {
  std::size_t sum = terms_.size() * sizeof(Term);
  for (const Term& term : terms_) sum += term.atoms.size() * sizeof(Atom);
  return static_cast<std::int64_t>(sum);
}

std::optional<std::int64_t> Dim::as_constant() const {
  if (!is_constant()) return std::nullopt;
  return constant_;
}

void Dim::collect_symbols(std::string& letters) const {
  for (const Term& term : terms_) {
    for (const Atom& atom : term.atoms) {
      if (atom.letter != 0) {
        if (letters.find(atom.letter) == std::string::npos) letters += atom.letter;
      } else {
        for (const Dim& argument : atom.compound->arguments) argument.collect_symbols(letters);
      }
    }
  }
}

bool Dim::mentions(char letter) const {
  const auto in_atom = [letter](const Atom& atom) {
    if (atom.compound == nullptr) return atom.letter == letter;
    return std::ranges::any_of(atom.compound->arguments,
                               [letter](const Dim& dim) { return dim.mentions(letter); });
  };
  return std::ranges::any_of(terms_,
                             [&](const Term& term) { return std::ranges::any_of(term.atoms, in_atom); });
}

Dim Dim::substitute(char letter, const Dim& replacement) const {
  if (!mentions(letter)) return *this;
  const auto substituted = [&](const Atom& atom) {
    if (atom.letter == letter) return replacement;
    if (atom.letter != 0) return from_atom(atom);
    Dim out = atom.compound->arguments[0].substitute(letter, replacement);
    for (std::size_t i = 1; i < atom.compound->arguments.size(); ++i)
      out = max(out, atom.compound->arguments[i].substitute(letter, replacement));
    return atom.compound->kind == Compound::Kind::CeilDiv ? ceil_div(out, atom.compound->divisor) : out;
  };
  Dim sum(constant_);
  for (const Term& term : terms_) {
    Dim product(term.coefficient);
    for (const Atom& atom : term.atoms) product = product * substituted(atom);
    sum = sum + product;
  }
  return sum;
}

Result<std::int64_t> Dim::evaluate_atom(const Atom& atom, const Bindings& bindings) {
  if (atom.letter != 0) {
    const std::optional<std::int64_t> value = bindings.find(atom.letter);
    if (!value) return internal_error("dim", fmt::format("symbol {} has no value", atom.letter));
    return *value;
  }
  std::int64_t best = 0;
  for (std::size_t i = 0; i < atom.compound->arguments.size(); ++i) {
    const std::int64_t value = HONE_TRY(atom.compound->arguments[i].evaluate(bindings));
    best = i == 0 ? value : std::max(best, value);
  }
  if (atom.compound->kind == Compound::Kind::CeilDiv) {
    best = divide_up(best, atom.compound->divisor);
  }
  return best;
}

Result<std::int64_t> Dim::evaluate(const Bindings& bindings) const {
  if (overflowed_) return internal_error("dim", "the size overflows 64 bits");
  std::int64_t sum = constant_;
  for (const Term& term : terms_) {
    std::int64_t product = term.coefficient;
    for (const Atom& atom : term.atoms) {
      const std::int64_t value = HONE_TRY(evaluate_atom(atom, bindings));
      if (__builtin_mul_overflow(product, value, &product)) {
        return internal_error("dim", fmt::format("{} overflows 64 bits", to_string()));
      }
    }
    if (__builtin_add_overflow(sum, product, &sum)) {
      return internal_error("dim", fmt::format("{} overflows 64 bits", to_string()));
    }
  }
  return sum;
}

Dim operator+(const Dim& a, const Dim& b) {
  std::int64_t constant = 0;
  if (a.overflowed_ || b.overflowed_ || !add_exactly(a.constant_, b.constant_, constant))
    return Dim::overflow();
  if (a.terms_.empty() && b.terms_.empty()) return Dim(constant);
  std::vector<Dim::Term> terms = a.terms_;
  terms.insert(terms.end(), b.terms_.begin(), b.terms_.end());
  return Dim::from_terms(std::move(terms), constant);
}

Dim operator-(const Dim& a, const Dim& b) {
  return a + b * Dim(-1);
}

Dim operator*(const Dim& a, const Dim& b) {
  std::int64_t constant = 0;
  bool exact = !a.overflowed_ && !b.overflowed_ && multiply_exactly(a.constant_, b.constant_, constant);
  if (exact && a.terms_.empty() && b.terms_.empty()) return Dim(constant);
  std::vector<Dim::Term> terms;
  const auto add = [&](std::int64_t x, std::int64_t y, std::vector<Dim::Atom> atoms) {
    std::int64_t coefficient = 0;
    exact = exact && multiply_exactly(x, y, coefficient);
    if (coefficient != 0) terms.push_back({coefficient, std::move(atoms)});
  };
  for (const Dim::Term& x : a.terms_) {
    for (const Dim::Term& y : b.terms_) add(x.coefficient, y.coefficient, Dim::multiply_atoms(x, y));
    if (b.constant_ != 0) add(x.coefficient, b.constant_, x.atoms);
  }
  if (a.constant_ != 0) {
    for (const Dim::Term& y : b.terms_) add(y.coefficient, a.constant_, y.atoms);
  }
  return exact ? Dim::from_terms(std::move(terms), constant) : Dim::overflow();
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.overflowed_ != b.overflowed_ || a.constant_ != b.constant_ || a.terms_.size() != b.terms_.size())
    return false;
  for (std::size_t i = 0; i < a.terms_.size(); ++i) {
    if (a.terms_[i].coefficient != b.terms_[i].coefficient) return false;
    if (!Dim::same_atoms(a.terms_[i], b.terms_[i])) return false;
  }
  return true;
}

std::optional<std::int64_t> Dim::least_value(const Atom& atom) {
  if (atom.letter != 0) return 1;
  std::optional<std::int64_t> best;
  for (const Dim& argument : atom.compound->arguments) {
    const std::optional<std::int64_t> value = argument.least_value();
    if (value && (!best || *value > *best)) best = value;
  }
  if (best && atom.compound->kind == Compound::Kind::CeilDiv) best = divide_up(*best, atom.compound->divisor);
  return best;
}

std::optional<std::int64_t> Dim::least_value() const {
  if (overflowed_) return std::nullopt;
  std::int64_t sum = constant_;
  for (const Term& term : terms_) {
    // A product grows with each of its factors as long as none is negative. What lowers the sum is not
    // followed up.
    if (term.coefficient < 0) return std::nullopt;
    std::int64_t product = term.coefficient;
    for (const Atom& atom : term.atoms) {
      const std::optional<std::int64_t> factor = least_value(atom);
      if (!factor || (*factor < 0 && term.atoms.size() > 1)) return std::nullopt;
      if (!multiply_exactly(product, *factor, product)) return std::nullopt;
    }
    if (!add_exactly(sum, product, sum)) return std::nullopt;
  }
  return sum;
}

namespace {

// Points at which the symbols are 1 or 1000, by the bits of their letters: all low, all high, and halves of
// the alphabet against each other.
std::vector<Bindings> sample_points() {
  constexpr int kBits[] = {0, 1, 4};
  std::vector<Bindings> points(8);
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    for (int point = 0; point < 8; ++point) {
      bool high = point == 1;
      if (point >= 2) high = ((letter - 'A') >> kBits[point / 2 - 1] & 1) == point % 2;
      points[static_cast<std::size_t>(point)].set(letter, high ? 1000 : 1);
    }
  }
  return points;
}

}  // namespace

// A counterexample settles most questions before any algebra, which is a hundred times dearer.
bool always_at_least(const Dim& a, const Dim& b) {
  static const std::vector<Bindings> kPoints = sample_points();
  for (const Bindings& point : kPoints) {
    const Result<std::int64_t> x = a.evaluate(point);
    const Result<std::int64_t> y = b.evaluate(point);
    if (!x.ok() || !y.ok()) break;
    if (*x < *y) return false;
  }
  const std::optional<std::int64_t> least = (a - b).least_value();
  return least && *least >= 0;
}

Dim max(const Dim& a, const Dim& b) {
  if (a.overflowed_ || b.overflowed_) return Dim::overflow();
  if (always_at_least(a, b)) return a;
  if (always_at_least(b, a)) return b;
  std::vector<Dim> arguments;
  const auto add = [&arguments](const Dim& dim) {
    for (const Dim& existing : arguments) {
      if (always_at_least(existing, dim)) return;
    }
    std::erase_if(arguments, [&dim](const Dim& existing) { return always_at_least(dim, existing); });
    arguments.push_back(dim);
  };
  // r + max(x, y) stands for the two arguments r + x and r + y: what one dominates falls away, and nested
  // maxima do not pile up.
  const auto flatten = [&add](const auto& self, const Dim& dim) -> void {
    for (const Dim::Term& term : dim.terms_) {
      const bool is_max = term.coefficient == 1 && term.atoms.size() == 1 && term.atoms[0].letter == 0 &&
                          term.atoms[0].compound->kind == Dim::Compound::Kind::Max;
      if (!is_max) continue;
      const Dim rest = dim - Dim::from_atom(term.atoms[0]);
      for (const Dim& argument : term.atoms[0].compound->arguments) self(self, rest + argument);
      return;
    }
    add(dim);
  };
  flatten(flatten, a);
  flatten(flatten, b);
  if (arguments.size() == 1) return arguments[0];
  std::sort(arguments.begin(), arguments.end(),
            [](const Dim& x, const Dim& y) { return x.to_string() < y.to_string(); });
  return Dim::from_atom(
      {0, std::make_shared<Dim::Compound>(Dim::Compound{Dim::Compound::Kind::Max, std::move(arguments), 1})});
}

Dim ceil_div(const Dim& a, std::int64_t divisor) {
  if (a.overflowed_ || divisor == 1) return a;
  if (a.terms_.empty()) return Dim(divide_up(a.constant_, divisor));
  // What the divisor divides leaves the ceil: ceil((d*x + r)/d) = x + ceil(r/d).
  std::vector<Dim::Term> whole;
  std::vector<Dim::Term> rest;
  for (const Dim::Term& term : a.terms_) {
    if (term.coefficient % divisor == 0) {
      whole.push_back({term.coefficient / divisor, term.atoms});
    } else {
      rest.push_back(term);
    }
  }
  if (rest.empty()) return Dim::from_terms(std::move(whole), divide_up(a.constant_, divisor));
  // A factor g of the divisor and all coefficients cancels: ceil((g*x + c)/(g*e)) = ceil((x + ceil(c/g))/e),
  // for ceil(y/(g*e)) = ceil(ceil(y/g)/e) and x is an integer.
  std::int64_t common = divisor;
  for (const Dim::Term& term : rest) common = std::gcd(common, term.coefficient);
  for (Dim::Term& term : rest) term.coefficient /= common;
  divisor /= common;
  const std::int64_t constant = divide_up(a.constant_, common);
  const std::int64_t whole_constant = divide_down(constant, divisor);
  Dim outside = Dim::from_terms(std::move(whole), whole_constant);
  Dim inside = Dim::from_terms(std::move(rest), constant - whole_constant * divisor);
  return outside + Dim::from_atom({0, std::make_shared<Dim::Compound>(Dim::Compound{
                                          Dim::Compound::Kind::CeilDiv, {std::move(inside)}, divisor})});
}

std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  if (a.overflowed_ || b.overflowed_ || b == Dim(0)) return std::nullopt;
  if (a.constant_ == std::numeric_limits<std::int64_t>::min())
    return std::nullopt;  // over -1 it has no quotient
  if (a == b) return Dim(1);
  const bool monomial = b.terms_.empty() ? b.constant_ != 0 : (b.terms_.size() == 1 && b.constant_ == 0);
  if (!monomial) return std::nullopt;
  const std::int64_t divisor = b.terms_.empty() ? b.constant_ : b.terms_[0].coefficient;
  const std::vector<Dim::Atom> remove = b.terms_.empty() ? std::vector<Dim::Atom>{} : b.terms_[0].atoms;
  if (a.constant_ % divisor != 0 || (a.constant_ != 0 && !remove.empty())) return std::nullopt;
  std::vector<Dim::Term> terms;
  std::int64_t constant = a.constant_ / divisor;
  for (const Dim::Term& term : a.terms_) {
    if (term.coefficient % divisor != 0) return std::nullopt;
    std::vector<Dim::Atom> atoms = term.atoms;
    for (const Dim::Atom& atom : remove) {
      const std::string key = atom.key();
      auto found =
          std::find_if(atoms.begin(), atoms.end(), [&](const Dim::Atom& x) { return x.key() == key; });
      if (found == atoms.end()) return std::nullopt;
      atoms.erase(found);
    }
    if (atoms.empty()) {
      constant += term.coefficient / divisor;
    } else {
      terms.push_back({term.coefficient / divisor, std::move(atoms)});
    }
  }
  return Dim::from_terms(std::move(terms), constant);
}

std::string shape_to_string(std::span<const Dim> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += shape[i].to_string();
  }
  return text + "]";
}

Dim element_count(std::span<const Dim> shape) {
  Dim count(1);
  for (const Dim& dim : shape) count = count * dim;
  return count;
}

}  // namespace hone
