/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair as its engine sees it, and the state that all QPs of one nic share.
 * Private to src/transport and src/iwarp and src/nic.
 *
 * A QP is split by role: the requester turns send WQEs into request packets, the completer turns
 * responses into completions, the responder turns requests into memory accesses and responses.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/pkt.h"
#include "base/pool.h"
#include "base/timer.h"
#include "cc/aimd.h"
#include "mem/mr.h"
#include "mem/sge.h"
#include "queue/cq.h"
#include "queue/event.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "transport/attr.h"
#include "transport/config.h"
#include "transport/counters.h"
#include "transport/peer.h"
#include "transport/rx.h"
#include "transport/seal.h"
#include "transport/srq.h"
#include "transport/stream.h"
#include "transport/tx.h"
#include "transport/paths/pair.h"
#include "transport/rxshare.h"

enum {
	QP_ACKREQ_PACKETS = 16,  /* from one AckReq of a requester to the next, at most */
	QP_ACK_NOW_PACKETS = 16, /* a responder acknowledges at once after so many */
	QP_OUTPUT_QUANTUM = 128  /* packets a QP sends before the next QP's turn */
};

#define NAK_AT_EPSN        UINT32_MAX
#define NIC_READ_BYTES_MAX (1u << 31)

struct archive;
struct cc;
struct cc_kind;
struct congestion;
struct loss_ops;
struct veroce;

enum { QP_SLS = 16, XRC_SRQ_BUCKETS = 256 };

/* How long an acknowledgement that has become due may wait. */
enum ack_wait {
	ACK_NOW,
	ACK_HELD, /* for a packet to travel with, if the nic's caller comes back soon */
	ACK_LAZY, /* for more to acknowledge */
	ACK_RARE, /* likewise, for longer: the peer will ask for what it waits for */
	ACK_WAITS
};

/* QPs whose acknowledgements wait, oldest first, and how long each may. */
struct ack_list {
	struct list qps;
	uint64_t delay_ns;
};

/* The state that a nic's QPs share. */
struct transport {
	struct alloc alloc;
	struct pool pool; /* for state that exists only while data is outstanding */
	struct mr_table mrs;
	struct timers timers;
	/*
	 * QPs with packets to send. First those that must answer, in the order in which their answers became
	 * due; then service levels take turns, and so do the QPs of each.
	 */
	struct list answering;
	struct list active[QP_SLS];
	uint16_t active_sls; /* levels that may have QPs in `active` */
	uint8_t turn;        /* the level whose turn was last */
	struct list paused;  /* QPs that had their turn while paused, and may have data */
	/* By how an acknowledgement waits; nothing is in that of ACK_NOW. */
	struct ack_list acks[ACK_WAITS];
	struct list fired_cqs;
	struct list events; /* struct event_source with pending events */
	struct tx tx;
	bool unsealed;                 /* there is no payload, and nothing to seal */
	const struct gid_map *gid_map; /* NULL: programs know the addresses of the wire. Borrowed */
	struct rx_decoder decoder;
	struct nic_counters counters;
	uint64_t qp_changes;            /* counts what changes in reports of QPs (nic_report_qps) */
	struct transport_config config; /* settled; only nic_set_paths() changes it */
	struct lender lender;
	struct peer elsewhere;         /* of QPs whose peers are no processes of this host */
	struct peer peers[PEER_SLOTS]; /* these, by slot: peer_at() */
	struct list doubted;           /* those that may be gone */
	uint64_t back_ns;              /* until when this process itself did not run for long */
	bool hold_acks;
	uint16_t hold_ms;      /* for so long this nic will be silent (qp_ops.hold); 0: it is not */
	uint16_t hold_number;  /* times that this has changed; never 0 then */
	uint32_t hold_awaited; /* QPs whose `hold` has not had its effect yet */
	uint32_t roam_number;  /* times that QPs went on under another address (qp_ops.roam) */
	uint16_t paused_sls;   /* levels that send no payload: their turns are for answers only */

