#include "projection_text.h"

namespace hone::test {
namespace {

const std::string_view kProducts = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %c "c": f32[B,T,64]
  input %r "r": f32[B,T,32]
  weight %wq "q": f32[32,64]
  weight %wk "k": q8_0[32,64]
  weight %wg "g": f32[96,64]
  weight %wu "u": f32[96,64]
  %q: f32[B,T,32] = matmul(%x, %wq) {transpose_b = 1} @"q"
  %p: f32[B,T,32] = matmul(%x, %wk) {transpose_b = 1} @"k"
  %k: f32[B,T,32] = add(%p, %r) @"k"
  %g: f32[B,T,96] = swiglu_mlp(%x, %wg, %wu) @"mlp" body "swiglu_mlp" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[96,64]
    input %2 "2": f32[96,64]
    %3: f32[B,T,96] = matmul(%0, %1) {transpose_b = 1}
    %4: f32[B,T,96] = matmul(%0, %2) {transpose_b = 1}
    %5: f32[B,T,96] = mul(%3, %4)
    output "0" %5
  }
  output "q" %q
  output "k" %k
  output "g" %g
}
)");

std::string merged(std::string_view in) {
  return after("merge-projections", after("fuse-epilogue", in));
}

// A matmul, a projection and a gated MLP; the matrices stay where they are.
TEST(MergeProjections, ProductsOfOneX) {
  EXPECT_EQ(merged(kProducts), text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %c "c": f32[B,T,64]
  input %r "r": f32[B,T,32]
  weight %wq "q": f32[32,64]
  weight %wk "k": q8_0[32,64]
  weight %wg "g": f32[96,64]
  weight %wu "u": f32[96,64]
  %q: f32[B,T,32], %k: f32[B,T,32], %g: f32[B,T,96] = projection(%x, %wq, %wk, %r, %wu, %wg) {sections = ints[1, -1, 0, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0, 2, -1, 0, -1, -1, -1, -1, 0, 0, 3, -1, -1, -1, 1, 4, 5, 1, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 2]} @"mlp" body "projection" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[32,64]
    input %2 "2": q8_0[32,64]
    input %3 "3": f32[B,T,32]
    input %4 "4": f32[96,64]
    input %5 "5": f32[96,64]
    %6: f32[B,T,32] = matmul(%0, %1) {transpose_b = 1}
    %7: f32[B,T,32] = matmul(%0, %2) {transpose_b = 1}
    %8: f32[B,T,32] = add(%7, %3)
    %9: f32[B,T,96] = swiglu_mlp(%0, %5, %4) body "swiglu_mlp" symbols(B, T, C) {
      input %0 "0": f32[B,T,64]
      input %1 "1": f32[96,64]
      input %2 "2": f32[96,64]
      %3: f32[B,T,96] = matmul(%0, %1) {transpose_b = 1}
      %4: f32[B,T,96] = matmul(%0, %2) {transpose_b = 1}
      %5: f32[B,T,96] = mul(%3, %4)
      output "0" %5
    }
    output "0" %6
    output "1" %8
    output "2" %9
  }
  output "q" %q
  output "k" %k
  output "g" %g
}
)"));
}

// Merged once more, with a product that has come since: the sections of both in order.
TEST(MergeProjections, AMergedProjectionTakesMore) {
  const Graph graph = parse(after("merge-projections", merged(kProducts)));
  EXPECT_EQ(count_op(graph, "projection"), 1);
  std::string more = merged(kProducts);
  more = replaced(more, "  output \"q\"",
                  "  %z: f32[B,T,32] = matmul(%x, %wq) {transpose_b = 1}\n  output \"z\" %z\n  output \"q\"");
  EXPECT_EQ(nodes_of(after("merge-projections", more)),
            fmt::format("%q: f32[B,T,32], %k: f32[B,T,32], %g: f32[B,T,96], %z: f32[B,T,32] = "
                        "projection(%x, %wq, %wk, %r, %wu, %wg) {{{}}}\n",
                        sections({{.weight = 1},
                                  {.weight = 2, .residual = 3, .output = 1},
                                  {.weight = 4, .gate = 5, .activation = 1, .output = 2},
                                  {.weight = 1, .output = 3}})));
}

