/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a peer that says nothing is kept, beyond what the program asked for with timeout and retry_cnt. A peer on
 * this host is a process: it waits for a processor as long as others keep it, which is no loss, and whether it
 * lives can be known, though not here. So the nic's owner is asked, and until it says that the peer is gone, or
 * the patience is at its end, its QPs go on trying.
 *
 * A process is known by the high bits of its QPNs, its slot.
 */
#ifndef TRANSPORT_PATIENCE_H
#define TRANSPORT_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { PATIENCE_SLOTS = 128, PATIENCE_SLOT_SHIFT = 17 };

struct qp;
struct transport;

struct patience {
	uint64_t doubted[PATIENCE_SLOTS / 64]; /* a bit each: the owner is to be asked */
	uint64_t gone_ns[PATIENCE_SLOTS];      /* when it said so; 0: never */
};

/* The QP has tried in vain, so its peer may be gone: to be called before it gives up, so that it is known then. */
void patience_doubt(struct transport *, const struct qp *);
/* Whether a QP that would give up shall not, as nothing was heard since `since_ns`. */
bool patience_keeps(struct transport *, const struct qp *, uint64_t since_ns, uint64_t now_ns);
/* Whether none is left with the QP's peer, as it is known to be gone. */
bool patience_is_over(const struct transport *, const struct qp *, uint64_t now_ns);
/* A slot that was doubted, once; -1: none. */
int patience_next(struct patience *);
/*
 * By how much a retransmission timer that was due at `due_ns` comes late, if that is more than it may: then we were
 * not running, and whoever was to answer has perhaps not either. Nothing is concluded from it for as long
 * again, once. 0: it is in time.
 */
uint64_t patience_late_ns(const struct transport *, uint64_t due_ns, uint64_t now_ns);
/* Nobody has that slot. Believed for a while, as slots are used again. */
void patience_gone(struct patience *, uint32_t slot, uint64_t now_ns);

#endif
