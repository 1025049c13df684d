// The instruction-set levels that kernels are compiled for. Levels are ordered: a machine runs its own and
// every lower one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class Isa : std::uint8_t {
  Portable,  // any x86-64
  Avx2,      // AVX2 + FMA + F16C
  Avx512,    // AVX-512 F, BW, DQ, VL, VNNI and BF16; a machine with less runs Avx2
  Amx,       // those, and AMX tiles of int8 and bf16, which the kernel has to grant
};

inline constexpr Isa kIsaLevels[] = {Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Amx};

std::string_view isa_name(Isa isa);  // "portable", "avx2", "avx512", "amx"
std::optional<Isa> isa_from_name(std::string_view name);

// The highest level that this processor and its operating system support (CPUID and XGETBV). Where the
// processor has tiles, the first call asks the kernel for them, for the whole process.
Isa detect_isa();

}  // namespace hone
