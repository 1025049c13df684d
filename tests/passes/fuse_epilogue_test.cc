#include "projection_text.h"

namespace hone::test {
namespace {

const std::string_view kAdded = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %r "r": f32[B,T,32]
  weight %w "w": f32[32,64]
  weight %b "b": f32[32]
  %p: f32[B,T,32] = matmul(%x, %w) {transpose_b = 1} @"proj"
  %a: f32[B,T,32] = add(%p, %b) @"proj"
  %y: f32[B,T,32] = add(%r, %a) @"layer"
  output "y" %y
}
)");

const std::string_view kTurned = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %cos "cos": f32[B,T,8]
  input %sin "sin": f32[B,T,8]
  input %pos "positions": i32[B,T]
  weight %w "w": q8_0[64,64]
  weight %b "b": f32[64]
  state %k "k": f16[B,C,2,32]
  %p: f32[B,T,64] = matmul(%x, %w) {transpose_b = 1} @"k_proj"
  %a: f32[B,T,64] = add(%b, %p) @"k_proj"
  %h: f32[B,T,2,32] = reshape(%a) {shape = dims[B, T, 2, 32]}
  %r: f32[B,T,2,32] = rope(%h, %cos, %sin) {interleaved = 1} @"rope" body "rope" symbols(B, T, C) {
    input %0 "0": f32[B,T,2,32]
    input %1 "1": f32[B,T,8]
    input %2 "2": f32[B,T,8]
    %3: f32[B,T,2,32] = neg(%0)
    output "0" %3
  }
  %c: f16[B,T,2,32] = cast(%r) {to = "f16"}
  %s: f16[B,C,2,32] = state_append(%k, %c, %pos) @"cache"
  output "y" %s
  update "k" %s
}
)");

// The same with a norm of each head.
std::string normed(std::string_view between = "  %n: f32[B,T,2,32] = rms_norm(%h, %norm) {eps = 1e-06}") {
  constexpr std::string_view kBody = R"( @"norm" body "rms_norm" symbols(B, T, C) {
    input %0 "0": f32[B,T,2,32]
    input %1 "1": f32[32]
    %2: f32[B,T,2,32] = mul(%0, %1)
    output "0" %2
  }
)";
  const std::string in = replaced(replaced(kTurned, "rope(%h,", "rope(%n,"), "  state %k",
                                  "  weight %norm \"norm\": f32[32]\n  state %k");
  return replaced(in, "  %r:", fmt::format("{}{}  %r:", between, kBody));
}

const std::string_view kGated = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  weight %wg "gate": q8_0[96,64]
  weight %wu "up": q8_0[96,64]
  weight %wd "down": q8_0[64,96]
  %g: f32[B,T,96] = swiglu_mlp(%x, %wg, %wu) @"mlp" body "swiglu_mlp" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": q8_0[96,64]
    input %2 "2": q8_0[96,64]
    %3: f32[B,T,96] = matmul(%0, %1) {transpose_b = 1}
    %4: f32[B,T,96] = matmul(%0, %2) {transpose_b = 1}
    %5: f32[B,T,96] = mul(%3, %4)
    output "0" %5
  }
  %q: q8a[B,T,96] = quantize_q8a(%g) @"down"
  %y: f32[B,T,64] = matmul(%q, %wd) {transpose_b = 1} @"down"
  output "y" %y
}
)");

std::string fused(std::string_view in) {
  return after("fuse-epilogue", in);
}
void expect_unchanged(std::string_view in) {
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseEpilogue, BiasAndResidual) {
  EXPECT_EQ(fused(kAdded), text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %r "r": f32[B,T,32]
  weight %w "w": f32[32,64]
  weight %b "b": f32[32]
  %y: f32[B,T,32] = projection(%x, %w, %b, %r) {sections = ints[1, -1, 0, 2, -1, -1, -1, 0, 0, 3, -1, -1, -1, 0]} @"proj" body "projection" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[32,64]
    input %2 "2": f32[32]
    input %3 "3": f32[B,T,32]
    %4: f32[B,T,32] = matmul(%0, %1) {transpose_b = 1}
    %5: f32[B,T,32] = add(%4, %2)
    %6: f32[B,T,32] = add(%3, %5)
    output "0" %6
  }
  output "y" %y
}
)"));
}