// q and k with norms of their heads, and v.
std::string heads(std::string_view of_k) {
  std::string in = R"(graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  input %cos "cos": f32[B,T,8]
  input %sin "sin": f32[B,T,8]
  weight %wv "v": f32[32,64]
)";
  for (const std::string_view name : {"q", "k"})
    in += fmt::format("  weight %w{0} \"{0}\": f32[32,64]\n  weight %n{0} \"n{0}\": f32[16]\n", name);
  for (const std::string_view name : {"q", "k"}) {
    in += fmt::format(R"(  %p{0}: f32[B,T,32] = matmul(%x, %w{0}) {{transpose_b = 1}}
  %h{0}: f32[B,T,2,16] = reshape(%p{0}) {{shape = dims[B, T, 2, 16]}}
  %m{0}: f32[B,T,2,16] = rms_norm(%h{0}, %n{0}) {{{1}}} body "rms_norm" symbols(B, T) {{
    input %0 "0": f32[B,T,2,16]
    input %1 "1": f32[16]
    %2: f32[B,T,2,16] = mul(%0, %1)
    output "0" %2
  }}
  %{0}: f32[B,T,2,16] = rope(%m{0}, %cos, %sin) {{interleaved = 0}} body "rope" symbols(B, T) {{
    input %0 "0": f32[B,T,2,16]
    input %1 "1": f32[B,T,8]
    input %2 "2": f32[B,T,8]
    %3: f32[B,T,2,16] = neg(%0)
    output "0" %3
  }}
)",
                      name, name == "q" ? "eps = 1e-06" : of_k);
  }
  return in + R"(  %v: f32[B,T,32] = matmul(%x, %wv) {transpose_b = 1}
  output "q" %q
  output "k" %k
  output "v" %v
}
)";
}

TEST(MergeProjections, HeadsThatAreNormedAlike) {
  EXPECT_EQ(
      nodes_of(merged(heads("eps = 1e-06"))),
      fmt::format("%q: f32[B,T,2,16], %k: f32[B,T,2,16], %v: f32[B,T,32] = "
                  "projection(%x, %wq, %nq, %cos, %sin, %wk, %nk, %wv) {{{}, head_eps = 1e-06}}\n",
                  sections({{.weight = 1, .head_norm = 2, .cosine = 3, .sine = 4, .head = 16},
                            {.weight = 5, .head_norm = 6, .cosine = 3, .sine = 4, .head = 16, .output = 1},
                            {.weight = 7, .output = 2}})));
}

// With another eps or offset k stays apart, and v still joins q.
TEST(MergeProjections, NotHeadsOfAnotherEpsOrOffset) {
  for (const std::string_view of_k : {"eps = 1e-05", "eps = 1e-06, offset = 1.0"}) {
    const std::string nodes = nodes_of(merged(heads(of_k)));
    EXPECT_NE(nodes.find("%q: f32[B,T,2,16], %v: f32[B,T,32] = projection("), std::string::npos) << nodes;
    EXPECT_NE(nodes.find(fmt::format("head_{}", of_k.substr(0, 11))), std::string::npos) << nodes;
    EXPECT_EQ(count_op(parse(merged(heads(of_k))), "projection"), 2) << nodes;
  }
}

TEST(MergeProjections, NotOfDifferentX) {
  std::string in = replaced(kProducts, "swiglu_mlp(%x,", "swiglu_mlp(%c,");
  EXPECT_EQ(count_op(parse(merged(in)), "projection"), 1);
  EXPECT_EQ(count_op(parse(merged(in)), "swiglu_mlp"), 1);
  in = replaced(in, "%p: f32[B,T,32] = matmul(%x,", "%p: f32[B,T,32] = matmul(%r2,");
  in = replaced(in, "  input %c", "  input %r2 \"r2\": f32[B,T,64]\n  input %c");
  EXPECT_EQ(merged(in), after("fuse-epilogue", in));
}

TEST(MergeProjections, NotOfProductsWithoutWeightsOrTokens) {
  std::string in = replaced(kProducts, "swiglu_mlp(%x,", "swiglu_mlp(%c,");
  in = replaced(in, "weight %wq \"q\"", "input %wq \"q\"");
  EXPECT_EQ(merged(in), after("fuse-epilogue", in));
  const std::string_view rows = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %a "a": f32[32,64]
  weight %b "b": f32[32,64]
  %p: f32[T,32] = matmul(%x, %a) {transpose_b = 1}
  %q: f32[T,32] = matmul(%x, %b) {transpose_b = 1}
  output "p" %p
  output "q" %q
}
)");
  EXPECT_EQ(merged(rows), unchanged(rows));
}

// k reads what q makes: by its residual at once, or by a value in between.
TEST(MergeProjections, NotIfOneReadsTheOther) {
  std::string in = replaced(kProducts, "swiglu_mlp(%x,", "swiglu_mlp(%c,");
  const std::string direct = replaced(in, "add(%p, %r)", "add(%p, %q)");
  EXPECT_EQ(merged(direct), after("fuse-epilogue", direct));
  in = replaced(in, "add(%p, %r)", "add(%p, %t)");
  in = replaced(in, "  %p:", "  %t: f32[B,T,32] = tanh(%q)\n  %p:");
  EXPECT_EQ(merged(in), after("fuse-epilogue", in));
}

