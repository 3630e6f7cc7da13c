/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library's function for wide vector registers may leave their upper halves set, as ISA-L's CRCs with AVX-512 do. From then on
 * Intel's processors take some 100 ns for each change between code that knows of these halves and code that does not, and almost all of
 * a program does not.
 */
#ifndef BASE_VECTORS_H
#define BASE_VECTORS_H

/* After a call of such a function. */
static inline void vectors_clear_upper(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper");
#endif
}

#endif
