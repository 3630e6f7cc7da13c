/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses that a group receives at: its lanes, who else has them, and which ones are free.
 *
 * Private to src/group.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "group/group_join.h"
#include "io/udp/udp_socket.h"

/* The group that a process of a user is in, or would be. */
struct group_id group_id_of(const struct group_config *, uid_t);

/* What the sockets of a lane are bound to. */
socklen_t lane_address(const struct group_lane *, union udp_address *);
/* An address of this host at which they receive. */
socklen_t lane_destination(const struct group_lane *, union udp_address *);

/* The lanes of a group by our own settings alone; how many. */
uint8_t lanes_of(const struct group_config *, bool ipv6, struct group_lane lanes[GROUP_LANES_MAX]);

/* Puts a sentence into why: a socket of a lane cannot be bound. Returns the error that it amounts to. */
int join_explain_bind(struct join *, int err, const struct group_lane *);

/*
 * For the first member of a group. 0; -EADDRINUSE: another group has an address of ours, with the reason set; -EAGAIN,
 * likewise, if it may be a group whose sockets are about to be closed.
 */
int join_check_addresses(struct join *);