	/* veRoCE */
	uint64_t early_bytes; /* payload of early packets that wait for their turn */
	uint16_t caps_flags;  /* offered */
	const struct loss_ops *loss;
	struct pair_table pairs;
	struct rxshare rxshare;
	uint8_t secret[16]; /* of nonces */
	uint64_t secret_serial;

	/* iWARP */
	uint64_t streams_ended; /* counts QPs that ended their streams */

	/* XRC */
	struct rq no_rq;                       /* of XRC_RECV QPs that have no SRQ now: it is empty */
	struct srq *xrc_srqs[XRC_SRQ_BUCKETS]; /* by number, xrc.h */
};

/*
 * Initialises zeroed memory that the QPs of a nic share, with the settings of `config` and defaults for the others.
 * Borrows icrc, which is NULL without payload. No timer runs yet, there is no region, and the caller gives tx its
 * arena.
 */
void transport_init(struct transport *, const struct transport_config *config, const struct alloc *,
		    const uint8_t secret[16], struct icrc_ctx *icrc);
/* Called when no QP is left. */
void transport_fini(struct transport *);

/*
 * One READ, atomic, FLUSH or ATOMIC WRITE at the responder, kept after it was answered so that a duplicate gets
 * the same answer (IBTA 9.7.4.5.x: as many as max_dest_rd_atomic).
 */
struct rd_resource {
	uint64_t va;
	uint64_t orig; /* atomic: the value found */
	uint32_t rkey;
	uint32_t len; /* READ: bytes from psn_first on */
	uint32_t psn_first;
	uint32_t psn_last;
	uint32_t psn_next;  /* response to send next; psn_last + 1: all sent */
	uint32_t psn_end;   /* last response of the answer being given */
	uint32_t psn_start; /* first response of the answer being given */
	uint32_t msn;
	uint16_t kind; /* the request's: F_READ, F_ATOMIC or F_MPE. The last has the answer of a READ of no bytes */
	bool again;    /* the answer being given is not the first */
	uint32_t srqn; /* XRC: whose memory it is */
};

/*
 * Requester and completer. PSNs:
 *
 *     una <= psn <= high <= psn_new      (24-bit order)
 *
 * una: oldest unacknowledged; psn: sent next; high: never sent yet; psn_new: first of the next WQE
 * to be started. Going back is always psn = una, and una always lies in the WQE sq->una.
 */
struct requester {
	uint32_t una;
	uint32_t psn;
	uint32_t high;
	uint32_t psn_new;
	uint32_t asked;     /* the last PSN sent with AckReq, or with a response */
	uint32_t wqe;       /* SQ index that psn lies in, or sq->next */
	uint32_t lost_psn;  /* una when READ responses were last found missing */
	uint32_t *rd_end;   /* ring: last response PSN of each outstanding READ/atomic; NULL: none may be sent */
	uint8_t rd_entries; /* of the ring: a power of two, at least max_rd_atomic */
	uint8_t rd_head;    /* free-running; [rd_tail, rd_head) are outstanding */
	uint8_t rd_tail;
	uint8_t retries;     /* left */
	uint8_t rnr_retries; /* left; 7: without end */
	bool lost_seen;      /* lost_psn is valid */
	bool rnr_wait;       /* the timer runs for an RNR NAK: nothing is sent */
	bool graced;         /* the timer fired late, and was set again */
	uint64_t rto_ns;     /* when the retransmission timer or the RNR wait ends; TIMER_NEVER: neither runs */
	uint64_t stalled_ns; /* of the first loss since una moved; 0: there was none */
	struct aimd cc;
};

