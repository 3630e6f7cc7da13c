/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that librdmacm writes to /dev/infiniband/rdma_cm (linux/include/uapi/rdma/rdma_user_cm.h, version 4),
 * executed on the struct cm of each device. The interpreter reads and writes the memory that a command names, uses no descriptor and
 * does not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/cm.h"

enum { UCMA_ENDS_MAX = 8 };

/*
 * A device, and what a channel is there. A process may have several, whose cms give different numbers
 * (cm_config.cm_count). An id that is not bound yet, or to the wildcard, is on all of them, under one number; one that has
 * an address is on the device whose address that is.
 */
struct ucma_end {
	struct cm *cm;
	struct cm_channel *channel;
	uint64_t node_guid; /* in network order, as ibv_get_device_guid() returns it */
	uint32_t device_index;
};

/* The calls that the interpreter makes to the owner of the channels. */
struct ucma_host {
	/*
	 * If *src is unset or the wildcard, sets it to the local address from which this host reaches *dst; else checks
	 * that *src can be used for that. A wildcard *dst becomes this host's own address. 0 or a negative errno.
	 */
	int (*route)(void *ctx, struct cm_addr *src, struct cm_addr *dst);
	/*
	 * The channel of a descriptor, on each device. 0; -ENOENT: there is no such descriptor; -EINVAL: it is no channel
	 * of this process.
	 */
	int (*channel)(void *ctx, int fd, struct cm_channel *out[UCMA_ENDS_MAX]);
	/* As memcpy(), with memory that a command names. False: it is not there. NULL: memcpy(). */
	bool (*copy)(void *to, const void *from, size_t len);
	/*
	 * Takes the port of an id whose connections are streams (cm_id_listener() is not 0). alone: the port must be
	 * nobody else's at all. 0; -EADDRINUSE: it is somebody's; or another negative errno. NULL: no connection is a
	 * stream.
	 */
	int (*bind)(void *ctx, const struct cm_id *, bool alone);
	/* Listens for such an id. 0 or a negative errno. NULL: likewise. */
	int (*listen)(void *ctx, const struct cm_id *, int backlog);
	/* Makes the host a member of the group, for an id. 0 or a negative errno. NULL: there are no groups. */
	int (*join)(void *ctx, const struct cm_id *, const uint8_t gid[16], uint32_t ifindex);
	/* Memberships have ended: leaves the groups that no id needs any more (cm_hears()). NULL: there are no groups.
	 */
	void (*leave)(void *ctx);
	/* The program takes an event of this id. NULL: it need not be known. */
	void (*told)(void *ctx, const struct cm_event *, const struct cm_id_info *);
	/* The first port that this program may bind. NULL: all. */
	uint16_t (*first_port)(void *ctx);
	void *ctx;
	size_t *turn; /* the device whose event was taken last; NULL: there is one */
};

/*
 * Executes one write() to a channel, which has at least one end. Returns its length, or a negative errno as the kernel does. Only GET_EVENT returns
 * -EAGAIN: there is no event.
 */
ssize_t ucma_command(const struct ucma_host *, const struct ucma_end *, size_t count, const void *buf, size_t len,
		     uint64_t now_ns);
