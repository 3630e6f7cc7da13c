/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NIC: the one contract between the protocol core and its caller.
 *
 * Four calls move it: packets in, packets out, when to wake, wake. The rest creates and changes
 * objects. Nothing here does I/O, reads a clock or takes a lock. The caller lets one thread in at a
 * time; only calls marked "any thread" may run at the same time. Functions return 0 or a negative
 * errno unless they say otherwise, and change nothing when they fail.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/gid_map.h"
#include "base/loan.h"
#include "base/pkt.h"
#include "mem/mr.h"
#include "mem/mw.h"
#include "queue/cq.h"
#include "queue/event.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "transport/attr.h"
#include "transport/config.h"
#include "transport/counters.h"
#include "transport/srq.h"
#include "transport/stream.h"

struct nic;
struct qp;

enum {
	NIC_GIDS_MAX = 64,
	NIC_QPN_BITS = 17,                    /* QPNs of one nic: a slot number above, 2^17 numbers below */
	NIC_MAX_QP = (1 << NIC_QPN_BITS) - 2, /* slot 0 lacks QPNs 0 and 1; no slot has more */
	NIC_MAX_QP_WR = 32768,
	NIC_MAX_SGE = 32,
	NIC_MAX_INLINE = 1024,
	NIC_MAX_CQE = 1 << 22,
	NIC_MAX_CQ = 1 << 16,
	NIC_MAX_MR = 1 << 22,
	NIC_MAX_MW = 1 << 21,
	NIC_MAX_PD = 1 << 16,
	NIC_MAX_SRQ = 1 << 16,
	NIC_MAX_SRQ_WR = 32768,
	NIC_MAX_MCAST_GROUPS = 20, /* as Linux allows a socket (net.ipv4.igmp_max_memberships) */
	NIC_MAX_MCAST_QPS = 256,   /* attached to a group */
	NIC_MAX_AH = 1 << 24,      /* the nic knows none: memory is what bounds them */
	NIC_MCAST_QPN = 0xffffff,
	NIC_PKEYS_MAX = 8,
	NIC_MAX_RD_ATOM = 128, /* READs and atomics outstanding a QP, either direction; as in rxe */
	NIC_MTU_BYTES_MAX = 4096,
	NIC_TX_ANSWERS = 4,
	NIC_TX_ARENA_BYTES = 2 * PKT_TRAIN_BYTES_MAX + 4096
};

#define NIC_MSG_BYTES_MAX (1u << 31)
#define NIC_PKEY_DEFAULT  0xffffu

struct nic_gid {
	uint8_t raw[16];  /* all zero: no entry */
	uint32_t ifindex; /* of the interface that has the address */
	uint32_t ip_mtu;  /* of that interface, bytes */
};

struct nic_config {
	struct alloc alloc;
	uint8_t secret[16]; /* QPNs and keys are drawn with it; from the OS in the product, a seed in tests */
	uint32_t qpn_slot;  /* the high 7 bits of every QPN: 0 .. 126 */
	uint8_t qpn_bits;   /* room for 2^qpn_bits QPs, 1 .. NIC_QPN_BITS; 0: NIC_QPN_BITS */
	/*
	 * Packets are described and not carried, for networks that exist in numbers only: payload is
	 * not copied, regions have addresses but need no memory (and allow no atomics), the ICRC is
	 * neither computed nor checked. A packet given to such a nic holds its headers, and nothing is
	 * read behind them; its len counts everything. Any multiple of 4 from 64 is a path MTU.
	 */
	bool no_payload;
	/*
	 * NIC_TX_ARENA_BYTES, aligned to 64, for the packets of nic_output(); borrowed as long as the nic lives. Nics
	 * may share it if the packets that one lent are used up before another one is called. NULL: its own.
	 */
	uint8_t *tx_arena;
	const struct own *own; /* borrowed, or NULL: see struct mr_table */
	struct nic_gid gids[NIC_GIDS_MAX];
	uint32_t gid_count;
	const struct gid_map *gid_map; /* as for nic_set_gid_map() */
	/* The P_Key table, of which no two are equal in the low 15 bits, and none is 0 in them. 0 of them: NIC_PKEY_DEFAULT. */
	uint16_t pkeys[NIC_PKEYS_MAX];
	uint32_t pkey_count;
	struct transport_config transport;
};