TEST(FuseEpilogue, RopeCastAndAppend) {
  EXPECT_EQ(fused(kTurned), text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %cos "cos": f32[B,T,8]
  input %sin "sin": f32[B,T,8]
  input %pos "positions": i32[B,T]
  weight %w "w": q8_0[64,64]
  weight %b "b": f32[64]
  state %k "k": f16[B,C,2,32]
  %s: f16[B,C,2,32] = projection(%x, %w, %b, %cos, %sin, %k, %pos) {sections = ints[1, -1, 0, 2, -1, 3, 4, 1, 32, -1, 5, 6, -1, 0]} @"k_proj" body "projection" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": q8_0[64,64]
    input %2 "2": f32[64]
    input %3 "3": f32[B,T,8]
    input %4 "4": f32[B,T,8]
    input %5 "5": f16[B,C,2,32]
    input %6 "6": i32[B,T]
    %7: f32[B,T,64] = matmul(%0, %1) {transpose_b = 1}
    %8: f32[B,T,64] = add(%2, %7)
    %9: f32[B,T,2,32] = reshape(%8) {shape = dims[B, T, 2, 32]}
    %10: f32[B,T,2,32] = rope(%9, %3, %4) {interleaved = 1} body "rope" symbols(B, T, C) {
      input %0 "0": f32[B,T,2,32]
      input %1 "1": f32[B,T,8]
      input %2 "2": f32[B,T,8]
      %3: f32[B,T,2,32] = neg(%0)
      output "0" %3
    }
    %11: f16[B,T,2,32] = cast(%10) {to = "f16"}
    %12: f16[B,C,2,32] = state_append(%5, %11, %6)
    output "0" %12
  }
  output "y" %s
  update "k" %s
}
)"));
}

TEST(FuseEpilogue, QuantisationOfAGatedMlp) {
  EXPECT_EQ(fused(kGated), text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  weight %wg "gate": q8_0[96,64]
  weight %wu "up": q8_0[96,64]
  weight %wd "down": q8_0[64,96]
  %q: q8a[B,T,96] = projection(%x, %wu, %wg) {sections = ints[1, 2, 1, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0]} @"mlp" body "projection" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": q8_0[96,64]
    input %2 "2": q8_0[96,64]
    %3: f32[B,T,96] = swiglu_mlp(%0, %2, %1) body "swiglu_mlp" symbols(B, T, C) {
      input %0 "0": f32[B,T,64]
      input %1 "1": q8_0[96,64]
      input %2 "2": q8_0[96,64]
      %3: f32[B,T,96] = matmul(%0, %1) {transpose_b = 1}
      %4: f32[B,T,96] = matmul(%0, %2) {transpose_b = 1}
      %5: f32[B,T,96] = mul(%3, %4)
      output "0" %5
    }
    %4: q8a[B,T,96] = quantize_q8a(%3)
    output "0" %4
  }
  %y: f32[B,T,64] = matmul(%q, %wd) {transpose_b = 1} @"down"
  output "y" %y
}
)"));
  const std::string geglu = replaced(replaced(kGated, "swiglu_mlp(", "geglu_mlp("), "swiglu", "geglu");
  EXPECT_EQ(nodes_of(fused(geglu)), fmt::format("%q: q8a[B,T,96] = projection(%x, %wu, %wg) {{{}}}\n"
                                                "%y: f32[B,T,64] = matmul(%q, %wd) {{transpose_b = 1}}\n",
                                                sections({{.weight = 1, .gate = 2, .activation = 2}})));
}

