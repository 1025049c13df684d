#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kSpelledOut = text(R"(
graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,3,T,64]
  input %kn "kn": f32[B,T,2,64]
  input %vn "vn": f32[B,T,2,64]
  input %pos "positions": i32[B,T]
  state %ks "k": f32[B,C,2,64]
  state %vs "v": f32[B,C,2,64]
  %k: f32[B,C,2,64] = state_append(%ks, %kn, %pos)
  %v: f32[B,C,2,64] = state_append(%vs, %vn, %pos)
  %kp: f32[B,2,C,64] = permute(%k) {axes = ints[0, 2, 1, 3]}
  %k5: f32[B,2,1,C,64] = reshape(%kp) {shape = dims[B, 2, 1, C, 64]}
  %vp: f32[B,2,C,64] = permute(%v) {axes = ints[0, 2, 1, 3]}
  %v5: f32[B,2,1,C,64] = reshape(%vp) {shape = dims[B, 2, 1, C, 64]}
  %scale: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.125]}
  %inf: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-inf]}
  %i: i32[C] = iota() {axis = 0, shape = dims[C]}
  %p5: i32[B,1,1,T,1] = reshape(%pos) {shape = dims[B, 1, 1, T, 1]}
  %s: f32[B,2,3,T,C] = matmul(%q, %k5) {transpose_b = 1}
  %t: f32[B,2,3,T,C] = mul(%s, %scale)
  %m: bool[B,1,1,T,C] = less_equal(%i, %p5)
  %u: f32[B,2,3,T,C] = select(%m, %t, %inf)
  %p: f32[B,2,3,T,C] = softmax(%u) body "softmax" symbols(B, T, C) {
    input %0 "0": f32[B,2,3,T,C]
    %1: f32[B,2,3,T,1] = reduce_max(%0) {axis = -1, keep_dims = 1}
    %2: f32[B,2,3,T,C] = sub(%0, %1)
    %3: f32[B,2,3,T,C] = exp(%2)
    %4: f32[B,2,3,T,1] = reduce_sum(%3) {axis = -1, keep_dims = 1}
    %5: f32[B,2,3,T,C] = div(%3, %4)
    output "0" %5
  }
  %o: f32[B,2,3,T,64] = matmul(%p, %v5)
  %a: f32[B,T,2,3,64] = permute(%o) {axes = ints[0, 3, 1, 2, 4]} @"attn"
  output "y" %a
  update "k" %k
  update "v" %v
}
)");

const std::string_view kFused = text(R"(
graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,3,T,64]
  input %kn "kn": f32[B,T,2,64]
  input %vn "vn": f32[B,T,2,64]
  input %pos "positions": i32[B,T]
  state %ks "k": f32[B,C,2,64]
  state %vs "v": f32[B,C,2,64]
  %k: f32[B,C,2,64] = state_append(%ks, %kn, %pos)
  %v: f32[B,C,2,64] = state_append(%vs, %vn, %pos)
  %a: f32[B,T,2,3,64] = attention(%q, %k, %v, %pos) {scale = 0.125} @"attn" body "attention" symbols(B, T, C) {
    input %0 "0": f32[B,2,3,T,64]
    input %1 "1": f32[B,C,2,64]
    input %2 "2": f32[B,C,2,64]
    input %3 "3": i32[B,T]
    %4: f32[B,2,C,64] = permute(%1) {axes = ints[0, 2, 1, 3]}
    %5: f32[B,2,1,C,64] = reshape(%4) {shape = dims[B, 2, 1, C, 64]}
    %6: f32[B,2,3,T,C] = matmul(%0, %5) {transpose_b = 1}
    %7: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.125]}
    %8: f32[B,2,3,T,C] = mul(%6, %7)
    %9: i32[C] = iota() {axis = 0, shape = dims[C]}
    %10: i32[B,1,1,T,1] = reshape(%3) {shape = dims[B, 1, 1, T, 1]}
    %11: bool[B,1,1,T,C] = less_equal(%9, %10)
    %12: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-inf]}
    %13: f32[B,2,3,T,C] = select(%11, %8, %12)
    %14: f32[B,2,3,T,C] = softmax(%13) body "softmax" symbols(B, T, C) {
      input %0 "0": f32[B,2,3,T,C]
      %1: f32[B,2,3,T,1] = reduce_max(%0) {axis = -1, keep_dims = 1}
      %2: f32[B,2,3,T,C] = sub(%0, %1)
      %3: f32[B,2,3,T,C] = exp(%2)
      %4: f32[B,2,3,T,1] = reduce_sum(%3) {axis = -1, keep_dims = 1}
      %5: f32[B,2,3,T,C] = div(%3, %4)
      output "0" %5
    }
    %15: f32[B,2,C,64] = permute(%2) {axes = ints[0, 2, 1, 3]}
    %16: f32[B,2,1,C,64] = reshape(%15) {shape = dims[B, 2, 1, C, 64]}
    %17: f32[B,2,3,T,64] = matmul(%14, %16)
    %18: f32[B,T,2,3,64] = permute(%17) {axes = ints[0, 3, 1, 2, 4]}
    output "0" %18
  }
  output "y" %a
  update "k" %k
  update "v" %v
}
)");