/* Borrows the pointers in config that transport/config.h says. NULL when memory runs out. */
struct nic *nic_create(const struct nic_config *);
/* Destroys the objects that are left, too. */
void nic_destroy(struct nic *);

/* ---- the four calls ---------------------------------------------------------------------- */

/*
 * Takes packets in, in order; borrows them and their bytes. Returns how many were whole: the others were malformed, or
 * changed on their way, and are counted.
 */
size_t nic_input(struct nic *, const struct pkt *, size_t n, uint64_t now_ns);
/*
 * The next packets to send, at most `max`, in trains (see struct pkt); 0: none now. Lends the
 * packets' memory until the next call into the nic. Unless max is less than ten, data leave NIC_TX_ANSWERS of them to
 * acknowledgements.
 */
size_t nic_output(struct nic *, struct pkt *burst, size_t max, uint64_t now_ns);
/* Whether a doorbell has rung, or a QP waits for its turn in nic_output(), or a management datagram. ACKs that wait are
 * not counted. */
bool nic_has_output(const struct nic *);
/* When to call nic_expire(); UINT64_MAX: no timer runs. */
uint64_t nic_deadline(const struct nic *);
/* The same for a caller that can send nothing for now: output that waits is not due. */
uint64_t nic_timer_deadline(const struct nic *);
void nic_expire(struct nic *, uint64_t now_ns);

/*
 * Held: an ACK waits up to ack_delay_ns for a packet to travel with, for a caller that comes back
 * soon (a polling program). Not held, as at the start: the next nic_output() sends every ACK.
 */
void nic_hold_acks(struct nic *, bool hold);

/*
 * PFC has paused these service levels (one bit each, of the address vectors' sl), and no others. nic_output()
 * yields no requests with payload and no READ responses of their QPs, only ACKs, NAKs, CNPs and probes; and
 * nothing of UD QPs while any level is paused. 0, as at the start: none is paused.
 */
void nic_pause(struct nic *, uint16_t sls);

/* Any thread: work was posted to this QP. Comes before each later sequentially consistent load of the caller's. */
void nic_doorbell(struct nic *, struct qp *);
/* Likewise, of a caller that may call into the nic now: the next nic_output() serves the QP. */
void nic_posted(struct nic *, struct qp *);
/* Any thread: whether a doorbell has rung since the last nic_output() collected them. */
bool nic_has_doorbells(const struct nic *);
/* Any thread, a hint: whether the QP has unacknowledged requests, so that more progress will follow. */
bool qp_in_flight(const struct qp *);
/* Any thread, a hint: whether its packets go through memory. */
bool qp_goes_near(const struct qp *);
/*
 * How many bytes of the oldest incomplete request are acknowledged without a gap, in whole path MTUs; 0 if there
 * is none, and for READs and atomics.
 */
uint64_t nic_qp_progress(const struct qp *);
/*
 * The request packets that an RC QP has accepted: all before PSN `next`, and
 * `early` packets from there on.
 */
struct nic_received {
	uint32_t next, early;
};

struct nic_received nic_qp_received(const struct qp *);

/*
 * The state of a sending QP's congestion control, for observers. Over RoCEv2 it is the QP's own; over
 * veRoCE there is one for each path, which all QPs to the same address share.
 */
struct nic_congestion {
	uint64_t rate_bps; /* UINT64_MAX: not paced */
	uint64_t cwnd_bytes;
	/*
	 * The algorithm's input, and its target, as numbers whose units are in their names
	 * ("alpha_ppb", "rtt_ns", "target_bps"). Static; NULL: it has none.
	 */
	const char *signal_name, *target_name;
	uint64_t signal, target;
};

