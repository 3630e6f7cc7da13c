/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels of x86-64 processors; ec_kernels[] lists them, nobody else needs their names.
 * Private to src/sdr/ec.
 */
#pragma once

#include "sdr/ec/kernel.h"

extern const struct ec_kernel ec_kernel_ssse3;  /* 16 bytes at a time, PSHUFB looks nibbles up */
extern const struct ec_kernel ec_kernel_avx2;   /* 32 bytes */
extern const struct ec_kernel ec_kernel_avx512; /* 64 bytes, AVX512BW */
extern const struct ec_kernel ec_kernel_gfni;   /* 64 bytes, one VGF2P8AFFINEQB in place of the look-ups */
