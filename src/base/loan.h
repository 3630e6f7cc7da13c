/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process has left where it is, for another one of this host to read (struct pkt_far): the page of the ledger
 * that both look at.
 *
 * What a turn of a queue pair leaves out is a *lot*. Lots are numbered; a process gets them in the order of their
 * numbers. Who lends takes lots back with one store, and waits for nobody: who reads looks at it before and afterwards,
 * and what it has read of a lot that was taken back meanwhile it drops, as if a network had lost it. Who reads gives a
 * lot back when it has read it, or dropped it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loan {
	uint64_t taken_back; /* lots up to this one: the lender's own note, as the other process may write what it likes
				into the two below */
	_Atomic uint64_t *told; /* the same, where who reads looks; NULL: nobody reads, and nothing is lent */
	const _Atomic uint64_t *given_back; /* lots up to this one are, as who reads says */
};

/* Whether that lot, or an older one, may still be read. */
static inline bool loan_is_out(const struct loan *l, uint64_t lot)
{
	return l->told && lot > l->taken_back && lot > atomic_load_explicit(l->given_back, memory_order_acquire);
}

/* Takes lots back up to this one. What the program does with the memory afterwards, nobody gets to see. */
static inline void loan_take_back(struct loan *l, uint64_t lot)
{
	if (!loan_is_out(l, lot))
		return;
	l->taken_back = lot;
	atomic_store_explicit(l->told, lot, memory_order_seq_cst);
	/* Before whatever is written to the memory. */
	atomic_thread_fence(memory_order_seq_cst);
}
