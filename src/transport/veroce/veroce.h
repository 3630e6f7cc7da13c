/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The veRoCE engine of an RC QP: what joins its files.
 *
 * Each end has two PSN spaces a direction: requests of its own send queue (Q) and responses to the peer's READs and
 * atomics (R); see veRoCE 4.1. A `sender` recovers the packets that it sent in one space, a `receiver` puts in order
 * those that arrive in one.
 *
 *     veroce.c     the QP's ops: where packets go
 *     turn.c       what a QP sends in a turn, in which order
 *     deadlines.c  for what its timer runs
 *     setup.c      settings that all QPs of a nic share
 *     connection.c how a connection begins and ends, and how it is given up for RoCEv2
 *     work.c       the memory that a QP takes from the pool while something is outstanding
 *     look.c       what a query of the QP returns
 *     caps.c       whether the peer speaks veRoCE, and which extensions (13.1)
 *     seal.c       whether a packet proves that the peer sent it
 *     control.c    CNPs, RTT probes, slow-packet signals
 *     requester.c  send WQEs to packets in Q
 *     fence_indicator.c  which send WQEs may not be under way together
 *     completer.c  packets in R to memory; which send WQEs are complete
 *     responder.c  packets in Q to memory and receive WQEs
 *     responder_reads.c  READs and atomics executed, and their results to packets in R
 *     ahead.c      where payload belongs before its packet is handed in
 *
 *     in either space, for a sender
 *     recovery.c   what it may send, and what acknowledgements confirm
 *     ackreq.c     which packets ask for acknowledgements
 *     nak.c        what a NAK causes
 *     timeouts.c   what a timer causes
 *     loss_fast.c loss_base.c loss_irn.c   which packets it takes for lost (loss.h)
 *
 *     in either space, for a receiver
 *     acks.c       when it acknowledges, and how
 *     early.c      packets that wait for their turn
 *     rx_space.c   the PSNs received
 *
 * paths/ has what all QPs of two hosts know of the paths between, and tx_space.c, the PSNs sent; rxshare.c beside this
 * folder shares a port among QPs. engine.h is what the rest of transport/ may know.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"
#include "transport/paths/path_rtt.h"
#include "transport/request.h"
#include "transport/tx.h"
#include "transport/veroce/work.h"
#include "wire/icrc.h"
#include "wire/veroce.h"

/* As many RTOs after a READ was acknowledged without a response, it is requested again (our choice). */
enum { VEROCE_WATCH_RTOS = 4 };

extern const struct qp_ops veroce_ops;
extern const struct qp_ops veroce_asking_ops;

/*
 * Makes room for one more packet of that space; false: no memory. If nothing in flight would bring another
 * turn, the QP is starved: it tries again by a timer, and after a while it fails.
 */
static inline bool veroce_reserve(struct transport *tp, struct veroce_work *w, struct sender *s)
{
	if (tx_space_room(&s->tx) ||
	    (pair_begin(&tp->pairs, w->qp->veroce->pair) && tx_space_reserve(&s->tx, &tp->pool)))
		return true;
	if (!tx_outstanding(&s->tx))
		w->starved = true;
	return false;
}

/* ---- turn.c: `output` of struct qp_ops, with a connection, and while the peer is asked what it speaks ---- */

/* False: no room in the burst. */
bool veroce_output(struct transport *, struct qp *, uint64_t now_ns);
bool veroce_asking_output(struct transport *, struct qp *, uint64_t now_ns);

/* ---- deadlines.c ---------------------------------------------------------------------------------- */

/* `expire` of struct qp_ops. */
void veroce_expire(struct transport *, struct qp *, uint64_t now_ns);
/* Sets qp->timer to the earliest deadline, lazily. */
void veroce_rearm(struct transport *, struct qp *, uint64_t now_ns);
/* Sets it to no later than that. */
void veroce_set_timer(struct transport *, struct qp *, uint64_t at_ns, uint64_t now_ns);

/* ---- veroce.c and packets ------------------------------------------------------------------------- */

/* The flow of path `path`; `trimmable`: a switch may cut the payload off. */
struct flow veroce_flow_of(const struct transport *, const struct qp *, uint32_t path, bool trimmable);
/* The same, kept for as long as the packets of the turn live. NULL: the turn is full. */
const struct flow *veroce_make_flow(struct transport *, const struct qp *, uint32_t path, bool trimmable);
/* The same, quickly where it exists already. `data`: a packet that may be trimmed if the peer agreed. */
static inline const struct flow *veroce_flow(struct transport *tp, const struct qp *qp, uint32_t path, bool data)
{
	const struct veroce *vr = qp->veroce;
	bool trimmable = data && vr->caps & CAPS_TRIM;
	const struct flow *kept;

	if (vr->w && vr->pair->path_count == 1 && !trimmable)
		return &vr->w->flow;
	kept = tx_kept_flow(&tp->tx, qp, path << 1 | trimmable);
	return kept ? kept : veroce_make_flow(tp, qp, path, trimmable);
}

