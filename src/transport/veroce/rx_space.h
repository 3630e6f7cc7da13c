/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequencing at the receiver: which PSNs of one space have arrived (veRoCE 4.1, 12.1). A QP end has two:
 * requests of the peer (Q) and responses to its own READs and atomics (R).
 *
 *     epsn = aPSN + 1        all packets before it were received and handled
 *     [epsn, hpsn]           arrived, where its bit is set
 *
 * While packets arrive in order these two numbers are all the state. The window has two bitmaps and
 * records of some packets (56 bytes each, without payload: out-of-order R2). It comes from a
 * pool when the first packet is early, and goes back when none is.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bitring.h"
#include "base/pool.h"
#include "transport/config.h"
#include "wire/feth.h"
#include "wire/psn.h"

enum {
	RX_GROUP = 128, /* PSNs that one block of a SACK covers: n * 128 .. n * 128 + 127 */
	RX_GROUPS = 2 * RX_WINDOW_MAX / RX_GROUP
};

struct early_packet;

/*
 * The record of an early packet until its turn comes, if the packet ends a message or is kept whole
 * (early.h).
 */
struct rx_meta {
	uint8_t opcode;
	bool se;
	uint16_t payload_len;
	uint32_t msn;
	uint32_t po;
	struct early_packet *early; /* the whole packet, which the owner frees; then no other member is set */
	union {
		struct {
			uint32_t rqmsn;
			uint32_t imm_or_key;
		};
		struct {
			uint32_t rkey;
			uint32_t len;
			uint64_t va;
			uint64_t swap_add; /* of an ATOMIC WRITE: what is written */
			union {
				uint64_t compare;
				struct feth feth;
			};
		};
	};
};

struct rx_window {
	uint32_t size; /* PSNs, a power of two */
	struct bitring arrived;
	struct bitring last;            /* its meta is kept */
	struct rx_meta **meta;          /* blocks of 64, by PSN; NULL: none of the 64 is kept */
	uint64_t fresh[RX_GROUPS / 64]; /* groups with arrivals that no SACK has reported, by number modulo RX_GROUPS */
};

struct rx_space {
	uint32_t epsn;
	uint32_t hpsn; /* epsn - 1 when nothing is early */
	struct rx_window *window;
};

/* The verdict on a PSN; nothing has changed yet (out-of-order R3, R12). */
enum rx_place { RX_NEW, RX_OLD, RX_BEYOND };

/* Empty, at that PSN; and empty with its memory given back. */
void rx_space_init(struct rx_space *, uint32_t epsn);
void rx_space_drop(struct rx_space *, struct pool *);

static inline bool rx_has_holes(const struct rx_space *s)
{
	return s->window;
}

/* OOOD: how far the highest PSN is ahead of aPSN. */
static inline uint32_t rx_distance(const struct rx_space *s)
{
	return (s->hpsn + 1 - s->epsn) & PSN_MASK;
}

/* How many packets beyond epsn have arrived. Takes time in proportion to the window; for queries only. */
uint32_t rx_early(const struct rx_space *);

/* limit: PSNs from epsn on that may be recorded, at most RX_WINDOW_MAX. */
static inline enum rx_place rx_judge(const struct rx_space *s, uint32_t psn, uint32_t limit)
{
	uint32_t d = (psn - s->epsn) & PSN_MASK;

	if (d >= 1u << 23)
		return RX_OLD;
	if (d >= limit)
		return RX_BEYOND;
	if (s->window && d < s->window->size && bitring_test(&s->window->arrived, psn))
		return RX_OLD;
	return RX_NEW;
}

/*
 * Records an early packet, or the one at epsn when its message cannot be finished now. Copies *meta, if it is
 * not NULL. False: no memory, nothing is recorded. psn was judged RX_NEW.
 */
bool rx_record(struct rx_space *, struct pool *, uint32_t psn, const struct rx_meta *);

/* rx_step() where packets beyond epsn have arrived. */
void rx_step_window(struct rx_space *, struct pool *);
/*
 * The packet at epsn has been handled: steps over it, and gives the window back when nothing is
 * early any more. rx_epsn_arrived() returns whether the next one has arrived; *meta is its meta, or NULL
 * when none was kept; valid until the step.
 */
static inline void rx_step(struct rx_space *s, struct pool *pool)
{
	if (s->window) {
		rx_step_window(s, pool);
		return;
	}
	s->hpsn = s->epsn;
	s->epsn = psn_add(s->epsn, 1);
}
/* The record of the packet at epsn was wrong: the packet has not arrived yet. */
void rx_forget(struct rx_space *, struct pool *);
bool rx_epsn_arrived(const struct rx_space *, const struct rx_meta **meta);
/* The meta that is kept of a PSN in [epsn, hpsn], or NULL; valid until the next record or step. */
struct rx_meta *rx_meta_at(const struct rx_space *, uint32_t psn);

/*
 * Bits of arrived PSNs from `from` on, at most 128, bit 0 first; those above hpsn are 0. For SACKs.
 */
void rx_arrived128(const struct rx_space *, uint32_t from, uint64_t bits[2]);
/*
 * Finds the first group from that of PSN `from` to that of hpsn with arrivals that were not reported yet, and marks
 * it as reported. *psn is its first PSN. False: there is none.
 */
bool rx_take_fresh(struct rx_space *, uint32_t from, uint32_t *psn);
