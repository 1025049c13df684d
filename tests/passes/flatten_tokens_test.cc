#include <fmt/format.h>

#include "projection_text.h"

namespace hone::test {
namespace {

// One layer: D = 32, K = 2 kv heads, G = 1, E = 16.
const std::string_view kDense = text(R"(
graph "g" symbols(B, T, C, R) {
  input %ids "ids": i32[B,T]
  input %pos "positions": i32[B,T]
  input %rows "rows": i32[R]
  weight %w "w": f32[128,32]
  state %ks "k": f16[B,C,2,16]
  state %vs "v": f32[B,C,2,16]
  %x: f32[B,T,32] = gather(%w, %ids)
  %x4: f32[B,T,2,16] = reshape(%x) {shape = dims[B, T, 2, 16]}
  %h: f16[B,T,2,16] = cast(%x4) {to = "f16"}
  %k: f16[B,C,2,16] = state_append(%ks, %h, %pos)
  %v: f32[B,C,2,16] = state_append(%vs, %x4, %pos)
  %x5: f32[B,T,2,1,16] = reshape(%x) {shape = dims[B, T, 2, 1, 16]}
  %q: f32[B,2,1,T,16] = permute(%x5) {axes = ints[0, 2, 3, 1, 4]}
  %a: f32[B,T,2,1,16] = attention(%q, %k, %v, %pos) {scale = 0.25} @"attn" body "attention" symbols(B, T, C) {
    input %0 "0": f32[B,2,1,T,16]
    input %1 "1": f16[B,C,2,16]
    input %2 "2": f32[B,C,2,16]
    input %3 "3": i32[B,T]
    %4: f16[B,2,C,16] = permute(%1) {axes = ints[0, 2, 1, 3]}
    %5: f16[B,2,1,C,16] = reshape(%4) {shape = dims[B, 2, 1, C, 16]}
    %6: f32[B,2,1,T,C] = matmul(%0, %5) {transpose_b = 1}
    %7: f32[B,2,C,16] = permute(%2) {axes = ints[0, 2, 1, 3]}
    %8: f32[B,2,1,C,16] = reshape(%7) {shape = dims[B, 2, 1, C, 16]}
    %9: i32[B,1,1,T,1] = reshape(%3) {shape = dims[B, 1, 1, T, 1]}
    %10: f32[B,2,1,T,16] = matmul(%6, %8)
    %11: f32[B,T,2,1,16] = permute(%10) {axes = ints[0, 3, 1, 2, 4]}
    output "0" %11
  }
  %a3: f32[B,T,32] = reshape(%a) {shape = dims[B, T, 32]}
  %y: f32[B,T,32] = add(%a3, %x)
  %flat: f32[B*T,32] = reshape(%y) {shape = dims[B*T, 32]}
  %last: f32[R,32] = gather(%flat, %rows)
  %l: f32[R,128] = matmul(%last, %w) {transpose_b = 1}
  output "hidden" %y
  output "logits" %l
  update "k" %k
  update "v" %v
}
)");

std::string flat(std::string_view in) {
  return after("flatten-tokens", in);
}

void expect_left_alone(std::string_view in) {
  const auto [out, fired] = after_and_fired("flatten-tokens", in);
  EXPECT_EQ(out, print_graph(parse(in)));
  EXPECT_EQ(fired, "");
}

TEST(FlattenTokens, AStepOfTokensWithoutPadding) {
  const auto [out, fired] = after_and_fired("flatten-tokens", kDense);
  EXPECT_EQ(fired, "step-input 2, state-append 2, attention 1");
  EXPECT_EQ(out, text(R"(
graph "g" symbols(B, N, C, R) {
  input %ids "ids": i32[1,N]
  input %pos "positions": i32[1,N]
  input %rows "rows": i32[R]
  input %sequence "sequence": i32[1,N]
  weight %w "w": f32[128,32]
  state %ks "k": f16[B,C,2,16]
  state %vs "v": f32[B,C,2,16]
  %x: f32[1,N,32] = gather(%w, %ids)
  %x4: f32[1,N,2,16] = reshape(%x) {shape = dims[1, N, 2, 16]}
  %h: f16[1,N,2,16] = cast(%x4) {to = "f16"}
  %k: f16[B,C,2,16] = state_append(%ks, %h, %pos, %sequence)
  %v: f32[B,C,2,16] = state_append(%vs, %x4, %pos, %sequence)
  %x5: f32[1,N,2,1,16] = reshape(%x) {shape = dims[1, N, 2, 1, 16]}
  %q_rows: f32[1,2,1,N,16] = permute(%x5) {axes = ints[0, 2, 3, 1, 4]}
  %a: f32[1,N,2,1,16] = attention(%q_rows, %k, %v, %pos, %sequence) {scale = 0.25} @"attn" body "attention" symbols(B, N, C) {
    input %12 "0": f32[1,2,1,N,16]
    input %13 "1": f16[B,C,2,16]
    input %14 "2": f32[B,C,2,16]
    input %15 "3": i32[1,N]
    input %16 "4": i32[1,N]
    %17: i32[N] = reshape(%16) {shape = dims[N]}
    %18: f32[N,2,1,1,16] = permute(%12) {axes = ints[3, 1, 2, 0, 4]}
    %19: f16[B,32*C] = reshape(%13) {shape = dims[B, 32*C]}
    %20: f32[N,32*C] = gather(%19, %17)
    %21: f32[N,C,2,16] = reshape(%20) {shape = dims[N, C, 2, 16]}
    %22: f16[N,C,2,16] = cast(%21) {to = "f16"}
    %23: f32[B,32*C] = reshape(%14) {shape = dims[B, 32*C]}
    %24: f32[N,32*C] = gather(%23, %17)
    %25: f32[N,C,2,16] = reshape(%24) {shape = dims[N, C, 2, 16]}
    %26: i32[N,1] = reshape(%15) {shape = dims[N, 1]}
    %4: f16[N,2,C,16] = permute(%22) {axes = ints[0, 2, 1, 3]}
    %5: f16[N,2,1,C,16] = reshape(%4) {shape = dims[N, 2, 1, C, 16]}
    %6: f32[N,2,1,1,C] = matmul(%18, %5) {transpose_b = 1}
    %7: f32[N,2,C,16] = permute(%25) {axes = ints[0, 2, 1, 3]}
    %8: f32[N,2,1,C,16] = reshape(%7) {shape = dims[N, 2, 1, C, 16]}
    %9: i32[N,1,1,1,1] = reshape(%26) {shape = dims[N, 1, 1, 1, 1]}
    %10: f32[N,2,1,1,16] = matmul(%6, %8)
    %11: f32[N,1,2,1,16] = permute(%10) {axes = ints[0, 3, 1, 2, 4]}
    %27: f32[1,N,2,1,16] = reshape(%11) {shape = dims[1, N, 2, 1, 16]}
    output "0" %27
  }
  %a3: f32[1,N,32] = reshape(%a) {shape = dims[1, N, 32]}
  %y: f32[1,N,32] = add(%a3, %x)
  %flat: f32[N,32] = reshape(%y) {shape = dims[N, 32]}
  %last: f32[R,32] = gather(%flat, %rows)
  %l: f32[R,128] = matmul(%last, %w) {transpose_b = 1}
  output "hidden" %y
  output "logits" %l
  update "k" %k
  update "v" %v
}
)"));
  expect_left_alone(out);  // once is enough
}

// What is known of each sequence becomes known of each token.
TEST(FlattenTokens, AnInputOfEachSequence) {
  std::string in = replaced(kDense, "  weight", "  input %len \"lengths\": i32[B]\n  weight");
  in = replaced(in, "  %x4:",
                "  %m: i32[B] = neg(%len)\n  %l3: i32[B,1,1] = reshape(%m) {shape = dims[B, 1, 1]}\n"
                "  %lf: f32[B,1,1] = cast(%l3) {to = \"f32\"}\n  %xl: f32[B,T,32] = mul(%x, %lf)\n  %x4:");
  in = replaced(in, "add(%a3, %x)", "add(%a3, %xl)");
  const auto [out, fired] = after_and_fired("flatten-tokens", in);
  EXPECT_EQ(fired, "step-input 2, input-of-each-sequence 1, state-append 2, attention 1");
  EXPECT_NE(out.find("  input %len_rows \"lengths\": i32[1,N]\n"), std::string::npos) << out;
  EXPECT_NE(nodes_of(out).find("%m_rows: i32[1,N] = neg(%len_rows)\n"
                               "%l3_rows: i32[1,N,1] = reshape(%m_rows) {shape = dims[1, N, 1]}\n"
                               "%lf_rows: f32[1,N,1] = cast(%l3_rows) {to = \"f32\"}\n"
                               "%xl: f32[1,N,32] = mul(%x, %lf_rows)\n"),
            std::string::npos)
      << nodes_of(out);
  // A matrix by each sequence's vector is no such thing.
  in = replaced(in, "  %m: i32[B]",
                "  %w1: f32[32,1] = slice(%w0) {axis = 0, range = dims[0, 32]}\n  %m: i32[B]");
  in = replaced(in, "  state %ks", "  weight %w0 \"w0\": f32[64,1]\n  state %ks");
  in = replaced(in, "mul(%x, %lf)", "mul(%x, %lm)");
  in = replaced(in, "  %xl:", "  %lm: f32[B,1,32] = matmul(%lf, %w1) {transpose_b = 1}\n  %xl:");
  expect_left_alone(in);
}

// A projection that appends its rows in the same launch.
TEST(FlattenTokens, AProjectionThatAppends) {
  ProjectionSection section;
  section.weight = 1;
  section.state = 2;
  section.positions = 3;
  const std::string projection = fmt::format(
      R"(  %k: f16[B,C,2,16] = projection(%x, %wk, %ks, %pos) {{{}}} body "projection" symbols(B, T, C, R) {{
    input %0 "0": f32[B,T,32]
    input %1 "1": f32[32,32]
    input %2 "2": f16[B,C,2,16]
    input %3 "3": i32[B,T]
    %4: f32[B,T,32] = matmul(%0, %1) {{transpose_b = 1}}
    %5: f16[B,T,32] = cast(%4) {{to = "f16"}}
    %6: f16[B,T,2,16] = reshape(%5) {{shape = dims[B, T, 2, 16]}}
    %7: f16[B,C,2,16] = state_append(%2, %6, %3)
    output "0" %7
  }}
)",
      sections({section}));
  std::string in = replaced(kDense, "  %k: f16[B,C,2,16] = state_append(%ks, %h, %pos)\n", projection);
  in = replaced(in, "  state %ks", "  weight %wk \"wk\": f32[32,32]\n  state %ks");
  const auto [out, fired] = after_and_fired("flatten-tokens", in);
  EXPECT_EQ(fired, "step-input 2, state-append 2, attention 1");
  EXPECT_NE(
      out.find(fmt::format(
          R"(  %k: f16[B,C,2,16] = projection(%x, %wk, %ks, %pos, %sequence) {{{}, sequence = 4}} body "projection" symbols(B, N, C, R) {{
    input %0 "0": f32[1,N,32]
    input %1 "1": f32[32,32]
    input %2 "2": f16[B,C,2,16]
    input %3 "3": i32[1,N]
    input %8 "4": i32[1,N]
    %4: f32[1,N,32] = matmul(%0, %1) {{transpose_b = 1}}
    %5: f16[1,N,32] = cast(%4) {{to = "f16"}}
    %6: f16[1,N,2,16] = reshape(%5) {{shape = dims[1, N, 2, 16]}}
    %7: f16[B,C,2,16] = state_append(%2, %6, %3, %8)
    output "0" %7
  }}
)",
          sections({section}))),
      std::string::npos)
      << out;
  // No other fused op has a kernel for it.
  expect_left_alone(replaced(in, " = projection(", " = fused_elementwise("));
}

