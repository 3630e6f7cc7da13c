/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which ports of a switch lie on a shortest path to a host; in a dragonfly, on one that crosses between groups once, as
 * long as there is one. Hosts behind the same switch are one
 * group, so a switch has an entry for each group, not for each host; the last hop is the host's own
 * port.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct network;

/* The ports of one entry are members[first .. first + count), by their numbers in the network. */
struct route {
	uint32_t first;
	uint32_t count;
};

struct route_table {
	uint32_t group_count, switch_count;
	uint32_t *group_of;     /* of each host */
	uint32_t *group_switch; /* which switch each group is at */
	struct route *routes;   /* [switch][group] */
	uint32_t *members;
	/* of each member: the sum of its route's rates up to this one; NULL: all are equal */
	uint64_t *weights;
	uint32_t member_count, member_size;
};

/*
 * Finds all routes over the links that are up. 0, -ENOMEM, or -ENETUNREACH when some host cannot
 * reach another one; the two are then named, and the routes that exist are right all the same. May
 * be called again.
 */
int route_build(struct network *, uint32_t unreachable[2]);
void route_fini(struct route_table *);
