#include "projection_text.h"

namespace hone::test {
namespace {

const std::string_view kNorm = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %w "w": f32[64]
  weight %m "m": q8_0[32,64]
  %n: f32[B,T,64] = rms_norm(%x, %w) {eps = 1e-05, offset = 1.0} @"norm" body "rms_norm" symbols(B, T) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[64]
    %2: f32[B,T,64] = mul(%0, %1)
    output "0" %2
  }
  %q: q8a[B,T,64] = quantize_q8a(%n) @"proj"
  %y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1} @"proj"
  output "y" %y
}
)");

const std::string_view kAttention = text(R"(
graph "g" symbols(B, T, C) {
  input %p "p": f32[B,2,3,T,32]
  input %k "k": f16[B,C,2,32]
  input %v "v": f16[B,C,2,32]
  input %pos "positions": i32[B,T]
  weight %m "m": q8_0[32,192]
  %a: f32[B,T,2,3,32] = attention(%p, %k, %v, %pos) {scale = 0.5} @"attn" body "attention" symbols(B, T, C) {
    input %0 "0": f32[B,2,3,T,32]
    input %1 "1": f16[B,C,2,32]
    input %2 "2": f16[B,C,2,32]
    input %3 "3": i32[B,T]
    %4: f32[B,T,2,3,32] = permute(%0) {axes = ints[0, 3, 1, 2, 4]}
    output "0" %4
  }
  %r: f32[B,T,192] = reshape(%a) {shape = dims[B, T, 192]}
  %q: q8a[B,T,192] = quantize_q8a(%r) @"o"
  %y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1} @"o"
  output "y" %y
}
)");

std::string fused(std::string_view in) {
  return after("fuse-quantise", in);
}
void expect_unchanged(std::string_view in) {
  EXPECT_EQ(fused(in), unchanged(in));
}

// q8a [..,2,64] by a norm; attention's stays a launch.
TEST(FuseQuantise, ANormAndAnAttentionWriteBf16) {
  const std::string in =
      replaced(kNorm, "%q: q8a[B,T,64] = quantize_q8a(%n)", "%q: bf16[B,T,64] = cast(%n) {to = \"bf16\"}");
  const std::string out = fused(in);
  EXPECT_NE(out.find("%q: bf16[B,T,64] = rms_norm("), std::string::npos) << out;
  std::string attention = replaced(kAttention, "%q: q8a[B,T,192] = quantize_q8a(%r)",
                                   "%q: bf16[B,T,192] = cast(%r) {to = \"bf16\"}");
  attention = fused(attention);
  EXPECT_NE(attention.find(": bf16[B,T,2,3,32] = attention("), std::string::npos) << attention;
  EXPECT_NE(attention.find("%q: bf16[B,T,192] = reshape("), std::string::npos) << attention;
  // Not for other types.
  const std::string half = replaced(replaced(in, "bf16[", "f16["), "\"bf16\"", "\"f16\"");
  EXPECT_EQ(fused(half), half);
}

TEST(FuseQuantise, ANormWritesTwoTerms) {
  std::string norm = replaced(kNorm, "%q: q8a[B,T,64] = quantize_q8a(%n)",
                              "%q: q8a[B,T,2,64] = quantize_q8a(%n) {terms = 2}");
  norm = replaced(norm, "%y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1} @\"proj\"",
                  "%y: f32[B,T,2,64] = cast(%q) {to = \"f32\"}");
  EXPECT_EQ(nodes_of(fused(norm)),
            "%q: q8a[B,T,2,64] = rms_norm(%x, %w) {eps = 1e-05, offset = 1.0}\n"
            "%y: f32[B,T,2,64] = cast(%q) {to = \"f32\"}\n");
  std::string attention = replaced(kAttention, "%q: q8a[B,T,192] = quantize_q8a(%r)",
                                   "%q: q8a[B,T,2,192] = quantize_q8a(%r) {terms = 2}");
  attention = replaced(attention, "%y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1} @\"o\"",
                       "%y: f32[B,T,2,192] = cast(%q) {to = \"f32\"}");
  expect_unchanged(attention);
}

TEST(FuseQuantise, ANormWritesBlocks) {
  EXPECT_EQ(fused(kNorm), text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %w "w": f32[64]
  weight %m "m": q8_0[32,64]
  %q: q8a[B,T,64] = rms_norm(%x, %w) {eps = 1e-05, offset = 1.0} @"norm" body "rms_norm" symbols(B, T) {
    input %0 "0": f32[B,T,64]
    input %1 "1": f32[64]
    %2: f32[B,T,64] = mul(%0, %1)
    %3: q8a[B,T,64] = quantize_q8a(%2)
    output "0" %3
  }
  %y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1} @"proj"
  output "y" %y
}
)"));
}

