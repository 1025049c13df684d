// Which signatures the fast kernels of fast/vector_kernels.h take. One answer for every ISA level, compiled
// once.
#pragma once

#include <string_view>

#include "kernels/kernel.h"

namespace hone::kernels {

// Each returns what the kernel would need, or nothing if it takes the signature (Kernel::accepts).
std::string_view accepts_attention(const Signature& signature);
std::string_view accepts_concat(const Signature& signature);
std::string_view accepts_copy(const Signature& signature);
std::string_view accepts_matmul_strided(const Signature& signature);
std::string_view accepts_reduce(const Signature& signature);
std::string_view accepts_rms_norm(const Signature& signature);
std::string_view accepts_layer_norm(const Signature& signature);
std::string_view accepts_norm_add(const Signature& signature);
std::string_view accepts_rope(const Signature& signature);
std::string_view accepts_softmax(const Signature& signature);
std::string_view accepts_state_append(const Signature& signature);
std::string_view accepts_strips(const Signature& signature);
std::string_view accepts_take_along_axis(const Signature& signature);
std::string_view accepts_top_k(const Signature& signature);

}  // namespace hone::kernels
