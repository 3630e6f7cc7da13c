/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: how much may be in flight, and how fast. One control block serves one path
 * (or one QP). The caller reports what was sent, acknowledged, marked, measured and lost, and reads
 * three numbers after any call:
 *
 *     cwnd_bytes    a packet of b bytes may leave when inflight + b <= cwnd_bytes, or when nothing
 *                   is in flight
 *     rate_bps      ... and not before the packet ahead of it has had its time at this rate
 *     deadline_ns   when to call cc_on_timer
 *
 * and one flag, probe_wanted, that only rttcc sets. Algorithms that set a rate leave the window at
 * its widest unless their parameters say otherwise.
 *
 * A block owns nothing, allocates nothing and knows no clock: `now_ns` is the caller's, of any
 * origin, and must not go backwards. There is no floating point and no random number, so the same
 * calls give the same numbers on every machine. A block is plain memory: it may be copied, and
 * needs no freeing.
 *
 * docs/congestion-control.md says which parameters each algorithm has and how to add one.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/int_stack.h"
#include "cc/algorithms.h"

enum cc_algorithm {
#define CC_VALUE(value, name, kind) value,
	CC_ALGORITHM_ROWS(CC_VALUE)
#undef CC_VALUE
		CC_ALGORITHMS
};

/* Kinds of loss. There is one call for an event, not one for each lost packet. */
enum cc_loss {
	CC_LOSS_TRIM,      /* a switch cut off the payload: a queue was full */
	CC_LOSS_SACK_HOLE, /* the peer lacks a packet: congestion, reordering or a bad link */
	CC_LOSS_NAK,       /* a NAK for a PSN out of sequence */
	CC_LOSS_RTO,       /* a timeout: no acknowledgement came */
};

/* How a loss that is no timeout counts. A timeout always counts. */
enum cc_loss_policy {
	CC_LOSS_OWN,    /* the algorithm's own answer */
	CC_LOSS_IGNORE, /* likewise, but SACK holes are ignored: the link may be bad */
	CC_LOSS_CNP,    /* as a CNP, or as a half if the algorithm ignores CNPs */
	CC_LOSS_HALVE,  /* half of the window or rate, once a round trip */
	CC_LOSS_POLICIES
};

#define CC_UNPACED     UINT64_MAX
#define CC_NO_DEADLINE UINT64_MAX

/* The widest window there is; a larger cwnd_bytes_max means this (CC_NONE aside). */
#define CC_CWND_BYTES_LIMIT (UINT64_C(1) << 40)

/* Any values are accepted; where the bounds contradict each other the lower one wins. */
struct cc_config {
	uint64_t line_rate_bps;    /* 0: unknown; those that set a rate take 100 Gbit/s */
	uint64_t base_rtt_ns;      /* without any queue; 0: unknown, the least RTT seen counts */
	uint32_t mtu_bytes;        /* what one packet counts in the increase; 0: 1024 */
	uint64_t cwnd_bytes_start; /* 0: line rate x base RTT if both are known, else 10 MTU */
	uint64_t cwnd_bytes_min;   /* 0: 1 */
	uint64_t cwnd_bytes_max;   /* 0: CC_CWND_BYTES_LIMIT */
	uint64_t target_ns;        /* queueing allowed above the base RTT, and at hosts; 0: the algorithm's own */
	uint8_t target_rtt_part;   /* ... or 1/n of the base RTT, if that is more; 0: no part of it */
	bool loss_ignored;         /* SACK holes are not congestion, even if `params` says so */
	/*
	 * The parameters of the same algorithm (CC_NONE takes any); borrowed for the life of the
	 * blocks. NULL: the defaults.
	 */
	const struct cc_params *params;
};

struct cc_ack {
	uint64_t acked_bytes;   /* newly acknowledged by this ACK */
	uint32_t acked_packets; /* ... and how many packets these were */
	uint64_t ack_seq;       /* newest acknowledged, in a free-running count of this block's bytes */
	uint64_t snd_nxt;       /* next to be sent, same count */
	uint32_t ecn_packets;   /* of acked_packets, echoed as CE marked */
	uint64_t ecn_bytes;     /* of acked_bytes, likewise; 0 with ecn_packets > 0: not known */
	uint64_t rtt_ns;        /* of the newest packet; 0: none */
	uint64_t remote_ns;     /* part of rtt_ns: at the peer, from arrival to ACK */
	uint64_t local_ns;      /* part of rtt_ns: the ACK's wait here before it was read */
	uint64_t back_ns;       /* part of rtt_ns: queues that the ACK met on its way; 0: not known, or it counts */
	uint64_t peer_ns;       /* when the peer counted, by its own clock of any origin; 0: unknown */
	uint8_t hops;           /* switches passed; 0: unknown */
	/* The switches' telemetry of the newest packet; NULL: none. Lent for the call. */
	const struct int_stack *int_stack;
};

struct cc;

/* A NULL member: the algorithm ignores this event. */
struct cc_ops {
	void (*on_sent)(struct cc *, uint64_t now_ns, uint64_t seq, uint32_t bytes);
	void (*on_ack)(struct cc *, uint64_t now_ns, const struct cc_ack *);
	void (*on_cnp)(struct cc *, uint64_t now_ns);
	void (*on_probe)(struct cc *, uint64_t now_ns);
	void (*on_rtt)(struct cc *, uint64_t now_ns, uint64_t rtt_ns);
	void (*on_timer)(struct cc *, uint64_t now_ns);
	void (*on_loss)(struct cc *, uint64_t now_ns, enum cc_loss);
};