std::string fused(std::string_view in) {
  return after("fuse-attention", in);
}
std::string unchanged(std::string_view in) {
  return print_graph(parse(in));
}

// The graph after the pass has one attention, on q, both states' appends and the positions, and `nodes` nodes
// in all.
void expect_attention(const std::string& in, double scale, std::size_t nodes = 3) {
  const Graph graph = parse(fused(in));
  ASSERT_EQ(count_op(graph, "attention"), 1) << print_graph(graph);
  EXPECT_EQ(graph.nodes.size(), nodes) << print_graph(graph);
  const auto node =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op == "attention"; });
  EXPECT_EQ(node->attributes.real("scale"), scale);
  const std::string names[] = {"%q", "%k", "%v", "%pos"};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(graph.value_name(node->inputs[i]), names[i]);
  EXPECT_EQ(type_to_string(graph.type(node->outputs[0])), "f32[B,T,2,3,64]");
}

std::string with_line(std::string_view in, std::string_view before, std::string_view line) {
  return replaced(in, before, fmt::format("  {}\n{}", line, before));
}

TEST(FuseAttention, TheModelsSpelling) {
  EXPECT_EQ(fused(kSpelledOut), kFused);
}

TEST(FuseAttention, SoftmaxSpelledOut) {
  std::string in(kSpelledOut);
  const std::size_t begin = in.find("  %p: f32");
  const std::size_t end = in.find("  %o: f32");
  in.replace(begin, end - begin,
             "  %x: f32[B,2,3,T,1] = reduce_max(%u) {axis = -1, keep_dims = 1}\n"
             "  %d: f32[B,2,3,T,C] = sub(%u, %x)\n"
             "  %e: f32[B,2,3,T,C] = exp(%d)\n"
             "  %z: f32[B,2,3,T,1] = reduce_sum(%e) {axis = -1, keep_dims = 1}\n"
             "  %p: f32[B,2,3,T,C] = div(%e, %z)\n");
  expect_attention(in, 0.125);
}

TEST(FuseAttention, ScaleElsewhere) {
  std::string unscaled = replaced(kSpelledOut, "select(%m, %t, %inf)", "select(%m, %s, %inf)");
  unscaled = replaced(unscaled, "  %t: f32[B,2,3,T,C] = mul(%s, %scale)\n", "");
  expect_attention(unscaled, 1);
  const std::string as_divisor =
      replaced(replaced(kSpelledOut, "mul(%s, %scale)", "div(%s, %scale)"), "0.125", "8.0");
  expect_attention(as_divisor, 0.125);
  std::string on_q = with_line(unscaled, "  %s: f32", "%qs: f32[B,2,3,T,64] = mul(%scale, %q)");
  on_q = replaced(on_q, "matmul(%q,", "matmul(%qs,");
  expect_attention(on_q, 0.125);
  std::string after_mask = with_line(unscaled, "  %p: f32", "%us: f32[B,2,3,T,C] = mul(%u, %scale)");
  expect_attention(replaced(after_mask, "softmax(%u)", "softmax(%us)"), 0.125);
}

