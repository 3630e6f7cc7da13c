/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The veRoCE engine of an RC QP, for transport/veroce/ only: its state, and the calls between its files.
 *
 * Each end has two PSN spaces a direction: requests of its own send queue (Q) and responses to the
 * peer's READs and atomics (R); see veRoCE 4.1. A `sender` recovers what it sent in one space, a
 * `receiver` puts in order what came in one.
 *
 *     veroce.c     the QP's ops: where packets go, who sends when, which timers run
 *     setup.c      what all QPs of a nic have alike
 *     connection.c made, started, given up for RoCEv2
 *     work.c       what a QP takes from the pool while something is outstanding
 *     control.c    CNPs, RTT probes, slow-packet signals           (either)
 *     look.c       what is to be seen from outside
 *     seal.c       whether a packet proves that it is the peer's (either)
 *     caps.c       whether the peer speaks veRoCE, and what beyond its base (13.1)
 *     requester.c  send WQEs to packets in Q
 *     fence_indicator.c  which send WQEs may not be under way together
 *     completer.c  packets in R to memory; what completes a send WQE
 *     responder.c  packets in Q to memory and receive WQEs
 *     responder_reads.c  READs and atomics executed, and their results to packets in R
 *     early.c      early packets that wait for their turn         (either)
 *     acks.c       when a receiver acknowledges, and how          (either)
 *     rxshare.c    equal shares of the receiver's port (13.2)      (either)
 *     recovery.c   what a sender may send, and what acknowledgements confirm  (either)
 *     nak.c        what NAKs do to a sender                       (either)
 *     timeouts.c   what time does to a sender                     (either)
 *     loss_fast.c loss_base.c loss_irn.c   what is taken for lost
 *     pair.h path.h path_rtt.h path_choice.h trim_window.h   what all QPs of two hosts know of the paths between
 *     tx_space.h rx_space.h                PSNs sent and received, by the packet
 *
 * What the rest of transport/ may know is engine.h.
 *
 * Private to src/transport/veroce.
 */
#ifndef TRANSPORT_VEROCE_VEROCE_H
#define TRANSPORT_VEROCE_VEROCE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/message.h"
#include "transport/qp.h"
#include "transport/paths/pair.h"
#include "transport/paths/path_choice.h"
#include "transport/veroce/engine.h"
#include "transport/veroce/rx_space.h"
#include "transport/veroce/state.h"
#include "transport/veroce/tx_space.h"
#include "wire/icrc.h"
#include "wire/veroce.h"

enum {
	VEROCE_BASE_WINDOW = 128,   /* of a peer that has not announced one (4.2) */
	VEROCE_ACK_PACKETS = 16,    /* packets for an acknowledgement (5.3) */
	VEROCE_ACKREQ_PACKETS = 32, /* packets for an AckReq (12.2) */
	/*
	 * Between processes of one host each of the two is half of the window, at most this and never less
	 * than above: acknowledgements only show that there is room (our choice).
	 */
	VEROCE_ACK_PACKETS_LOCAL = 512,
	VEROCE_PROFILE = 3
};

/* Defaults (12.3), where the nic's owner sets nothing. */
enum {
	VEROCE_ACK_NS = 20000,
	VEROCE_ACK_NS_LOCAL = 100000, /* of a peer on this host; at most a fourth of the tail probe's time */
	VEROCE_PTO_NS_MIN = 100000,
	VEROCE_RTO_NS_MIN = 500000,
	VEROCE_CNP_NS = 50000, /* between two CNPs of a QP */
	VEROCE_FLOWLET_PACKETS = 8
};

/* Without memory to begin: how often a QP tries again, and after how long it fails (our choice). */
enum { VEROCE_STARVED_NS = 1000000, VEROCE_STARVED_MS = 2000 };

/* RTOs without a result until a READ that the peer acknowledged is requested again (our choice). */
enum { VEROCE_WATCH_RTOS = 4 };

#define VEROCE_CAPS_FLAGS (CAPS_MULTI_SACK | CAPS_SACK_ANY | CAPS_TS)

struct sender {
	struct tx_space tx;
	struct flowlet flowlet;
	uint32_t peer_window;   /* PSNs it records; VEROCE_BASE_WINDOW till CAPS */
	uint32_t ackreq_packets; /* AckReq is set in every so many; a power of two */
	uint64_t progress_ns;   /* when una last moved, or the first packet was sent */
	uint64_t active_ns;     /* when something was last sent or acknowledged */
	uint64_t timeout_ns;    /* of the last of `retries` */
	uint64_t from_ns;       /* no timeout counts the time before: the peer had asked for it */
	uint64_t grace_ns;      /* no timer acts before: it was woken late */
	bool graced;            /* ... once; the next time it acts */
	uint8_t retries;        /* timeouts since una last moved */
	uint64_t reo_ns;        /* fast: when missing packets become lost; 0: not set */
	uint8_t probes;         /* tail probes this stall (6.2) */
	/* base and irn */
	bool recovering;        /* base: rto_mode; irn: in recovery */
	uint32_t recover_psn;
	uint32_t rxt_psn;       /* base: RxtPSN; irn: holes below it were sent again */
	uint32_t rxt_una;       /* irn: una when it last moved in recovery */
	uint64_t rxt_ns;
};

