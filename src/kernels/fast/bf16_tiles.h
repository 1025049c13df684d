// Products of bf16 in the level's matrix tiles, where it has some (fast/matmul_bf16.h).
//
//   kFewestBf16TileRows    rows from which on they are faster than the vectors
//   multiply_bf16_tiles    the sums of so many rows, with the bits of the vectors
#pragma once

#if HONE_ISA_LEVEL == 3
#include "kernels/fast/bf16_tiles_amx.h"
#else
#include "kernels/fast/bf16_tiles_none.h"
#endif
