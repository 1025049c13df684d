#include "passes/precision_rules.h"

#include "pass_test.h"
#include "passes/precision.h"

namespace hone::test {
namespace {

const std::string_view kModel = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %p "positions": i32[B,T]
  weight %a "blk.0.q": q8_0[64,64]
  weight %b "blk.0.gate": q8_0[64,64]
  weight %c "blk.0.up": q8_0[64,64]
  weight %d "blk.1.q": f32[64,64]
  state %s "k.0": f32[B,C,64]
  state %u "k.1": f32[B,C,64]
  %1: f32[B,T,64] = matmul(%x, %a) {transpose_b = 1} @"layers.0.attn.q_proj"
  %2: f32[B,C,64] = state_append(%s, %1, %p) @"layers.0.attn"
  %3: f32[B,T,64] = matmul(%1, %b) {transpose_b = 1} @"layers.0.mlp.gate_proj"
  %4: f32[B,T,64] = matmul(%1, %c) {transpose_b = 1} @"layers.0.mlp.up_proj"
  %5: f32[B,T,64] = mul(%3, %4) @"layers.0.mlp"
  %6: f32[B,T,64] = matmul(%5, %d) {transpose_b = 1} @"layers.1.attn.q_proj"
  %7: f32[B,C,64] = state_append(%u, %6, %p) @"layers.1.attn"
  output "y" %6
  update "k.0" %2
  update "k.1" %7
}
)");

Result<PrecisionPolicy> policy_after(std::string_view rules) {
  const PrecisionRules parsed = HONE_TRY(parse_precision_rules(rules, "F"));
  PrecisionPolicy policy;
  HONE_TRY(apply_precision_rules(parsed, parse(kModel), policy));
  return policy;
}

TEST(PrecisionRules, ReachTheWeightsAndStatesOfTheirModules) {
  const Result<PrecisionPolicy> policy = policy_after(
      "# by hand\n"
      "layers.0   activations=q8a2  kv=bf16   # all of layer 0\n"
      "\n"
      "*.up_proj\tactivations=f32\r\n"
      "layers.?.attn kv=f16");
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  const std::map<std::string, Activations, std::less<>> products{{"blk.0.q", Activations::Q8aTwoTerms},
                                                                 {"blk.0.gate", Activations::Q8aTwoTerms},
                                                                 {"blk.0.up", Activations::F32}};
  EXPECT_EQ(policy->products, products);
  const std::map<std::string, DType, std::less<>> states{{"k.0", DType::F16}, {"k.1", DType::F16}};
  EXPECT_EQ(policy->states, states);
}

TEST(PrecisionRules, APatternNamesModulesAndWhatIsInside) {
  EXPECT_TRUE(matches_module("layers.3", "layers.3.mlp.up_proj"));
  EXPECT_TRUE(matches_module("layers.3.mlp.*", "layers.3.mlp.up_proj"));
  EXPECT_TRUE(matches_module("*", "lm_head"));
  EXPECT_TRUE(matches_module("*mlp*up*", "layers.3.mlp.up_proj"));
  EXPECT_TRUE(matches_module("layers.1?", "layers.12.attn"));
  EXPECT_FALSE(matches_module("layers.1", "layers.12.attn"));
  EXPECT_FALSE(matches_module("layers.1?", "layers.1.attn.x"));
  EXPECT_FALSE(matches_module("mlp", "layers.3.mlp"));
  EXPECT_FALSE(matches_module("", "lm_head"));
  EXPECT_TRUE(matches_module(std::string(200, '*') + "b", std::string(60, 'a') + "b"));
}

struct Wrong {
  const char* text;
  const char* where;
  const char* message;
};

TEST(PrecisionRules, WrongTextIsRefusedWithItsLine) {
  const Wrong cases[] = {
      {"", "F", "has no rules"},
      {"# nothing\n \n", "F", "has no rules"},
      {"layers.0\n", "F, line 1", "says nothing"},
      {"\nkv=f16\n", "F, line 2", "begins with the pattern"},
      {"* kv=f16 dtype=f32", "F, line 1", "no such key"},
      {"* kv", "F, line 1", "no such cache type"},
      {"* kv=q4_0", "F, line 1", "no such cache type"},
      {"* kv=", "F, line 1", "no such cache type"},
      {"* activations=int8", "F, line 1", "no such type of activations"},
      {"* kv=f16 kv=f32", "F, line 1", "given twice"},
      {"* activations=f32 activations=f32", "F, line 1", "given twice"},
      {"* kv=f16\n\x80\n", "F, line 2", "no plain text"},
  };
  for (const Wrong& wrong : cases) {
    const Result<PrecisionRules> rules = parse_precision_rules(wrong.text, "F");
    ASSERT_FALSE(rules.ok()) << wrong.text;
    EXPECT_EQ(rules.error().code, ErrorCode::BadInput);
    EXPECT_EQ(rules.error().where, wrong.where) << wrong.text;
    EXPECT_NE(rules.error().message.find(wrong.message), std::string::npos) << rules.error().message;
  }
  std::string many;
  for (std::size_t i = 0; i < kMostPrecisionRules; ++i) many += "* kv=f16\n";
  EXPECT_TRUE(parse_precision_rules(many, "F").ok());
  EXPECT_EQ(parse_precision_rules(many + "* kv=f16", "F").error().where, "F, line 257");
  EXPECT_FALSE(parse_precision_rules(std::string(kMostPrecisionBytes + 1, '#'), "F").ok());
  const Result<PrecisionRules> near = parse_precision_rules("* activation=f32", "F");
  EXPECT_EQ(near.error().next_step, "did you mean 'activations'?");
}

TEST(PrecisionRules, ARuleThatFindsNothingIsAnError) {
  for (const std::string_view rule : {"layers.9 kv=f16", "lm_head activations=f32", "layers.0.mlp kv=f16",
                                      // Its weight is f32: its product reads f32 whatever the rule says.
                                      "layers.1 activations=q8a"}) {
    const Result<PrecisionPolicy> policy = policy_after("* kv=f32\n" + std::string(rule));
    ASSERT_FALSE(policy.ok()) << rule;
    EXPECT_EQ(policy.error().where, "F, line 2");
    EXPECT_NE(policy.error().message.find("finds nothing"), std::string::npos);
  }
}

TEST(PrecisionPolicies, BalancedAndExactChangeWhatFastRounds) {
  const PrecisionPolicy fast = default_policy(Level::O3, DType::Q4_0, Isa::Portable);
  const PrecisionPolicy balanced = policy_of(Precision::Balanced, fast);
  EXPECT_TRUE(balanced.int8_activations);
  EXPECT_TRUE(balanced.two_terms);
  EXPECT_EQ(balanced.kv, DType::F16);
  const PrecisionPolicy exact = policy_of(Precision::Exact, fast);
  EXPECT_FALSE(exact.int8_activations);
  EXPECT_EQ(exact.kv, DType::F32);
  const PrecisionPolicy wide =
      policy_of(Precision::Balanced, default_policy(Level::O3, DType::F16, Isa::Avx2));
  EXPECT_FALSE(wide.two_terms);
  const PrecisionPolicy bf16 = default_policy(Level::O3, DType::BF16, Isa::Amx);
  EXPECT_TRUE(policy_of(Precision::Fast, bf16).bf16_activations);
  EXPECT_FALSE(policy_of(Precision::Balanced, bf16).bf16_activations);
  EXPECT_FALSE(policy_of(Precision::Exact, bf16).bf16_activations);
  EXPECT_FALSE(policy_of(Precision::Fast, fast).two_terms);
}

}  // namespace
}  // namespace hone::test