TEST(FuseEpilogue, EachPartAlone) {
  const std::string_view sum = "  %a: f32[B,T,32] = add(%p, %b) @\"proj\"\n";
  const std::string residual = replaced(replaced(kAdded, sum, ""), "add(%r, %a)", "add(%p, %r)");
  EXPECT_EQ(nodes_of(fused(residual)), fmt::format("%y: f32[B,T,32] = projection(%x, %w, %r) {{{}}}\n",
                                                   sections({{.weight = 1, .residual = 2}})));
  const std::string bias =
      replaced(replaced(kAdded, "  %y: f32[B,T,32] = add(%r, %a) @\"layer\"\n", ""), "\"y\" %y", "\"y\" %a");
  EXPECT_EQ(nodes_of(fused(bias)), fmt::format("%a: f32[B,T,32] = projection(%x, %w, %b) {{{}}}\n",
                                               sections({{.weight = 1, .bias = 2}})));
  // Turned, and not appended.
  std::string in = replaced(kTurned, "  %c: f16[B,T,2,32] = cast(%r)", "  %c: f16[B,T,2,32] = cast(%h0)");
  in = replaced(in, "  %c:", "  %h0: f32[B,T,2,32] = neg(%r)\n  output \"r\" %r\n  %c:");
  EXPECT_EQ(nodes_of(fused(in)).substr(0, nodes_of(fused(in)).find('\n') + 1),
            fmt::format(
                "%r: f32[B,T,2,32] = projection(%x, %w, %b, %cos, %sin) {{{}}}\n",
                sections({{.weight = 1, .bias = 2, .cosine = 3, .sine = 4, .interleaved = 1, .head = 32}})));
}

TEST(FuseEpilogue, NormOfHeads) {
  const auto [out, fired] = after_and_fired("fuse-epilogue", normed());
  EXPECT_EQ(fired, "bias 1, head-norm 1, rope 1, append 1");
  EXPECT_EQ(nodes_of(out), fmt::format("%s: f16[B,C,2,32] = projection(%x, %w, %b, %norm, %cos, %sin, %k, "
                                       "%pos) {{{}, head_eps = 1e-06}}\n",
                                       sections({{.weight = 1,
                                                  .bias = 2,
                                                  .head_norm = 3,
                                                  .cosine = 4,
                                                  .sine = 5,
                                                  .interleaved = 1,
                                                  .head = 32,
                                                  .state = 6,
                                                  .positions = 7}})));
  EXPECT_NE(out.find("    %11: f32[B,T,2,32] = rms_norm(%10, %3) {eps = 1e-06} body"), std::string::npos)
      << out;
  // Gemma's 1 + w.
  const std::string offset =
      fused(normed("  %n: f32[B,T,2,32] = rms_norm(%h, %norm) {eps = 0.5, offset = 1.0}"));
  EXPECT_NE(offset.find("head_eps = 0.5, head_offset = 1.0}"), std::string::npos) << offset;
}

// Its weight is no weight of the model, or something else reads what is in between: the norm stays, and all
// behind it.
TEST(FuseEpilogue, NotAnotherNormOfHeads) {
  const auto expect_norm = [](const std::string& in) {
    const auto [out, fired] = after_and_fired("fuse-epilogue", in);
    EXPECT_EQ(fired, "bias 1") << out;
    EXPECT_NE(nodes_of(out).find("rms_norm("), std::string::npos) << out;
    EXPECT_NE(nodes_of(out).find("rope("), std::string::npos) << out;
  };
  expect_norm(replaced(normed(), "weight %norm", "input %norm"));
  for (const std::string_view value : {"%h", "%n"}) {
    expect_norm(
        replaced(normed(), "  output \"y\"", fmt::format("  output \"o\" {}\n  output \"y\"", value)));
    expect_norm(
        replaced(normed(), "  output \"y\"",
                 fmt::format("  %z: f32[B,T,2,32] = neg({})\n  output \"z\" %z\n  output \"y\"", value)));
  }
  // No rope behind it: a tile need not be a head.
  std::string in = replaced(normed(), "cast(%r)", "cast(%n)");
  in = in.substr(0, in.find("  %r:")) + in.substr(in.find("  %c:"));
  const auto [out, fired] = after_and_fired("fuse-epilogue", in);
  EXPECT_EQ(fired, "bias 1") << out;
  EXPECT_NE(nodes_of(out).find("rms_norm("), std::string::npos) << out;
}