struct responder {
	uint32_t epsn;
	uint32_t msn;
	uint16_t message; /* F_SEND or F_WRITE while inside one, else 0 */
	uint16_t unacked; /* packets since the last ACK */
	bool refuses;     /* requests, as this nic will be silent (transport->hold_ms) */
	bool refusal_due; /* ... and has not refused one yet */
	bool nak_sent;    /* a sequence or RNR NAK was sent; no other is sent until epsn arrives */
	bool ack_pending;
	bool nak_pending;
	uint8_t nak_syndrome;
	uint32_t nak_psn; /* NAK_AT_EPSN, or of the last answer: it differs where a READ response cannot be sent any
			     more, or it is an ACK */
	uint8_t fatal;    /* enum rx_verdict: the pending answer is this QP's last packet, for this; 0: it is not */
	uint8_t res_head; /* free-running; [res_emit, res_head) may have responses to send */
	uint8_t res_emit;
	uint8_t res_count; /* valid entries before res_head, at most max_dest_rd_atomic */
	uint32_t write_rkey;
	uint64_t write_va;
	uint64_t write_len; /* RETH's */
	uint64_t received;  /* payload bytes of the message so far */
	struct recv_wqe *rwqe;
	struct rd_resource *res; /* ring; NULL: none is accepted */
	uint8_t res_entries;     /* of the ring: a power of two, at least max_dest_rd_atomic */
};

/*
 * The requester and responder of QPs whose packets come in order or not at all: RC over RoCEv2, UC, UD.
 * An RC QP has it from when it is known to speak RoCEv2.
 */
struct gbn {
	struct requester req;
	struct responder rsp;
	struct congestion *congestion; /* NULL: none is configured, or none was needed yet */
};

struct qp;

/* The present PSNs of a connected QP. */
struct qp_psns {
	uint32_t rq_psn;         /* of the next request expected */
	uint32_t rq_early;       /* packets of later requests that have arrived */
	uint32_t sq_psn;         /* of the next send WQE's first packet */
	uint32_t una;            /* the oldest that is not acknowledged; sq_psn: none is outstanding */
	const struct pair *pair; /* of an engine with paths: those to the peer; else NULL */
	const uint8_t *peer_gid; /* the peer's address as the program knows it; NULL: it is the flow's */
};

/*
 * An engine: how a QP handles work and packets. Each type begins with one (qp_engine), and RC changes it when it
 * knows its peer. Members that may be NULL say so.
 */
struct qp_ops {
	enum opcode_service service; /* of the packets that it accepts */
	bool reliable;               /* requests are acknowledged */
	bool datagram;               /* it has no peer: each packet and each WQE has one of its own */
	bool multipath;              /* it can use more than one path to its peer */
	bool sends_only;             /* it has no receive queue, and no CQ for one */
	bool borrows; /* it has a domain: PD, CQ and receive queue are those of the SRQs that requests name (xrc.h) */

	/*
	 * INIT to RTR: the QP has the attributes that name its peer. Takes what the connection needs, and may choose
	 * another engine. 0, or -ENOMEM, and nothing was taken.
	 */
	int (*connect)(struct transport *, struct qp *, uint64_t now_ns);
	/* RTR to RTS: it has the attributes of a sender. */
	void (*start)(struct transport *, struct qp *, uint64_t now_ns);
	/* qp->flow has changed. NULL: the engine reads it each time. */
	void (*readdress)(struct transport *, struct qp *);
	/*
	 * Makes room for as many READs and atomics at a time, as requester and as responder; 0 or -ENOMEM. Called with
	 * or without a connection. NULL: room is made when they arrive.
	 */
	int (*fit)(struct transport *, struct qp *, uint32_t max_rd_atomic, uint32_t max_dest_rd_atomic);
	/*
	 * Forgets the connection, if there is one, and frees its memory. Receive WQEs of messages that were begun go
	 * back without completions.
	 */
	void (*reset)(struct transport *, struct qp *);

	const struct seal *seal; /* of its packets on a network; through memory they have seal_none */
	/* A packet for this QP, checked for length, ICRC, service, P_Key and source. */
	void (*input)(struct transport *, struct qp *, const struct rx *);
	/*
	 * Where the payload of a packet belongs that comes next, behind those of the row, which it joins: not known
	 * (NULL), or `input` writes all of it there in one piece, or drops the packet. Changes nothing. NULL: it is
	 * never known.
	 */
	uint8_t *(*place)(const struct transport *, const struct qp *, const struct rx *, struct rx_row *);
	/*
	 * Lays packets into transport->tx; true: there is more, call again. A QP that must still answer has
	 * then called qp_activate_to_answer().
	 */
	bool (*output)(struct transport *, struct qp *, uint64_t now_ns);
	/* qp->timer fired. */
	void (*expire)(struct transport *, struct qp *, uint64_t now_ns);
	/*
	 * On the way into ERR: forgets what is outstanding, flushes the receive WQEs of messages that were
	 * begun. NULL: there are none.
	 */
	void (*silence)(struct transport *, struct qp *, uint64_t now_ns);

