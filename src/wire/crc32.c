/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ISA-L multiplies 16 bytes at a time, or 64 where the processor has AVX-512. Many have no AVX-512, but multiply 32 bytes
 * at a time (VPCLMULQDQ with AVX2): here that is written out, as a packet's CRC is a third of its cost between hosts. Of short
 * packets it is the faster way with AVX-512, too.
 *
 * Polynomials over GF(2) modulo P = 0x104c11db7 in vector registers, the lowest bit being the coefficient of the highest
 * power. A block that stands n bits before another one is added to that one when multiplied by x^n: its first 8 bytes by
 * x^(n + 32) and its last 8 by x^(n - 32), as products of reflected polynomials are one bit short and a CRC is 32 bits
 * beyond its message. So four sums run along the message, then are one, then 16 bytes, of which Barrett's reduction leaves
 * the CRC (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009).
 */
#include "wire/crc32.h"

#include <isa-l/crc.h>

#include "base/vectors.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <stdbool.h>

#define CODE __attribute__((target("avx2,pclmul,vpclmulqdq")))

enum {
	FOLDED_BYTES_MIN = 32,
	WIDE_BYTES_MIN = 384, /* from here on ISA-L is faster with AVX-512 */
	STRIDE_BYTES = 128
};

/* x^n mod P reflected, times 2. */
#define X_64   0x163cd6124ll
#define X_96   0x0ccaa009ell
#define X_160  0x1751997d0ll
#define X_224  0x15a546366ll
#define X_288  0x0f1da05aall
#define X_992  0x14a7fe880ll
#define X_1056 0x1e88ef372ll
/* P reflected, and floor(x^64 / P) reflected. */
#define P_REFLECTED  0x1db710641ll
#define MU_REFLECTED 0x1f7011641ll

/* 16 bytes from `at + n` on move a vector's bytes up by 16 - n; from `at + 16 + n` on, down by n. A high bit leaves 0. */
static const uint8_t shifts[48] = {
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	0,    1,    2,	  3,	4,    5,    6,	  7,	8,    9,    10,	  11,	12,   13,   14,	  15,
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

CODE static inline __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

CODE static inline __m256i load_pair(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* The sum of `to` and of what stands before it by as much as `x` says. */
CODE static inline __m128i fold(__m128i before, __m128i x, __m128i to)
{
	__m128i first = _mm_clmulepi64_si128(before, x, 0x00), last = _mm_clmulepi64_si128(before, x, 0x11);

	return _mm_xor_si128(_mm_xor_si128(first, last), to);
}

CODE static inline __m256i fold_pair(__m256i before, __m256i x, __m256i to)
{
	__m256i first = _mm256_clmulepi64_epi128(before, x, 0x00), last = _mm256_clmulepi64_epi128(before, x, 0x11);

	return _mm256_xor_si256(_mm256_xor_si256(first, last), to);
}

/* The last n (1 .. 15) bytes of the message end at `end`; at least 16 stand before `end`. */
CODE static inline __m128i fold_rest(__m128i sum, __m128i x, const uint8_t *end, size_t n)
{
	__m128i down = load(shifts + 16 + n);
	__m128i head = _mm_shuffle_epi8(sum, load(shifts + n));
	__m128i tail = _mm_blendv_epi8(_mm_shuffle_epi8(sum, down), load(end - 16), down);

	return fold(head, x, tail);
}

CODE static inline uint32_t reduce(__m128i sum)
{
	const __m128i low = _mm_setr_epi32(-1, 0, 0, 0), barrett = _mm_set_epi64x(P_REFLECTED, MU_REFLECTED);
	__m128i t;

	sum = _mm_xor_si128(_mm_clmulepi64_si128(sum, _mm_cvtsi64_si128(X_96), 0x00), _mm_srli_si128(sum, 8));
	t = _mm_clmulepi64_si128(_mm_and_si128(sum, low), _mm_cvtsi64_si128(X_64), 0x00);
	sum = _mm_xor_si128(t, _mm_srli_si128(sum, 4));
	t = _mm_clmulepi64_si128(_mm_and_si128(sum, low), barrett, 0x00);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low), barrett, 0x10);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, t), 1);
}

/* n is at least FOLDED_BYTES_MIN. */
CODE static uint32_t crc32_folded(uint32_t crc, const uint8_t *p, size_t n)
{
	const __m256i far = _mm256_setr_epi64x(X_1056, X_992, X_1056, X_992);
	const __m256i near = _mm256_setr_epi64x(X_288, X_224, X_288, X_224);
	const __m128i next = _mm_set_epi64x(X_96, X_160);
	const uint8_t *end = p + n;
	__m256i a = _mm256_xor_si256(load_pair(p), _mm256_setr_epi32((int)~crc, 0, 0, 0, 0, 0, 0, 0));
	__m128i sum;

	if (n >= STRIDE_BYTES) {
		__m256i b = load_pair(p + 32), c = load_pair(p + 64), d = load_pair(p + 96);

		for (p += STRIDE_BYTES; end - p >= STRIDE_BYTES; p += STRIDE_BYTES) {
			a = fold_pair(a, far, load_pair(p));
			b = fold_pair(b, far, load_pair(p + 32));
			c = fold_pair(c, far, load_pair(p + 64));
			d = fold_pair(d, far, load_pair(p + 96));
		}
		a = fold_pair(fold_pair(fold_pair(a, near, b), near, c), near, d);
	} else {
		p += 32;
	}
	for (; end - p >= 32; p += 32)
		a = fold_pair(a, near, load_pair(p));
	sum = fold(_mm256_castsi256_si128(a), next, _mm256_extracti128_si256(a, 1));
	if (end - p >= 16) {
		sum = fold(sum, next, load(p));
		p += 16;
	}
	if (p < end)
		sum = fold_rest(sum, next, end, (size_t)(end - p));
	return ~reduce(sum);
}

static inline bool folds(size_t n)
{
	return n >= FOLDED_BYTES_MIN && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2") &&
	       (n < WIDE_BYTES_MIN || !__builtin_cpu_supports("avx512vl"));
}

#else

static inline bool folds(size_t n)
{
	(void)n;
	return false;
}

static inline uint32_t crc32_folded(uint32_t crc, const uint8_t *p, size_t n)
{
	return crc32_gzip_refl(crc, p, n);
}

#endif

uint32_t crc32_ieee(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = folds(n) ? crc32_folded(crc, p, n) : crc32_gzip_refl(crc, p, n);
	vectors_clear_upper(); /* the compiler does that with -O2 only */
	return crc;
}