/* With gaps a QP waits for its own path, and room on others does not help it: then there is no queue. */
static inline bool veroce_stands_in_line(const struct transport *tp)
{
	return !tp->config.veroce.flowlet_gap_ns;
}

/*
 * The path of the packet to that host which was laid out last in this turn, with which another one may share a train or
 * a system call. PAIR_NO_PATH: there is none, or to go along would save nothing.
 */
static inline int veroce_path_of_turn(const struct transport *tp, const struct pair *pair)
{
	return pair->left_turn == tp->tx.turn && !acks_go_first(tp) && veroce_stands_in_line(tp) ? pair->left_path
												 : PAIR_NO_PATH;
}

/* Stamps a packet of a PSN space that leaves on `path`, if TS was agreed (13.2). */
static inline void veroce_stamp(struct qp *qp, struct veroce_packet *p, uint32_t path, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	p->bth.ts = vr->caps & CAPS_TS;
	if (!p->bth.ts)
		return;
	p->ts = (struct tseth){
		.tx1 = (uint32_t)now_ns,
		.path_id = (uint8_t)path,
		.path_seq = vr->pair->own[path].stamp_seq++ & PSN_MASK,
	};
}

/*
 * Whether messages of several packets start with a Middle packet (veRoCE 3): as long as those that follow, so that
 * messages share a train.
 */
static inline bool veroce_starts_alike(const struct qp *qp)
{
	return qp->veroce->caps & CAPS_ALIKE;
}

static inline enum request_place veroce_place(const struct qp *qp, bool first, bool last)
{
	return request_place(first && (last || !veroce_starts_alike(qp)), last);
}

/*
 * Room for the Middle packet that follows the packet laid out last, in the same message and on the same
 * path. Writes its headers, of *header_len bytes. NULL: the turn is full.
 */
static inline uint8_t *veroce_next(struct transport *tp, struct qp *qp, uint32_t path, bool ackreq,
				   uint32_t *header_len)
{
	uint8_t *out = tx_room(&tp->tx, qp->veroce->mtu + TX_HEADROOM_MAX);

	if (!out)
		return NULL;
	*header_len = veroce_encode_next(out, tx_last(&tp->tx), qp->veroce->mtu, ackreq);
	if (qp->veroce->caps & CAPS_TS)
		qp->veroce->pair->own[path].stamp_seq++;
	return out;
}

/* Commits that packet, with a path MTU of payload behind its headers. */
static inline void veroce_commit_next(struct transport *tp, const struct qp *qp, uint32_t header_len)
{
	tx_commit(&tp->tx, tp->tx.flow, qp->dest_qpn, header_len + qp->veroce->mtu);
}

/* A switch has cut off the payload of that packet. */
static inline bool veroce_is_trimmed(const struct qp *qp, const struct pkt *pkt)
{
	return qp->veroce->caps & CAPS_TRIM && pkt->flow->tos >> 2 == VEROCE_DSCP_TRIMMED;
}

/* Counts a packet that has a stamp. */
void veroce_stamped(struct pair *, const struct veroce_packet *, bool ce);
/*
 * Whether the stamp to echo remains that of an earlier packet, behind one that waited for this process. Such packets
 * are read and acknowledged together. What one sender sent in a burst queues behind itself, and the first packet of it
 * tells whether a queue stands.
 */
bool veroce_is_echo_kept(const struct receiver *, const struct veroce_packet *, uint64_t came_ns);
/* Notes what every packet of a PSN space reports: its path, its stamp, its CE mark. */
static inline void veroce_arrival(struct qp *qp, struct receiver *in, const struct pkt *pkt,
				  const struct veroce_packet *p, uint64_t now_ns)
{
	/* A trimmed packet's NAK stands for its mark. */
	bool ce = rx_is_marked(pkt) && !veroce_is_trimmed(qp, pkt);

	if (!p->bth.ts) {
		in->path = (uint8_t)(pkt->flow->sport % PATHS_MAX);
		in->echo_rx1 = 0;
	} else if (pkt->waited_ns < STARVED_NS_MIN || veroce_is_trimmed(qp, pkt) ||
		   !veroce_is_echo_kept(in, p, now_ns - pkt->waited_ns)) {
		in->path = p->ts.path_id;
		in->echo_tx1 = p->ts.tx1;
		in->echo_rx1 = (uint32_t)(now_ns - pkt->waited_ns) | 1; /* 0 means none; a nanosecond does not matter */
	}
	if (p->bth.ts)
		veroce_stamped(qp->veroce->pair, p, ce);
	if (ce) {
		in->ce = true;
		in->ce_path = in->path;
	}
	if (p->bth.retrans && p->bth.ackreq)
		in->asked = true;
}

/* look.c, of struct qp_ops. */
void veroce_query(const struct qp *, struct qp_psns *);
const struct cc *veroce_congestion(const struct transport *, const struct qp *, uint32_t path, struct cc *scratch,
				   const struct cc_kind **);