	/*
	 * The nic will be silent for expected_ms, and perhaps for transport->hold_ms, or (0) goes on: the peer is to wait.
	 * True: something is about to be sent for that, or an answer is due, which transport->hold_awaited counts. NULL:
	 * nothing can be done.
	 */
	bool (*hold)(struct transport *, struct qp *, uint32_t expected_ms);
	/* Whether the peer would wait for HOLD_MS_MAX (wire/holdeth.h) if it was asked by `hold`. NULL: no. */
	bool (*peer_waits)(const struct qp *);

	/*
	 * Whether the peer would follow this end to another address; and that other address, of the same kind: 0 or
	 * -ENOMEM, and nothing has changed. transport->roam_number is the move's. NULL: it would not.
	 */
	bool (*may_roam)(const struct qp *);
	int (*roam)(struct transport *, struct qp *, const uint8_t to[16], uint64_t now_ns);
	/*
	 * A packet for this QP that is not from its peer's address, and otherwise as for `input`. False: it is no concern of
	 * the QP's. qp->flow may have changed. NULL: none is.
	 */
	bool (*strange)(struct transport *, struct qp *, const struct rx *);

	void (*query)(const struct qp *, struct qp_psns *);
	/*
	 * The congestion control of a path, and its kind; it may be built in *scratch. NULL: there is none on that
	 * path, or for that QP; the pointer may be NULL too.
	 */
	const struct cc *(*congestion)(const struct transport *, const struct qp *, uint32_t path, struct cc *scratch,
				       const struct cc_kind **);

	/*
	 * Its state of the QP as bytes (transport/archive.h), and, loading, the engine that has it. The engine with which
	 * a type begins has it; NULL: it cannot be saved.
	 */
	void (*archive)(struct archive *, struct transport *, struct qp *);

	/* Of an engine whose peer is at the other end of a stream; NULL: packets. Then connect and input are not
	 * called. */
	const struct stream_ops *stream;
};

struct stream_ops {
	/* INIT to RTS: what begins on the stream is FPDUs. 0 or -ENOMEM. */
	int (*start)(struct transport *, struct qp *, const struct stream_start *, uint64_t now_ns);
	/* A packet of the stream, but STREAM_OPEN. */
	void (*input)(struct transport *, struct qp *, const struct pkt *, uint64_t now_ns);
	/* See nic_stream_place(). */
	size_t (*place)(struct transport *, struct qp *, uint8_t **to);
	/* All that was posted so far is sent and answered; then the stream ends from this side. */
	void (*finish)(struct transport *, struct qp *, uint64_t now_ns);
	/* The peer has sent an FPDU. */
	bool (*is_heard)(const struct qp *);
	/* It has not for long: whoever waits for that waits no longer, and others say something without a meaning. */
	void (*urge)(struct transport *, struct qp *);
};

/* The engine of a QP of that type while it does not know its peer; NULL: the type is not supported. */
const struct qp_ops *qp_engine(enum qp_type);

/*
 * An idle QP takes this and, if it speaks veRoCE, struct veroce: the limit for both is 512 bytes
 * (veroce/connection.h), so no fact is stored twice. A receive queue of its own is counted with its ring, as an SRQ
 * takes its place where QPs are many. "Line" here means 64 bytes.
 */
struct qp {
	/* every packet */
	const struct qp_ops *ops;
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t mtu; /* path MTU, bytes */
	uint16_t pkey;
	_Atomic uint8_t state; /* enum qp_state; posters look at it */
	uint8_t type;          /* enum qp_type */
	struct mr_user user;
	union {
		struct cq *send_cq;
		struct xrcd *xrcd; /* of XRC_RECV, which sends nothing */
	};
	struct cq *recv_cq;
	struct gbn *gbn; /* NULL: an RC QP that speaks veRoCE, or does not know its peer yet */
	union {
		struct veroce *veroce; /* the state of veRoCE; NULL: the QP cannot speak it */
		struct iwarp *iwarp;   /* of an engine with streams: its state; NULL: it has no stream */
	};

