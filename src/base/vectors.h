/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library's function for wide vector registers may leave their upper halves set, as ISA-L's CRCs with AVX-512 do.
 * After that, each change between instructions for the whole registers (VEX, EVEX) and those for the lower halves (SSE)
 * is slow, until the upper halves are cleared. An Intel Xeon took some 100 ns for one.
 */
#pragma once

/* To be called after such a function. */
static inline void vectors_clear_upper(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper");
#endif
}
