#include "plan/choose_kernel.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

std::string_view takes_all(const Signature&) {
  return {};
}

constexpr Kernel kFast{
    .name = "op.avx512", .op = "op", .isa = Isa::Avx512, .accepts = takes_all, .own_bits = true};
constexpr Kernel kShared{.name = "op.avx2", .op = "op", .isa = Isa::Avx2, .accepts = takes_all};
constexpr Kernel kReference{.name = "op.reference", .op = "op", .reference = true, .accepts = takes_all};
constexpr Kernel kKernels[] = {kFast, kShared, kReference};

std::string_view chosen(const Target& target, Level level = Level::O3) {
  return choose_kernel({"op", nullptr, {}, {}}, target, level, kKernels).kernel->name;
}

TEST(ChooseKernel, TakesTheTargetsLevelAndTheOneBelow) {
  EXPECT_EQ(chosen({.isa = Isa::Avx512}), "op.avx512");
  EXPECT_EQ(chosen({.isa = Isa::Avx2}), "op.avx2");
  EXPECT_EQ(chosen({.isa = Isa::Portable}), "op.reference");
  EXPECT_EQ(chosen({.isa = Isa::Avx512}, Level::O0), "op.reference");
}

TEST(ChooseKernel, LeavesOutBitsOfOneLevelWherePortableOnesAreAskedFor) {
  EXPECT_EQ(chosen({.isa = Isa::Avx512, .portable_bits = true}), "op.avx2");
}

}  // namespace
}  // namespace hone
