/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of base/vectors.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether all upper halves of the vector registers that AVX knows are 0, as at a program's start. */
static inline bool upper_halves_are_clear(void)
{
	bool clear = true;
#ifdef __x86_64__
	static uint64_t halves[16][4];

	if (!__builtin_cpu_supports("avx"))
		return true;
#define STORE(n) "vmovups %%ymm" #n ", 32*" #n "(%0)\n"
	__asm__ volatile(STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7) STORE(8) STORE(9)
				 STORE(10) STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
			 :
			 : "r"(halves)
			 : "memory");
#undef STORE
	for (int i = 0; i < 16; i++)
		clear &= !halves[i][2] && !halves[i][3];
#endif
	return clear;
}
