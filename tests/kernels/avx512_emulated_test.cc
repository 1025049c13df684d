// Every test of an ISA level, run at the AVX-512 level on kernels whose intrinsics are emulated
// (avx512_emulation/immintrin.h). Fails too if a kernel of the level was never run.
#include <iostream>

#include "vector_test_support.h"

int main(int argc, char** argv) {
  constexpr const char* kEveryTestOfTheLevel = "*/avx512";
  GTEST_FLAG_SET(filter, kEveryTestOfTheLevel);
  testing::InitGoogleTest(&argc, argv);
  hone::test::highest_level() = hone::Isa::Avx512;
  int status = RUN_ALL_TESTS();
  if (GTEST_FLAG_GET(filter) != kEveryTestOfTheLevel) return status;
  for (const hone::Kernel& kernel : hone::all_kernels()) {
    if (kernel.reference || kernel.isa != hone::Isa::Avx512) continue;
    if (hone::test::kernels_run().contains(kernel.name)) continue;
    std::cerr << "no test has run " << kernel.name << "\n";
    status = 1;
  }
  return status;
}