TEST(FuseAttention, OtherSpellingsOfTheMask) {
  const std::string_view kMask = "%m: bool[B,1,1,T,C] = less_equal(%i, %p5)";
  const std::string hidden = replaced(kSpelledOut, kMask, "%m: bool[B,1,1,T,C] = less(%p5, %i)");
  EXPECT_EQ(fused(hidden), unchanged(hidden));  // shows the keys that it should hide
  expect_attention(replaced(hidden, "select(%m, %t, %inf)", "select(%m, %inf, %t)"), 0.125);
  expect_attention(
      replaced(with_line(hidden, "  %u: f32", "%w: bool[B,1,1,T,C] = not(%m)"), "select(%m,", "select(%w,"),
      0.125);
  std::string added =
      with_line(kSpelledOut, "  %u: f32",
                "%zero: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[0.0]}");
  added = with_line(added, "  %u: f32", "%w: f32[B,1,1,T,C] = select(%m, %zero, %inf)");
  expect_attention(replaced(added, "select(%m, %t, %inf)", "add(%t, %w)"), 0.125);
}

// The window of the one attention that the pass must find in `in`.
void expect_window(const std::string& in, std::int64_t window) {
  const Graph graph = parse(fused(in));
  ASSERT_EQ(count_op(graph, "attention"), 1) << print_graph(graph);
  const auto node =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op == "attention"; });
  EXPECT_EQ(node->attributes.integer("window"), window) << in;
}

// The causal mask joined with `lower`, a condition on keys %i, positions %p5 and the number %w.
std::string with_window(std::string_view lower, std::string_view joined = "and(%m, %lower)") {
  std::string in =
      with_line(kSpelledOut, "  %u: f32",
                "%w: i32[] = constant() {dtype = \"i32\", shape = dims[], values = reals[40.0]}");
  in = with_line(in, "  %u: f32", lower);
  in = with_line(in, "  %u: f32", fmt::format("%both: bool[B,1,1,T,C] = {}", joined));
  return replaced(in, "select(%m, %t, %inf)", "select(%both, %t, %inf)");
}

TEST(FuseAttention, SlidingWindow) {
  const std::string_view kFirst = "%first: i32[B,1,1,T,1] = sub(%p5, %w)\n";
  const auto after_first = [&](std::string_view line) { return fmt::format("{}  {}", kFirst, line); };
  expect_window(with_window(after_first("%lower: bool[B,1,1,T,C] = less(%first, %i)")), 40);
  expect_window(with_window(after_first("%lower: bool[B,1,1,T,C] = less_equal(%first, %i)")), 41);
  expect_window(with_window("%last: i32[C] = add(%w, %i)\n  %lower: bool[B,1,1,T,C] = less(%p5, %last)"), 40);
  expect_window(
      with_window("%back: i32[B,1,1,T,C] = sub(%p5, %i)\n  %lower: bool[B,1,1,T,C] = less(%back, %w)"), 40);
  // not (c <= p - W), and not (not causal or not inside)
  expect_window(
      with_window(after_first("%out: bool[B,1,1,T,C] = less_equal(%i, %first)\n  %lower: bool[B,1,1,T,C] = "
                              "not(%out)")),
      40);
  expect_window(replaced(with_window(after_first("%out: bool[B,1,1,T,C] = less_equal(%i, %first)\n  %no: "
                                                 "bool[B,1,1,T,C] = less(%p5, %i)"),
                                     "or(%no, %out)"),
                         "select(%both, %t, %inf)", "select(%both, %inf, %t)"),
                40);
  // Two masks one after the other.
  std::string twice = with_window(after_first("%lower: bool[B,1,1,T,C] = less(%first, %i)"));
  twice = with_line(twice, "  %u: f32", "%u1: f32[B,2,3,T,C] = select(%m, %t, %inf)");
  expect_window(replaced(twice, "select(%both, %t, %inf)", "select(%lower, %u1, %inf)"), 40);
}