/* False, with *out untouched: the QP has no such path (they count from 0), or no peer. */
bool nic_qp_congestion(const struct nic *, const struct qp *, uint32_t path, struct nic_congestion *out);

/*
 * Where the payload of packets belongs that nic_input() gets next, so that it can be put there without a copy. far_at
 * and far_bytes say which bytes a packet lacks, all of its payload; a packet that lacks none has a spot of NULL.
 * Returns of how many, from the first on, that is known: what comes behind these stays in its packet, and may be asked
 * for once the nic has got them. A call that does not begin a row goes on with the packets behind the last call's, all
 * of which were known. The nic gets a row in order, before it gets or is told anything else; some may be lost.
 * Acknowledgements of veRoCE may be in a row, as nothing that was judged depends on one; no other packet without a spot
 * is known.
 */
size_t nic_place(struct nic *, const struct pkt *, size_t n, bool begins, uint8_t **spots);

/*
 * A process of this host, by its slot: the high bits of its QPNs. At the start none is near. Packets of connected QPs
 * to one that is near go through memory: they have no ICRC, and those that come from it (flow->neighbour) need none:
 * they are taken for the peer process's, and for no other's, because the caller knows which process wrote them. Packets
 * to one that `reads` may leave out bytes (struct pkt_far), if they are acknowledged; the loan by which these are lent
 * (base/loan.h) is borrowed until the nic is destroyed. Connected QPs send nothing to one that is full until it is not
 * any more; their timers run.
 */
enum { NIC_SLOTS = 128 };
struct nic_peer {
	bool near, reads, full;
	struct loan *loan;
};
void nic_set_peer(struct nic *, uint32_t slot, const struct nic_peer *);
/* The process ends: each QP that waits for a peer that is full has one more turn, in which its acknowledgements leave. */
void nic_take_last_turns(struct nic *);
/* Whether READ responses were left out that may still be read. */
bool nic_lends(struct nic *);

/* ---- reports ------------------------------------------------------------------------------ */

enum nic_way {
	NIC_WAY_NONE,    /* it has no peer, or not yet */
	NIC_WAY_PACKETS, /* of the back end below */
	NIC_WAY_MEMORY,  /* to a process of this host: nic_set_peer() */
	NIC_WAY_STREAM,
	NIC_WAY_EACH, /* each datagram has its own */
	NIC_WAYS
};

struct nic_qp_report {
	uint32_t qpn;
	uint32_t dest_qpn; /* 0: none */
	uint8_t peer[16];  /* its address; zero: none */
	uint8_t type;      /* enum qp_type */
	uint8_t state;     /* enum qp_state */
	uint8_t way;       /* enum nic_way */
	uint8_t reserved[5];
};

/* Whether a QP is connected from that address. */
bool nic_uses_gid(const struct nic *, const uint8_t gid[16]);

/* Writes reports of the first QPs, at most max, in an order of its own. Returns how many. */
size_t nic_report_qps(const struct nic *, struct nic_qp_report *, size_t max);
/* Changes whenever a report might. */
uint64_t nic_qp_changes(const struct nic *);

/* More of a QP, for who looks from time to time. */
struct nic_qp_look {
	struct nic_qp_report is;
	uint32_t rq_psn, sq_psn;     /* of the next request expected, and of the next to be sent */
	uint32_t in_flight;          /* packets */
	uint32_t rx_words, tx_words; /* bytes accepted and sent since it was made, in words of four; they wrap */
	uint32_t send_wqes;          /* posted and not complete */
	uint64_t window_bytes;       /* of its own; 0: its window is that of its paths, or there is none */
	uint8_t protocol;            /* enum nic_spoken */
	uint8_t paths;               /* 0: it has no peer */
	uint8_t reserved[6];
};

