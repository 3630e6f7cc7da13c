/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the swarm share: swarm.c, and swarm_rings.c for hosts that rings are between. */
#pragma once

#include "duo/duo.h"

enum {
	PAIRS_MAX = 4,
	OPS_MAX = 120,
	MESSAGE_MAX = 16 * 1024,
	SOURCE_BYTES = 64 * 1024,
	TARGET_BYTES = 32 * 1024,
	WORDS = 4, /* behind the target's bytes, for atomics, and behind them for ATOMIC WRITEs alone */
	RESULT_SLOTS = 64,
	RECV_SLOTS = 16
};

struct op {
	enum wr_opcode opcode;
	bool signaled;
	uint8_t *result; /* the expected result of a READ or atomic; of a FLUSH the target as it was to be then */
	uint32_t result_len;
	uint64_t write_off; /* what changes the target: where */
	uint32_t write_len;
};

/* A message that takes a receive WQE. */
struct message {
	enum wr_opcode opcode;
	uint8_t *bytes;
	uint32_t len;
	uint32_t imm;
};

struct lane {
	struct duo_qp *from, *to;
	struct duo_buf *source, *results, *target, *inbox;
	uint8_t *model;        /* TARGET_BYTES, then twice WORDS */
	uint64_t words[WORDS]; /* that ATOMIC WRITEs had changed at the last look */
	struct op ops[OPS_MAX];
	uint32_t op_count; /* to be posted */
	uint32_t posted;
	uint32_t done; /* known to be complete */
	struct message messages[OPS_MAX];
	uint32_t message_count;
	uint32_t recv_posted;
	uint32_t recv_done;
	uint32_t last_signal;
	bool must_fence; /* the READ before read memory that later WRITEs change */
	bool send_failed;
	bool recv_failed;
	/* swarm_rings.c */
	uint8_t *frozen; /* what the target holds, which nobody may write to any more; or NULL */
	bool scribbles;  /* when all is flushed the program writes over what it sent */
};

struct swarm {
	struct duo *d;
	struct prng prng, hold_prng;
	int holder; /* who asks its peers to wait, now or next */
	bool holds;
	struct lane lanes[2 * PAIRS_MAX];
	uint32_t lane_count;
	bool dying; /* a QP was killed on purpose: completions are checked, memory is not */
	uint64_t useful_packets;
	uint32_t mtu;
	bool ring_lost[DUO_SIDES]; /* from that host, and the other one was not told yet */
};

static inline uint64_t below(struct swarm *s, uint64_t n)
{
	return prng_below(&s->prng, n);
}

static inline bool chance(struct swarm *s, uint32_t percent)
{
	return below(s, 100) < percent;
}

/* Posts one more operation; false when the queue is full or all are posted. */
bool swarm_post(struct swarm *, struct lane *);

/* ---- swarm_rings.c ---- */

/* What all seeds together have come to. */
struct rings_seen {
	uint64_t through, below, far, placed, unread, full;
};

enum { RINGS_SEEDS_MIN = 30 }; /* so many come to all of it */

/* Before pairs are connected. */
void rings_begin(struct swarm *);
/* Something happens to a ring, to a host, or to what packets left out. */
void rings_act(struct swarm *);
/* No ring is lost any more. */
void rings_calm(struct swarm *);
/* A QP fails, or a region of the lane is closed. */
void rings_kill(struct swarm *, struct lane *);
/* After completions were checked. */
void rings_check(struct swarm *);
uint64_t rings_packets(const struct swarm *);
/* Checks memory, and adds up. */
void rings_end(struct swarm *, struct rings_seen *);
/* False: something never happened, and stderr has what did. */
bool rings_saw_all(const struct rings_seen *, bool veroce);