// v has no rope, and an f32 cache no cast.
TEST(FuseEpilogue, AppendWithoutRopeAndCast) {
  std::string in = replaced(kTurned, "cast(%r)", "cast(%h)");
  in = in.substr(0, in.find("  %r:")) + in.substr(in.find("  %c:"));
  const ProjectionSection section{.weight = 1, .bias = 2, .state = 3, .positions = 4};
  EXPECT_EQ(nodes_of(fused(in)), fmt::format("%s: f16[B,C,2,32] = projection(%x, %w, %b, %k, %pos) {{{}}}\n",
                                             sections({section})));
  in = replaced(in, "  %c: f16[B,T,2,32] = cast(%h) {to = \"f16\"}\n", "");
  in = replaced(replaced(in, "append(%k, %c", "append(%k, %h"), "%s: f16", "%s: f32");
  in = replaced(in, "\"k\": f16", "\"k\": f32");
  EXPECT_EQ(nodes_of(fused(in)), fmt::format("%s: f32[B,C,2,32] = projection(%x, %w, %b, %k, %pos) {{{}}}\n",
                                             sections({section})));
}

TEST(FuseEpilogue, NotPastAValueThatIsReadTwice) {
  for (const std::string_view outside :
       {"  output \"p\" %p\n", "  %z: f32[B,T,32] = neg(%p)\n  output \"z\" %z\n"})
    expect_unchanged(replaced(kAdded, "  output \"y\"", fmt::format("{}  output \"y\"", outside)));
  // Past the bias: that one is taken, and no more.
  const std::string bias =
      fmt::format("%a: f32[B,T,32] = projection(%x, %w, %b) {{{}}}\n", sections({{.weight = 1, .bias = 2}}));
  const std::string in = replaced(kAdded, "  output \"y\"", "  output \"a\" %a\n  output \"y\"");
  EXPECT_EQ(nodes_of(fused(in)), bias + "%y: f32[B,T,32] = add(%r, %a)\n");
  // Past the reshape, the rope and the cast in front of the append.
  for (const std::string_view value : {"%h", "%r", "%c"}) {
    const std::string read =
        replaced(kTurned, "  output \"y\"", fmt::format("  output \"o\" {}\n  output \"y\"", value));
    const std::string nodes = nodes_of(fused(read));
    EXPECT_NE(nodes.find("state_append("), std::string::npos) << value << "\n" << nodes;
    EXPECT_EQ(nodes.find("rope(") == std::string::npos, value != "%h") << nodes;
  }
  expect_unchanged(replaced(kGated, "  output \"y\"", "  output \"g\" %g\n  output \"y\""));
}

TEST(FuseEpilogue, NotOtherAdditions) {
  // A bias of the input's kind, of another shape, of another type; the value itself; a residual that repeats.
  const std::string_view sum = "  %y: f32[B,T,32] = add(%r, %a) @\"layer\"\n";
  const std::string bias = replaced(replaced(kAdded, sum, ""), "\"y\" %y", "\"y\" %a");
  expect_unchanged(replaced(bias, "weight %b \"b\": f32[32]", "input %b \"b\": f32[32]"));
  expect_unchanged(replaced(bias, "weight %b \"b\": f32[32]", "weight %b \"b\": f32[1]"));
  expect_unchanged(replaced(bias, "weight %b \"b\": f32[32]", "weight %b \"b\": f32[1,32]"));
  expect_unchanged(replaced(bias, "weight %b \"b\": f32[32]", "weight %b \"b\": f32[]"));
  expect_unchanged(replaced(bias, "add(%p, %b)", "add(%p, %p)"));
  expect_unchanged(replaced(bias, "add(%p, %b)", "sub(%p, %b)"));
  expect_unchanged(
      replaced(replaced(bias, "add(%p, %b)", "add(%p, %r)"), "\"r\": f32[B,T,32]", "\"r\": f32[B,1,32]"));
  expect_unchanged(
      replaced(replaced(bias, "add(%p, %b)", "add(%p, %r)"), "\"r\": f32[B,T,32]", "\"r\": f32[32]"));
}

