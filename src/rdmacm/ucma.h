/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that librdmacm writes to /dev/infiniband/rdma_cm (linux/include/uapi/rdma/rdma_user_cm.h, version 4),
 * executed on a struct cm. The interpreter reads and writes the memory that a command names, uses no descriptor and
 * does not block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/cm.h"

/* The calls that the interpreter makes to the owner of the channels. */
struct ucma_host {
	/*
	 * If *src is unset or the wildcard, sets it to the local address from which this host reaches *dst; else checks
	 * that *src can be used for that. A wildcard *dst becomes this host's own address. 0 or a negative errno.
	 */
	int (*route)(void *ctx, struct cm_addr *src, struct cm_addr *dst);
	/* The channel of a descriptor. 0; -ENOENT: there is no such descriptor; -EINVAL: it is no channel of this
	 * process. */
	int (*channel)(void *ctx, int fd, struct cm_channel **out);
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
	/* Makes the host a member of the group. 0 or a negative errno. NULL: there are no groups. */
	int (*join)(void *ctx, const uint8_t gid[16], uint32_t ifindex);
	/* Memberships have ended: leaves the groups that no id needs any more (cm_hears()). NULL: there are no groups.
	 */
	void (*leave)(void *ctx);
	/* The program takes an event of this id. NULL: it need not be known. */
	void (*told)(void *ctx, const struct cm_event *, const struct cm_id_info *);
	/* The first port that this program may bind. NULL: all. */
	uint16_t (*first_port)(void *ctx);
	void *ctx;
	uint64_t node_guid; /* in network order, as ibv_get_device_guid() returns it */
	uint32_t device_index;
};

/*
 * Executes one write() to a channel. Returns its length, or a negative errno as the kernel does. Only GET_EVENT returns
 * -EAGAIN: there is no event.
 */
ssize_t ucma_command(const struct ucma_host *, struct cm *, struct cm_channel *, const void *buf, size_t len,
		     uint64_t now_ns);