/* A packet that came without its payload: the fields of its Packet Drop NAK. */
struct trimmed {
	uint32_t psn;
	uint32_t tx1, rx1; /* as echo_tx1 and echo_rx1 */
	uint8_t path;
};

struct receiver {
	struct rx_space rx;
	uint32_t amsn;         /* every packet of every message up to it has arrived */
	uint32_t po;           /* of the packet at epsn, if its message goes on */
	uint32_t message;      /* F_SEND or F_WRITE while inside one, both when not known, else 0 */
	uint16_t unacked;
	uint16_t ack_packets;  /* packets for an acknowledgement */
	bool ack_due;          /* an acknowledgement is due */
	bool asked;            /* to a probe: report everything */
	bool ce;               /* a CE mark that was not reported yet */
	uint8_t ce_path;       /* the one that it came on */
	bool stalled;          /* the message at epsn is complete, but there is no receive WQE (7.2) */
	uint8_t path;          /* of the last packet, by its time stamp or source port */
	uint32_t echo_tx1;     /* its TX1, if it was stamped */
	uint32_t echo_rx1;     /* when it came; 0: it was not stamped */
	uint8_t dups;          /* duplicates seen, modulo 256 */
	bool nak_due;
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	struct trimmed *trims; /* packets whose Packet Drop NAKs are due; NULL: none */
	uint32_t trims_size, trims_count;
	uint32_t trims_sent;   /* of trims_count */
	uint16_t ext;          /* greatest reordering seen, packets (5.4) */
	uint32_t sack_hpsn;    /* when the last SACK was sent */
	uint32_t sack_turn;    /* of the blocks in the middle */
	uint64_t hole_ns;      /* base peers: when a SACK for an old hole is due; 0: none */
	bool hole_due;
	uint8_t hole_tries;
	uint64_t ext_ns;       /* when ext next shrinks */
	uint32_t early_bytes;  /* of packets that wait for their turn (early.c) */
};

/*
 * A QP's memory while something is outstanding, from the pool: taken when a packet or work comes,
 * given back when the QP is idle (rest, veroce.c).
 */
struct veroce_work {
	struct qp *qp;
	struct flow flow;    /* where the pair has one path: that of all but data that may be trimmed */
	struct list waiting; /* in pair->waiting */
	bool woken;          /* from there, and its turn has not ended */
	bool served;         /* ... in which it had room for a packet */
	struct sender q, r;
	struct receiver q_in, r_in;
	struct rxshare_sender arrived; /* of the peer, in both spaces */
	struct rxshare_pace pace;      /* of our data, in both */

	/* requester */
	uint32_t wqe;          /* SQ index that q.tx.nxt lies in, or sq.next */
	bool overlaps;         /* the WQE that is next with WQE `overlapped`, when it was last looked at */
	uint32_t overlapped;   /* SQ index */
	uint64_t rnr_until_ns; /* nothing is sent in Q before; 0: none */
	uint8_t rnr_retries;
	uint8_t rnr_again;     /* RNR NAKs since una last moved */
	bool refused;          /* after an RNR NAK: requests may leave up to let_psn only */
	uint32_t let_psn;
	uint32_t let_wqes;     /* so many are let through at a time; 0: a packet */
	uint64_t watch_ns;     /* when a READ that was acknowledged, but not answered, is asked for again */
	uint64_t watch_since_ns; /* when something of it last came, or it was first waited for */
	uint8_t watch_tries;
	bool ask_again;        /* WQE ask_again_wqe */
	uint32_t ask_again_wqe;
	uint32_t reads_done;   /* response MSN of the last READ or atomic that is answered */
	uint32_t *reads;       /* SQ indices of READs and atomics, by response MSN modulo reads_size */
	uint32_t reads_size;   /* a power of two, at least max_rd_atomic; 0: none yet */

	/* responder */
	struct recv_wqe **bound; /* receive WQEs of RQMSN [rq_done, rq_bound), by RQMSN modulo size */
	uint32_t bound_size;
	uint32_t rq_bound;     /* RQMSNs that have a receive WQE */
	uint32_t released;     /* READs and atomics executed, the last whose slot is free again */
	uint32_t emit;         /* response MSN of the slot whose packets are cut next */
	struct rd_resource *slots; /* READs and atomics, by response MSN modulo slots_size */
	uint32_t slots_size;   /* a power of two, at least max_dest_rd_atomic; 0: none yet */
	uint64_t asked_ns;     /* when the peer was first asked for asked_psn; 0: nothing is asked */
	uint32_t asked_psn;    /* of R: lost, and its region is gone */
	bool fatal;            /* the NAK that is due is this QP's last packet ... */
	bool cut_short;        /* ... even if responses are under way */

