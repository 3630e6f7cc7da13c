/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FETCH AND ADD, COMPARE AND SWAP on host memory (IBTA 9.4.5): atomic against every QP of the nic and,
 * being the processor's own, against the program.
 */
#ifndef TRANSPORT_ATOMIC_H
#define TRANSPORT_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* What was found. word is aligned to 8 bytes; compare is for COMPARE AND SWAP. */
static inline uint64_t atomic_execute(uint64_t *word, bool cmp_swap, uint64_t swap_add,
				      uint64_t compare)
{
	uint64_t found = compare;

	if (!cmp_swap)
		return __atomic_fetch_add(word, swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word, &found, swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return found;
}

#endif