	struct list active;    /* in transport->answering, active or paused, or in peer->held_up */
	struct qp *table_next; /* with the same lowest bits of its QPN */
	struct peer *peer;
	struct flow flow;

	struct sq sq;
	uint32_t failed_wqe; /* fails with status `failed` once everything before it is done */
	uint8_t failed;      /* enum wc_status; WC_SUCCESS: none */
	_Atomic bool in_flight;
	_Atomic bool rung; /* doorbell: an intrusive stack that posters push to */
	uint8_t ack_wait;  /* enum ack_wait: the list that `held` is in */
	/* The peer's packets have their ICRC XORed with it; 0: with nothing, as far as is known. */
	uint32_t secret;
	uint32_t rx_words; /* bytes of its packets that were accepted, in words of four as packets are; it wraps */
	struct qp *rung_next;

	struct timer timer;
	struct list held; /* in one of transport->acks */
	uint64_t ack_since_ns;
	uint64_t lot;    /* the last one with bytes of its requests; 0: there is none (mem/lend.h) */
	struct rq *rq;   /* where it takes receive WQEs from: its own, or the SRQ's */
	struct srq *srq; /* or NULL */

	/* What few packets need: attributes, events, the way to flush. */
	uint32_t qkey;
	uint32_t tx_words; /* as rx_words, of those laid out */
	uint32_t rq_psn;
	uint32_t sq_psn;

	struct event_source event; /* its owner is the QP's */
	struct qp_av {             /* members of the address vector that the flow lacks */
		uint16_t dlid;
		uint8_t sgid_index;
		uint8_t hop_limit;
		uint8_t port;
		uint8_t is_global;
		uint8_t static_rate;
		uint8_t src_path_bits;
		uint8_t traffic_class; /* the program's; the flow's may be ECT */
	} av;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t port;
	uint8_t groups; /* multicast groups that it is attached to */
	bool sq_sig_all;
	bool sq_draining : 1;
	bool sqd_notify : 1;
	bool comm_est : 1;
	bool muted : 1;     /* sends nothing of its send queue: it is about to be destroyed */
	bool hangs : 1;     /* its timer does nothing: nic_qp_hang() */
	bool last_turn : 1; /* it has one more turn although its peer is full */
	bool answering;     /* `active` is in transport->answering */
	bool locals_wait;   /* requests without packets may be executed and not complete */
	uint16_t access;    /* enum mr_access that the peer has */
};

/* The PD whose regions receive WQEs may name: the SRQ's, if there is one (IBTA 10.2.9). */
static inline const struct pd *qp_source_pd(const struct qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->user.pd;
}

