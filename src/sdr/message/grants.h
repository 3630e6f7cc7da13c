/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end's side of clear-to-send: the grants that the peer has not confirmed, and when to
 * send them again. A grant is sent when it is made, and again after a wait that doubles up to
 * GRANTS_WAIT_FACTOR times the first one, until the peer confirms the grant or sends a packet that
 * only the grant allows.
 */
#pragma once

#include "base/alloc.h"
#include "sdr/message/control.h"

enum { GRANTS_WAIT_FACTOR = 64 };

struct grants {
	uint32_t slots; /* at most that many are not known */
	uint64_t made;  /* the number of the next grant */
	uint64_t told;  /* grants below were told at least once */
	uint64_t known; /* grants below are known to the peer */
	uint64_t interval_ns, wait_ns;
	uint64_t due_ns;         /* UINT64_MAX: no grant is due */
	uint64_t sent, repeated; /* CTS messages */
	struct grant *ring;
	const struct alloc *alloc;
};

/* slots is a power of two. Borrows alloc until grants_free(). -ENOMEM. */
int grants_init(struct grants *, uint32_t slots, uint64_t interval_ns, const struct alloc *);
void grants_free(struct grants *);

/* Whether there is room for so many more grants. */
bool grants_room(const struct grants *, uint32_t count);
/* Adds the grant of message number `made`. There is room. */
void grants_add(struct grants *, struct grant, uint64_t now_ns);
/* The peer has confirmed all grants below `known`. A number that is old or was not made is ignored. */
void grants_confirm(struct grants *, uint64_t known);
/* When to call grants_tell(). */
static inline uint64_t grants_due(const struct grants *g)
{
	return g->due_ns;
}
/* Writes the next CTS payload of at most max bytes, and its flags. Returns its length, or 0 when
 * nothing is due: call it until then. max >= CTS_FIXED_LEN + CTS_GRANT_LEN. */
uint16_t grants_tell(struct grants *, uint8_t *, size_t max, uint16_t *flags, uint64_t now_ns);