enum nic_spoken {
	NIC_SPEAKS_NOTHING,
	NIC_SPEAKS_ROCEV1,
	NIC_SPEAKS_ROCEV2,
	NIC_SPEAKS_VEROCE,
	NIC_SPEAKS_IWARP,
	NIC_SPOKEN
};

/*
 * Writes at most max looks, from where *at says on, 0 at first, and sets it to where to go on, 0 at the end. When all are
 * written by several calls, QPs that come or go between may be missing or there twice, others are there.
 */
size_t nic_look_qps(const struct nic *, uint32_t *at, struct nic_qp_look *out, size_t max);

/* A path to a peer's host, on which something was sent. */
struct nic_path_look {
	uint8_t src[16], dst[16];
	uint64_t srtt_ns, min_rtt_ns; /* 0: none measured */
	uint64_t cwnd_bytes;
	uint64_t rate_bps; /* UINT64_MAX: it is not paced */
	uint64_t in_flight_bytes;
	uint64_t sent_bytes, lost_bytes; /* since it was begun */
	uint32_t marks;                  /* packets that the peer got marked CE */
	uint32_t path;
	uint32_t down;
	uint32_t qps; /* that share it */
};

/* Writes those of the first pairs of hosts, at most max, in an order of its own. Returns how many. */
size_t nic_look_paths(struct nic *, struct nic_path_look *out, size_t max);

/* ---- management datagrams: QPN 1 --------------------------------------------------------- */

bool nic_has_mads(const struct nic *); /* some have arrived */
/*
 * Takes the next one that has arrived: writes *flow, by vGIDs if there is a map, and MAD_LEN bytes (wire/mad.h). False:
 * none waits.
 */
bool nic_mad_take(struct nic *, struct flow *, uint8_t *mad);
/*
 * Copies one to send it; of the flow, the addresses, interface, TOS, TTL and flow label count. False: too many wait,
 * memory is short, or the map lacks an end.
 */
__attribute__((cold)) bool nic_mad_send(struct nic *, const struct flow *, const uint8_t *mad);

/* ---- streams: of a nic whose protocol is PROTOCOL_IWARP ------------------------------------- */

/*
 * Such a nic has RC QPs alone, and no packets but those of streams. nic_output() yields them, with the stream's number
 * in flow->flow_label. The caller that set a stream up gives it to a QP and hands over what comes by it; the nic does
 * not look for the QP of a stream.
 */
struct qp *nic_qp_find(const struct nic *, uint32_t qpn); /* or NULL */
/*
 * INIT to RTS. -EINVAL: the QP is not in INIT, more READs than NIC_MAX_RD_ATOM, or no such nic; -ENOMEM.
 */
int nic_stream_start(struct nic *, struct qp *, const struct stream_start *, uint64_t now_ns);
/* The stream's number; 0: the QP has none. */
uint32_t nic_qp_stream(const struct qp *);
/* A packet of the QP's stream, as nic_input() takes one. */
void nic_stream_input(struct nic *, struct qp *, const struct pkt *, uint64_t now_ns);
/*
 * Where the next bytes of the QP's stream belong, if that is already certain: up to that many, from the returned *to
 * on, may be put there instead of into a packet. The packet that follows them says how many were (pkt.far_bytes), and
 * goes into the nic before any other call but this one for other QPs: a region may be closed by then. 0: they all come
 * in the packet.
 */
size_t nic_stream_place(struct nic *, struct qp *, uint8_t **to);
/* All that was posted so far is sent and answered; then the stream ends from this side. */
void nic_stream_finish(struct nic *, struct qp *, uint64_t now_ns);
/* Whether the peer has sent an FPDU. */
bool nic_stream_is_heard(const struct qp *);
/*
 * The peer has not sent any for long. A QP that was to hear its peer first sends what is posted; another one sends an
 * RDMA Write without bytes.
 */
