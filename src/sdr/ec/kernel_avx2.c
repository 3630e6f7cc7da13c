/* SPDX-License-Identifier: BSD-2-Clause */
/* 32 bytes at a time, with VPSHUFB. */
#ifdef __x86_64__

#include <immintrin.h>

#include "sdr/ec/kernel_x86.h"

#define KERNEL_CODE       __attribute__((target("avx2")))
#define VECTOR            __m256i
#define VECTOR_BYTES      32
#define TILE_TARGETS      4
#define TILE_SOURCES      4
#define LOAD(p)           _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v)       _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define TABLE(p)          _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define ALL(byte)         _mm256_set1_epi8(byte)
#define AND(a, b)         _mm256_and_si256(a, b)
#define XOR(a, b)         _mm256_xor_si256(a, b)
#define SHIFT(a)          _mm256_srli_epi16(a, 4)
#define LOOK_UP(table, v) _mm256_shuffle_epi8(table, v)
#include "sdr/ec/kernel_nibbles.inc"

static bool usable(void)
{
	return __builtin_cpu_supports("avx2") != 0;
}

const struct ec_kernel ec_kernel_avx2 = {"avx2", usable, fold_tiles, add};

#endif
