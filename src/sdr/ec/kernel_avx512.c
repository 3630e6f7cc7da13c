/* SPDX-License-Identifier: BSD-2-Clause */
/* 64 bytes at a time, with VPSHUFB, and with 32 registers for larger tiles. */
#ifdef __x86_64__

#include <immintrin.h>

#include "sdr/ec/kernel_x86.h"

#define KERNEL_CODE       __attribute__((target("avx512f,avx512bw")))
#define VECTOR            __m512i
#define VECTOR_BYTES      64
#define TILE_TARGETS      4
#define TILE_SOURCES      2
#define LOAD(p)           _mm512_loadu_si512(p)
#define STORE(p, v)       _mm512_storeu_si512(p, v)
#define TABLE(p)          _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define ALL(byte)         _mm512_set1_epi8(byte)
#define AND(a, b)         _mm512_and_si512(a, b)
#define XOR(a, b)         _mm512_xor_si512(a, b)
#define SHIFT(a)          _mm512_srli_epi16(a, 4)
#define LOOK_UP(table, v) _mm512_shuffle_epi8(table, v)
#include "sdr/ec/kernel_nibbles.inc"

static bool usable(void)
{
	return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

const struct ec_kernel ec_kernel_avx512 = {"avx512", usable, fold_tiles, add};

#endif
