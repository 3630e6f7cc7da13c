/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of a packet's path (veRoCE 9.1), among those whose window has room and whose pace allows it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"

/*
 * A QP's place in spreading: a run of packets stays on one path, so that it can travel as a train. With
 * flowlet_gap_ns it stays there, and waits for that path's window and pace, until it has sent nothing for
 * that long; most networks then reorder nothing.
 */
struct flowlet {
	uint8_t path;
	uint16_t left;      /* packets; with a gap it is 0 only before the first path is chosen */
	uint16_t train_max; /* packets that may leave as one train, even if fewer are left */
	uint16_t open;      /* packets of the train on `path` that another packet may join; pair_pick() is told */
	uint64_t sent_ns;   /* with a gap: when the last packet left */
};

enum { PAIR_NO_PATH = -1 };

/*
 * The path for a new packet of so many bytes, or PAIR_NO_PATH: no window has room. In this turn of output a packet has
 * left on the path `along` (PAIR_NO_PATH: none has), whose train or system call the new one can share. So the flowlet
 * ends, if it has no open train, and the next one prefers that path, unless another one is twice as good. It lasts for
 * this turn.
 */
int pair_pick(struct pair *, const struct transport_config *, struct flowlet *, uint32_t bytes, int along,
	      uint64_t now_ns);
/* The path for a copy of a packet that was lost on `avoid`: the fastest other one. */
int pair_pick_again(struct pair *, const struct transport_config *, uint32_t bytes, uint8_t avoid, uint64_t now_ns);

/*
 * After pair_pick() returned a path for a packet: how many such packets, this one included and `max` at most, may take
 * it too. Those that leave together are not parted, since a second datagram costs as much as many packets: as long as
 * the windows have room, a flowlet ends with a train. Only a path that nothing was heard of gets no more than a
 * flowlet. `bytes` is what pair_pick() was told, `len` what a packet really has. pair_took() takes the packets from the
 * flowlet once their number is known.
 */
uint32_t pair_run(const struct pair *, const struct flowlet *, uint32_t path, uint32_t bytes, uint32_t len,
		  uint32_t max);
static inline void pair_took(const struct pair *p, struct flowlet *f, uint32_t count)
{
	if (p->path_count > 1)
		f->left = (uint16_t)(f->left > count - 1 ? f->left - (count - 1) : 0); /* pair_pick() took one */
}

/*
 * When the pace of a path whose window has room allows a packet; CC_NO_DEADLINE: the pace holds no path
 * back. A path whose pace allows one already was rejected for another reason, which time will not change.
 */
uint64_t pair_paced_ns(const struct pair *, const struct transport_config *, uint32_t bytes, uint64_t now_ns);

/*
 * A path that is up if any is, whatever its window; not `avoid` if there is another, nor if packets were lost on it and
 * none has been acknowledged since.
 */
int pair_pick_any(struct pair *, uint8_t avoid);
