#include "projection_text.h"

namespace hone::test {
namespace {

const std::string_view kNorm = text(R"(
graph "g" symbols(B, T, C) {
  input %a "a": f32[B,T,96]
  input %r "r": f32[B,T,64]
  weight %w1 "o": f32[64,96]
  weight %w "norm": f32[64]
  weight %wg "gate": f32[32,64]
  weight %wu "up": f32[32,64]
  %p: f32[B,T,64] = matmul(%a, %w1) {transpose_b = 1} @"o"
  %x: f32[B,T,64] = add(%r, %p) @"layer"
  %n: f32[B,T,64] = rms_norm(%x, %w) {eps = 1e-05} @"norm" body "rms_norm" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[64]
    %2: f32[B,T,64] = mul(%0, %1)
    output "0" %2
  }
  %g: f32[B,T,32] = matmul(%n, %wg) {transpose_b = 1} @"gate"
  %u: f32[B,T,32] = matmul(%n, %wu) {transpose_b = 1} @"up"
  output "x" %x
  output "g" %g
  output "u" %u
}
)");

const std::string_view kOutputs = "  output \"x\" %x\n";

std::string prepared(std::string_view in) {
  return after("merge-projections", after("fuse-epilogue", in));
}
std::string folded(std::string_view in) {
  return after("fold-norm", prepared(in));
}
// All but the norm is prepared, and nothing folds.
void expect_unfolded(std::string_view in) {
  EXPECT_EQ(folded(in), prepared(in));
}

// x * w and the sums of squares come from the launch that makes x.
TEST(FoldNorm, BetweenTwoProjections) {
  EXPECT_EQ(folded(kNorm), text(R"(
graph "g" symbols(B, T, C) {
  input %a "a": f32[B,T,96]
  input %r "r": f32[B,T,64]
  weight %w1 "o": f32[64,96]
  weight %w "norm": f32[64]
  weight %wg "gate": f32[32,64]
  weight %wu "up": f32[32,64]
  %x: f32[B,T,64], %15: f32[B,T,64], %16: f32[B,T,2] = projection(%a, %w1, %r, %w) {sections = ints[1, -1, 0, -1, -1, -1, -1, 0, 0, 2, -1, -1, 3, 0]} @"o" body "projection" symbols(B, T, C) {
    input %0 "0": f32[B,T,96]
    input %1 "1": f32[64,96]
    input %2 "2": f32[B,T,64]
    input %5 "3": f32[64]
    %3: f32[B,T,64] = matmul(%0, %1) {transpose_b = 1}
    %4: f32[B,T,64] = add(%2, %3)
    %6: f32[B,T,64] = mul(%4, %5)
    %7: f32[B,T,64] = mul(%4, %4)
    %8: f32[B,T,2,32] = reshape(%7) {shape = dims[B, T, 2, 32]}
    %9: f32[B,T,2] = reduce_sum(%8) {axis = -1, keep_dims = 0}
    output "0" %4
    output "1" %6
    output "2" %9
  }
  %g: f32[B,T,32], %u: f32[B,T,32] = projection(%15, %wg, %wu, %16) {sections = ints[1, -1, 0, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0, 2, -1, 0, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 1], row_sums = 3, eps = 1e-05} @"up" body "projection" symbols(B, T, C) {
    input %5 "0": f32[B,T,64]
    input %1 "1": f32[32,64]
    input %2 "2": f32[32,64]
    input %6 "3": f32[B,T,2]
    %7: f32[B,T,1] = reduce_sum(%6) {axis = -1, keep_dims = 1}
    %8: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[64.0]}
    %9: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
    %10: f32[B,T,1] = div(%7, %8)
    %11: f32[B,T,1] = add(%10, %9)
    %12: f32[B,T,1] = rsqrt(%11)
    %13: f32[B,T,64] = mul(%5, %12)
    %3: f32[B,T,32] = matmul(%13, %1) {transpose_b = 1}
    %4: f32[B,T,32] = matmul(%13, %2) {transpose_b = 1}
    output "0" %3
    output "1" %4
  }
  output "x" %x
  output "g" %g
  output "u" %u
}
)"));
}

// Gemma's 1 + w: in the attribute, and in the body in front of the product.
TEST(FoldNorm, AnOffsetOfTheWeightIsKept) {
  const std::string text = folded(replaced(kNorm, "{eps = 1e-05}", "{eps = 0.25, offset = 1.0}"));
  EXPECT_NE(text.find("next_offset = 1.0}"), std::string::npos) << text;
  EXPECT_NE(text.find("row_sums = 3, eps = 0.25}"), std::string::npos) << text;
  EXPECT_NE(text.find("    %6: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[1.0]}\n"
                      "    %7: f32[64] = add(%5, %6)\n"
                      "    %8: f32[B,T,64] = mul(%4, %7)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("values = reals[0.25]"), std::string::npos) << text;
}

// Blocks of x * w where the norm wrote blocks; the readers' bodies start from them.
TEST(FoldNorm, InBlocks) {
  std::string in = replaced(kNorm, "weight %wg \"gate\": f32", "weight %wg \"gate\": q8_0");
  in = replaced(in, "weight %wu \"up\": f32", "weight %wu \"up\": q4_0");
  in = replaced(replaced(in, "matmul(%n, %wg)", "matmul(%q, %wg)"), "matmul(%n, %wu)", "matmul(%q, %wu)");
  in = replaced(in, "  %g:", "  %q: q8a[B,T,64] = quantize_q8a(%n)\n  %g:");
  const std::string out = after("fold-norm", prepared(after("fuse-quantise", in)));
  EXPECT_EQ(
      nodes_of(out),
      fmt::format("%x: f32[B,T,64], %15: q8a[B,T,64], %16: f32[B,T,2] = projection(%a, %w1, %r, %w) {{{}}}\n"
                  "%g: f32[B,T,32], %u: f32[B,T,32] = projection(%15, %wg, %wu, %16) {{{}, row_sums = 3, "
                  "eps = 1e-05}}\n",
                  sections({{.weight = 1, .residual = 2, .next_norm = 3}}),
                  sections({{.weight = 1}, {.weight = 2, .output = 1}})));
  EXPECT_NE(out.find("%6: f32[B,T,64] = mul(%4, %5)\n    %7: q8a[B,T,64] = quantize_q8a(%6)\n"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("f32[B,T,64] = cast(%5) {to = \"f32\"}"), std::string::npos) << out;
}

// One that becomes a projection for it, a gated one that writes blocks, and two separate ones.
TEST(FoldNorm, ReadersOfEveryKind) {
  std::string in = replaced(kNorm, "  %u: f32[B,T,32] = matmul(%n, %wu) {transpose_b = 1} @\"up\"\n",
                            "  %s: f32[B,T,32] = swiglu_mlp(%n, %wg, %wu)" +
                                body_of("swiglu_mlp", "B, T, C", {"f32[B,T,64]", "f32[32,64]", "f32[32,64]"},
                                        "f32[B,T,32] = matmul(%0, %1) {transpose_b = 1}") +
                                "\n  %u: q8a[B,T,32] = quantize_q8a(%s)\n");
  const std::string apart = after("fold-norm", after("fuse-epilogue", in));
  EXPECT_EQ(
      nodes_of(apart),
      fmt::format("%x: f32[B,T,64], %15: f32[B,T,64], %16: f32[B,T,2] = projection(%a, %w1, %r, %w) {{{}}}\n"
                  "%g: f32[B,T,32] = projection(%15, %wg, %16) {{{}, row_sums = 2, eps = 1e-05}}\n"
                  "%u: q8a[B,T,32] = projection(%15, %wu, %wg, %16) {{{}, row_sums = 3, eps = 1e-05}}\n",
                  sections({{.weight = 1, .residual = 2, .next_norm = 3}}), sections({{.weight = 1}}),
                  sections({{.weight = 1, .gate = 2, .activation = 1}})));
}

// The second projection reads one norm and makes the x of the next: it is extended after it was rescaled.
TEST(FoldNorm, OneAfterTheOther) {
  std::string in =
      replaced(kNorm, "  %u: f32[B,T,32] = matmul(%n, %wu) {transpose_b = 1} @\"up\"\n",
               "  %m: f32[B,T,32] = rms_norm(%g, %v) {eps = 0.5, offset = 1.0}" +
                   body_of("rms_norm", "B, T, C", {"f32[B,T,32]", "f32[32]"}, "f32[B,T,32] = mul(%0, %1)") +
                   "\n  %u: f32[B,T,32] = matmul(%m, %wu) {transpose_b = 1}\n");
  in = replaced(in, "\"up\": f32[32,64]", "\"up\": f32[32,32]");
  in = replaced(in, "  weight %wu", "  weight %v \"second\": f32[32]\n  weight %wu");
  in = replaced(in, "  %m:", "  %b: f32[B,T,32] = add(%g0, %r2)\n  %m:");
  in = replaced(in, "  input %r ", "  input %r2 \"r2\": f32[B,T,32]\n  input %r ");
  in = replaced(replaced(in, "  %g: f32", "  %g0: f32"), "rms_norm(%g, %v)", "rms_norm(%b, %v)");
  in = replaced(in, "output \"g\" %g", "output \"g\" %b");
  EXPECT_EQ(
      nodes_of(folded(in)),
      fmt::format("%x: f32[B,T,64], %18: f32[B,T,64], %19: f32[B,T,2] = projection(%a, %w1, %r, %w) {{{}}}\n"
                  "%b: f32[B,T,32], %20: f32[B,T,32], %21: f32[B,T,1] = projection(%18, %wg, %r2, %v, %19) "
                  "{{{}, row_sums = 4, eps = 1e-05, next_offset = 1.0}}\n"
                  "%u: f32[B,T,32] = projection(%20, %wu, %21) {{{}, row_sums = 2, eps = 0.5}}\n",
                  sections({{.weight = 1, .residual = 2, .next_norm = 3}}),
                  sections({{.weight = 1, .residual = 2, .next_norm = 3}}), sections({{.weight = 1}})));
}

// The norm's weight is the bias of x as well: it is one input of the node.
TEST(FoldNorm, AWeightThatIsReadAlready) {
  const std::string in = replaced(kNorm, "add(%r, %p)", "add(%p, %w)");
  EXPECT_EQ(nodes_of(folded(in)).substr(0, nodes_of(folded(in)).find('\n')),
            fmt::format("%x: f32[B,T,64], %15: f32[B,T,64], %16: f32[B,T,2] = projection(%a, %w1, %w) {{{}}}",
                        sections({{.weight = 1, .bias = 2, .next_norm = 2}})));
}

TEST(FoldNorm, TwoNormsOfOneXAndTheFirstIsFolded) {
  const std::string second =
      "  %n2: f32[B,T,64] = rms_norm(%x, %w) {eps = 0.5}" +
      body_of("rms_norm", "B, T, C", {"f32[B,T,64]", "f32[64]"}, "f32[B,T,64] = mul(%0, %1)") + "\n  %g:";
  const std::string in = replaced(replaced(kNorm, "  %g:", second), "%u: f32[B,T,32] = matmul(%n,",
                                  "%u: f32[B,T,32] = matmul(%n2,");
  const Graph graph = parse(folded(in));
  EXPECT_EQ(count_op(graph, "rms_norm"), 1);
  EXPECT_EQ(
      nodes_of(print_graph(graph)),
      fmt::format("%x: f32[B,T,64], %16: f32[B,T,64], %17: f32[B,T,2] = projection(%a, %w1, %r, %w) {{{}}}\n"
                  "%n2: f32[B,T,64] = rms_norm(%x, %w) {{eps = 0.5}}\n"
                  "%g: f32[B,T,32] = projection(%16, %wg, %17) {{{}, row_sums = 2, eps = 1e-05}}\n"
                  "%u: f32[B,T,32] = matmul(%n2, %wu) {{transpose_b = 1}}\n",
                  sections({{.weight = 1, .residual = 2, .next_norm = 3}}), sections({{.weight = 1}})));
}

TEST(FoldNorm, NotIfTheNormIsReadOtherwise) {
  expect_unfolded(replaced(kNorm, kOutputs, "  output \"n\" %n\n"));
  expect_unfolded(replaced(kNorm, kOutputs, "  %z: f32[B,T,64] = tanh(%n)\n  output \"z\" %z\n"));
  // By a product of something else than a weight, and as a residual.
  const std::string product = replaced(kNorm, "weight %wu \"up\"", "input %wu \"up\"");
  expect_unfolded(product);
  std::string residual = replaced(kNorm, kOutputs,
                                  "  %y: f32[B,T,64] = matmul(%a, %w2) {transpose_b = 1}\n"
                                  "  %z: f32[B,T,64] = add(%y, %n)\n  output \"z\" %z\n");
  residual = replaced(residual, "  weight %wg", "  weight %w2 \"w2\": f32[64,96]\n  weight %wg");
  expect_unfolded(residual);
  // As both x and residual of one product.
  std::string both = replaced(kNorm, "%u: f32[B,T,32] = matmul(%n, %wu) {transpose_b = 1} @\"up\"",
                              "%u0: f32[B,T,64] = matmul(%n, %wu) {transpose_b = 1}\n"
                              "  %u: f32[B,T,64] = add(%u0, %n)");
  expect_unfolded(replaced(both, "\"up\": f32[32,64]", "\"up\": f32[64,64]"));
}

// A dead norm is dce's.
TEST(FoldNorm, NotIfNothingReadsTheNorm) {
  std::string in =
      replaced(replaced(kNorm, "matmul(%n, %wg)", "matmul(%x, %wg)"), "matmul(%n, %wu)", "matmul(%x, %wu)");
  expect_unfolded(in);
}

TEST(FoldNorm, NotIntoAnAppend) {
  std::string in =
      replaced(kNorm, "  weight %wg",
               "  input %pos \"positions\": i32[B,T]\n  state %k \"k\": f32[B,C,2,16]\n  weight %wg");
  in = replaced(in, kOutputs,
                "  %h: f32[B,T,2,16] = reshape(%u) {shape = dims[B, T, 2, 16]}\n"
                "  %s: f32[B,C,2,16] = state_append(%k, %h, %pos)\n  output \"x\" %x\n");
  in = replaced(in, "  output \"u\" %u\n", "  output \"s\" %s\n  update \"k\" %s\n");
  EXPECT_EQ(count_op(parse(prepared(in)), "state_append"), 0);
  expect_unfolded(in);
}

TEST(FoldNorm, NotWhereXIsMadeOtherwise) {
  // By a product alone, by an addition alone, or as an input.
  expect_unfolded(replaced(kNorm, "%x: f32[B,T,64] = add(%r, %p)", "%x: f32[B,T,64] = mul(%r, %p)"));
  expect_unfolded(replaced(replaced(kNorm, "  %x: f32[B,T,64] = add(%r, %p) @\"layer\"\n", ""), "input %r ",
                           "input %x "));
  // By one of two sections; turned.
  std::string two =
      replaced(kNorm, kOutputs, "  %z: f32[B,T,64] = matmul(%a, %w2) {transpose_b = 1}\n  output \"z\" %z\n");
  two = replaced(two, "  weight %wg", "  weight %w2 \"w2\": f32[64,96]\n  weight %wg");
  EXPECT_EQ(count_op(parse(prepared(two)), "projection"), 2);
  expect_unfolded(two);
}

// Its weight is an input, or not of the graph's weights.
TEST(FoldNorm, NotWithAWeightThatIsNone) {
  expect_unfolded(replaced(kNorm, "weight %w \"norm\"", "input %w \"norm\""));
}

TEST(FoldNorm, NotOfColumnsThatAreNoWholeBlocks) {
  std::string in(kNorm);
  for (const std::string_view shape : {"[B,T,64]", "[64,96]", "f32[64]", "[32,64]"}) {
    const std::string other = replaced(shape, "64", "48");
    for (std::size_t at = 0; (at = in.find(shape, at)) != std::string::npos; at += other.size())
      in.replace(at, shape.size(), other);
  }
  expect_unfolded(in);
}

// x * w comes rounded to bf16, and the factor stands behind the products.
TEST(FoldNorm, OfBf16) {
  PassContext context;
  context.precision.bf16_activations = true;
  std::string in = replaced(replaced(kNorm, "%wg \"gate\": f32", "%wg \"gate\": bf16"), "%wu \"up\": f32",
                            "%wu \"up\": bf16");
  for (const std::string_view pass :
       {"assign-precision", "fuse-quantise", "fuse-epilogue", "merge-projections"})
    in = after(pass, in, context);
  EXPECT_NE(in.find("bf16[B,T,64] = rms_norm("), std::string::npos) << in;
  const std::string out = after("fold-norm", in);
  EXPECT_EQ(out.find("rms_norm("), std::string::npos) << out;
  EXPECT_NE(out.find("bf16[B,T,64], "), std::string::npos) << out;
  EXPECT_NE(out.find("row_sums = 3, eps = 1e-05}"), std::string::npos) << out;
}

// A norm that writes two terms, and a projection that reads them: x * w comes in two terms, and the factor
// stands behind their sum.
TEST(FoldNorm, OfTwoTerms) {
  PassContext context;
  context.precision.int8_activations = true;
  context.precision.two_terms = true;
  std::string in = replaced(replaced(kNorm, "%wg \"gate\": f32", "%wg \"gate\": q8_0"), "%wu \"up\": f32",
                            "%wu \"up\": q8_0");
  for (const std::string_view pass :
       {"assign-precision", "fuse-quantise", "fuse-epilogue", "merge-projections"})
    in = after(pass, in, context);
  EXPECT_NE(in.find("q8a[B,T,2,64] = rms_norm("), std::string::npos) << in;
  const std::string out = after("fold-norm", in);
  EXPECT_EQ(out.find("rms_norm("), std::string::npos) << out;
  EXPECT_NE(out.find("q8a[B,T,2,64], "), std::string::npos) << out;
  EXPECT_NE(out.find("terms = 2, row_sums = 3, eps = 1e-05}"), std::string::npos) << out;
  // One sum of the terms, times the factor, in front of both products.
  const std::string body = out.substr(out.find("terms = 2, row_sums"));
  EXPECT_EQ(body.find("cast("), body.rfind("cast("));
}

}  // namespace
}  // namespace hone::test
