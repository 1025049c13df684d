#include "tensor/dim.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>

namespace hone {
namespace {

const Dim kB = Dim::symbol('B');
const Dim kT = Dim::symbol('T');
const Dim kC = Dim::symbol('C');

std::string normal(std::string_view text) {
  const Result<Dim> dim = Dim::parse(text);
  return dim ? dim->to_string() : "error: " + dim.error().expected;
}

TEST(Dim, NormalForm) {
  // What is written on the left prints as on the right.
  const std::pair<const char*, const char*> table[] = {
      {"3", "3"},
      {"-3", "-3"},
      {"0*T", "0"},
      {"T - T", "0"},
      {"2*T*64 + T*128", "256*T"},
      {"T*B", "B*T"},
      {"C + B + 1 + T", "B + C + T + 1"},
      {"1 - T", "-1*T + 1"},
      {"B - 2*T - 3", "B - 2*T - 3"},
      {"max(T, 3*T + 1)", "3*T + 1"},
      {"max(B, T, B + T)", "B + T"},
      {"max(T, max(C, B))", "max(B, C, T)"},
      {"max(max(B, T), T)", "max(B, T)"},
      {"max(T, 1)", "T"},
      {"max(T, 0)", "T"},
      {"max(T, 2)", "max(2, T)"},
      {"ceil_div(T, 1)", "T"},
      {"ceil_div(33, 16)", "3"},
      {"ceil_div(-33, 16)", "-2"},
      {"ceil_div(16*T, 16)", "T"},
      {"ceil_div(T + 16, 16)", "ceil_div(T, 16) + 1"},
      {"ceil_div(T - 1, 16)", "ceil_div(T + 15, 16) - 1"},
      {"ceil_div(32*B + 2*T + 21, 16)", "2*B + ceil_div(T + 3, 8) + 1"},
      {"2*ceil_div(T, 16)*B", "2*B*ceil_div(T, 16)"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(normal(text), expected) << text;
}

TEST(Dim, EqualExpressionsAreEqual) {
  EXPECT_EQ((kB + kT) * (kB - kT), kB * kB - kT * kT);
  EXPECT_EQ(max(kB, kT), max(kT, kB));
  EXPECT_EQ(max(max(kB, kT), kC), max(kB, max(kC, kT)));
  EXPECT_EQ(max(max(kB, kT), kB + kT), max(kB + kT, max(kT, kB)));
  EXPECT_EQ(ceil_div(kT + Dim(16), 16), ceil_div(kT, 16) + Dim(1));
  EXPECT_EQ(ceil_div(Dim(2) * kT, 32), ceil_div(kT, 16));
  EXPECT_FALSE(kB == kT);
  EXPECT_FALSE(kB == kB + Dim(1));
}

TEST(Dim, ConstantsAndSymbols) {
  EXPECT_TRUE(Dim(4).is_constant());
  EXPECT_EQ((kT - kT + Dim(2)).as_constant(), 2);
  EXPECT_EQ(kT.as_constant(), std::nullopt);
  const Dim dim = kB * ceil_div(max(kT, kC), 16);
  EXPECT_TRUE(dim.mentions('C'));
  EXPECT_FALSE(dim.mentions('R'));
  std::string letters = "T";
  dim.collect_symbols(letters);
  std::sort(letters.begin(), letters.end());
  EXPECT_EQ(letters, "BCT");
  EXPECT_EQ(shape_to_string(std::vector<Dim>{kB, kT + Dim(1), Dim(576)}), "[B,T + 1,576]");
  EXPECT_EQ(element_count(std::vector<Dim>{kB, Dim(2), kB}).to_string(), "2*B*B");
  EXPECT_EQ(round_up(kT, 16).to_string(), "16*ceil_div(T, 16)");
}

TEST(Dim, MalformedTextIsAnErrorWithItsColumn) {
  for (const char* text : {"", "+", "2*", "t", "T +", "max(T", "max()", "ceil_div(T)", "ceil_div(T, 0)",
                           "ceil_div(T, -2)", "ceil_div(T, B)", "T T", "99999999999999999999", "(T)"}) {
    EXPECT_FALSE(Dim::parse(text).ok()) << text;
  }
  const Result<Dim> dim = Dim::parse("T + t");
  ASSERT_FALSE(dim.ok());
  EXPECT_EQ(dim.error().where, "dimension 'T + t', column 5");
  EXPECT_EQ(dim.error().code, ErrorCode::BadInput);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "max(";
  EXPECT_FALSE(Dim::parse(deep).ok());
}

TEST(Dim, OverflowIsReportedAndSpreads) {
  const Dim large(std::int64_t{1} << 40);
  const Result<std::int64_t> product = (large * kT).evaluate({{'T', std::int64_t{1} << 30}});
  ASSERT_FALSE(product.ok());
  EXPECT_EQ(product.error().fault, Fault::Hone);
  EXPECT_FALSE((large * kT + large * kB).evaluate({{'T', 8000000}, {'B', 8000000}}).ok());
  EXPECT_EQ(*(large * kT).evaluate({{'T', 4194304}}), std::int64_t{1} << 62);

  const Dim lost = large * large * kT;  // the coefficient itself does not fit
  EXPECT_TRUE(lost.overflowed());
  EXPECT_FALSE(lost.is_constant());
  EXPECT_EQ(lost.as_constant(), std::nullopt);
  EXPECT_EQ(lost.to_string(), "overflow");
  for (const Dim& dim : {lost + kT, kT - lost, lost * Dim(0), max(kT, lost), ceil_div(lost, 3)}) {
    EXPECT_TRUE(dim.overflowed());
    EXPECT_FALSE(dim.evaluate({{'T', 1}}).ok());
  }
  EXPECT_FALSE(always_at_least(lost, kT));
  EXPECT_EQ(divide_exactly(lost, Dim(2)), std::nullopt);
  const Dim largest(std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE((largest + Dim(1)).overflowed());
  EXPECT_TRUE((largest * kT + kT).overflowed());
  EXPECT_FALSE(Dim::parse("9223372036854775807*2*T").ok());
}

TEST(Dim, UnboundSymbol) {
  const Result<std::int64_t> value = (kB * kT).evaluate({{'B', 2}});
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.error().message.find("symbol T"), std::string::npos);
  Bindings bindings{{'B', 2}};
  bindings.set('T', 5);
  bindings.set('B', 3);
  EXPECT_EQ(*(kB * kT).evaluate(bindings), 15);
}

TEST(Dim, DivideExactly) {
  const auto quotient = [](const Dim& a, const Dim& b) {
    const std::optional<Dim> out = divide_exactly(a, b);
    return out ? out->to_string() : "none";
  };
  EXPECT_EQ(quotient(Dim(12), Dim(4)), "3");
  EXPECT_EQ(quotient(Dim(12), Dim(5)), "none");
  EXPECT_EQ(quotient(kB * kT * Dim(576), kT * Dim(64)), "9*B");
  EXPECT_EQ(quotient(kB * kT * Dim(576), kB * kT), "576");
  EXPECT_EQ(quotient(Dim(4) * kT + Dim(8), Dim(4)), "T + 2");
  EXPECT_EQ(quotient(Dim(4) * kT + Dim(6), Dim(4)), "none");
  EXPECT_EQ(quotient(kT + Dim(1), kT), "none");
  EXPECT_EQ(quotient(kB + kT, kB + kT), "1");
  EXPECT_EQ(quotient(kB * kB, kB), "B");
  EXPECT_EQ(quotient(kB, Dim(0)), "none");
  EXPECT_EQ(quotient(Dim(0), Dim(0)), "none");
  EXPECT_EQ(quotient(Dim(0), Dim(7)), "0");
  EXPECT_EQ(quotient(kC * ceil_div(kT, 16), ceil_div(kT, 16)), "C");
}

TEST(Dim, AlwaysAtLeast) {
  EXPECT_TRUE(always_at_least(kT, Dim(1)));
  EXPECT_FALSE(always_at_least(kT, Dim(2)));
  EXPECT_TRUE(always_at_least(kB * kT, Dim(1)));
  EXPECT_TRUE(always_at_least(kT + kB, kT + Dim(1)));
  // An atom need not be positive: max(T - 5, B - 9) is -4 at T = B = 1.
  const Dim negative = max(kT - Dim(5), kB - Dim(9));
  EXPECT_FALSE(always_at_least(negative, Dim(0)));
  EXPECT_FALSE(always_at_least(kT * negative, Dim(0)));
  EXPECT_TRUE(always_at_least(negative, Dim(-4)));
  EXPECT_FALSE(always_at_least(negative * negative, Dim(16)));  // 16 at T = 1, but 0 at T = 5
  EXPECT_TRUE(always_at_least(ceil_div(kT - Dim(1), 16), Dim(0)));
  EXPECT_FALSE(always_at_least(ceil_div(kT - Dim(1), 16), Dim(1)));
}

// Random expressions, built twice: as a Dim, and as a tree that is evaluated as written.
struct Tree {
  enum class Kind { Constant, Symbol, Add, Subtract, Multiply, Max, CeilDiv } kind = Kind::Constant;
  std::int64_t value = 0;  // of a constant; the divisor
  char letter = 0;
  std::unique_ptr<Tree> a, b;
};

std::int64_t evaluate(const Tree& tree, std::int64_t b, std::int64_t t, std::int64_t c) {
  const std::int64_t x = tree.a ? evaluate(*tree.a, b, t, c) : 0;
  const std::int64_t y = tree.b ? evaluate(*tree.b, b, t, c) : 0;
  switch (tree.kind) {
    case Tree::Kind::Constant:
      return tree.value;
    case Tree::Kind::Symbol:
      return tree.letter == 'B' ? b : (tree.letter == 'T' ? t : c);
    case Tree::Kind::Add:
      return x + y;
    case Tree::Kind::Subtract:
      return x - y;
    case Tree::Kind::Multiply:
      return x * y;
    case Tree::Kind::Max:
      return std::max(x, y);
    case Tree::Kind::CeilDiv:
      break;
  }
  std::int64_t quotient = x / tree.value;
  while (quotient * tree.value < x) ++quotient;
  return quotient;
}

Dim to_dim(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::Constant:
      return Dim(tree.value);
    case Tree::Kind::Symbol:
      return Dim::symbol(tree.letter);
    case Tree::Kind::Add:
      return to_dim(*tree.a) + to_dim(*tree.b);
    case Tree::Kind::Subtract:
      return to_dim(*tree.a) - to_dim(*tree.b);
    case Tree::Kind::Multiply:
      return to_dim(*tree.a) * to_dim(*tree.b);
    case Tree::Kind::Max:
      return max(to_dim(*tree.a), to_dim(*tree.b));
    case Tree::Kind::CeilDiv:
      break;
  }
  return ceil_div(to_dim(*tree.a), tree.value);
}

std::unique_ptr<Tree> random_tree(std::mt19937& random, int depth) {
  const auto pick = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  auto tree = std::make_unique<Tree>();
  if (depth == 0 || pick(5) == 0) {
    if (pick(3) == 0) {
      tree->value = pick(13) - 4;
    } else {
      tree->kind = Tree::Kind::Symbol;
      tree->letter = "BTC"[pick(3)];
    }
    return tree;
  }
  const Tree::Kind kinds[] = {Tree::Kind::Add, Tree::Kind::Subtract, Tree::Kind::Multiply, Tree::Kind::Max,
                              Tree::Kind::CeilDiv};
  tree->kind = kinds[pick(5)];
  tree->a = random_tree(random, depth - 1);
  if (tree->kind == Tree::Kind::CeilDiv) {
    tree->value = 1 + pick(8);
  } else {
    tree->b = random_tree(random, depth - 1);
  }
  return tree;
}

TEST(Dim, RandomExpressionsKeepTheirValueAndRoundTrip) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const std::unique_ptr<Tree> tree = random_tree(random, 4);
    const Dim dim = to_dim(*tree);
    const Result<Dim> again = Dim::parse(dim.to_string());
    ASSERT_TRUE(again.ok()) << dim.to_string();
    ASSERT_EQ(*again, dim) << dim.to_string() << " became " << again->to_string();
    for (std::int64_t b = 1; b <= 4; ++b) {
      for (std::int64_t t = 1; t <= 9; t += 2) {
        for (std::int64_t c = 1; c <= 4; ++c) {
          const Result<std::int64_t> value = dim.evaluate({{'B', b}, {'T', t}, {'C', c}});
          ASSERT_TRUE(value.ok());
          ASSERT_EQ(*value, evaluate(*tree, b, t, c))
              << dim.to_string() << " at " << b << ' ' << t << ' ' << c;
        }
      }
    }
  }
}

// Expressions are equal exactly where their texts are.
TEST(Dim, RandomExpressionsAreEqualAsTheirTextsAre) {
  std::mt19937 random(13);
  std::vector<Dim> dims;
  for (int i = 0; i < 400; ++i) dims.push_back(to_dim(*random_tree(random, 2)));
  int equal = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = dims[i].to_string() == dims[j].to_string();
      equal += same ? 1 : 0;
      ASSERT_EQ(dims[i] == dims[j], same) << dims[i].to_string() << " and " << dims[j].to_string();
    }
  }
  EXPECT_GT(equal, 100);
}

