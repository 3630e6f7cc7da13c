/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of a tool, which is not a member: the live members and their counters. Asks them one
 * after another. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "group/group.h"
#include "group/group_link.h"
#include "group/group_msg.h"
#include "io/clock.h"

static void await_answer(int link, uint64_t until, struct group_member *m)
{
	uint64_t now = clock_now_ms();
	struct pollfd p = {.fd = link, .events = POLLIN};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	int fds[1];
	size_t n = 0;
	struct group_msg msg;
	ssize_t len;

	if (poll(&p, 1, now < until ? (int)(until - now) : 0) <= 0)
		return;
	len = link_recv(link, buf, sizeof(buf), fds, 1, &n);
	if (len <= 0)
		return;
	if (group_msg_decode(&msg, buf, (size_t)len) != GROUP_MSG_OK || msg.type != GROUP_STAT_FD) {
		link_close_all(fds, n);
		return;
	}
	m->answered = true;
	if (n)
		m->stat_fd = fds[0];
}

static int ask(const struct group_id *id, int slot, struct group_member *m)
{
	struct group_msg msg = {.type = GROUP_STAT};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	struct link_peer peer = {0};
	int link = link_connect(id, slot, &peer);

	if (link < 0)
		return link;
	*m = (struct group_member){.slot = (unsigned)slot, .pid = peer.pid, .stat_fd = -1};
	link_send(link, buf, group_msg_encode(buf, &msg), NULL, 0, NULL, 0);
	return link;
}

ssize_t group_query(const struct group_id *id, int slot, unsigned wait_ms, struct group_member *members, size_t max)
{
	uint64_t until = clock_now_ms() + wait_ms;
	int links[GROUP_SLOTS];
	int first = slot == GROUP_ALL_SLOTS ? 0 : slot;
	int last = slot == GROUP_ALL_SLOTS ? GROUP_SLOTS - 1 : slot;
	size_t n = 0;
	int err = 0;

	if (first < 0 || last >= GROUP_SLOTS)
		return -EINVAL;
	if (!link_uid_is_certain(id->uid))
		return 0;
	for (int s = first; s <= last && n < max; s++) {
		int link = ask(id, s, &members[n]);

		if (link >= 0)
			links[n++] = link;
		else if (link == -EMFILE || link == -ENFILE)
			err = link;
	}
	for (size_t i = 0; i < n; i++) {
		await_answer(links[i], until, &members[i]);
		close(links[i]);
	}
	return n || !err ? (ssize_t)n : err;
}

/* The answer of the process at the other end, as text. 0 or a negative errno. */
static int await_text(int link, unsigned wait_ms, char *said, size_t said_bytes)
{
	struct pollfd p = {.fd = link, .events = POLLIN};
	uint8_t buf[GROUP_MSG_HEADER_LEN + GROUP_MSG_TEXT_MAX];
	struct group_msg msg;
	size_t fds = 0;
	ssize_t len;

	if (poll(&p, 1, (int)wait_ms) <= 0)
		return -ETIMEDOUT;
	len = link_recv(link, buf, sizeof(buf), NULL, 0, &fds);
	/* A process of an older version hangs up. */
	if (len <= 0 || group_msg_decode(&msg, buf, (size_t)len) != GROUP_MSG_OK || msg.type != GROUP_FAULTED)
		return -EPROTO;
	snprintf(said, said_bytes, "%.*s", (int)msg.data_len, (const char *)msg.data);
	return 0;
}

/* A connection to the very process, or a negative errno. */
static int connect_to(const struct group_id *id, const struct group_member *m)
{
	struct link_peer peer = {0};
	int link = link_connect(id, (int)m->slot, &peer);

	if (link < 0)
		return link == -ECONNREFUSED ? -ESRCH : link;
	if (peer.pid == m->pid && peer.uid == id->uid)
		return link;
	close(link);
	return -ESRCH;
}

int group_command(const struct group_id *id, const struct group_member *m, const struct group_command *c, char *said,
		  size_t said_bytes)
{
	static const enum group_msg_type types[] = {[GROUP_COMMAND_FAULT] = GROUP_FAULT,
						    [GROUP_COMMAND_FREEZE] = GROUP_FREEZE,
						    [GROUP_COMMAND_MOVE] = GROUP_MOVE};
	struct group_msg msg = {.type = types[c->kind]};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	size_t len = strlen(c->text);
	int rc, link;

	if (len > GROUP_MSG_TEXT_MAX)
		return -EMSGSIZE;
	link = connect_to(id, m);
	if (link < 0)
		return link;
	rc = link_send(link, buf, group_msg_encode(buf, &msg), c->text, len, &c->fd, group_msg_fds(&msg));
	if (!rc)
		rc = await_text(link, c->wait_ms, said, said_bytes);
	if (!rc && c->stays)
		return link;
	close(link);
	return rc;
}

static int await_look(int link, unsigned wait_ms)
{
	struct pollfd p = {.fd = link, .events = POLLIN};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	struct group_msg msg;
	size_t n = 0;
	ssize_t len;
	int fd;

	if (poll(&p, 1, (int)wait_ms) <= 0)
		return -ETIMEDOUT;
	len = link_recv(link, buf, sizeof(buf), &fd, 1, &n);
	if (len > 0 && group_msg_decode(&msg, buf, (size_t)len) == GROUP_MSG_OK && msg.type == GROUP_QPS_FD)
		return n ? fd : -EAGAIN;
	if (len > 0)
		link_close_all(&fd, n);
	return -EPROTO;
}

int group_look(const struct group_id *id, const struct group_member *m, uint64_t from, unsigned wait_ms)
{
	struct group_msg msg = {.type = GROUP_QPS, .digest = from};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	int link = connect_to(id, m), rc;

	if (link < 0)
		return link;
	rc = link_send(link, buf, group_msg_encode(buf, &msg), NULL, 0, NULL, 0);
	if (!rc)
		rc = await_look(link, wait_ms);
	close(link);
	return rc;
}

/* The group that a line of /proc/net/unix has a name of. */
static bool id_read(struct group_id *id, const char *line, uint16_t port)
{
	const char *name = strstr(line, "@verbena.");
	unsigned uid, p, slot;
	uint64_t addresses = 0;

	if (!name ||
	    (sscanf(name, "@verbena.%u.%u.%u", &uid, &p, &slot) != 3 &&
	     sscanf(name, "@verbena.%u.%u@%" SCNx64 ".%u", &uid, &p, &addresses, &slot) != 4) ||
	    p != port)
		return false;
	*id = (struct group_id){.uid = uid, .port = port, .addresses = addresses};
	return true;
}

size_t group_list(uid_t uid, uint16_t port, struct group_id *ids, size_t max)
{
	FILE *f = fopen("/proc/net/unix", "re");
	struct group_id id;
	char line[512];
	size_t n = 1;

	ids[0] = (struct group_id){.uid = uid, .port = port};
	while (f && n < max && fgets(line, sizeof(line), f)) {
		size_t i = 0;

		if (!id_read(&id, line, port))
			continue;
		while (i < n && (ids[i].uid != id.uid || ids[i].addresses != id.addresses))
			i++;
		if (i == n)
			ids[n++] = id;
	}
	if (f)
		fclose(f);
	return n;
}
