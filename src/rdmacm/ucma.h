/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that librdmacm writes to /dev/infiniband/rdma_cm (linux/include/uapi/rdma/rdma_user_cm.h, version 4),
 * interpreted on cm. Pure but for the memory that a command names: no descriptor is touched here, nothing waits.
 */
#ifndef RDMACM_UCMA_H
#define RDMACM_UCMA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/cm.h"

/* The calls that the interpreter makes to the owner of the channels. */
struct ucma_host {
	/*
	 * The local address by which this host reaches *dst, or, where *src has one already, whether it can be used.
	 * A wildcard or unset *src is filled in; a wildcard *dst becomes this host itself. 0 or a negative errno.
	 */
	int (*route)(void *ctx, struct cm_addr *src, struct cm_addr *dst);
	/* NULL: that descriptor is no channel of this process. */
	struct cm_channel *(*channel)(void *ctx, int fd);
	/* Where connections are streams (cm_id_listener() is not 0): listens for the id. 0 or a negative errno. NULL: never. */
	int (*listen)(void *ctx, const struct cm_id *, int backlog);
	/* The host hears the group from now on. 0 or a negative errno. NULL: there are no groups. */
	int (*join)(void *ctx, const uint8_t gid[16], uint32_t ifindex);
	/* Memberships have ended: groups that none needs any more (cm_hears()) are left. NULL likewise. */
	void (*leave)(void *ctx);
	/* The program takes an event of this id. NULL: it need not be known. */
	void (*told)(void *ctx, const struct cm_event *, const struct cm_id_info *);
	void *ctx;
	uint64_t node_guid; /* as ibv_get_device_guid() has it: in network order */
	uint32_t device_index;
	uint16_t port_first; /* ports below are for the privileged; 0: this program is */
};

/*
 * One write() to a channel: its length, or a negative errno as the kernel gives it. Only GET_EVENT returns -EAGAIN:
 * no event waits.
 */
ssize_t ucma_command(const struct ucma_host *, struct cm *, struct cm_channel *, const void *buf, size_t len,
		     uint64_t now_ns);

#endif
