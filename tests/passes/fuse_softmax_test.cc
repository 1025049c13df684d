#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kSpelledOut = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  %m: f32[T,1] = reduce_max(%x) {axis = -1, keep_dims = 1}
  %s: f32[T,64] = sub(%x, %m)
  %e: f32[T,64] = exp(%s)
  %t: f32[T,1] = reduce_sum(%e) {axis = 1, keep_dims = 1}
  %p: f32[T,64] = div(%e, %t) @"attn"
  output "y" %p
}
)");

const std::string_view kFused = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  %p: f32[T,64] = softmax(%x) @"attn" body "softmax" symbols(T) {
    input %0 "0": f32[T,64]
    %1: f32[T,1] = reduce_max(%0) {axis = -1, keep_dims = 1}
    %2: f32[T,64] = sub(%0, %1)
    %3: f32[T,64] = exp(%2)
    %4: f32[T,1] = reduce_sum(%3) {axis = 1, keep_dims = 1}
    %5: f32[T,64] = div(%3, %4)
    output "0" %5
  }
  output "y" %p
}
)");

std::string fused(std::string_view in) {
  return after("fuse-softmax", in);
}
std::string unchanged(std::string_view in) {
  return print_graph(parse(in));
}

TEST(FuseSoftmax, FiveNodesBecomeOne) {
  EXPECT_EQ(fused(kSpelledOut), kFused);
}

TEST(FuseSoftmax, NotIfAnInnerValueIsAnOutput) {
  const std::string in =
      replaced(kSpelledOut, "  output \"y\" %p\n", "  output \"y\" %p\n  output \"e\" %e\n");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseSoftmax, NotIfAnInnerValueHasAnotherUser) {
  const std::string in = replaced(kSpelledOut, "  output \"y\" %p\n",
                                  "  %z: f32[T,64] = neg(%s)\n  output \"y\" %p\n  output \"z\" %z\n");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseSoftmax, NotAlongAnotherAxis) {
  std::string in =
      replaced(kSpelledOut, "f32[T,1] = reduce_max(%x) {axis = -1", "f32[1,64] = reduce_max(%x) {axis = 0");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseSoftmax, NotIfTheMaximumIsOfAnotherValue) {
  std::string in = replaced(kSpelledOut, "  input %x \"x\": f32[T,64]\n",
                            "  input %x \"x\": f32[T,64]\n  input %w \"w\": f32[T,64]\n");
  in = replaced(in, "reduce_max(%x)", "reduce_max(%w)");
  EXPECT_EQ(fused(in), unchanged(in));
}

}  // namespace
}  // namespace hone::test