// The three cannot run together, but two of them can.
TEST(MergeProjections, WhatCannotJoinStaysApart) {
  std::string in = replaced(kProducts, "add(%p, %r)", "add(%p, %t)");
  in = replaced(in, "  %p:", "  %t: f32[B,T,32] = tanh(%q)\n  %p:");
  EXPECT_EQ(nodes_of(merged(in)),
            fmt::format("%q: f32[B,T,32], %g: f32[B,T,96] = projection(%x, %wq, %wu, %wg) {{{}}}\n"
                        "%t: f32[B,T,32] = tanh(%q)\n"
                        "%k: f32[B,T,32] = projection(%x, %wk, %t) {{{}}}\n",
                        sections({{.weight = 1}, {.weight = 2, .gate = 3, .activation = 1, .output = 1}}),
                        sections({{.weight = 1, .residual = 2}})));
}

// The launch stands behind what all of it reads and before its first reader, wherever its parts stood.
TEST(MergeProjections, StandsWhereAllOfItIsReady) {
  std::string late = replaced(kProducts, "add(%p, %r)", "add(%p, %t)");
  late = replaced(late, "  %k:", "  %t: f32[B,T,32] = tanh(%r)\n  %k:");
  EXPECT_EQ(nodes_of(merged(late)).substr(0, 31), "%t: f32[B,T,32] = tanh(%r)\n%q: ");
  const std::string early =
      replaced(kProducts, "  %p:", "  %t: f32[B,T,32] = tanh(%q)\n  output \"t\" %t\n  %p:");
  EXPECT_EQ(nodes_of(merged(early)).substr(0, 3), "%q:");
  EXPECT_EQ(count_op(parse(merged(early)), "projection"), 1);
}

// a1 and a2 of x run where a2 stood, behind b1: b2, which reads a1, takes b1 with it to its own place.
TEST(MergeProjections, TheFirstMergeIsSeenByTheSecond) {
  const std::string_view in = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  input %c "c": f32[B,T,64]
  input %r "r": f32[B,T,32]
  weight %w0 "w0": f32[32,64]
  weight %w1 "w1": f32[32,64]
  weight %w2 "w2": f32[32,64]
  weight %w3 "w3": f32[32,64]
  %a1: f32[B,T,32] = matmul(%x, %w0) {transpose_b = 1}
  %b1: f32[B,T,32] = matmul(%c, %w1) {transpose_b = 1}
  %ra: f32[B,T,32] = tanh(%r)
  %p2: f32[B,T,32] = matmul(%x, %w2) {transpose_b = 1}
  %a2: f32[B,T,32] = add(%p2, %ra)
  %q2: f32[B,T,32] = matmul(%c, %w3) {transpose_b = 1}
  %b2: f32[B,T,32] = add(%q2, %a1)
  output "a1" %a1
  output "a2" %a2
  output "b1" %b1
  output "b2" %b2
}
)");
  const std::string two = sections({{.weight = 1}, {.weight = 2, .residual = 3, .output = 1}});
  EXPECT_EQ(nodes_of(merged(in)),
            fmt::format("%ra: f32[B,T,32] = tanh(%r)\n"
                        "%a1: f32[B,T,32], %a2: f32[B,T,32] = projection(%x, %w0, %w2, %ra) {{{}}}\n"
                        "%b1: f32[B,T,32], %b2: f32[B,T,32] = projection(%c, %w1, %w3, %a1) {{{}}}\n",
                        two, two));
}

// The offset of a folded norm holds for all sections of its node.
TEST(MergeProjections, NotWhereANormIsFolded) {
  const std::string_view in = text(R"(
graph "g" symbols(B, T) {
  input %a "a": f32[B,T,96]
  input %r "r": f32[B,T,64]
  weight %w1 "o": f32[64,96]
  weight %w2 "p": f32[64,96]
  weight %w "norm": f32[64]
  weight %wg "gate": f32[32,64]
  %p: f32[B,T,64] = matmul(%a, %w1) {transpose_b = 1}
  %x: f32[B,T,64] = add(%r, %p)
  %n: f32[B,T,64] = rms_norm(%x, %w) {eps = 1e-05, offset = 1.0} body "rms_norm" symbols(B, T) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[64]
    %2: f32[B,T,64] = mul(%0, %1)
    output "0" %2
  }
  %g: f32[B,T,32] = matmul(%n, %wg) {transpose_b = 1}
  %z: f32[B,T,64] = matmul(%a, %w2) {transpose_b = 1}
  output "x" %x
  output "z" %z
  output "g" %g
}
)");
  const std::string folded = after("fold-norm", after("fuse-epilogue", in));
  EXPECT_EQ(count_op(parse(folded), "projection"), 2);
  EXPECT_EQ(after("merge-projections", folded), folded);
  const std::string twice =
      replaced(folded, "  output \"x\"",
               "  %h: f32[B,T,32] = matmul(%15, %wg) {transpose_b = 1}\n  output \"h\" %h\n  output \"x\"");
  EXPECT_EQ(after("merge-projections", twice), unchanged(twice));
}

}  // namespace
}  // namespace hone::test