struct cc {
	const struct cc_ops *ops;
	uint64_t cwnd_bytes;  /* always between the configured bounds */
	uint64_t rate_bps;    /* > 0; CC_UNPACED (UINT64_MAX): not paced */
	uint64_t deadline_ns; /* of the armed timer; CC_NO_DEADLINE (UINT64_MAX): none */
	bool probe_wanted;    /* send an RTT probe, call cc_on_probe, and cc_on_rtt when answered */

	/* The algorithm's own from here on. */
	uint64_t cwnd_bytes_min;
	uint64_t cwnd_bytes_max;
	uint32_t mtu_bytes;
	uint8_t loss; /* enum cc_loss_policy */
	union {
#define CC_STATE(x) struct cc_##x x;
		CC_STATE_ROWS(CC_STATE)
#undef CC_STATE
		uint64_t other[16]; /* of an algorithm that has no row: cc_params.own */
	};
};

static_assert(sizeof(struct cc) <= 256, "a path is cheap");

/* What an algorithm needs beside acknowledgements and losses; the builder of the network provides
 * it. */
enum cc_needs {
	CC_NEEDS_INT = 1, /* an INT stack in acknowledgements: switches must stamp packets */
	/*
	 * Each acknowledgement must report marks (cc_ack.ecn_packets) in place of CNPs. (veRoCE does
	 * both. RoCEv2 receivers send CNPs unless rocev2_config.ce_echo is set, as a simulated host
	 * does.)
	 */
	CC_NEEDS_MARKS = 2,
	CC_NEEDS_ECN = 4 /* marks, in acknowledgements or as CNPs: it learns of queues by nothing else */
};

/* A block as an observer sees it. Names end in their unit, "alpha_ppb"; they are static; NULL:
 * there is no such value. */
struct archive;

struct cc_look {
	const char *signal_name, *target_name; /* the algorithm's signal, and its target */
	uint64_t signal, target;
};

struct cc_params;

/* Everything that the tree knows of an algorithm. */
struct cc_kind {
	/* Makes a block; the configuration is borrowed for the call, its params for the block's
	 * life. */
	void (*init)(struct cc *, const struct cc_config *, uint64_t now_ns);
	unsigned needs; /* enum cc_needs */
	/*
	 * The defaults of its struct x_params, which is a member of cc_params. NULL: it has no
	 * parameters.
	 */
	const void *params;
	size_t params_bytes;
	/* The least time between two CNPs that a receiver sends for a flow; NULL: 50 us. */
	uint64_t (*cnp_gap_ns)(const struct cc_params *);
	/* Fills in a zeroed cc_state; NULL: the algorithm has nothing to show. */
	void (*look)(const struct cc *, struct cc_look *);
	/*
	 * What has changed since init(), of its own (base/archive.h). NULL: nothing; of an algorithm that is no row, it
	 * cannot be saved.
	 */
	void (*archive)(struct archive *, struct cc *);
};

#define CC_KIND(value, name, kind) extern const struct cc_kind kind;
CC_ALGORITHM_ROWS(CC_KIND)
#undef CC_KIND

const struct cc_kind *cc_kind_of(enum cc_algorithm);

/* Borrows the configuration for the call. */
void cc_init(struct cc *, enum cc_algorithm, const struct cc_config *, uint64_t now_ns);
/* What has changed since then (base/archive.h); loading, of a block of the same configuration. -EOPNOTSUPP: see cc_kind. */
void cc_archive(struct archive *, struct cc *, enum cc_algorithm, const struct cc_params *);

/* "none", "swift", ...: as settings spell it. Static. */
const char *cc_name(enum cc_algorithm);

/* False, with the output untouched, for a name that is none of these. */
bool cc_by_name(const char *, enum cc_algorithm *);

/* Programs on real networks must refuse these algorithms: nothing there fills in an INT stack. */
static inline bool cc_needs_int(enum cc_algorithm algorithm)
{
	return cc_kind_of(algorithm)->needs & CC_NEEDS_INT;
}

static inline bool cc_needs_ecn(enum cc_algorithm algorithm)
{
	return cc_kind_of(algorithm)->needs & CC_NEEDS_ECN;
}

/* A packet's `bytes` bytes left, the first of them number `seq`; retransmissions are not reported. */
static inline void cc_on_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	if (c->ops->on_sent)
		c->ops->on_sent(c, now_ns, seq, bytes);
}

static inline void cc_on_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	if (c->ops->on_ack)
		c->ops->on_ack(c, now_ns, ack);
}

/* Whether acknowledgements matter to this block, that is, whether it has an algorithm. */
static inline bool cc_heeds_acks(const struct cc *c)
{
	return c->ops->on_ack || c->ops->on_loss || c->ops->on_rtt;
}

/* A CNP (IBTA A17.9.3) arrived. */
static inline void cc_on_cnp(struct cc *c, uint64_t now_ns)
{
	if (c->ops->on_cnp)
		c->ops->on_cnp(c, now_ns);
}

static inline bool cc_heeds_cnps(const struct cc *c)
{
	return c->ops->on_cnp;
}

/* The probe for which probe_wanted asked left. */
static inline void cc_on_probe(struct cc *c, uint64_t now_ns)
{
	if (c->ops->on_probe)
		c->ops->on_probe(c, now_ns);
}

/* The newest probe measured the round trip; rtt_ns > 0. */
static inline void cc_on_rtt(struct cc *c, uint64_t now_ns, uint64_t rtt_ns)
{
	if (c->ops->on_rtt)
		c->ops->on_rtt(c, now_ns, rtt_ns);
}

/* deadline_ns passed. A call too early is harmless. */
static inline void cc_on_timer(struct cc *c, uint64_t now_ns)
{
	if (c->ops->on_timer)
		c->ops->on_timer(c, now_ns);
}

static inline void cc_on_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	if (c->ops->on_loss)
		c->ops->on_loss(c, now_ns, loss);
}
