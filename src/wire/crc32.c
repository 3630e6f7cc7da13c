/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ISA-L multiplies 16 bytes at a time, or 64 where the processor has AVX-512, and takes what is left of 256 bytes piece
 * by piece. A packet's CRC is up to a third of its cost between hosts, and a packet is headers and a power of 2. So two
 * more ways are written out here: 32 bytes at a time (VPCLMULQDQ with AVX2), which many processors have that have no
 * AVX-512, and which is the fastest for short packets, and 64 bytes at a time, with the odd piece first. ISA-L does the
 * rest, and all of it on other processors.
 *
 * Polynomials over GF(2) modulo P = 0x104c11db7 in vector registers, the lowest bit being the coefficient of the
 * highest power. A block that stands n bits before another one is added to that one when multiplied by x^n: its first 8
 * bytes by x^(n + 32) and its last 8 by x^(n - 32), as products of reflected polynomials are one bit short and a CRC is
 * 32 bits beyond its message. So four sums run along the message, then are one, then 16 bytes, of which Barrett's
 * reduction leaves the CRC (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction", Intel, 2009).
 */
#include "wire/crc32.h"

#include <isa-l/crc.h>

#include "base/vectors.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <stdbool.h>

#define CODE      __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define CODE_WIDE __attribute__((target("avx512f,avx512vbmi,avx2,pclmul,vpclmulqdq")))

enum {
	FOLDED_BYTES_MIN = 32,
	STRIDE_BYTES = 128,
	WIDE_BYTES_MIN = 192, /* from here on the wide way is the faster one */
	WIDE_BYTES = 64,
	CRC_BYTES = 4
};

/* x^n mod P reflected, times 2. */
#define X_64   0x163cd6124ll
#define X_96   0x0ccaa009ell
#define X_160  0x1751997d0ll
#define X_224  0x15a546366ll
#define X_288  0x0f1da05aall
#define X_992  0x14a7fe880ll
#define X_1056 0x1e88ef372ll
#define X_2016 0x1322d1430ll
#define X_2080 0x11542778all
/* P reflected, and floor(x^64 / P) reflected. */
#define P_REFLECTED  0x1db710641ll
#define MU_REFLECTED 0x1f7011641ll

/* 16 bytes from `at + n` on move a vector's bytes up by 16 - n; from `at + 16 + n` on, down by n. A high bit leaves 0.
 */
static const uint8_t shifts[48] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
				   0x80, 0x80, 0x80, 0x80, 0,    1,    2,    3,    4,    5,    6,    7,
				   8,    9,    10,   11,   12,   13,   14,   15,   0x80, 0x80, 0x80, 0x80,
				   0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

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

/* What moves 16 bytes to the end of a stride of 256, from its first place to its last one, which they stay in. */
static const uint64_t to_end[16][2] = {
	{0x1db06f64c, 0x1c47d2a9c}, {0x19159bb02, 0x125f17dfc}, {0x1b35adb0e, 0x1e7146aac}, {0x1821d8bc0, 0x12e958ac4},
	{0x1816ab61c, 0x10aae2566}, {0x0e3543be0, 0x14b57d3f0}, {0x1fdc60a7c, 0x03f41287a}, {0x1e88ef372, 0x14a7fe880},
	{0x1ea89367e, 0x1d7cfc6ac}, {0x0df068dc2, 0x18cb44e58}, {0x1c7569e54, 0x0ae0b5394}, {0x154442bd4, 0x1c6e41596},
	{0x03db1ecdc, 0x174359406}, {0x0f1da05aa, 0x15a546366}, {0x1751997d0, 0x0ccaa009e}, {0x1db710640, 0x0b66b1fa6},
};

/* 64 bytes from `at + n` on move a vector's first n bytes to its end. Bit 6 takes a byte of the other vector, which is
 * 0. */
static const uint8_t moves[128] = {
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
	14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
	40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
};

CODE_WIDE static inline __m512i load_wide(const void *p)
{
	return _mm512_loadu_si512(p);
}

CODE_WIDE static inline __m512i fold_wide(__m512i before, __m512i x, __m512i to)
{
	enum { XOR_OF_THREE = 0x96 };
	__m512i first = _mm512_clmulepi64_epi128(before, x, 0x00), last = _mm512_clmulepi64_epi128(before, x, 0x11);

	return _mm512_ternarylogic_epi64(first, last, to, XOR_OF_THREE);
}

/*
 * n is at least WIDE_BYTES_MIN. Zeros before a message whose CRC begins with it change nothing, so the message begins
 * with as many as make it a multiple of 64 bytes. `crc` is added to its first 4 bytes, which must not be cut.
 */
CODE_WIDE static uint32_t crc32_wide(uint32_t crc, const uint8_t *p, size_t n)
{
	const __m512i far = _mm512_broadcast_i32x4(_mm_set_epi64x(X_2016, X_2080)), zero = _mm512_setzero_si512();
	__m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
	size_t head = (n - 1) % WIDE_BYTES + 1;
	__m512i first = _mm512_permutex2var_epi8(_mm512_xor_si512(load_wide(p), start), load_wide(moves + head), zero);
	__m512i a = zero, b = zero, c = zero, d, sum;
	const uint8_t *end = p + n;
	size_t more = (n - head) / WIDE_BYTES % 4;
	__m256i half;

	/* The first stride: zeros, that piece, and as many more as leave whole strides. */
	p += head;
	switch (more) {
	case 0: d = first; break;
	case 1:
		c = first;
		d = load_wide(p);
		break;
	case 2:
		b = first;
		c = load_wide(p);
		d = load_wide(p + WIDE_BYTES);
		break;
	default:
		a = first;
		b = load_wide(p);
		c = load_wide(p + WIDE_BYTES);
		d = load_wide(p + 2 * WIDE_BYTES);
	}
	for (p += more * WIDE_BYTES; p < end; p += 4 * WIDE_BYTES) {
		a = fold_wide(a, far, load_wide(p));
		b = fold_wide(b, far, load_wide(p + WIDE_BYTES));
		c = fold_wide(c, far, load_wide(p + 2 * WIDE_BYTES));
		d = fold_wide(d, far, load_wide(p + 3 * WIDE_BYTES));
	}
	sum = fold_wide(a, load_wide(to_end), fold_wide(b, load_wide(to_end + 4), zero));
	sum = fold_wide(c, load_wide(to_end + 8), fold_wide(d, load_wide(to_end + 12), sum));
	half = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
	return ~reduce(_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

static inline bool folds(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2");
}

static inline bool folds_wide(void)
{
	return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512f");
}

static uint32_t crc32_any(uint32_t crc, const uint8_t *p, size_t n)
{
	if (n >= FOLDED_BYTES_MIN && folds()) {
		if (n < WIDE_BYTES_MIN || !folds_wide())
			return crc32_folded(crc, p, n);
		if ((n - 1) % WIDE_BYTES + 1 >= CRC_BYTES)
			return crc32_wide(crc, p, n);
	}
	return crc32_gzip_refl(crc, p, n);
}

#else

static uint32_t crc32_any(uint32_t crc, const uint8_t *p, size_t n)
{
	return crc32_gzip_refl(crc, p, n);
}

#endif

uint32_t crc32_ieee(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = crc32_any(crc, p, n);
	vectors_clear_upper(); /* the compiler does that with -O2 only */
	return crc;
}