TEST(FuseEpilogue, NotOtherProducts) {
  expect_unchanged(replaced(kAdded, "weight %w \"w\": f32[32,64]", "input %w \"w\": f32[32,64]"));
  expect_unchanged(replaced(replaced(kAdded, "f32[32,64]", "f32[64,32]"), " {transpose_b = 1}", ""));
  // x of rank 2: its rows have no token to be turned by or stored at.
  std::string in(kAdded);
  for (const std::string_view type :
       {"f32[B,T,64]", "f32[B,T,32]", "f32[B,T,32]", "f32[B,T,32]", "f32[B,T,32]"})
    in = replaced(in, type, replaced(type, "B,T", "T"));
  expect_unchanged(in);
  // An addition behind the gate is no bias, but it may be a residual.
  in = replaced(kGated, "quantize_q8a(%g)", "quantize_q8a(%h)");
  in = replaced(in, "  %q:", "  %h: f32[B,T,96] = add(%g, %b)\n  %q:");
  expect_unchanged(replaced(in, "  weight %wd", "  weight %b \"b\": f32[96]\n  weight %wd"));
}

// Heads of 24 and of 272 columns are no tiles; the bias is taken all the same.
TEST(FuseEpilogue, NotTheRopeOfOtherHeads) {
  for (const int head : {24, 272}) {
    std::string in(kTurned);
    const auto all = [&](std::string_view from, const std::string& to) {
      for (std::size_t at = 0; (at = in.find(from, at)) != std::string::npos; at += to.size())
        in.replace(at, from.size(), to);
    };
    all("2,32]", fmt::format("2,{}]", head));
    all("2, 32]", fmt::format("2, {}]", head));
    all("[B,T,64] = ", fmt::format("[B,T,{}] = ", 2 * head));
    all("q8_0[64,64]", fmt::format("q8_0[{},64]", 2 * head));
    all("\"b\": f32[64]", fmt::format("\"b\": f32[{}]", 2 * head));
    const std::string nodes = nodes_of(fused(in));
    EXPECT_EQ(nodes.substr(0, nodes.find('\n')),
              fmt::format("%a: f32[B,T,{}] = projection(%x, %w, %b) {{{}}}", 2 * head,
                          sections({{.weight = 1, .bias = 2}})));
    EXPECT_NE(nodes.find("rope("), std::string::npos);
    EXPECT_NE(nodes.find("state_append("), std::string::npos);
  }
}

TEST(FuseEpilogue, NotTheAppendOfAnotherType) {
  for (const std::string_view type : {"i8", "f64"}) {
    std::string in = replaced(kTurned, "\"k\": f16", fmt::format("\"k\": {}", type));
    in = replaced(in, "{to = \"f16\"}", fmt::format("{{to = \"{}\"}}", type));
    in = replaced(replaced(in, "%c: f16", fmt::format("%c: {}", type)), "%s: f16",
                  fmt::format("%s: {}", type));
    const std::string nodes = nodes_of(fused(in));
    EXPECT_EQ(nodes.substr(0, 24), "%r: f32[B,T,2,32] = proj");
    EXPECT_NE(nodes.find("state_append(%k, %c, %pos)"), std::string::npos) << nodes;
  }
}

