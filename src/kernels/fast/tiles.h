// What the level's matrix tiles add to the products of q8a (fast/matmul_int8.h).
//
//   tiled_rows(rows)       how many of `rows` rows, from the first on, they multiply
//   multiply_in_tiles<W>   the sums of so many rows, with the bits of the rows that go without
#pragma once

#if HONE_ISA_LEVEL == 3
#include "kernels/fast/tiles_amx.h"
#else
#include "kernels/fast/tiles_none.h"
#endif