static inline enum qp_state qp_get_state(const struct qp *qp)
{
	return (enum qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* The seal of a QP's packets, or without a QP of others; `near`: they go through memory. */
static inline const struct seal *qp_seal(const struct transport *tp, const struct qp *qp, bool near)
{
	if (near || tp->unsealed)
		return &seal_none;
	return qp ? qp->ops->seal : &seal_icrc;
}

/* Whether to accept a packet for that QP, or without a QP for others. Sets rx->ip_id, or counts an error. */
static inline bool qp_opens(struct transport *tp, struct qp *qp, struct rx *rx, bool near)
{
	const struct seal *s = qp_seal(tp, qp, near);

	return (s->is_icrc && icrc_diff(tp->tx.icrc, rx->pkt) == (qp ? qp->secret : 0)) || s->open(tp, qp, rx);
}

/* For how long a requester tries in vain before it fails, by its program's attributes; UINT64_MAX: for ever. */
static inline uint64_t qp_patience_ns(const struct qp *qp)
{
	return qp->timeout ? (qp->retry_cnt + 1ull) * (4096ull << qp->timeout) : UINT64_MAX;
}

/*
 * The same of its peer, whose attributes are taken to be its own. One that only answers has none: then they are those that
 * most programs set.
 */
static inline uint64_t qp_peer_patience_ns(const struct qp *qp)
{
	enum { USUAL_TIMEOUT = 14, USUAL_RETRIES = 7 };

	return qp_get_state(qp) == QPS_RTR ? (USUAL_RETRIES + 1) * (4096ull << USUAL_TIMEOUT) : qp_patience_ns(qp);
}

/* It has the attributes of a sender, and what it has begun to send goes on. */
static inline bool qp_can_send(const struct qp *qp)
{
	return qp_get_state(qp) == QPS_RTS || qp_get_state(qp) == QPS_SQD;
}

/* ---- qp_check.c: the life cycle (IBTA 10.3.1) ----------------------------------------------------- */

/*
 *     RESET --> INIT --> RTR --> RTS <--> SQD        RTS, SQD --> SQE --> RTS   (UC and UD)
 *                                                    any --> ERR, any --> RESET
 *
 *     RESET, INIT   nothing is in flight, no timer runs, no peer is known: RC has neither of its engines
 *     RTR           nothing of the send queue has begun; timers and acknowledgements are the responder's
 *     RTS           the send queue is served
 *     SQD           what has begun goes on; sq_draining until it is complete
 *     SQE           the send queue is flushed, as is what is posted to it; the receive queue is served
 *     ERR           both are flushed: nothing is in flight, no timer runs, no acknowledgement waits
 */

/* The one that moves. The move is one of the diagram, or stays. */
void qp_move(struct qp *, enum qp_state to);
/*
 * What does not hold of a QP between two events, of all that its state, and that of its connection, say; NULL: nothing.
 * O(1). qp_check() asserts that.
 */
const char *qp_fault(const struct transport *, const struct qp *);
void qp_check(const struct transport *, const struct qp *);
/* In a function that returns such a text. */
#define MUST(condition)                    \
	do {                               \
		if (!(condition))          \
			return #condition; \
	} while (0)
/* Called for each QP that an event was about: in the debug build alone. */
static inline void qp_checked(const struct transport *tp, const struct qp *qp)
{
#ifdef VERBENA_DEBUG
	qp_check(tp, qp);
#endif
}

extern const struct qp_ops rc_ops;
extern const struct qp_ops uc_ops;
extern const struct qp_ops ud_ops;

/* The QP has, or may have, something to send. */
void qp_activate(struct transport *, struct qp *);
/* All of a list that waits have. */
void qps_resume(struct transport *, struct list *waiting);
/* Takes it from whatever list it waits in for a turn of output. */
void qp_deactivate(struct transport *, struct qp *);
/*
 * The QP must answer. Where acknowledgements travel alone it goes before all QPs with data, and keeps its place
 * among those that answer.
 */
void qp_activate_to_answer(struct transport *, struct qp *);

/* Its data must not leave (nic_pause). */
static inline bool qp_is_paused(const struct transport *tp, const struct qp *qp)
{
	return tp->paused_sls >> qp->flow.sl & 1;
}

/* Acknowledgements find no train to end: they go before data. */
static inline bool acks_go_first(const struct transport *tp)
{
	return tp->config.train_max == 1;
}

/* ---- completion.c: completions in order, flushing, the way into the error states ---------- */

/* Completes the WQE sq->una and steps over it. byte_len is for READ and atomics. */
void complete_send(struct transport *, struct qp *, enum wc_status, uint64_t now_ns);
/*
 * Completes a receive WQE and gives it back. `cqe` holds what depends on the packet: status, opcode,
 * byte_len, imm_or_key, flags, src_qp, sl, solicited; the rest is filled in here.
 */
void complete_recv(struct transport *, struct qp *, struct recv_wqe *, struct cqe *cqe, uint64_t now_ns);
/* Nothing is in flight any more and nothing will be answered: no timer runs, no ACK waits. */
void qp_halt(struct transport *, struct qp *);
/* The WQEs [sq->una, ...) of a QP in SQD that had begun are done: raises the event. */
void qp_check_drained(struct transport *, struct qp *);
/* What its requests lent is the program's again. */
void qp_take_back(struct transport *, struct qp *);
/* To ERR: everything outstanding is flushed, in order. Harmless if the QP is already in ERR. */
void qp_to_error(struct transport *, struct qp *, uint64_t now_ns);
/* A send WQE failed locally on UC or UD: to SQE, the rest of the send queue is flushed. */
void qp_to_sqe(struct transport *, struct qp *, uint64_t now_ns);
/* Flushes what was posted to a QP in ERR or SQE since. */
void qp_flush(struct transport *, struct qp *, uint64_t now_ns);
void qp_raise(struct transport *, struct qp *, enum event_type);
/* A request arrived. The first one tells the program of a responder that the connection is made (IBTA 11.6.3). */
static inline void qp_note_established(struct transport *tp, struct qp *qp)
{
	if (qp->comm_est || qp_get_state(qp) != QPS_RTR)
		return;
	qp->comm_est = true;
	qp_raise(tp, qp, EVENT_COMM_EST);
}

/* The next receive WQE of the QP or its SRQ, or NULL. Raises the SRQ's limit event. */
struct recv_wqe *qp_take_recv(struct transport *, struct qp *);

/* Activates the QP now or later; never later than was said before. */
void ack_schedule(struct transport *, struct qp *, enum ack_wait, uint64_t now_ns);

/* ---- gbn.c: the part of struct qp_ops that RC over RoCEv2, UC and UD share --------------------- */

/* See struct qp_ops. Makes qp->gbn, with rings for what the attributes allow. */
int gbn_connect(struct transport *, struct qp *, uint64_t now_ns);
int gbn_fit(struct transport *, struct qp *, uint32_t max_rd_atomic, uint32_t max_dest_rd_atomic);
void gbn_reset(struct transport *, struct qp *);
void gbn_silence(struct transport *, struct qp *, uint64_t now_ns);
void gbn_query(const struct qp *, struct qp_psns *);

/* ---- requester.c, completer.c, responder.c -------------------------------------------------- */

/* Sends requests while there is room, window and budget. True: stopped for lack of room only. */
bool requester_output(struct transport *, struct qp *, uint64_t now_ns);
/* Starts again at the oldest unacknowledged PSN. */
void requester_go_back(struct qp *);
/* How long the local ACK timer runs. */
uint64_t requester_timer_ns(const struct qp *);
/* Sets the retransmission timer for what is in flight, or stops it when nothing is. */
void requester_rearm(struct transport *, struct qp *, uint64_t now_ns);
/* Sets the timer for whatever is due first. */
void requester_wake_by(struct transport *, struct qp *);
/* The attributes of RTR -> RTS are known: PSNs, retry counters, window. */
void requester_start(struct transport *, struct qp *, uint64_t now_ns);
void completer_input(struct transport *, struct qp *, const struct rx *);
/* A CNP arrived: its sender got a marked packet of ours. */
void completer_cnp(struct transport *, struct qp *, uint64_t now_ns);
void completer_expire(struct transport *, struct qp *, uint64_t now_ns);

/* A request of an RC or UC queue pair over RoCEv2. */
void responder_input(struct transport *, struct qp *, const struct rx *);
/* `hold` of struct qp_ops. */
bool responder_hold(struct transport *, struct qp *, uint32_t expected_ms);
/* Responses and NAKs; then, behind requests of the same turn, the ACK. True: call again. */
bool responder_output(struct transport *, struct qp *, uint64_t now_ns);
bool responder_output_ack(struct transport *, struct qp *);
/* Whether a NAK, or an ACK that does not wait for a packet to travel with, must be sent next. */
bool responder_has_answer(const struct qp *);

/* A WQE's elements, as src/mem reads them. */
static inline struct sge_list send_wqe_sges(const struct send_wqe *w)
{
	return (struct sge_list){(const struct sge *)w->sge, w->num_sge};
}

static inline struct sge_list recv_wqe_sges(const struct recv_wqe *w)
{
	return (struct sge_list){(const struct sge *)w->sge, w->num_sge};
}