// Heads that take rows apart: [B,T,64] as [B,2*T,32].
TEST(FuseEpilogue, NotAReshapeOfTheRows) {
  std::string in =
      replaced(kTurned, "reshape(%a) {shape = dims[B, T, 2, 32]}", "reshape(%t) {shape = dims[B, T, 2, 32]}");
  in = replaced(in, "  %h:", "  %t: f32[B,2*T,32] = reshape(%a) {shape = dims[B, 2*T, 32]}\n  %h:");
  const std::string nodes = nodes_of(fused(in));
  EXPECT_EQ(nodes.substr(0, nodes.find('\n')), fmt::format("%a: f32[B,T,64] = projection(%x, %w, %b) {{{}}}",
                                                           sections({{.weight = 1, .bias = 2}})));
  EXPECT_NE(nodes.find("rope("), std::string::npos);
}

// The launch writes q8a [..,2,96].
TEST(FuseEpilogue, AQuantisationOfTwoTerms) {
  std::string in = replaced(kGated, "%q: q8a[B,T,96] = quantize_q8a(%g)",
                            "%q: q8a[B,T,2,96] = quantize_q8a(%g) {terms = 2}");
  in = replaced(in, "%y: f32[B,T,64] = matmul(%q, %wd) {transpose_b = 1}",
                "%y: f32[B,T,2,96] = cast(%q) {to = \"f32\"}");
  EXPECT_EQ(
      nodes_of(fused(in)),
      "%q: q8a[B,T,2,96] = projection(%x, %wu, %wg) {sections = ints[1, 2, 1, -1, -1, -1, -1, 0, 0, -1, -1, "
      "-1, -1, 0]}\n%y: f32[B,T,2,96] = cast(%q) {to = \"f32\"}\n");
}

TEST(FuseEpilogue, ACastToBf16) {
  std::string in =
      replaced(kGated, "%q: q8a[B,T,96] = quantize_q8a(%g)", "%q: bf16[B,T,96] = cast(%g) {to = \"bf16\"}");
  const std::string out = nodes_of(fused(in));
  EXPECT_NE(out.find("%q: bf16[B,T,96] = projection(%x, %wu, %wg)"), std::string::npos) << out;
  EXPECT_EQ(out.find("cast("), std::string::npos) << out;
  in = replaced(replaced(in, "bf16[B,T,96]", "f16[B,T,96]"), "\"bf16\"", "\"f16\"");
  EXPECT_NE(nodes_of(fused(in)).find("cast("), std::string::npos);
}

// A product of two terms takes what follows it, once.
TEST(FuseEpilogue, BehindAProductOfTwoTerms) {
  PassContext context;
  context.precision.int8_activations = true;
  context.precision.two_terms = true;
  std::string in = replaced(kAdded, "f32[32,64]", "q8_0[32,64]");
  in = after("assign-precision", in, context);
  ASSERT_NE(in.find("terms = 2"), std::string::npos) << in;
  const std::string out = fused(in);
  EXPECT_EQ(nodes_of(out).find("= add("), std::string::npos) << out;
  EXPECT_NE(nodes_of(out).find(", terms = 2}"), std::string::npos) << out;
  EXPECT_EQ(fused(out), out);
}

// Of two products that are added to one another the later takes the addition, and the earlier is its
// residual.
TEST(FuseEpilogue, OneOfTwoProductsTakesTheirSum) {
  std::string in = replaced(kAdded, "  %a: f32[B,T,32] = add(%p, %b) @\"proj\"\n", "");
  in = replaced(in, "input %r \"r\": f32[B,T,32]\n", "weight %w2 \"w2\": f32[32,64]\n");
  in = replaced(in, "add(%r, %a)", "add(%r, %p)");
  in = replaced(in, "  %y:", "  %r: f32[B,T,32] = matmul(%x, %w2) {transpose_b = 1}\n  %y:");
  EXPECT_EQ(nodes_of(fused(in)), fmt::format("%p: f32[B,T,32] = matmul(%x, %w) {{transpose_b = 1}}\n"
                                             "%y: f32[B,T,32] = projection(%x, %w2, %p) {{{}}}\n",
                                             sections({{.weight = 1, .residual = 2}})));
}

}  // namespace
}  // namespace hone::test
