/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that want to know of each other's end. A connection hangs up when a process at one of its ends has ended,
 * however it ended, so one connection between two members tells both.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/net.h"
#include "io/uncancelled.h"

#include "group/group_link.h"
#include "group/group_state.h"

void group_unwatch(struct group *g)
{
	if (g->watch >= 0)
		close(g->watch);
	g->watch = -1;
	g->watch_ended = false;
}

int group_watch(struct group *g, unsigned slot)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = GROUP_WATCH_EVENT};
	struct group_msg m = {.type = GROUP_WATCH, .slot = (uint16_t)g->slot};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	struct link_peer peer;
	int link, err;

	group_unwatch(g);
	link = link_connect(&g->id, (int)slot, &peer);
	if (link < 0)
		return link;
	err = link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, NULL, 0);
	if (!err && epoll_ctl(g->epoll, EPOLL_CTL_ADD, link, &ev) < 0)
		err = -errno;
	if (err) {
		close(link);
		return err;
	}
	g->watch = link;
	g->watched_pid = peer.pid;
	return 0;
}

pid_t group_pid(const struct group *g, unsigned slot)
{
	struct link_peer peer = {0};
	int link = slot < GROUP_SLOTS ? link_connect(&g->id, (int)slot, &peer) : -EINVAL;

	if (link >= 0)
		close(link);
	return link >= 0 ? peer.pid : 0;
}

bool group_is_stopped(const struct group *g, unsigned slot)
{
	int state = cancel_off();
	bool stopped = link_is_stopped(group_pid(g, slot));

	cancel_restore(state);
	return stopped;
}

bool group_is_watching(const struct group *g)
{
	return g->watch >= 0 && !g->watch_ended;
}

bool group_watch_ended(const struct group *g)
{
	return g->watch_ended;
}

bool group_watched_is_stopped(const struct group *g)
{
	return g->watch >= 0 && link_is_stopped(g->watched_pid);
}

bool group_somebody_left(struct group *g)
{
	bool left = g->somebody_left;

	g->somebody_left = false;
	return left;
}

/* ---- whoever is left ------------------------------------------------------------------------------ */

static int connect_to(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	int fd;

	if (len > sizeof(a))
		return -1;
	memcpy(a.sun_path + 1, name, strlen(name));
	fd = fd_away(net_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return -1;
	if (!connect(fd, (struct sockaddr *)&a, len) && link_peer_of(fd).uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

void group_name_heir(struct group *g, const char *name)
{
	int state = cancel_off();

	if (g->heir < 0 && g->shared_fd >= 0) {
		g->heir = connect_to(name);
		if (g->heir >= 0)
			link_send(g->heir, "", 1, NULL, 0, &g->shared_fd, 1);
	}
	cancel_restore(state);
}

void group_leave_nothing(struct group *g)
{
	if (g->heir >= 0)
		link_send(g->heir, "", 1, NULL, 0, NULL, 0);
}
