/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long QPs go on trying with a silent peer, beyond the program's timeout and retry_cnt. A peer on this host is a
 * process: it may wait long for a processor, or be stopped, which is no loss: an adapter would answer for it meanwhile.
 * Whether it lives, and whether it has run, can be found out, but not in the core, so the nic's owner is asked. The
 * peer's QPs go on trying until the owner reports the peer gone, or finds it running after the patience has ended. The
 * patience begins anew whenever the owner finds that the peer has not run, and when this process itself has not: a
 * report tells little of what the peer did in a long time.
 *
 * A process is identified by its slot, the high bits of its QPNs.
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
	uint64_t doubted[PATIENCE_SLOTS / 64]; /* one bit for each slot: the owner must be asked */
	uint64_t gone_ns[PATIENCE_SLOTS];      /* when the owner reported it gone; 0: never */
	uint64_t waits_ns[PATIENCE_SLOTS];     /* ... or that it lives and has not run since the report before */
	uint64_t ran_ns[PATIENCE_SLOTS];       /* ... or that it has */
	uint64_t back_ns;                      /* until when this process itself did not run for long */
};

/*
 * The QP has tried in vain, so its peer may be gone. Called before the QP gives up, so that the
 * owner can answer in time.
 */
void patience_doubt(struct transport *, const struct qp *);
/* Whether a QP that would give up must still wait; its peer has been silent since `since_ns`. */
bool patience_keeps(struct transport *, const struct qp *, uint64_t since_ns, uint64_t now_ns);
/* Whether the QP's peer is known to be gone, so that nothing waits for it. */
bool patience_is_over(const struct transport *, const struct qp *, uint64_t now_ns);
/* A slot that is in doubt, returned once; -1: none. */
int patience_next(struct patience *);
/*
 * By how much a retransmission timer that was due at `due_ns` is late. This process was not running then, and perhaps
 * the peer was not either, so the timer waits once more for as long. 0: it is in time.
 */
uint64_t patience_late_ns(const struct transport *, uint64_t due_ns, uint64_t now_ns);
/* No process has that slot. This holds for a while only, because slots are used again. */
void patience_gone(struct patience *, uint32_t slot, uint64_t now_ns);
/* A timer that was due at due_ns fires now: if that is very late, this process did not run. */
void patience_woke(struct transport *, uint64_t due_ns, uint64_t now_ns);
/* A process has that slot, and has run since the last report or not. */
void patience_lives(struct patience *, uint32_t slot, bool ran, uint64_t now_ns);

#endif
