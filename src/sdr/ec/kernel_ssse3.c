/* SPDX-License-Identifier: BSD-2-Clause */
/* 16 bytes at a time, with PSHUFB. */
#ifdef __x86_64__

#include <immintrin.h>

#include "sdr/ec/kernel_x86.h"

#define KERNEL_CODE       __attribute__((target("ssse3")))
#define VECTOR            __m128i
#define VECTOR_BYTES      16
#define TILE_TARGETS      2
#define TILE_SOURCES      2
#define LOAD(p)           _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v)       _mm_storeu_si128((__m128i *)(void *)(p), v)
#define TABLE(p)          LOAD(p)
#define ALL(byte)         _mm_set1_epi8(byte)
#define AND(a, b)         _mm_and_si128(a, b)
#define XOR(a, b)         _mm_xor_si128(a, b)
#define SHIFT(a)          _mm_srli_epi16(a, 4)
#define LOOK_UP(table, v) _mm_shuffle_epi8(table, v)
#include "sdr/ec/kernel_nibbles.inc"

static bool usable(void)
{
	return __builtin_cpu_supports("ssse3") != 0;
}

const struct ec_kernel ec_kernel_ssse3 = {"ssse3", usable, fold_tiles, add};

#endif
