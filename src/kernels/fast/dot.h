// Exact integer dots of one part of a block of 32 k: 16 columns of each of kPanels panels with kRows rows of
// q8a.
//
//   dot_part<W, U, R, P>(blocks, panel_bytes, index, part, x, stride, out)
//     out[r][p][l] = sum over k of the part of (number - kZero) * x quants     (fast/dot_format.h)
//
// `blocks` are those of the first panel (dot_blocks_at, or the numbers of UnpackedBlocks where U is true);
// those of the next lie panel_bytes further. Row r of
// x is at x + r * stride blocks. kDotRows rows of kDotPanels panels are what the level's registers hold.
#pragma once

#include "kernels/fast/dot_format.h"

#if HONE_ISA_LEVEL >= 2
#include "kernels/fast/dot_avx512.h"
#elif HONE_ISA_LEVEL == 1
#include "kernels/fast/dot_avx2.h"
#else
#include "kernels/fast/dot_portable.h"
#endif