// Keys that are part of one state, as in DeepSeek's absorbed form, and a cache read by no attention.
TEST(FlattenTokens, ViewsOfAState) {
  std::string in = replaced(
      kDense, "  %x5:", "  %vv: f32[B,C,2,16] = slice(%v2) {axis = -1, range = dims[0, 16]}\n  %x5:");
  in = replaced(in, "state %vs \"v\": f32[B,C,2,16]", "state %vs \"v\": f32[B,C,2,16]");
  in = replaced(in, "  %vv:", "  %v2: f32[B,C,2,16] = reshape(%v) {shape = dims[B, C, 2, 16]}\n  %vv:");
  in = replaced(in, "attention(%q, %k, %v, %pos)", "attention(%q, %k, %vv, %pos)");
  EXPECT_NE(nodes_of(flat(in)).find("attention(%q_rows, %k, %vv, %pos, %sequence)"), std::string::npos);
  // In another order they are no state.
  expect_left_alone(
      replaced(in, "reshape(%v) {shape = dims[B, C, 2, 16]}", "permute(%v) {axes = ints[0, 1, 2, 3]}"));
}

struct Untouched {
  const char* why;
  std::string text;
};

std::string with(std::string_view node, std::string_view read = "add(%a3, %x)",
                 std::string_view reads = "add(%a3, %z)") {
  return replaced(replaced(kDense, "  %a3:", fmt::format("{}  %a3:", node)), read, reads);
}