void nic_stream_urge(struct nic *, struct qp *);
/* Counts QPs that ended their streams by themselves, or were destroyed or reset with one. */
uint64_t nic_streams_ended(const struct nic *);

/* ---- as bytes --------------------------------------------------------------------------------- */

/*
 * A nic between two calls, with all of its objects and all that is under way. The image has what the nic knows; what the
 * nic only borrows is outside of it. Regions keep their addresses, with which an image is worth as much trust as the
 * process that loads it. The owners of objects, and those of completions that nobody has polled, are a table: whoever
 * loads puts the pointers of its own in their places.
 */
struct nic_image {
	struct alloc alloc;
	uint8_t *bytes; /* `room` of them, of alloc */
	size_t size, room;
	void **owners; /* likewise */
	size_t owner_count, owner_room;
};

/*
 * All callers marked "any thread" are held off: pollers and posters. Changes nothing. 0, with *out to be freed; -EBUSY:
 * something is lent (nic_set_peer()); -EOPNOTSUPP: it has streams, or a congestion control that says nothing of this;
 * -ENOMEM.
 */
int nic_save(struct nic *, uint64_t now_ns, struct nic_image *out);
void nic_image_free(struct nic_image *);
/*
 * A nic that goes on where the other one was saved. The settings are those of that nic, but the secret, and paths and
 * their ports (nic_set_paths()); addresses are those that this host has now. Of peers it says whether memory takes
 * packets to them, but nothing is lent before nic_set_peer() is called. Times are differences from now_ns. A multiple of
 * 2^32 ns between the two clocks is best, as peers echo stamps of 32 bits; otherwise round trips that are being measured
 * are wrong. -EINVAL: it is no image of such a nic, or any part of it is not possible; -ENOMEM.
 */
int nic_load(const struct nic_config *, const struct nic_image *, uint64_t now_ns, struct nic **out);

enum nic_object { NIC_PD, NIC_XRCD, NIC_CQ, NIC_SRQ, NIC_QP, NIC_MR, NIC_MW, NIC_OBJECTS };
/* Writes the first objects of a kind, at most max, to out; in the same order in a nic that was saved and in the one that
 * is loaded. Returns how many. */
size_t nic_objects(const struct nic *, enum nic_object, void **out, size_t max);

/* ---- events ------------------------------------------------------------------------ */

/* The next CQ with an event that its program requested, or NULL. */
struct cq *nic_next_cq_event(struct nic *);
bool nic_next_async_event(struct nic *, struct async_event *);
/*
 * The slot (the high bits of the QPNs) of a process of this host that does not answer, once each time it is doubted;
 * -1: none. After nic_peer_gone() the QPs connected to it fail by their programs' timeout and retry_cnt. After
 * nic_peer_lives() those do that have waited for transport_config.patience_ns since it was last found not to have `ran`
 * since the report before.
 */
int nic_next_doubt(struct nic *);
void nic_peer_gone(struct nic *, uint32_t slot, uint64_t now_ns);
void nic_peer_lives(struct nic *, uint32_t slot, bool ran, uint64_t now_ns);
const struct nic_counters *nic_counters(const struct nic *);
/* The IPv4 identification, for capture files: a UDP socket hides it, but the ICRC reveals it. */
bool nic_ip_id(struct nic *, const struct pkt *, uint16_t *ip_id);

/* ---- a nic that will be silent for a while ------------------------------------------------------ */

enum { NIC_HOLD_MS_MAX = 10000 };

/*
 * After a few turns nobody will call the nic for a while. Peers that can are asked to wait until it goes on, but for
 * most_ms at most, which is 1 to NIC_HOLD_MS_MAX (veRoCE 13.4); those queue pairs send nothing else from now on. Next
 * requests over RoCEv2 are refused by RNR NAKs, after which the peer waits for 655 ms in any case, where twice expected_ms
 * is more than its retries take. Ends by nic_resume().
 */
