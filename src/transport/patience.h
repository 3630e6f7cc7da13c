/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a peer that says nothing is kept, beyond what the program asked for with timeout and retry_cnt. A peer on
 * this host is a process: it waits for a processor as long as others keep it, which is no loss, and whether it
 * lives can be known, though not here. So the nic's owner is asked, and until it says that the peer is gone, or
 * the patience is at its end, its QPs go on trying.
 *
 * A process is known by the high bits of its QPNs, its slot.
 *
 * Private to src/transport.
 */
#ifndef TRANSPORT_PATIENCE_H
#define TRANSPORT_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { PATIENCE_SLOTS = 128, PATIENCE_SLOT_SHIFT = 17 };

struct qp;
struct transport;

struct patience {
	uint64_t doubted[PATIENCE_SLOTS / 64]; /* a bit each: the owner must be asked */
	uint64_t gone_ns[PATIENCE_SLOTS];      /* when the owner reported it gone; 0: never */
};

/*
 * The QP has tried in vain, so its peer may be gone. Called before the QP gives up, so that the
 * owner can answer in time.
 */
void patience_doubt(struct transport *, const struct qp *);
/* Whether a QP that would give up must still wait; its peer is silent since `since_ns`. */
bool patience_keeps(struct transport *, const struct qp *, uint64_t since_ns, uint64_t now_ns);
/* Whether there is no patience with the QP's peer, because it is known to be gone. */
bool patience_is_over(const struct transport *, const struct qp *, uint64_t now_ns);
/* A slot that is in doubt, returned once; -1: none. */
int patience_next(struct patience *);
/*
 * By how much a retransmission timer that was due at `due_ns` is too late: this process was not running then, and
 * the peer perhaps not either. So the timer waits as long again, once. 0: it is in time.
 */
uint64_t patience_late_ns(const struct transport *, uint64_t due_ns, uint64_t now_ns);
/* No process has that slot. This holds for a while only, because slots are used again. */
void patience_gone(struct patience *, uint32_t slot, uint64_t now_ns);

#endif