TEST(FuseAttention, NotWithABoundOfAnotherKind) {
  const std::string_view kFirst = "%first: i32[B,1,1,T,1] = sub(%p5, %w)\n";
  const auto lower = [&](std::string_view line) { return with_window(fmt::format("{}  {}", kFirst, line)); };
  const std::string good = lower("%lower: bool[B,1,1,T,C] = less(%first, %i)");
  for (const std::string& in : {
           lower("%lower: bool[B,1,1,T,C] = less(%i, %first)"),   // hides the window itself
           lower("%lower: bool[B,1,1,T,C] = equal(%first, %i)"),  // one key
           with_window("%sum: i32[B,1,1,T,C] = add(%p5, %i)\n  %lower: bool[B,1,1,T,C] = less(%sum, %w)"),
           replaced(good, "and(%m, %lower)", "or(%m, %lower)"),
           replaced(good, "and(%m, %lower)", "and(%lower, %lower)"),  // no upper bound
           replaced(good, "reals[40.0]", "reals[-40.0]"),             // a window of less than nothing
       }) {
    EXPECT_EQ(fused(in), unchanged(in));
  }
  // The bound of other positions.
  std::string other = replaced(good, "  input %kn", "  input %pos2 \"other\": i32[B,T]\n  input %kn");
  other = replaced(other, "  %s: f32",
                   "  %q5: i32[B,1,1,T,1] = reshape(%pos2) {shape = dims[B, 1, 1, T, 1]}\n  %s: f32");
  other = replaced(other, "sub(%p5, %w)", "sub(%q5, %w)");
  EXPECT_EQ(fused(other), unchanged(other));
}

// cap * tanh(scale * s / cap), as Gemma 2 caps its scores.
std::string with_softcap(std::string_view capped = "mul(%th, %cap)") {
  std::string in =
      with_line(kSpelledOut, "  %u: f32",
                "%cap: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[50.0]}");
  in = with_line(in, "  %u: f32", "%tc: f32[B,2,3,T,C] = div(%t, %cap)");
  in = with_line(in, "  %u: f32", "%th: f32[B,2,3,T,C] = tanh(%tc)");
  in = with_line(in, "  %u: f32", fmt::format("%capped: f32[B,2,3,T,C] = {}", capped));
  return replaced(in, "select(%m, %t, %inf)", "select(%m, %capped, %inf)");
}

TEST(FuseAttention, Softcap) {
  const std::string in = with_softcap();
  expect_attention(in, 0.125);
  const Graph graph = parse(fused(in));
  EXPECT_EQ(graph.nodes[2].attributes.real("softcap"), 50.0);
  // Without the factor behind the tanh, the scores end at 1.
  const Graph plain = parse(fused(replaced(replaced(in, "select(%m, %capped,", "select(%m, %th,"),
                                           "  %capped: f32[B,2,3,T,C] = mul(%th, %cap)\n", "")));
  ASSERT_EQ(count_op(plain, "attention"), 1);
  EXPECT_EQ(plain.nodes[2].attributes.real("softcap"), 1.0);
  EXPECT_EQ(plain.nodes[2].attributes.real("scale"), 0.125 / 50);
}