	/* control packets */
	bool rtt_reply;        /* rtt is to be sent back */
	bool stall_ask;        /* an RTT request to a silent peer is due (stall.h) */
	bool slow_due;         /* slow_psn of Q is to be signalled */
	uint32_t slow_psn;
	uint64_t slow_ns;      /* not again before */
	uint64_t cnp_ns;       /* no CNP before */
	struct rtteth rtt;
	uint64_t rest_ns;      /* when the QP may rest */
	bool starved;          /* in this turn: no memory for a packet */
};

struct veroce {
	struct pair *pair;
	struct veroce_work *w; /* NULL: quiet */

	/* requester */
	uint32_t psn_new;      /* first PSN of the next WQE to be started */
	uint32_t msn;          /* of the last WQE started */
	uint32_t rqmsn;        /* of the next SEND or WRITE with immediate */
	uint32_t reads;        /* READs and atomics started; the response MSN of the last one */
	uint32_t acked_msn;    /* AETH.MSN */

	/* responder */
	uint32_t rq_done;      /* RQMSNs whose messages are complete */
	uint32_t executed;     /* READs and atomics, the response MSN of the last one */

	/* saved values from which w is made again; while there is a w, w's are right */
	struct veroce_quiet {
		uint32_t r_psn;          /* Q's is psn_new */
		uint32_t q_epsn, r_epsn;
		uint32_t q_amsn, r_amsn;
		uint16_t q_ext, r_ext;
	} quiet;
	uint32_t q_window, r_window; /* the peer's; VEROCE_BASE_WINDOW till CAPS */

	/* negotiation */
	uint8_t state;         /* enum veroce_state; veroce_move() alone writes it */
	bool caps_reply : 1;   /* a response is due */
	bool caps_ask : 1;     /* a request is due */
	bool caps_told : 1;    /* a response was sent: the peer may know our window and nonce */
	bool caps_seals : 1;   /* it announced that all is sealed from now on */
	bool caps_silent : 1;  /* the last question had no answer either: the peer is taken for a base one */
	/* CAPS came with the IP identification that a host gives a lone datagram: nobody changes it on the way. */
	bool ids_kept : 1;
	uint8_t caps_tries;    /* questions since the last news of the peer */
	uint8_t caps_hurries;  /* questions that went sooner, as the peer acknowledged but did not answer */
	uint16_t caps;         /* flags that both ends have; 0 before the answer, but see caps_reth_settled() */
	uint32_t starved_ms;   /* since when there is no memory for packets; 0: there is */
	uint32_t nonce;        /* ours; incoming packets are sealed with it */
	uint32_t peer_nonce;   /* the peer's as announced; proved once caps has CAPS_SEAL */
	uint64_t ask_ns;       /* when to ask again */
	uint64_t decide_ns;    /* ASKING with work to do: RoCEv2 from then on; 0: not set */
};

/*
 * An idle QP has these two and nothing of the pool. 512 bytes of state are wanted, of which 16 are for
 * its share of the nic's tables and of what the pool keeps; lines of 64 are what an alloc makes of them.
 */
static_assert(sizeof(struct qp) + sizeof(struct veroce) <= 512 - 16, "an idle QP is small");
static_assert((sizeof(struct qp) + 63) / 64 + (sizeof(struct veroce) + 63) / 64 <= 512 / 64,
	      "in lines too");

/* Where the SQ index of the READ or atomic with that response MSN is kept. */
static inline uint32_t *veroce_read(const struct veroce *vr, uint32_t r)
{
	return &vr->w->reads[r & (vr->w->reads_size - 1)];
}

/* The peer has proved that it speaks veRoCE with this QP. */
static inline bool veroce_is_confirmed(const struct veroce *vr)
{
	return vr->state >= VEROCE_CONFIRMED;
}

/* The peer has answered our CAPS. */
static inline bool veroce_is_answered(const struct veroce *vr)
{
	return vr->state >= VEROCE_AGREED;
}

/* The peer is spoken to in veRoCE. */
static inline bool veroce_is_spoken(const struct veroce *vr)
{
	return vr->state >= VEROCE_ASSUMED;
}

extern const struct qp_ops veroce_ops;
extern const struct qp_ops veroce_asking_ops;

/* ---- connection.c -------------------------------------------------------------------------------- */

/* These are of struct qp_ops. */
void veroce_start(struct transport *, struct qp *, uint64_t now_ns);
void veroce_readdress(struct transport *, struct qp *);
/* w stays until the QP is reset, because the caller may still use it. */
void veroce_silence(struct transport *, struct qp *, uint64_t now_ns);
/* From now on this QP speaks RoCEv2; the peer has executed none of its requests. */
void veroce_fall_back(struct transport *, struct qp *, uint64_t now_ns);
/* 64 bits that no peer can guess. */
uint64_t transport_secret(struct transport *);

/* ---- work.c --------------------------------------------------------------------------------------- */

