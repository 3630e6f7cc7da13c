/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets outside both PSN spaces: CNPs, RTT probes, slow-packet signals.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"
#include "transport/veroce/work.h"

struct veroce_packet;

/* CC contexts of RTT requests, in addition to the path: what asked. */
enum { CONTROL_CONTEXT_STALL = 0x100, CONTROL_CONTEXT_HOLD = 0x200 };

/* A packet that belongs to no message: a probe or its answer, a signal, a CNP. */
void control_input(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *, uint64_t now_ns);
/* False: no room. */
bool control_send_rtt(struct transport *, struct qp *, uint8_t opcode, uint32_t path, const struct rtteth *);
/* These two are rare, but not marked cold: GCC then lays all that follows a call of control_output() in a turn out as
 * cold, too. */
__attribute__((noinline)) bool control_send(struct transport *, struct qp *, uint64_t now_ns);
/* Sends probes of paths that are down, answers to the peer's probes, and signals. False: no room. */
static inline bool control_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;

	return (!vr->w->rtt_reply && !vr->w->stall_ask && !vr->w->slow_due && !vr->pair->down_count) ||
	       control_send(tp, qp, now_ns);
}

__attribute__((noinline)) bool control_send_cnp(struct transport *, struct qp *, uint64_t now_ns);
/*
 * Sends a CNP for CE marks that no acknowledgement reports (10); called after the acknowledgements of this turn were
 * sent. False: no room.
 */
static inline bool control_output_cnp(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	const struct veroce_work *w = qp->veroce->w;

	return (!w->q_in.ce && !w->r_in.ce) || control_send_cnp(tp, qp, now_ns);
}

/* The packet with that PSN arrived far behind the others: signals it to the peer (9.1). */
void control_slow(struct transport *, struct qp *, uint32_t psn, uint64_t now_ns);
uint64_t control_deadline(const struct qp *);
void control_expire(struct transport *, struct qp *, uint64_t now_ns);