TEST(FlattenTokens, WhatDoesNotTreatTokensOneByOneIsLeftAlone) {
  const Untouched cases[] = {
      {"no cache", R"(graph "g" symbols(B, T) {
  input %x "x": f32[B,T,32]
  %y: f32[B,T,32] = neg(%x)
  output "y" %y
})"},
      {"a recurrent cell", R"(graph "g" symbols(B, T) {
  input %x "x": f32[B,1,32]
  state %h "h": f32[B,1,32]
  %y: f32[B,1,32] = add(%x, %h)
  %z: f32[B,1,32] = neg(%y)
  %a: f32[B,1,32] = state_assign(%h, %z)
  output "y" %y
  update "h" %a
})"},
      {"a sum over the tokens", with("  %s: f32[B,1,32] = reduce_sum(%x) {axis = 1, keep_dims = 1}\n  %z: "
                                     "f32[B,T,32] = add(%x, %s)\n")},
      {"the first token for all", with("  %s: f32[B,1,32] = slice(%x) {axis = 1, range = dims[0, 1]}\n  %z: "
                                       "f32[B,T,32] = add(%x, %s)\n")},
      {"numbers of the tokens in the step", with("  %i: i32[T,1] = iota() {axis = 0, shape = dims[T, 1]}\n  "
                                                 "%f: f32[T,1] = cast(%i) {to = \"f32\"}\n"
                                                 "  %z: f32[B,T,32] = mul(%x, %f)\n")},
      {"numbers of the sequences",
       with("  %i: i32[B,T,1] = iota() {axis = 0, shape = dims[B, T, 1]}\n  %f: f32[B,T,1] = cast(%i) {to = "
            "\"f32\"}\n  %z: f32[B,T,32] = mul(%x, %f)\n")},
      {"tokens by tokens",
       with("  %s: f32[B,T,T] = matmul(%x, %x) {transpose_b = 1}\n  %z: f32[B,T,32] = matmul(%s, %x)\n")},
      {"a softmax over the tokens",
       with("  %t: f32[B,32,T] = permute(%x) {axes = ints[0, 2, 1]}\n"
            "  %s: f32[B,32,T] = softmax(%t) body \"softmax\" symbols(B, T, C, R) {\n"
            "    input %0 \"0\": f32[B,32,T]\n"
            "    %1: f32[B,32,1] = reduce_max(%0) {axis = -1, keep_dims = 1}\n"
            "    %2: f32[B,32,T] = sub(%0, %1)\n    output \"0\" %2\n  }\n"
            "  %z: f32[B,T,32] = permute(%s) {axes = ints[0, 2, 1]}\n")},
      {"tokens merged with features", with("  %s: f32[B,32*T] = reshape(%x) {shape = dims[B, 32*T]}\n"
                                           "  %z: f32[B,T,32] = reshape(%s) {shape = dims[B, T, 32]}\n")},
      {"tokens of all sequences in the order of tokens",
       with("  %t: f32[T,B,32] = permute(%x) {axes = ints[1, 0, 2]}\n"
            "  %s: f32[B*T,32] = reshape(%t) {shape = dims[B*T, 32]}\n"
            "  %z: f32[B,T,32] = reshape(%s) {shape = dims[B, T, 32]}\n")},
      {"tokens that read tokens by number", with("  %s: f32[B*T,32] = reshape(%x) {shape = dims[B*T, 32]}\n  "
                                                 "%z: f32[B,T,32] = gather(%s, %pos)\n")},
      {"the state beside attention",
       with("  %s: f32[B,C,2,16] = neg(%v)\n  %m: f32[B,2,16] = reduce_sum(%s) {axis = 1}\n"
            "  %r: f32[B,1,32] = reshape(%m) {shape = dims[B, 1, 32]}\n  %z: f32[B,T,32] = add(%x, %r)\n")},
      {"an output in another order", replaced(kDense, "output \"hidden\" %y", "output \"hidden\" %h3")},
      {"an input in another order", replaced(kDense, "input %rows \"rows\": i32[R]",
                                             "input %rows \"rows\": i32[R]\n  input %o \"other\": i32[T,B]")},
      {"an input of that name", replaced(kDense, "\"rows\": i32[R]", "\"sequence\": i32[R]")},
  };
  for (const Untouched& item : cases) {
    SCOPED_TRACE(item.why);
    std::string in = item.text;
    if (in.find("%h3") != std::string::npos)
      in = replaced(in, "  output \"hidden\"",
                    "  %h3: f32[B,32,T] = permute(%y) {axes = ints[0, 2, 1]}\n  output \"hidden\"");
    expect_left_alone(in);
  }
}