/* Takes w, which is not there. False: no memory. */
bool veroce_take_work(struct transport *, struct qp *);
/* Takes w if it is not there. False: no memory. */
static inline bool veroce_wake(struct transport *tp, struct qp *qp)
{
	return qp->veroce->w || veroce_take_work(tp, qp);
}
/* Nothing is outstanding, awaited or due in either direction. */
bool veroce_is_quiet(const struct qp *);
/* Gives back w. The next packet or WQE takes it again. */
void veroce_rest(struct transport *, struct qp *);
/* Everything outstanding is forgotten, in both directions; bound receive WQEs were given up before. */
void veroce_forget(struct transport *, struct qp *);
/* Both; harmless without w. */
void veroce_drop_work(struct transport *, struct qp *);
/* Something will give the QP another turn. */
static inline bool veroce_is_scheduled(const struct qp *qp)
{
	return timer_is_set(&qp->timer) || !list_empty(&qp->active) || !list_empty(&qp->held);
}
/* Asserts what holds of w, which is there, between two events. */
void veroce_check_work(const struct transport *, const struct qp *);
void veroce_sender_init(const struct transport *, const struct qp *, struct sender *, uint32_t psn,
			uint32_t peer_window);
void veroce_receiver_init(const struct transport *, const struct qp *, struct receiver *, uint32_t epsn,
			  uint32_t amsn, uint16_t ext);

/* ---- veroce.c ---------------------------------------------------------------------------------- */

/*
 * Room for one more packet of that space; false: no memory. If nothing in flight would bring another
 * turn, the QP is starved: it tries again by a timer, and fails after VEROCE_STARVED_MS.
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
/* Sets qp->timer to the earliest deadline, lazily. */
void veroce_rearm(struct transport *, struct qp *, uint64_t now_ns);
/* ... to no later than that. */
void veroce_set_timer(struct transport *, struct qp *, uint64_t at_ns, uint64_t now_ns);
struct flow veroce_flow_of(const struct transport *, const struct qp *, uint32_t path, bool trimmable);
/* Keeps it for the turn; NULL: the turn is full. */
const struct flow *veroce_make_flow(struct transport *, const struct qp *, uint32_t path,
				    bool trimmable);
/* The flow of path `path`, as long as the turn's packets live; NULL: the turn is full. */
static inline const struct flow *veroce_flow(struct transport *tp, const struct qp *qp, uint32_t path,
					     bool data)
{
	const struct veroce *vr = qp->veroce;
	bool trimmable = data && vr->caps & CAPS_TRIM;
	const struct flow *kept;

	if (vr->w && vr->pair->path_count == 1 && !trimmable)
		return &vr->w->flow;
	kept = tx_kept_flow(&tp->tx, qp, path << 1 | trimmable);
	return kept ? kept : veroce_make_flow(tp, qp, path, trimmable);
}

/* Stamps a packet of a PSN space that leaves on `path`, if TS was agreed (13.2). */
static inline void veroce_stamp(struct qp *qp, struct veroce_packet *p, uint32_t path,
				uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	p->bth.ts = vr->caps & CAPS_TS;
	if (!p->bth.ts)
		return;
	p->ts = (struct tseth){
		.tx1 = (uint32_t)now_ns,
		.path_id = (uint8_t)path,
		.path_seq = vr->pair->path[path].stamp_seq++ & PSN_MASK,
	};
}

/*
 * By how much the address in a WRITE's packet differs from that of the packet before: a path MTU, or nothing
 * where each carries the RETH of its message (veRoCE 3, reth_base).
 */
static inline uint32_t veroce_va_step(const struct qp *qp)
{
	return qp->veroce->caps & CAPS_RETH_MESSAGE ? 0 : qp->mtu;
}

/*
 * Room for the Middle packet that follows the packet laid out last, another one of its message, on the same
 * path; its headers, of *header_len bytes, are written. NULL: the turn is full.
 */
static inline uint8_t *veroce_next(struct transport *tp, struct qp *qp, uint32_t path, bool ackreq,
				   uint32_t *header_len)
{
	uint8_t *out = tx_room(&tp->tx, qp->mtu + TX_HEADROOM_MAX);

	if (!out)
		return NULL;
	*header_len = veroce_encode_next(out, tx_last(&tp->tx), veroce_va_step(qp), ackreq);
	if (qp->veroce->caps & CAPS_TS)
		qp->veroce->pair->path[path].stamp_seq++;
	return out;
}

/* Commits it, with a path MTU of payload behind its headers. */
static inline void veroce_commit_next(struct transport *tp, const struct qp *qp, uint32_t header_len)
{
	tx_commit(&tp->tx, tp->tx.flow, qp->dest_qpn, header_len + qp->mtu + ICRC_LEN);
}

static inline bool veroce_is_trimmed(const struct qp *qp, const struct pkt *pkt)
{
	return qp->veroce->caps & CAPS_TRIM && pkt->flow->tos >> 2 == VEROCE_DSCP_TRIMMED;
}

void veroce_stamped(struct qp *, struct receiver *, const struct veroce_packet *, bool ce,
		    uint64_t now_ns);
