/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 64 bytes at a time: VGF2P8AFFINEQB multiplies each byte by a matrix of bits. (Its sister
 * VGF2P8MULB knows only the field of AES, whose polynomial is another.)
 */
#ifdef __x86_64__

#include <immintrin.h>

#include "sdr/ec/kernel_x86.h"

#define KERNEL_CODE  __attribute__((target("avx512f,avx512bw,gfni")))
#define VECTOR_BYTES 64
#define TILE_TARGETS 4
#define TILE_SOURCES 4

__attribute__((always_inline)) KERNEL_CODE static inline void tile(const struct ec_fold *f, size_t at, size_t vectors,
								   unsigned n_targets, unsigned n_sources)
{
	__m512i matrix[TILE_TARGETS][TILE_SOURCES];

	for (unsigned t = 0; t < n_targets; t++) {
		for (unsigned s = 0; s < n_sources; s++)
			matrix[t][s] = _mm512_set1_epi64((long long)f->factors[f->rows[t][f->column + s]].matrix);
	}
	for (size_t end = at + vectors * VECTOR_BYTES; at < end; at += VECTOR_BYTES) {
		__m512i source[TILE_SOURCES];

		for (unsigned s = 0; s < n_sources; s++)
			source[s] = _mm512_loadu_si512(f->sources[s] + at);
		for (unsigned t = 0; t < n_targets; t++) {
			__m512i sum = f->set ? _mm512_setzero_si512() : _mm512_loadu_si512(f->targets[t] + at);

			for (unsigned s = 0; s < n_sources; s++)
				sum = _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8(source[s], matrix[t][s], 0));
			_mm512_storeu_si512(f->targets[t] + at, sum);
		}
	}
}

#include "sdr/ec/kernel_tiles.inc"

static bool usable(void)
{
	return ec_kernel_avx512.usable() && __builtin_cpu_supports("gfni") != 0;
}

static void add(uint8_t *target, const uint8_t *const *sources, unsigned n, size_t length, bool set)
{
	ec_kernel_avx512.add(target, sources, n, length, set);
}

const struct ec_kernel ec_kernel_gfni = {"gfni", usable, fold_tiles, add};

#endif