// B := an expression, then T := 2: the value is that of the outer expression at the inner one's value.
TEST(Dim, RandomSubstitutionsKeepTheirValue) {
  std::mt19937 random(17);
  int mentioned = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::unique_ptr<Tree> outer = random_tree(random, 3);
    const std::unique_ptr<Tree> inner = random_tree(random, 2);
    const Dim whole = to_dim(*outer);
    const Dim replaced = whole.substitute('B', to_dim(*inner));
    mentioned += whole.mentions('B') ? 1 : 0;
    if (!whole.mentions('B')) {
      ASSERT_EQ(replaced, whole);
    }
    for (std::int64_t b = 1; b <= 3; ++b) {
      const std::int64_t value = evaluate(*inner, b, 2, 3);
      if (value < 1) continue;  // no symbol stands for it
      const Result<std::int64_t> is = replaced.evaluate({{'B', b}, {'T', 2}, {'C', 3}});
      ASSERT_TRUE(is.ok());
      ASSERT_EQ(*is, evaluate(*outer, value, 2, 3))
          << whole.to_string() << " with " << to_dim(*inner).to_string();
    }
  }
  EXPECT_GT(mentioned, 500);
}

// always_at_least and divide_exactly may give up, but what they claim holds.
TEST(Dim, RandomClaimsHold) {
  std::mt19937 random(11);
  int ordered = 0;
  int divided = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::unique_ptr<Tree> x = random_tree(random, 3);
    const std::unique_ptr<Tree> y = random_tree(random, 2);
    const bool claim = always_at_least(to_dim(*x), to_dim(*y));
    const std::optional<Dim> quotient = divide_exactly(to_dim(*x), to_dim(*y));
    ordered += claim ? 1 : 0;
    divided += quotient ? 1 : 0;
    for (std::int64_t b = 1; b <= 4; ++b) {
      for (std::int64_t t = 1; t <= 4; ++t) {
        for (std::int64_t c = 1; c <= 4; ++c) {
          const std::int64_t left = evaluate(*x, b, t, c);
          const std::int64_t right = evaluate(*y, b, t, c);
          ASSERT_TRUE(!claim || left >= right) << to_dim(*x).to_string() << " and " << to_dim(*y).to_string();
          if (!quotient) continue;
          const Result<std::int64_t> value = quotient->evaluate({{'B', b}, {'T', t}, {'C', c}});
          ASSERT_TRUE(value.ok());
          ASSERT_EQ(*value * right, left) << to_dim(*x).to_string() << " / " << to_dim(*y).to_string();
        }
      }
    }
  }
  EXPECT_GT(ordered, 500);
  EXPECT_GT(divided, 200);
}

}  // namespace
}  // namespace hone