/* What every packet of a PSN space reports: its path, its stamp, its CE mark. */
static inline void veroce_arrival(struct qp *qp, struct receiver *in, const struct pkt *pkt,
				  const struct veroce_packet *p, uint64_t now_ns)
{
	/* RFC 3168. A trimmed packet's NAK stands for its mark. */
	bool ce = (pkt->flow->tos & 3) == 3 && !veroce_is_trimmed(qp, pkt);

	in->path = p->bth.ts ? p->ts.path_id : (uint8_t)(pkt->flow->sport % PATHS_MAX);
	if (ce) {
		in->ce = true;
		in->ce_path = in->path;
	}
	if (p->bth.retrans && p->bth.ackreq)
		in->asked = true;
	in->echo_rx1 = 0;
	if (p->bth.ts)
		veroce_stamped(qp, in, p, ce, now_ns);
}

/* ---- look.c, of struct qp_ops -------------------------------------------------------------------- */

void veroce_query(const struct qp *, struct qp_psns *);
const struct cc *veroce_congestion(const struct transport *, const struct qp *, uint32_t path, struct cc *scratch,
				   const struct cc_kind **);

/* ---- caps.c -------------------------------------------------------------------------------------- */

void caps_start(struct transport *, struct qp *, uint64_t now_ns);
bool caps_send(struct transport *, struct qp *, uint64_t now_ns);
/* False: no room. */
static inline bool caps_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return (!qp->veroce->caps_reply && !qp->veroce->caps_ask) || caps_send(tp, qp, now_ns);
}

/* There is nothing to ask: the peer answered, and seals if both can. */
static inline bool caps_are_settled(const struct veroce *vr)
{
	return vr->state == VEROCE_SEALED || (vr->state == VEROCE_AGREED && !(vr->caps & CAPS_SEAL));
}

/*
 * How far ahead a packet may be: no further than what the peer can have in flight. It knows our window only
 * by our answer; otherwise the base protocol's holds.
 */
static inline uint32_t caps_rx_window(const struct transport *tp, const struct veroce *vr)
{
	return vr->caps_told || veroce_is_answered(vr) ? tp->config.veroce.rx_window : VEROCE_BASE_WINDOW;
}

void caps_expire(struct transport *, struct qp *, uint64_t now_ns);
uint64_t caps_deadline_asking(const struct qp *);
static inline uint64_t caps_deadline(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	return caps_are_settled(vr) && !vr->decide_ns ? TIMER_NEVER : caps_deadline_asking(qp);
}

/*
 * Whether it is known which RETH the packets of a WRITE carry. Needed if our setting is that of the message,
 * before a packet that is not its message's first is sent or placed. It is known once the peer has answered,
 * and once it has been silent for so long that it counts as a base peer: then our setting holds, since it is
 * made for such a peer.
 */
bool caps_reth_settled(struct qp *);
/*
 * The first packet of the peer arrived, other than CAPS. If the peer was silent for too long, it may have
 * started only now: it is asked anew, because its setting may differ from the assumed one.
 */
void caps_confirmed(struct transport *, struct qp *);
/*
 * The peer acknowledged a packet, or sent one that cannot be accepted yet, and has not answered
 * CAPS.
 */
void caps_unanswered(struct transport *, struct qp *, uint64_t now_ns);
/* A veRoCE packet came in the peer's name; `proved`: only the peer can have sent it. */
void caps_packet_came(struct transport *, struct qp *, bool proved, uint64_t now_ns);
/*
 * The peer did not answer within the program's timeout. True: veRoCE was only assumed, because of a request
 * in the peer's name, and the QP speaks RoCEv2 from now on.
 */
bool caps_doubts(struct transport *, struct qp *, uint64_t now_ns);
/* Whether this is the first request of a peer: no other packet begins with the PSN that is due. */
bool caps_is_due(const struct veroce *, const struct veroce_packet *);
/*
 * From a peer that has proved nothing yet, the request that is due is accepted, early ones if it has asked,
 * and answers to our own. Any other packet may be a stranger's, who has guessed a QPN. False: it is dropped.
 */
bool caps_is_plausible(const struct veroce *, const struct veroce_packet *);
/* Work came before the protocol is known. */
void caps_hurry(struct qp *, uint64_t now_ns);

/* ---- control.c ------------------------------------------------------------------------------------- */

/* CNP, RTT probes, slow-packet signals. */
void control_input(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
		   uint64_t now_ns);
bool control_send(struct transport *, struct qp *, uint64_t now_ns);
/* Probes of paths that are down, answers to the peer's. False: no room. */
static inline bool control_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;

	return (!vr->w->rtt_reply && !vr->w->stall_ask && !vr->w->slow_due && !vr->pair->down_count) ||
	       control_send(tp, qp, now_ns);
}

bool control_send_cnp(struct transport *, struct qp *, uint64_t now_ns);
/*
 * A CNP for CE marks that no acknowledgement reports (10); called after those of this turn were sent.
 * False: no room.
 */
static inline bool control_output_cnp(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	const struct veroce_work *w = qp->veroce->w;

	return (!w->q_in.ce && !w->r_in.ce) || control_send_cnp(tp, qp, now_ns);
}

