#include "projection_text.h"

namespace hone::test {
namespace {

std::string norm(std::string_view line, std::string_view type = "f32") {
  return fmt::format(R"(  {} body "rms_norm" symbols(B, T) {{
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[64]
    %2: f32[B,T,64] = mul(%0, %1)
    {}output "0" %{}
  }}
)",
                     line, type == "q8a" ? "%3: q8a[B,T,64] = quantize_q8a(%2)\n    " : "",
                     type == "q8a" ? 3 : 2);
}

// x behind a block, the residual stream r, and the norm in front of the next block.
std::string post_norm(std::string_view sum = "  %y: f32[B,T,64] = add(%r, %n) @\"layers.0\"\n") {
  return fmt::format(R"(graph "g" symbols(B, T) {{
  input %x "x": f32[B,T,64]
  input %r "r": f32[B,T,64]
  weight %w "w": f32[64]
  weight %v "v": f32[64]
{}{}{}  output "y" %y
  output "z" %z
}}
)",
                     norm("%n: f32[B,T,64] = rms_norm(%x, %w) {eps = 1e-06} @\"post\""), sum,
                     norm("%z: q8a[B,T,64] = rms_norm(%y, %v) {eps = 1e-05, offset = 1.0} @\"next\"", "q8a"));
}

std::string fused(std::string_view in) {
  return after("fuse-post-norm", in);
}

TEST(FusePostNorm, NormSumAndNorm) {
  const auto [out, fired] = after_and_fired("fuse-post-norm", post_norm());
  EXPECT_EQ(fired, "norm-sum-and-norm 1");
  EXPECT_EQ(out, text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  input %r "r": f32[B,T,64]
  weight %w "w": f32[64]
  weight %v "v": f32[64]
  %y: f32[B,T,64], %z: q8a[B,T,64] = norm_add(%x, %w, %r, %v) {eps = 1e-06, next_eps = 1e-05, next_offset = 1.0} @"layers.0" body "norm_add" symbols(B, T) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[64]
    input %2 "2": f32[B,T,64]
    input %3 "3": f32[64]
    %4: f32[B,T,64] = rms_norm(%0, %1) {eps = 1e-06} body "rms_norm" symbols(B, T) {
      input %0 "0": f32[B,T,64]
      input %1 "1": f32[64]
      %2: f32[B,T,64] = mul(%0, %1)
      output "0" %2
    }
    %5: f32[B,T,64] = add(%2, %4)
    %6: q8a[B,T,64] = rms_norm(%5, %3) {eps = 1e-05, offset = 1.0} body "rms_norm" symbols(B, T) {
      input %0 "0": f32[B,T,64]
      input %1 "1": f32[64]
      %2: f32[B,T,64] = mul(%0, %1)
      %3: q8a[B,T,64] = quantize_q8a(%2)
      output "0" %3
    }
    output "0" %5
    output "1" %6
  }
  output "y" %y
  output "z" %z
}
)"));
  // The norm's result on the other side of the sum.
  EXPECT_EQ(nodes_of(fused(post_norm("  %y: f32[B,T,64] = add(%n, %r) @\"layers.0\"\n"))), nodes_of(out));
}

// No norm reads the sum, or one whose weight is made behind it.
TEST(FusePostNorm, WithoutANormOfTheSum) {
  const std::string alone = "%y: f32[B,T,64] = norm_add(%x, %w, %r) {eps = 1e-06}\n";
  std::string in = replaced(post_norm(), "rms_norm(%y, %v)", "rms_norm(%r, %v)");
  EXPECT_EQ(nodes_of(fused(in)), alone + "%z: q8a[B,T,64] = rms_norm(%r, %v) {eps = 1e-05, offset = 1.0}\n");
  in = replaced(replaced(post_norm(), "rms_norm(%y, %v)", "rms_norm(%y, %u)"),
                "  %z:", "  %u: f32[64] = neg(%v)\n  %z:");
  EXPECT_EQ(
      nodes_of(fused(in)),
      alone + "%u: f32[64] = neg(%v)\n%z: q8a[B,T,64] = rms_norm(%y, %u) {eps = 1e-05, offset = 1.0}\n");
}

// The sum may be read by others; those that stand before the norm of it read it in time.
TEST(FusePostNorm, TheSumStandsWhereItStood) {
  const std::string in =
      replaced(post_norm(), "  %z:", "  %a: f32[B,T,64] = neg(%y)\n  output \"a\" %a\n  %z:");
  EXPECT_EQ(nodes_of(fused(in)).substr(0, 34), "%y: f32[B,T,64], %z: q8a[B,T,64] =");
}

TEST(FusePostNorm, NotWhereTheNormIsReadTwice) {
  for (const std::string_view outside :
       {"  output \"n\" %n\n", "  %a: f32[B,T,64] = neg(%n)\n  output \"a\" %a\n"}) {
    const std::string in = replaced(post_norm(), "  output \"y\"", fmt::format("{}  output \"y\"", outside));
    EXPECT_EQ(fused(in), unchanged(in));
  }
}

TEST(FusePostNorm, NotOtherSums) {
  for (const std::string_view sum : {"  %y: f32[B,T,64] = add(%n, %n)\n", "  %y: f32[B,T,64] = sub(%r, %n)\n",
                                     "  %y: f32[B,T,64] = add(%x, %n)\n", "  %y: f32[B,T,64] = add(%w, %n)\n",
                                     "  %y: f32[B,T,64] = add(%r, %x)\n  output \"n\" %n\n"}) {
    const std::string in = post_norm(sum);
    EXPECT_EQ(fused(in), unchanged(in)) << sum;
  }
  // A residual that repeats for all tokens.
  const std::string in = replaced(post_norm(), "\"r\": f32[B,T,64]", "\"r\": f32[B,1,64]");
  EXPECT_EQ(fused(in), unchanged(in));
}

// One norm of each sum joins; and what is the next of one sum is not the first of another.
TEST(FusePostNorm, EachNormOnce) {
  std::string in =
      replaced(post_norm(), "  output \"y\"",
               norm("%t: f32[B,T,64] = rms_norm(%y, %w) {eps = 0.5}") + "  output \"t\" %t\n  output \"y\"");
  EXPECT_EQ(count_op(parse(fused(in)), "rms_norm"), 1);
  in = replaced(
      post_norm(), norm("%z: q8a[B,T,64] = rms_norm(%y, %v) {eps = 1e-05, offset = 1.0} @\"next\"", "q8a"),
      norm("%m: f32[B,T,64] = rms_norm(%y, %v) {eps = 1e-05}") + "  %z: f32[B,T,64] = add(%x, %m)\n");
  EXPECT_EQ(count_op(parse(fused(in)), "norm_add"), 1);
}

}  // namespace
}  // namespace hone::test
