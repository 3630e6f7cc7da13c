/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end's side of clear-to-send: the grants that the peer is not known to have, and
 * when to tell them again. A grant is told at once when it is made, and again after a while that
 * doubles up to GRANTS_WAIT_FACTOR times the first, until the peer says that it has it or sends
 * what only a grant allows.
 */
#ifndef SDR_GRANTS_H
#define SDR_GRANTS_H

#include "base/alloc.h"
#include "sdr/control.h"

enum { GRANTS_WAIT_FACTOR = 64 };

struct grants {
	uint32_t slots; /* at most that many are not known */
	uint64_t made;  /* the number of the next grant */
	uint64_t told;  /* grants below were told at least once */
	uint64_t known; /* grants below are known to the peer */
	uint64_t interval_ns, wait_ns;
	uint64_t due_ns;         /* UINT64_MAX: nothing to tell */
	uint64_t sent, repeated; /* CTS messages */
	struct grant *ring;
	const struct alloc *alloc;
};

/* slots is a power of two. Borrows alloc until grants_free(). -ENOMEM. */
int grants_init(struct grants *, uint32_t slots, uint64_t interval_ns, const struct alloc *);
void grants_free(struct grants *);

/* Whether one more can be kept. */
bool grants_room(const struct grants *);
/* There is room. The grant is for the message number `made`. */
void grants_add(struct grants *, struct grant, uint64_t now_ns);
/* The peer has all grants below `known`; a number that was not made, or is old, says nothing. */
void grants_confirm(struct grants *, uint64_t known);
/* When to call grants_tell(). */
static inline uint64_t grants_due(const struct grants *g)
{
	return g->due_ns;
}
/* Writes the next CTS payload of at most max bytes, its flags too; its length, or 0 when nothing is
 * due. To be called until it returns 0. max >= CTS_FIXED_LEN + CTS_GRANT_LEN. */
uint16_t grants_tell(struct grants *, uint8_t *, size_t max, uint16_t *flags, uint64_t now_ns);

#endif