void nic_hold(struct nic *, uint32_t most_ms, uint32_t expected_ms);
/* How many of them have not answered, or not been refused, since the last of these two calls. */
uint32_t nic_hold_awaits(const struct nic *);
void nic_resume(struct nic *);

/*
 * Whether the peers of all connected queue pairs with that address of ours would follow them to another one (veRoCE 13.5),
 * of a host with those GIDs; there, too, they must be on two hosts. If not, *qpn is one whose peer would not.
 */
bool nic_may_roam(const struct nic *, const uint8_t gid[16], const struct nic_gid *there, uint32_t there_count,
		  uint32_t *qpn);
/*
 * The address `from` is no more, and those queue pairs go on under `to`, which is of the same kind and in the GID table,
 * once their peers have followed. What they have in flight is sent again. Programs still see the addresses that they
 * connected to. Without memory a queue pair fails.
 */
void nic_roam(struct nic *, const uint8_t from[16], const uint8_t to[16], uint64_t now_ns);

struct nic_patience {
	uint64_t ns;
	uint32_t qpn;
	uint8_t protocol; /* enum nic_spoken */
};
/*
 * The connected queue pair, of none of the peers of this host, whose peer fails first if this nic is silent: its timeout
 * and its retries are taken to be this end's, or 14 and 7 where this end only answers, and the time by which nic_hold()
 * prolongs it counts where that is certain. False: none fails.
 */
bool nic_patience(const struct nic *, struct nic_patience *);

/* ---- faults on command ---------------------------------------------------------------------- */

/* The oldest request that is not complete completes with that status, as when it fails by itself. False: there is none. */
bool nic_qp_fail(struct nic *, struct qp *, enum wc_status, uint64_t now_ns);
/* To ERR, with EVENT_QP_FATAL. */
void nic_qp_break(struct nic *, struct qp *, uint64_t now_ns);
/* Every QP to ERR: what is posted is flushed. */
void nic_break_all(struct nic *, uint64_t now_ns);
/* The CQ of its send queue is overrun from now on (IBTA C11-39). False: it has none, or it was so. */
bool nic_qp_overflow(struct nic *, struct qp *);
/* It sends no requests, and none of its timers does anything. The caller keeps packets from it and of it. */
void nic_qp_hang(struct nic *, struct qp *, bool hang, uint64_t now_ns);
/* From now on trains have at most so many packets. */
void nic_set_train_max(struct nic *, uint16_t train_max);

/* ---- objects -------------------------------------------------------------------------------- */

/* 0, or -ENOMEM. */
int nic_pd_alloc(struct nic *, struct pd **out);
int nic_pd_free(struct nic *, struct pd *); /* -EBUSY while an object uses it */

/* See mr_create(). The nic owns the region until nic_mr_dereg(). */
int nic_mr_reg(struct nic *, struct pd *, struct mr_range, uint32_t access, struct mr **out);
/* See mr_create_nothing(). */
int nic_mr_reg_nothing(struct nic *, struct pd *, struct mr **out);
/*
 * As ibv_rereg_mr: NULL pd/addr or access -1 leave that attribute. The key stays valid for peers that know it,
 * unless it would open other bytes than before, or the same bytes at another address: then a new one is drawn. -EBUSY
 * while a window is bound to it; -EINVAL if one without bounds (enum mr_extent) would become another.
 */
int nic_mr_rereg(struct nic *, struct mr *, struct pd *pd, void *addr, uint64_t length, int64_t access);
int nic_mr_dereg(struct nic *, struct mr *); /* -EBUSY while a window is bound to it */
/* The region with that key, or NULL: there is none. */
struct mr *nic_mr_find(const struct nic *, uint32_t key);
/* Where [va, va + len) of it is, or NULL: not all of that is in it. */
uint8_t *nic_mr_reach(const struct nic *, const struct mr *, uint64_t va, uint64_t len);
/* Unbinds all windows from it. */
void nic_mr_unbind(struct nic *, struct mr *);