/* The packet with that PSN came far behind the others: signals it to the peer (9.1). */
void control_slow(struct transport *, struct qp *, uint32_t psn, uint64_t now_ns);
uint64_t control_deadline(const struct qp *);
void control_expire(struct transport *, struct qp *, uint64_t now_ns);

/* ---- requester.c ------------------------------------------------------------------------------------ */

/* Requests, lost ones first. True: stopped for lack of room or budget only. */
bool veroce_requester_output(struct transport *, struct qp *, uint64_t now_ns);
/* The wait after an RNR NAK is over. */
void veroce_requester_end_rnr(struct transport *, struct qp *, uint64_t now_ns);
/* The peer accepted a request that it had refused: more may follow. Called while w->refused. */
void veroce_requester_let_more(struct transport *, struct qp *);
/* Sends the READ or atomic of that SQ index once more, although it was acknowledged. */
void veroce_requester_ask_again(struct transport *, struct qp *, uint32_t index);

/* ---- responder.c ------------------------------------------------------------------------------------ */

void veroce_responder_input(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
		     uint64_t now_ns);
/*
 * The fast path of veroce_responder_input() for most packets of a long message: a Middle packet in its
 * turn that needs no acknowledgement now. False: it is not such a packet, or cannot be accepted;
 * nothing was done.
 */
bool veroce_responder_middle(struct transport *, struct qp *, const struct pkt *,
		      const struct veroce_packet *, uint64_t now_ns);
void veroce_responder_retry_stalled(struct transport *, struct qp *, uint64_t now_ns);
/* A receive WQE may have come: a message that waits for one is finished. */
static inline void veroce_responder_retry(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp->veroce->w->q_in.stalled)
		veroce_responder_retry_stalled(tp, qp, now_ns);
}

/* Flushes the receive WQEs that were bound, in order. */
void veroce_responder_flush(struct transport *, struct qp *, uint64_t now_ns);
/* Gives them back, without completions. */
void veroce_responder_drop(struct transport *, struct qp *);
/* None is bound: gives back what remembers them. */
void veroce_responder_rest(struct transport *, struct veroce_work *);

/* ---- early.c --------------------------------------------------------------------------------------- */

/* A packet that waits for its turn. */
struct early_packet {
	struct veroce_packet p; /* as it came, but for its payload, which is a copy */
	uint8_t *payload;       /* NULL: there is none */
};

/*
 * Whether an early packet's payload is placed when it comes. In message order it is, if it belongs to the
 * oldest incomplete message and does not end it: its PO is as far from the one that is due as its PSN.
 */
static inline bool early_lands(const struct transport *tp, const struct receiver *in,
			       const struct veroce_packet *p)
{
	if (tp->config.veroce.order != ORDER_MESSAGE)
		return tp->config.veroce.order == ORDER_WEAK;
	return p->msn == psn_add(in->amsn, 1) && !(p->info->flags & F_END) &&
	       !((p->po - in->po - (p->bth.psn - in->rx.epsn)) & PSN_MASK);
}

/* Copies and records an early packet that was judged RX_NEW. False: no room, and nothing was done. */
bool early_keep(struct transport *, struct receiver *, const struct veroce_packet *);
/* Passes the packet of that record to the caller, who frees it. */
struct early_packet *early_take(struct transport *, struct receiver *, struct rx_meta *);
void early_free(struct transport *, struct early_packet *);
/* Frees all that are recorded; the records are to be dropped next. */
void early_drop(struct transport *, struct receiver *);

/* ---- responder_reads.c -------------------------------------------------------------------------------------- */

/* Executes a READ or atomic whose turn has come. */
enum rx_verdict responder_reads_execute(struct transport *, struct qp *, const struct rx_meta *,
				  uint64_t now_ns);
/* The verdict on a READ or atomic that comes before its turn, apart from its order. */
enum rx_verdict responder_reads_judge(const struct transport *, const struct qp *, const struct rx_meta *);
bool responder_reads_send(struct transport *, struct qp *, uint64_t now_ns);
/* Whether there is a packet to cut or to send again. */
static inline bool responder_reads_due(const struct qp *qp)
{
	const struct veroce_work *w = qp->veroce->w;

	return w->r.tx.lost || psn_diff(w->emit, qp->veroce->executed) <= 0;
}
/* Responses, lost ones first. True: stopped for lack of room or budget only. */
static inline bool responder_reads_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return responder_reads_due(qp) && responder_reads_send(tp, qp, now_ns);
}

/* Whether a turn is of any use, now that there is more room or less to wait for. */
static inline bool veroce_has_more(const struct qp *qp)
{
	const struct veroce_work *w = qp->veroce->w;

	return w->wqe != sq_head(&qp->sq) || w->q.tx.lost || responder_reads_due(qp) || w->fatal;
}

/* Whether a response is still to be sent, or to be acknowledged. */
bool responder_reads_pending(const struct qp *);
/*
 * Checks, after an acknowledgement of responses, whether the peer misses one whose region is gone, which ends
 * the connection. Called while w->asked_ns is set.
 */
void responder_reads_answered(struct transport *, struct qp *, const struct veroce_packet *,
			uint64_t now_ns);
