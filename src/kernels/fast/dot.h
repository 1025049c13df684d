// Exact integer dots of one block of 32 values of k: 16 columns of a panel (tensor/panel_layout.h) with rows
// of q8a.
//
//   dot_block_8<R>(quants, x, stride, out)        q8_0: out[r][l] = sum over j of (quants - 128) * x quants
//   dot_block_4<R, centred>(quants, x, stride, out)   q4: of (quants - 8) if centred (q4_0), else of quants
//   (q4_1)
//
// Row r of x is at x + r * stride blocks. kDotRows is the number of rows that the level's registers hold.
#pragma once

#if HONE_ISA_LEVEL == 2
#include "kernels/fast/dot_avx512.h"
#elif HONE_ISA_LEVEL == 1
#include "kernels/fast/dot_avx2.h"
#else
#include "kernels/fast/dot_portable.h"
#endif