TEST(FuseQuantise, AttentionWritesBlocksInFrontOfItsReshape) {
  EXPECT_EQ(fused(kAttention), text(R"(
graph "g" symbols(B, T, C) {
  input %p "p": f32[B,2,3,T,32]
  input %k "k": f16[B,C,2,32]
  input %v "v": f16[B,C,2,32]
  input %pos "positions": i32[B,T]
  weight %m "m": q8_0[32,192]
  %14: q8a[B,T,2,3,32] = attention(%p, %k, %v, %pos) {scale = 0.5} @"attn" body "attention" symbols(B, T, C) {
    input %0 "0": f32[B,2,3,T,32]
    input %1 "1": f16[B,C,2,32]
    input %2 "2": f16[B,C,2,32]
    input %3 "3": i32[B,T]
    %4: f32[B,T,2,3,32] = permute(%0) {axes = ints[0, 3, 1, 2, 4]}
    %5: q8a[B,T,2,3,32] = quantize_q8a(%4)
    output "0" %5
  }
  %q: q8a[B,T,192] = reshape(%14) {shape = dims[B, T, 192]}
  %y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1} @"o"
  output "y" %y
}
)"));
}

// Two products read the blocks: they are still what one quantisation makes.
TEST(FuseQuantise, TheBlocksMayHaveManyReaders) {
  const std::string in =
      replaced(kNorm, "  output \"y\"",
               "  %z: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1}\n  output \"z\" %z\n  output \"y\"");
  EXPECT_EQ(nodes_of(fused(in)), text(R"(
%q: q8a[B,T,64] = rms_norm(%x, %w) {eps = 1e-05, offset = 1.0}
%y: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1}
%z: f32[B,T,32] = matmul(%q, %m) {transpose_b = 1}
)"));
}

TEST(FuseQuantise, NotIfTheF32ValueIsReadToo) {
  expect_unchanged(replaced(kNorm, "  output \"y\" %y", "  output \"y\" %y\n  output \"n\" %n"));
  expect_unchanged(replaced(kNorm, "  %q:", "  %z: f32[B,T,64] = neg(%n)\n  output \"z\" %z\n  %q:"));
  expect_unchanged(replaced(kAttention, "  output \"y\" %y", "  output \"y\" %y\n  output \"a\" %a"));
  expect_unchanged(replaced(kAttention, "  output \"y\" %y", "  output \"y\" %y\n  output \"r\" %r"));
  expect_unchanged(
      replaced(kAttention, "  %r:", "  %z: f32[B,T,2,3,32] = neg(%a)\n  output \"z\" %z\n  %r:"));
  expect_unchanged(replaced(kAttention, "  %q:", "  %z: f32[B,T,192] = neg(%r)\n  output \"z\" %z\n  %q:"));
}

// Heads of 16 columns: two of them would share a block.
TEST(FuseQuantise, NotIfTheRowsOfTheLaunchAreNoWholeBlocks) {
  std::string in(kAttention);
  for (const std::string_view type : {"f32[B,2,3,T,32]", "f16[B,C,2,32]", "f16[B,C,2,32]", "f32[B,T,2,3,32]",
                                      "f32[B,2,3,T,32]", "f16[B,C,2,32]", "f16[B,C,2,32]", "f32[B,T,2,3,32]"})
    in = replaced(in, type, replaced(type, ",32]", ",16]"));
  in = replaced(in, "q8_0[32,192]", "q8_0[32,96]");
  in = replaced(in, "%r: f32[B,T,192] = reshape(%a) {shape = dims[B, T, 192]}",
                "%r: f32[B,T,96] = reshape(%a) {shape = dims[B, T, 96]}");
  in = replaced(in, "%q: q8a[B,T,192]", "%q: q8a[B,T,96]");
  expect_unchanged(in);
}

TEST(FuseQuantise, NotOfOtherLaunchesNorThroughOtherViews) {
  std::string in = replaced(kNorm, "quantize_q8a(%n)", "quantize_q8a(%o)");
  expect_unchanged(replaced(in, "  %q:", "  %o: f32[B,T,64] = neg(%n)\n  %q:"));
  in = replaced(kAttention, "%r: f32[B,T,192] = reshape(%a) {shape = dims[B, T, 192]}",
                "%t: f32[B,T,3,2,32] = permute(%a) {axes = ints[0, 1, 3, 2, 4]}\n"
                "  %r: f32[B,T,192] = reshape(%t) {shape = dims[B, T, 192]}");
  expect_unchanged(in);
}

}  // namespace
}  // namespace hone::test