/* Slots up to response MSN r are done with. */
void responder_reads_release(struct qp *, uint32_t r);

/* ---- completer.c ------------------------------------------------------------------------------- */

void veroce_completer_input(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
		   uint64_t now_ns);
/* As veroce_responder_middle(), of READs. */
bool veroce_completer_middle(struct transport *, struct qp *, const struct pkt *,
		    const struct veroce_packet *, uint64_t now_ns);
/* Completes, in order, every WQE that is done. */
void veroce_completer_complete(struct transport *, struct qp *, uint64_t now_ns);

/* ---- acks.c ---------------------------------------------------------------------------------- */

/* A packet arrived and makes an acknowledgement due; `now`: at once. */
void acks_note(struct transport *, struct qp *, struct receiver *, bool now, uint64_t now_ns);
/* A NAK for that PSN; in space R a NAK_Rsp. */
void acks_nak(struct transport *, struct qp *, struct receiver *, uint32_t psn, uint8_t syndrome);
/* The greatest reordering, in packets, that stands for the start value of T (5.4). */
uint16_t acks_ext_start(uint32_t paths);
/* Whether a NAK is due and may leave: the one that ends the QP comes behind all responses. */
bool acks_nak_ready(const struct qp *);
bool acks_send(struct transport *, struct qp *, struct receiver *, uint64_t now_ns);
/* Sends the acknowledgement that is due in one space. False: no room. */
static inline bool acks_output(struct transport *tp, struct qp *qp, struct receiver *in,
			       uint64_t now_ns)
{
	return (!in->ack_due && !in->nak_due && !in->trims) || acks_send(tp, qp, in, now_ns);
}

/* Of a receiver before a packet: which was the highest PSN, and whether some below it were missing. */
struct acks_before {
	uint32_t hpsn;
	bool had_holes;
};
static inline struct acks_before acks_before(const struct receiver *in)
{
	return (struct acks_before){.hpsn = in->rx.hpsn, .had_holes = rx_has_holes(&in->rx)};
}

void acks_arrived_news(struct transport *, struct qp *, struct receiver *, const struct veroce_packet *,
		       struct acks_before, uint64_t now_ns);
/* A new packet was accepted, in its turn or early. */
static inline void acks_arrived(struct transport *tp, struct qp *qp, struct receiver *in,
				const struct veroce_packet *p, struct acks_before before, uint64_t now_ns)
{
	/* One more packet in order, which the acknowledgement that is due covers. */
	if (in->ack_due && !before.had_holes && !rx_has_holes(&in->rx) && !p->bth.retrans && !p->bth.ackreq &&
	    !in->ce && in->unacked + 1 < in->ack_packets)
		in->unacked++;
	else
		acks_arrived_news(tp, qp, in, p, before, now_ns);
}
/*
 * Whether it is the next one in order, with none early, of which acks_arrived() would only count,
 * before veroce_arrival().
 */
static inline bool acks_counts_only(const struct receiver *in, const struct pkt *pkt,
				    const struct veroce_packet *p)
{
	return p->bth.psn == in->rx.epsn && !rx_has_holes(&in->rx) && in->ack_due &&
	       !p->bth.ackreq && !p->bth.retrans && !in->ce && (pkt->flow->tos & 3) != 3 &&
	       in->unacked + 1 < in->ack_packets;
}
/*
 * Asserts that such a packet, taken by a fast path, left what the general rule leaves of it: `before` is the receiver as
 * it was.
 */
void acks_check_counted(const struct transport *, const struct qp *, const struct receiver *before,
			const struct receiver *, const struct veroce_packet *);
/* In the debug build alone. */
static inline void acks_counted(const struct transport *tp, const struct qp *qp, const struct receiver *before,
				const struct receiver *in, const struct veroce_packet *p)
{
#ifdef VERBENA_DEBUG
	acks_check_counted(tp, qp, before, in, p);
#endif
}
/* A switch cut the payload of the packet with that PSN off (veRoCE 8). */
void acks_trimmed(struct transport *, struct qp *, struct receiver *, uint32_t psn);
/* Drops the Packet Drop NAKs that are due. */
void acks_drop(struct transport *, struct receiver *);
void acks_expire(struct transport *, struct qp *, struct receiver *, uint64_t now_ns);

/* ---- nak.c ------------------------------------------------------------------------------------- */

void nak_rnr(struct transport *, struct qp *, struct sender *, uint32_t psn, uint8_t code, uint64_t now_ns);
/* NAKs that end the connection; in space R any does. */
void nak_error(struct transport *, struct qp *, struct sender *, uint32_t psn, uint8_t code, uint64_t now_ns);
/* A Packet Drop NAK: a switch cut the payload off. Nothing else is lost, and nothing is acknowledged by it (5.2, 8). */
void nak_drop(struct transport *, struct qp *, struct sender *, const struct veroce_packet *, uint64_t now_ns);
/* The connection is over, and no WQE is to blame. */
void veroce_fail_qp(struct transport *, struct qp *, uint64_t now_ns);
/*
 * The WQE that PSN belongs to fails, once everything before it is done. If it is complete already, the peer
 * has given up the connection for something that does not matter any more.
 */
