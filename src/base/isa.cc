#include "base/isa.h"

#include "base/machine_facts.h"

namespace hone {

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::Portable:
      return "portable";
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx512:
      return "avx512";
    case Isa::Amx:
      return "amx";
  }
  return "portable";
}

std::optional<Isa> isa_from_name(std::string_view name) {
  for (const Isa isa : kIsaLevels) {
    if (isa_name(isa) == name) return isa;
  }
  return std::nullopt;
}

Isa detect_isa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("f16c") != 0;
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
                      __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512bf16") != 0;
  if (avx2 && avx512) {
    static const bool tiles = has_int8_and_bf16_tiles() && request_amx() == AmxPermission::Granted;
    return tiles ? Isa::Amx : Isa::Avx512;
  }
  return avx2 ? Isa::Avx2 : Isa::Portable;
}

}  // namespace hone