/* See mw_create(). The nic owns the window until nic_mw_free(), bound or not. */
int nic_mw_alloc(struct nic *, struct pd *, enum mw_type, struct mw **out);
void nic_mw_free(struct nic *, struct mw *);
/* An R_Key that nothing has: for the next binding of a window of type 1. */
uint32_t nic_mw_draw_key(struct nic *);

/* 0; -EINVAL: cqe is 0 or beyond NIC_MAX_CQE; -ENOMEM. `owner` is what its events name it by. */
int nic_cq_create(struct nic *, uint32_t cqe, void *owner, struct cq **out);
int nic_cq_resize(struct nic *, struct cq *, uint32_t cqe); /* hold the poller off too */
int nic_cq_destroy(struct nic *, struct cq *);              /* -EBUSY while a QP uses it */

/* -EINVAL: max_wr is 0, or a number is above the limits above, or `limit` above max_wr. */
int nic_srq_create(struct nic *, struct pd *, const struct srq_init *, struct srq **out);
/* Arms the limit event; fires at once if fewer WQEs than that are posted. -EINVAL above max_wr. */
int nic_srq_set_limit(struct nic *, struct srq *, uint32_t limit);
/*
 * See rq_resize(); hold the poster off too. `limit` is what nic_srq_set_limit() will be called with, or was. -EINVAL also
 * for 0, above the limit above, and below `limit`.
 */
int nic_srq_resize(struct nic *, struct srq *, uint32_t max_wr, uint32_t limit);
int nic_srq_destroy(struct nic *, struct srq *); /* -EBUSY while a QP uses it */

/* An XRC domain: -ENOMEM. Freeing: -EBUSY while a QP or an SRQ is in it. */
int nic_xrcd_alloc(struct nic *, struct xrcd **out);
int nic_xrcd_free(struct nic *, struct xrcd *);
/* The owner of the domain's XRC_RECV QP with that number, or NULL; and another owner for it. */
void *nic_xrc_qp_owner(const struct nic *, const struct xrcd *, uint32_t qpn);
void nic_qp_set_owner(struct qp *, void *owner);

/*
 * init->cap is checked against the limits above (-EINVAL) and rewritten with what was granted.
 * The QP starts in RESET.
 */
int nic_qp_create(struct nic *, struct qp_init *init, struct qp **out);
/*
 * Moves or changes a QP by the IB state table; the mask must hold every required and no forbidden attribute of the
 * transition. -EINVAL for a move, a mask, a value or an address that is not allowed; -ENETUNREACH for a peer that the map
 * lacks; -EOPNOTSUPP for an alternate path;
 * -ENOMEM without memory for a connection, or for more READs at a time. The pollers of both CQs must be held off when
 * the state becomes RESET.
 */
int nic_qp_modify(struct nic *, struct qp *, const struct qp_attr *, uint32_t mask, uint64_t now_ns);
/*
 * Whether this modify gives a QP its first use for more than one path: it connects to another host, over an engine
 * that can use several. Paths that nic_set_paths() adds before the modify are used.
 */
bool nic_qp_needs_paths(const struct nic *, const struct qp *, const struct qp_attr *, uint32_t mask);
/* More paths than in nic_config, for pairs of hosts that are connected from now on; host order. */
void nic_set_paths(struct nic *, uint32_t paths, const uint16_t *sport_ipv4, const uint16_t *sport_ipv6);
void nic_qp_query(const struct nic *, const struct qp *, struct qp_attr *, struct qp_init *);
/*
 * The READs and atomics that all connected QPs but that one hold resources for (the sum of max_dest_rd_atomic). It visits
 * every QP.
 */
