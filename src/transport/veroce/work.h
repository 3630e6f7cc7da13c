/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP's working memory: what it takes from the pool when a packet or a WQE arrives, and gives back when nothing has
 * been outstanding for a while.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/qp.h"
#include "transport/veroce/connection.h"
#include "transport/veroce/receiver.h"
#include "transport/rxshare.h"
#include "transport/veroce/sender.h"
#include "wire/veroce.h"

enum {
	/*
	 * What a QP may have in flight through memory: all of it is there when it was sent, and the ring holds up who
	 * sends too much. Large enough that who reads long messages with one call finds the next ones ready meanwhile.
	 */
	VEROCE_NEAR_BYTES = 4 << 20,
	VEROCE_ACK_PACKETS = 16,    /* packets for an acknowledgement (5.3) */
	VEROCE_ACKREQ_PACKETS = 32, /* packets for an AckReq (12.2) */
	/*
	 * Where acknowledgements are rare (veroce.acks_rarely) both numbers are half of the window in packets, at most
	 * this and at least what they are elsewhere: acknowledgements only show that there is room (our choice).
	 */
	VEROCE_ACK_PACKETS_RARE = 512,
	/*
	 * Between hosts a sender asks for them as often as ever until so many packets were acknowledged of which none
	 * was lost: one that is rare tells of more, and may be lost, too.
	 */
	VEROCE_CALM_PACKETS = 4096
};

struct veroce_work {
	struct qp *qp;
	struct flow flow;    /* where the pair has one path: of all packets but data that may be trimmed */
	struct list waiting; /* in pair->waiting */
	bool woken;          /* from there, and its turn has not ended */
	bool served;         /* ... and in that turn it had room for a packet */
	uint64_t near_bytes; /* its part of pair->near_bytes */
	struct sender q, r;
	struct receiver q_in, r_in;
	struct rxshare_sender arrived; /* of the peer, in both spaces */
	struct rxshare_pace pace;      /* of our data, in both */

	/* requester */
	uint32_t wqe;          /* SQ index that q.tx.nxt lies in, or sq.next */
	bool overlaps;         /* the next WQE overlapped WQE `overlapped` when that was last checked */
	uint32_t overlapped;   /* SQ index */
	uint64_t rnr_until_ns; /* nothing is sent in Q earlier; 0: no RNR wait */
	uint8_t rnr_retries;
	uint8_t rnr_again; /* RNR NAKs since una last moved */
	bool refused;      /* after an RNR NAK: requests may leave up to let_psn only */
	bool idles;        /* in an RNR wait: what is in flight in Q is in pair->idle_bytes */
	uint32_t let_psn;
	uint32_t let_wqes;       /* as many WQEs may leave at a time; 0: one packet */
	uint64_t watch_ns;       /* when a READ that was acknowledged but not answered is requested again */
	uint64_t watch_since_ns; /* when a packet of its response last arrived, or the wait began */
	uint8_t watch_tries;
	bool ask_again; /* WQE ask_again_wqe is to be requested again */
	uint32_t ask_again_wqe;
	uint32_t reads_done; /* response MSN of the last READ or atomic that is answered */
	uint32_t *reads;     /* SQ indices of READs and atomics, by response MSN modulo reads_size */
	uint32_t reads_size; /* a power of two, at least max_rd_atomic; 0: none yet */

	/* responder */
	struct recv_wqe **bound; /* receive WQEs of RQMSN [rq_done, rq_bound), by RQMSN modulo size */
	uint32_t bound_size;
	uint32_t rq_bound;         /* RQMSNs that have a receive WQE */
	uint32_t released;         /* READs and atomics executed, the last whose slot is free again */
	uint32_t emit;             /* response MSN of the slot whose packets are cut next */
	struct rd_resource *slots; /* READs and atomics, by response MSN modulo slots_size */
	uint32_t slots_size;       /* a power of two, at least max_dest_rd_atomic; 0: none yet */
	uint64_t asked_ns;         /* when the peer was first asked for asked_psn; 0: nothing is asked */
	uint32_t asked_psn;        /* of R: lost, and its region is gone */
	bool unheard;              /* the peer did not answer our responses: they wait */
	uint8_t fatal;             /* enum rx_verdict: the answer that is due is this QP's last packet, for this ... */
	bool cut_short;            /* ... even if responses are due, which cannot be given */

	/* control packets */
	bool rtt_reply;   /* rtt is to be sent back */
	bool stall_ask;   /* an RTT request to a silent peer is due (stall.h) */
	bool hold_probe;  /* while the peer is waited for: a probe is due */
	uint64_t hold_ns; /* ... when to look again; 0: not set */
	bool slow_due;    /* slow_psn of Q is to be signalled */
	uint32_t slow_psn;
	uint64_t slow_ns; /* no slow-packet signal leaves earlier */
	uint64_t cnp_ns;  /* no CNP leaves earlier */
	struct rtteth rtt;
	uint64_t rest_ns; /* when the QP may rest */
	bool starved;     /* in this turn: no memory for a packet */
};

/* Where the SQ index of the READ or atomic with that response MSN is kept. */
static inline uint32_t *veroce_read(const struct veroce *vr, uint32_t r)
{
	return &vr->w->reads[r & (vr->w->reads_size - 1)];
}

/* The number of packets that an acknowledgement covers, after veroce.mtu or veroce.acks_rarely has changed. */
void veroce_fit_acks(const struct transport *, struct qp *);
/* sender.calm when nothing was sent yet: between processes of one host nothing is lost on a network. */
uint16_t veroce_calm_at_first(const struct qp *);
/* sender.calm for that many packets. */
static inline uint16_t veroce_calm(uint32_t packets)
{
	return packets < VEROCE_CALM_PACKETS ? (uint16_t)packets : VEROCE_CALM_PACKETS;
}
/* Takes w; there is none yet. False: no memory. */
bool veroce_take_work(struct transport *, struct qp *);
/* Takes w if there is none yet. False: no memory. */
static inline bool veroce_wake(struct transport *tp, struct qp *qp)
{
	return qp->veroce->w || veroce_take_work(tp, qp);
}
/* Nothing is outstanding, awaited or due in either direction. */
bool veroce_is_quiet(const struct qp *);
/* Gives back w. The next packet or WQE takes it again. */
void veroce_rest(struct transport *, struct qp *);
/* Forgets what is outstanding, in both directions. The caller has given up the bound receive WQEs. */
void veroce_forget(struct transport *, struct qp *);
/* Forgets it and gives back w; harmless without w. */
void veroce_drop_work(struct transport *, struct qp *);
/* A timer or a list will give the QP another turn. */
static inline bool veroce_is_scheduled(const struct qp *qp)
{
	return timer_is_set(&qp->timer) || !list_empty(&qp->active) || !list_empty(&qp->held);
}
/* What does not hold of w between two events; NULL: nothing. There is a w. */
const char *veroce_work_fault(const struct transport *, const struct qp *);
void veroce_sender_init(const struct transport *, const struct qp *, struct sender *, uint32_t psn,
			uint32_t peer_window, uint16_t calm);
void veroce_receiver_init(const struct transport *, const struct qp *, struct receiver *, uint32_t epsn, uint32_t amsn,
			  uint16_t ext);