TEST(FuseAttention, NotWithTwoCapsNorWithTheMaskInside) {
  const std::string twice = with_softcap("tanh(%th)");
  EXPECT_EQ(fused(twice), unchanged(twice));
  std::string inside = replaced(with_softcap(), "tanh(%tc)", "tanh(%hidden)");
  inside = replaced(inside, "  %th: f32", "  %hidden: f32[B,2,3,T,C] = select(%m, %tc, %inf)\n  %th: f32");
  EXPECT_EQ(fused(inside), unchanged(inside));
}

// Multi-head latent attention has values of another width than its keys.
TEST(FuseAttention, ValuesOfAnotherWidth) {
  std::string in(kSpelledOut);
  for (const std::string_view part :
       {"input %vn \"vn\": f32[B,T,2,64]", "state %vs \"v\": f32[B,C,2,64]", "%v: f32[B,C,2,64]",
        "%vp: f32[B,2,C,64]", "%v5: f32[B,2,1,C,64]", "shape = dims[B, 2, 1, C, 64]}\n  %scale",
        "%o: f32[B,2,3,T,64]", "%a: f32[B,T,2,3,64]"}) {
    in = replaced(in, part, replaced(part, "64", "48"));
  }
  const Graph graph = parse(fused(in));
  ASSERT_EQ(count_op(graph, "attention"), 1) << print_graph(graph);
  EXPECT_EQ(type_to_string(graph.type(graph.outputs[0].value)), "f32[B,T,2,3,48]");
}

TEST(FuseAttention, OtherViewsOfKeysAndValues) {
  std::string in = replaced(kSpelledOut, "%kp: f32[B,2,C,64] = permute(%k) {axes = ints[0, 2, 1, 3]}",
                            "%kp: f32[B,C,2,1,64] = reshape(%k) {shape = dims[B, C, 2, 1, 64]}");
  in = replaced(in, "%k5: f32[B,2,1,C,64] = reshape(%kp) {shape = dims[B, 2, 1, C, 64]}",
                "%k5: f32[B,2,1,64,C] = permute(%kp) {axes = ints[0, 2, 3, 4, 1]}");
  in = replaced(in, "matmul(%q, %k5) {transpose_b = 1}", "matmul(%q, %k5)");
  in = replaced(in, "matmul(%p, %v5)", "matmul(%p, %v6)");
  in = with_line(in, "  %o: f32", "%v6: f32[B,2,3,C,64] = broadcast(%v5) {shape = dims[B, 2, 3, C, 64]}");
  expect_attention(in, 0.125);
}

TEST(FuseAttention, CacheOfAnotherTypeReadThroughACast) {
  std::string in(kSpelledOut);
  for (const std::string_view name : {"%kn \"kn\": f32", "%vn \"vn\": f32", "%ks \"k\": f32",
                                      "%vs \"v\": f32", "%k: f32", "%v: f32", "%kp: f32", "%vp: f32"}) {
    in = replaced(in, name, replaced(name, "f32", "f16"));
  }
  in = replaced(in, "%k5: f32[B,2,1,C,64] = reshape(%kp)",
                "%k4: f32[B,2,C,64] = cast(%kp) {to = \"f32\"}\n  %k5: f32[B,2,1,C,64] = reshape(%k4)");
  in = replaced(in, "%v5: f32[B,2,1,C,64] = reshape(%vp)",
                "%v4: f32[B,2,C,64] = cast(%vp) {to = \"f32\"}\n  %v5: f32[B,2,1,C,64] = reshape(%v4)");
  expect_attention(in, 0.125);
}

TEST(FuseAttention, ResultInAnotherOrderGetsThePermuteBack) {
  const std::string missing =
      replaced(replaced(kSpelledOut,
                        "  %a: f32[B,T,2,3,64] = permute(%o) {axes = ints[0, 3, 1, 2, 4]} @\"attn\"\n", ""),
               "\"y\" %a", "\"y\" %o");
  expect_attention(missing, 0.125, 4);
  EXPECT_EQ(type_to_string(parse(fused(missing)).type(parse(fused(missing)).outputs[0].value)),
            "f32[B,2,3,T,64]");
  const std::string other = replaced(replaced(kSpelledOut, "%a: f32[B,T,2,3,64]", "%a: f32[T,B,2,3,64]"),
                                     "ints[0, 3, 1, 2, 4]", "ints[3, 0, 1, 2, 4]");
  expect_attention(other, 0.125, 5);
}

