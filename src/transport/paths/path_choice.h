/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path that a packet takes (veRoCE 9.1), of those whose window has room and whose pace lets it go.
 */
#ifndef TRANSPORT_PATHS_PATH_CHOICE_H
#define TRANSPORT_PATHS_PATH_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"

/*
 * A QP's place in spreading: a run of packets stays on one path, so that it can travel as a train. With
 * flowlet_gap_ns it stays there, and waits for that path's window and pace, until it has sent nothing for
 * so long; on most networks nothing is reordered then.
 */
struct flowlet {
	uint8_t path;
	uint16_t left;    /* packets; with a gap 0 only where there is no path yet */
	uint64_t sent_ns; /* the last packet, with a gap */
};

enum { PAIR_NO_PATH = -1 };

/*
 * The path for a packet of so many bytes, or PAIR_NO_PATH: no window has room. `again`: a copy of what
 * was lost on `avoid`; the fastest other path is taken.
 */
int pair_pick(struct pair *, const struct transport_config *, struct flowlet *, uint32_t bytes, bool again,
	      uint8_t avoid, uint64_t now_ns);

/*
 * After pair_pick() gave a path for a packet that is new: for how many such packets, that one included and
 * `max` at most, it would give the same one, as far as is known without looking at each; and they are taken
 * from the flowlet by pair_took() once it is known how many went.
 */
uint32_t pair_run(const struct pair *, const struct flowlet *, uint32_t path, uint32_t bytes, uint32_t max);
static inline void pair_took(const struct pair *p, struct flowlet *f, uint32_t count)
{
	if (p->path_count > 1)
		f->left = (uint16_t)(f->left - (count - 1)); /* one is what pair_pick() took */
}

/*
 * When the pace of a path whose window has room lets a packet go; CC_NO_DEADLINE: that is not what keeps
 * any. A path whose pace lets it go already was not taken for another reason, and no time will change that.
 */
uint64_t pair_paced_ns(const struct pair *, const struct transport_config *, uint32_t bytes, uint64_t now_ns);

/* A path that is up if any is, whatever its window; not `avoid` if there is another. */
int pair_pick_any(struct pair *, uint8_t avoid);

#endif
