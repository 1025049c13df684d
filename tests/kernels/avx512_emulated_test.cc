// Every test of an ISA level, run at the levels of AVX-512 and AMX on kernels whose intrinsics and tiles are
// emulated (avx512_emulation, amx_emulation). Fails too if a kernel of these levels was never run.
#include <iostream>

#include "vector_test_support.h"

int main(int argc, char** argv) {
  constexpr const char* kEveryTestOfTheLevels = "*/avx512:*/amx";
  GTEST_FLAG_SET(filter, kEveryTestOfTheLevels);
  testing::InitGoogleTest(&argc, argv);
  hone::test::highest_level() = hone::Isa::Amx;
  int status = RUN_ALL_TESTS();
  if (GTEST_FLAG_GET(filter) != kEveryTestOfTheLevels) return status;
  for (const hone::Kernel& kernel : hone::all_kernels()) {
    if (kernel.reference || kernel.isa < hone::Isa::Avx512) continue;
    if (hone::test::kernels_run().contains(kernel.name)) continue;
    std::cerr << "no test has run " << kernel.name << "\n";
    status = 1;
  }
  return status;
}