TEST(FuseAttention, LayersShareOneMask) {
  std::string in = with_line(kSpelledOut, "  output \"y\"", "%u2: f32[B,2,3,T,C] = select(%m, %x, %inf)");
  in = replaced(in, "  output \"y\" %a\n", "  output \"y\" %a\n  output \"z\" %u2\n");
  in = replaced(in, "  input %kn", "  input %x \"x\": f32[B,2,3,T,C]\n  input %kn");
  const Graph graph = parse(fused(in));
  EXPECT_EQ(count_op(graph, "attention"), 1);
  EXPECT_EQ(count_op(graph, "less_equal"), 1);  // copied into the body, and still there for its other reader
}

TEST(FuseAttention, NotIfScoresOrProbabilitiesAreOutputs) {
  for (const std::string_view name : {"%s", "%t", "%u", "%p"}) {
    const std::string in = replaced(kSpelledOut, "  output \"y\" %a\n",
                                    fmt::format("  output \"y\" %a\n  output \"z\" {}\n", name));
    EXPECT_EQ(fused(in), unchanged(in)) << name;
  }
}

TEST(FuseAttention, NotWithAMaskOfAnotherKind) {
  const std::string_view kMask = "less_equal(%i, %p5)";
  for (const std::string_view mask : {"less(%i, %p5)", "less_equal(%p5, %i)", "equal(%i, %p5)"}) {
    const std::string in = replaced(kSpelledOut, kMask, mask);
    EXPECT_EQ(fused(in), unchanged(in)) << mask;
  }
  const std::string finite = replaced(kSpelledOut, "reals[-inf]", "reals[-10000.0]");
  EXPECT_EQ(fused(finite), unchanged(finite));
  const std::string none = replaced(kSpelledOut, "softmax(%u)", "softmax(%t)");
  EXPECT_EQ(count_op(parse(fused(none)), "attention"), 0);
  const std::string_view kIota = "%i: i32[C] = iota() {axis = 0, shape = dims[C]}";
  for (const std::string_view other : {"%i: i32[T,C] = iota() {axis = 0, shape = dims[T, C]}",
                                       "%i: i32[1] = iota() {axis = 0, shape = dims[1]}"}) {
    std::string in = replaced(kSpelledOut, kIota, other);
    if (other.find("[1]") != std::string_view::npos) {
      in = replaced(in, "%m: bool[B,1,1,T,C]", "%m: bool[B,1,1,T,1]");
    }
    EXPECT_EQ(fused(in), unchanged(in)) << other;
  }
}

TEST(FuseAttention, NotWithANegativeOrUnknownScale) {
  const std::string negative = replaced(kSpelledOut, "0.125", "-0.125");
  EXPECT_EQ(fused(negative), unchanged(negative));
  std::string unknown = replaced(kSpelledOut, "  input %kn", "  input %scale \"scale\": f32[]\n  input %kn");
  unknown = replaced(
      unknown, "  %scale: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[0.125]}\n", "");
  EXPECT_EQ(fused(unknown), unchanged(unknown));
}

TEST(FuseAttention, NotIfHeadsAndContextAreMixedUp) {
  std::string in = replaced(kSpelledOut, "%kp: f32[B,2,C,64] = permute(%k) {axes = ints[0, 2, 1, 3]}",
                            "%kp: f32[B,2,C,64] = reshape(%k) {shape = dims[B, 2, C, 64]}");
  EXPECT_EQ(fused(in), unchanged(in));
}

}  // namespace
}  // namespace hone::test
