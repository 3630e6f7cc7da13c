/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A place for a process that shares no port: a slot's name, and nothing that others depend on. So it needs no lock,
 * and no answer of a member.
 */
#include <errno.h>
#include <unistd.h>

#include "group/group.h"
#include "group/group_link.h"
#include "group/group_state.h"

static int take_slot(struct group *g)
{
	int fd = -EADDRINUSE;
	unsigned slot = 0;

	for (; slot < GROUP_SLOTS && fd == -EADDRINUSE; slot++)
		fd = link_reserve(&g->id, (int)slot);
	if (fd < 0)
		return fd == -EADDRINUSE ? -ENOSPC : fd;
	g->listener = fd;
	g->slot = slot - 1;
	return 0;
}

int group_open_portless(struct group **group, int stat_fd, struct io_counters *counters)
{
	uid_t uid = geteuid();
	struct group *g;
	int err;

	if (!link_uid_is_certain(uid))
		return -EPERM;
	g = group_new();
	if (!g)
		return -ENOMEM;
	g->id = (struct group_id){.uid = uid, .port = GROUP_PORT_NONE};
	g->stat_fd = stat_fd;
	g->counters = counters;
	err = take_slot(g);
	if (!err)
		err = group_publish(g);
	if (err) {
		group_close(g);
		return err;
	}
	*group = g;
	return 0;
}
