/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is at the other end of a connected queue pair, as far as it matters: a process of this host, or somebody
 * elsewhere.
 *
 * A process of this host is known by its slot, the high bits of its QPNs. Nothing that is sent to it is lost on a
 * network, but it may wait long for a processor, or be stopped: an adapter would answer for it meanwhile. Whether it
 * lives, and whether it has run, can be found out, but not in the core: the nic's owner is asked, and QPs go on trying
 * beyond the program's timeout and retry_cnt until the owner reports it gone, or finds it running after the patience
 * has ended. The patience begins anew whenever the owner finds that the peer has not run, and when this process itself
 * has not: a report tells little of what the peer did in a long time. The back end may reach it through memory, and it
 * may read there what packets leave out.
 *
 * Each QP points to its peer. One that has none yet, whose peer is another host, or whose every datagram has its own,
 * points to transport->elsewhere, of which nothing of this holds.
 *
 * Private to src/transport, src/iwarp and src/nic.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "mem/lend.h"

enum { PEER_SLOTS = 128, PEER_SLOT_SHIFT = 17 };

struct qp;
struct transport;

struct peer {
	bool local;        /* a process of this host */
	_Atomic bool near; /* memory takes packets to it; posters look at it */
	bool reads;        /* and it reads what they leave out */
	bool full;         /* it takes no more now */
	uint8_t slot;
	struct list held_up;      /* QPs that have, or may have, something to send to it while it is full */
	struct list doubted;      /* in transport->doubted: the owner is to be asked whether it lives */
	uint64_t gone_ns;         /* when the owner reported it gone; 0: never */
	uint64_t waits_ns;        /* ... or that it lives and has not run since the report before */
	uint64_t ran_ns;          /* ... or that it has */
	struct borrower borrower; /* of what packets to it leave out */
};

static inline uint32_t slot_of_qpn(uint32_t qpn)
{
	return qpn >> PEER_SLOT_SHIFT;
}

static inline bool peer_is_near(const struct peer *p)
{
	return atomic_load_explicit(&p->near, memory_order_relaxed);
}

/* The process of this host with that slot. */
struct peer *peer_at(struct transport *, uint32_t slot);
/* The QP's peer is another one from now on. */
void peer_change(struct transport *, struct qp *, struct peer *);

/* ---- patience ---------------------------------------------------------------------------------------- */

/*
 * The QP has tried in vain, so its peer may be gone. Called before the QP gives up, so that the
 * owner can answer in time.
 */
void patience_doubt(struct transport *, const struct qp *);
/* Whether a QP that would give up must still wait; its peer has been silent since `since_ns`. */
bool patience_keeps(struct transport *, const struct qp *, uint64_t since_ns, uint64_t now_ns);
/* Whether the QP's peer is known to be gone, so that nothing waits for it. */
bool patience_is_over(const struct qp *, uint64_t now_ns);
/* The slot of a peer that is in doubt, returned once; -1: none. */
int patience_next(struct transport *);
/*
 * By how much a retransmission timer that was due at `due_ns` is late. This process was not running then, and perhaps
 * the peer was not either, so the timer waits once more for as long. 0: it is in time.
 */
uint64_t patience_late_ns(const struct transport *, uint64_t due_ns, uint64_t now_ns);
/* No process has that slot. This holds for a while only, because slots are used again. */
void patience_gone(struct transport *, uint32_t slot, uint64_t now_ns);
/* A timer that was due at due_ns fires now: if that is very late, this process did not run. */
void patience_woke(struct transport *, uint64_t due_ns, uint64_t now_ns);
/* A process has that slot, and has run since the last report or not. */
void patience_lives(struct transport *, uint32_t slot, bool ran, uint64_t now_ns);
