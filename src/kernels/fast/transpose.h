// A block of 16 x 16 values, transposed: out[j * stride + i] = in[i][j].
#pragma once

#include <cstdint>

#include "kernels/fast/vec16.h"

#if HONE_ISA_LEVEL >= 2
#include "kernels/fast/transpose_avx512.h"
#else
#include "kernels/fast/transpose_quads.h"
#endif