// Attention of each token to all of its step's, or over keys that are no cache.
TEST(FlattenTokens, OtherAttentionIsLeftAlone) {
  expect_left_alone(
      replaced(replaced(replaced(kDense, "attention(%q, %k, %v, %pos)", "attention(%q, %k, %v)"),
                        "    input %3 \"3\": i32[B,T]\n", ""),
               "    %9: i32[B,1,1,T,1] = reshape(%3) {shape = dims[B, 1, 1, T, 1]}\n", ""));
  std::string in = replaced(kDense, "attention(%q, %k, %v, %pos)", "attention(%q, %k, %x4, %pos)");
  in = replaced(in, "input %2 \"2\": f32[B,C,2,16]", "input %2 \"2\": f32[B,T,2,16]");
  in = replaced(in, "%7: f32[B,2,C,16] = permute(%2)", "%7: f32[B,2,T,16] = permute(%2)");
  in = replaced(in, "%8: f32[B,2,1,C,16] = reshape(%7) {shape = dims[B, 2, 1, C, 16]}",
                "%8: f32[B,2,1,T,16] = reshape(%7) {shape = dims[B, 2, 1, T, 16]}");
  in = replaced(in, "%6: f32[B,2,1,T,C] = matmul(%0, %5) {transpose_b = 1}",
                "%6: f32[B,2,1,T,T] = matmul(%0, %0) {transpose_b = 1}");
  expect_left_alone(in);
}

}  // namespace
}  // namespace hone::test
