/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One congestion control for all paths of a queue pair (veRoCE 10, 11): `cc_scope` = qp. A pair that has one belongs to
 * one queue pair.
 *
 * Each path keeps a struct cc, whose calls lead here, so the code of paths knows no joint control and pays nothing for
 * it. The algorithm gets the events of all paths as if they were of one: bytes in the pair's count, marks as they come,
 * and once a round trip the mean of the paths' round trips. What it answers limits the pair: its window is the pair's,
 * and all paths keep one pace.
 *
 * Private to src/transport/paths.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/cc.h"
#include "transport/config.h"

struct pair;
struct archive;
struct pair_table;

struct joint {
	struct cc cc;
	uint64_t network_sum_ns;    /* of the round trips since the algorithm got one: the network's parts, */
	uint64_t back_sum_ns;       /* what of those were queues on the way back, */
	uint64_t hosts_sum_ns;      /* the hosts', */
	uint32_t samples;           /* and how many */
	uint64_t round_ns;          /* when it gets the next one */
	uint64_t queue_ns;          /* smoothed: how much longer round trips are than the shortest on their paths */
	uint16_t weight[PATHS_MAX]; /* of the paths: what each may hold of the window */
	uint64_t loss_end; /* end of the count of losses: when the pair's gone_bytes reach it; 0: none has begun */
	uint64_t lost_before[PATHS_MAX]; /* the paths' lost_bytes when the count began */
};

/* Makes pair->joint, and joins the paths of a pair that takes them; `config` is the control's. False: no memory. */
bool joint_begin(struct pair_table *, struct pair *, const struct cc_config *);
void joint_free(struct pair_table *, struct pair *);
/* Its state, and what it last answered to the paths (base/archive.h). */
void joint_archive(struct archive *, const struct pair_table *, struct pair *);