void veroce_fail_wqe(struct transport *, struct qp *, uint32_t psn, enum wc_status, uint64_t now_ns);

/* ---- timeouts.c --------------------------------------------------------------------------------- */

void timeouts_expire(struct transport *, struct qp *, struct sender *, uint64_t now_ns);
uint64_t timeouts_deadline(const struct transport *, const struct qp *, const struct sender *);
uint64_t timeouts_deadline_of_both(const struct transport *, const struct qp *);
/*
 * Whether the QP fails after so many tries without an answer since `since_ns`: there were more than
 * retry_cnt in a row, the program's timeout is over, and so is our patience if the peer is a process of
 * this host (our choice: docs/veroce.md).
 */
bool timeouts_is_hopeless(struct transport *, const struct qp *, uint8_t tries, uint64_t since_ns, uint64_t now_ns);

/* ---- recovery.c ------------------------------------------------------------------------------ */

/* Whether it is the sender of requests, not of responses. */
static inline bool veroce_is_q(const struct qp *qp, const struct sender *s)
{
	return s == &qp->veroce->w->q;
}

/* The content of an acknowledgement beside its PSN. */
struct acknowledgement {
	const uint8_t *sacks;        /* sack_count SACKETHs back to back */
	const struct tseeth *stamps; /* NULL: it carries none */
	uint32_t sack_count;
	uint32_t msn;                /* AETH.MSN: the last message that is complete at the peer */
	bool becn;
};

/* ACK, SACK or NAK of one space. */
void recovery_input(struct transport *, struct qp *, struct sender *, const struct veroce_packet *,
		    uint64_t now_ns);
/*
 * Something else than an acknowledgement shows that the peer has every packet up to that outstanding PSN and every
 * message up to that MSN: has the effect of a plain ACK. May complete WQEs, and so end the QP.
 */
void recovery_acked_to(struct transport *, struct qp *, struct sender *, uint32_t psn, uint32_t msn,
		       uint64_t now_ns);
/* A path for the next packet of the space; PAIR_NO_PATH: wait for an acknowledgement. */
int recovery_pick(struct transport *, struct qp *, struct sender *, uint32_t bytes,
		  const struct tx_record *again, uint64_t now_ns);
/*
 * After recovery_pick() and veroce_reserve() for a new packet of so many bytes: how many of that kind may go
 * on that path now, at most max, that one included.
 */
uint32_t recovery_run(const struct qp *, const struct sender *, int path, uint32_t bytes, uint32_t max);
/* Enters packets that were laid out: one, or as many as recovery_run() allows. */
void recovery_sent(struct transport *, struct qp *, struct sender *, struct tx_run, uint64_t now_ns);
void recovery_resent(struct transport *, struct qp *, struct sender *, uint32_t psn, int path,
		     uint64_t now_ns);
/*
 * There may be room for QPs that wait. The first of them is activated, and the next after its turn if it had
 * room, or needed none: so all wait equally long, and an acknowledgement costs no more if thousands wait. A QP
 * that found no room stays the first.
 */
void recovery_wake(struct transport *, struct pair *);
/* Called after a QP's turn at the nic; more: it will have another one in any case. */
void recovery_end_turn(struct transport *, struct qp *, bool more);
/* Takes a record for lost. */
void recovery_lose(struct transport *, struct qp *, struct sender *, uint32_t psn, uint64_t now_ns);
/*
 * Whether the copy of that PSN goes out twice: one that was lost twice already, and would close the window
 * before yet another copy could be acknowledged. There are few (our choice).
 */
bool recovery_doubles(const struct sender *, uint32_t psn);

/* Whether to set AckReq in the packet with that PSN, which is outstanding or about to be. */
static inline bool recovery_sets_ackreq(const struct qp *qp, const struct sender *s, uint32_t psn)
{
	uint32_t out = tx_outstanding(&s->tx), ahead = (psn - s->tx.una) & PSN_MASK;

	return (~psn & (s->ackreq_packets - 1)) == 0 || qp->veroce->pair->asks ||
	       (ahead > out ? ahead : out) + 2 >= s->peer_window;
}

/*
 * Loss detection: one of these, by setting. `acked` is called after every acknowledgement (with a SACK's
 * block, if there was one), `timeout` after the retransmission timer fired.
 */
struct loss_ops {
	void (*acked)(struct transport *, struct qp *, struct sender *, const struct tx_news *,
		      const struct acknowledgement *, uint64_t now_ns);
	void (*timeout)(struct transport *, struct qp *, struct sender *, uint64_t now_ns);
	/* At sender.reo_ns; NULL: it is never set. */
	void (*late)(struct transport *, struct qp *, struct sender *, uint64_t now_ns);
	/* When the retransmission timeout begins to count; NULL: when una last moved. */
	uint64_t (*since)(const struct qp *, const struct sender *);
	bool probes; /* tail probes */
};
extern const struct loss_ops loss_fast, loss_base, loss_irn;

#endif