uint32_t nic_rd_atomic_of_others(const struct nic *, const struct qp *);
/*
 * A muted QP sends nothing of its send queue, whatever is posted, but goes on answering. So a QP that is
 * about to be destroyed can send its last acknowledgements first, within one turn also to a peer that is full: nobody
 * could repeat them.
 */
void nic_qp_mute(struct nic *, struct qp *, bool mute);
/* Drops its completions from the CQs too: pollers of both must be held off. */
void nic_qp_destroy(struct nic *, struct qp *);

/*
 * A UD QP gets the packets to that multicast group, once (IBTA 11.3.1); how they come to this host is the caller's
 * business. -EINVAL: it is no UD QP or no multicast GID; -ENOMEM, too, beyond the limits above. A QP that is destroyed
 * is detached.
 */
int nic_mcast_attach(struct nic *, struct qp *, const uint8_t gid[16]);
int nic_mcast_detach(struct nic *, struct qp *, const uint8_t gid[16]); /* -EINVAL: it is not attached */
/* The groups that there are, and the QPs that are attached to that one, and to all of them together. */
struct nic_mcast_use {
	uint32_t groups, attached, total;
};

struct nic_mcast_use nic_mcast_use(const struct nic *, const uint8_t gid[16]);
/* Whether a QP is attached to the group. */
bool nic_mcast_has(const struct nic *, const uint8_t gid[16]);
/* The groups that QPs are attached to, counted from 0; false: no more. */
bool nic_mcast_group(const struct nic *, uint32_t n, uint8_t gid[16]);
/* How many groups a QP is attached to. */
uint32_t nic_qp_groups(const struct qp *);

/* The parts of a QP that posters need; any thread. */
struct sq *qp_sq(struct qp *);
struct rq *qp_rq(struct qp *); /* NULL with an SRQ */
uint32_t qp_number(const struct qp *);
enum qp_state qp_state(const struct qp *);

/*
 * Turns an address vector into a flow: -EINVAL for a bad port, GID index or a vector without GRH, -ENETUNREACH for a
 * dgid that the map lacks.
 * *ip_mtu gets the interface's MTU, or 65535 for an address of this host. A UD address handle is just this flow.
 */
int nic_resolve(const struct nic *, const struct ah_attr *, struct flow *out, uint32_t *ip_mtu);
/*
 * Another GID table, from now on. What was resolved before stays as it was: a QP whose source address has gone sends by
 * it, as an adapter does, and lives again when the address returns.
 */
void nic_set_gids(struct nic *, const struct nic_gid *, uint32_t count);
/*
 * From now on programs know addresses by other names, those of this map, which is borrowed; NULL: by none. The GID table is
 * given, and flows are reported, by the addresses of the wire, and nic_gid() answers names: an address without one is no
 * GID. Address vectors have names, as has what a receiver of datagrams finds before the payload; datagrams of senders
 * that the map lacks are dropped. Connected QPs and address handles keep the addresses that they have when the map
 * changes.
 */
void nic_set_gid_map(struct nic *, const struct gid_map *);
/* A flow of the wire by names; false: the map lacks an end. */
bool nic_show_flow(const struct nic *, struct flow *);
/* The GID table: -EINVAL outside it; an empty slot is all zero. */
int nic_gid(const struct nic *, uint32_t index, struct nic_gid *out);
uint32_t nic_gid_count(const struct nic *);
/* The P_Key at an index below nic_pkey_count(). Management datagrams have the first one. */
uint16_t nic_pkey(const struct nic *, uint32_t index);
uint32_t nic_pkey_count(const struct nic *);
/*
 * The port's active MTU: the largest that every interface but loopback can carry, as one port serves all of
 * them and programs take it for their path MTU; 4096 if there is only loopback.
 */
uint32_t nic_active_mtu(const struct nic *);
/*
 * The largest path MTU (256 .. 4096) whose packets fit an IP MTU, with the longest headers of either protocol over
 * IPv6; 256 if none fits.
 */
uint32_t nic_path_mtu(uint32_t ip_mtu);
