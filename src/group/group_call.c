/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A joiner's exchange with the members: who lives, which sockets they hold, and which they should also
 * hold. It only saves sockets and makes the slots of dead members usable again, so a member that does not
 * answer is skipped.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "group/group_join.h"

enum {
	SILENCE_MS_MAX = 500, /* for so long a processor may be taken away from those that have not answered yet */
	ANSWER_MS = 20,       /* a member that takes longer may be stopped */
	FETCH_MS_MAX = 500    /* time to fetch the sockets, from however many members */
};

static void hang_up(struct member *m)
{
	if (m->link >= 0)
		close(m->link);
	m->link = -1;
}

void join_hang_up(struct join *j)
{
	for (unsigned s = 0; s < GROUP_SLOTS; s++)
		hang_up(&j->members[s]);
}

static int say(int link, enum group_msg_type type)
{
	struct group_msg m = {.type = type};
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	return link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, NULL, 0);
}

static int call_everybody(struct join *j)
{
	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		struct member *m = &j->members[s];

		if (j->cfg->name_fd > 0 && s == j->cfg->as - 1)
			continue; /* ourselves */
		m->link = link_connect(&j->g->id, (int)s, &m->peer);
		switch (m->link) {
		case -ECONNREFUSED: m->state = NOBODY; break;
		case -EPERM: m->state = FOREIGN; break;
		case -EMFILE:
		case -ENFILE: return join_explain(j, m->link, "call the members");
		default:
			m->state = SILENT;
			if (m->link >= 0)
				say(m->link, GROUP_HELLO);
		}
		if (m->link < 0)
			m->link = -1;
	}
	return 0;
}

typedef bool heard_fn(struct join *, struct member *, const struct group_msg *);

/* Handles one answer. True: the member's answer is complete. */
static bool hear(struct join *j, struct member *m, heard_fn *heard)
{
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	int fds[GROUP_MSG_FDS_MAX];
	size_t fd_count = 0;
	struct group_msg msg;
	ssize_t len = link_recv(m->link, buf, sizeof(buf), fds, GROUP_MSG_FDS_MAX, &fd_count);
	enum group_msg_verdict verdict;

	if (len == -EAGAIN)
		return false;
	if (len > 0)
		link_close_all(fds, fd_count);
	verdict = len > 0 ? group_msg_decode(&msg, buf, (size_t)len) : GROUP_MSG_BAD;
	if (verdict == GROUP_MSG_OTHER_VERSION)
		m->state = OTHER;
	if (verdict != GROUP_MSG_OK || !heard(j, m, &msg))
		hang_up(m);
	return true;
}

/*
 * Waits until every member that has a link and is not stopped has answered, or until none has for SILENCE_MS_MAX. Each
 * answer goes to `heard`, which returns false to close the link.
 */
static void listen_to(struct join *j, heard_fn *heard)
{
	uint64_t heard_ms = clock_now_ms();
	bool done[GROUP_SLOTS] = {false};
	bool late = false;

	while (clock_now_ms() < heard_ms + SILENCE_MS_MAX) {
		struct pollfd p[GROUP_SLOTS];
		unsigned of[GROUP_SLOTS];
		nfds_t n = 0;

		for (unsigned s = 0; s < GROUP_SLOTS; s++) {
			if (j->members[s].link < 0 || done[s] || (late && link_is_stopped(j->members[s].peer.pid)))
				continue;
			of[n] = s;
			p[n++] = (struct pollfd){.fd = j->members[s].link, .events = POLLIN};
		}
		if (!n)
			return;
		late = poll(p, n, ANSWER_MS) == 0;
		if (!late)
			heard_ms = clock_now_ms();
		for (nfds_t i = 0; i < n && !late; i++)
			if (p[i].revents)
				done[of[i]] = hear(j, &j->members[of[i]], heard);
	}
}

static bool heard_info(struct join *j, struct member *m, const struct group_msg *msg)
{
	if (msg->type != GROUP_INFO || msg->slot != m - j->members || msg->held <= msg->slot)
		return false;
	m->state = ALIVE;
	m->held = msg->held;
	m->digest = msg->digest;
	if (!j->g->lane_count) {
		j->g->lane_count = msg->lane_count;
		memcpy(j->g->lanes, msg->lanes, sizeof(j->g->lanes));
	}
	return true;
}

int join_call(struct join *j)
{
	int err = call_everybody(j);

	if (err == 0)
		listen_to(j, heard_info);
	return err;
}

/* ---- taking ---- */

/*
 * The member to call next: one that was not called and holds other sockets than we do; among these the one that holds
 * most.
 */
static struct member *richest(struct join *j, const bool *asked)
{
	struct member *best = NULL;
	uint64_t ours = group_digest(j->g);

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		struct member *m = &j->members[s];
		bool like_another = m->digest == ours;

		for (unsigned i = 0; i < GROUP_SLOTS; i++)
			like_another |= asked[i] && j->members[i].state == ALIVE && j->members[i].digest == m->digest;
		if (m->state == ALIVE && m->link >= 0 && !asked[s] && !like_another && (!best || m->held > best->held))
			best = m;
	}
	return best;
}

static int fetch_from(struct join *j, struct member *m, uint64_t until)
{
	struct group *g = j->g;
	int err = say(m->link, GROUP_FETCH);

	while (err == 0) {
		struct pollfd p = {.fd = m->link, .events = POLLIN};
		uint64_t now = clock_now_ms();
		uint8_t buf[GROUP_MSG_HEADER_LEN];
		int fds[GROUP_MSG_FDS_MAX];
		size_t n = 0;
		struct group_msg msg;
		ssize_t len;

		if (now >= until)
			return -ETIMEDOUT;
		poll(&p, 1, (int)(until - now));
		len = link_recv(m->link, buf, sizeof(buf), fds, GROUP_MSG_FDS_MAX, &n);
		if (len == -EAGAIN)
			continue;
		if (len <= 0)
			return len ? (int)len : -ECONNRESET;
		if (group_msg_decode(&msg, buf, (size_t)len) != GROUP_MSG_OK || msg.type != GROUP_FDS ||
		    msg.lane_count != g->lane_count || n != group_msg_fds(&msg)) {
			link_close_all(fds, n);
			return -EPROTO;
		}
		if (!n)
			return 0;
		if (!group_hold(g, msg.lane, msg.first, msg.count, fds))
			return -EPROTO;
	}
	return err;
}

/* What members receive on goes where it belongs, wherever others believe it to be. */
static void put_in_place(struct join *j)
{
	struct group *g = j->g;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++) {
			int owner = group_owner(g, lane, i);

			/* Each exchange puts one in its place for good. */
			while (owner != GROUP_NOBODY && owner != (int)i && j->members[owner].state != NOBODY &&
			       group_owner(g, lane, (unsigned)owner) != owner) {
				group_swap(g, lane, i, (unsigned)owner);
				owner = group_owner(g, lane, i);
			}
		}
	}
}

int join_fetch(struct join *j)
{
	uint64_t until = clock_now_ms() + FETCH_MS_MAX;
	bool asked[GROUP_SLOTS] = {false};
	struct member *m;

	while ((m = richest(j, asked))) {
		/* One that is slow leaves time for another. */
		uint64_t now = clock_now_ms();
		int err = fetch_from(j, m, now < until ? now + (until - now) / 2 : until);

		asked[m - j->members] = true;
		if (err == -EMFILE || err == -ETOOMANYREFS)
			return join_explain(j, err, "take over sockets");
		if (err < 0) {
			m->state = SILENT;
			hang_up(m);
		}
	}
	join_take(j, until);
	put_in_place(j);
	j->digest = group_digest(j->g);
	return 0;
}

/* ---- giving ---- */

static bool is_fresh(const void *ctx, unsigned lane, unsigned at)
{
	const struct join *j = ctx;

	return j->fresh[lane][at];
}

static bool heard_ack(struct join *j, struct member *m, const struct group_msg *msg)
{
	return msg->type == GROUP_ACK;
}

/* A member that does not take them loses nothing, and neither do we. */
void join_give(struct join *j)
{
	uint64_t ours = group_digest(j->g);

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		struct member *m = &j->members[s];

		if (m->state != ALIVE || m->link < 0 || m->digest == ours ||
		    group_give(j->g, m->link, GROUP_ADOPT, m->digest == j->digest ? is_fresh : NULL, j) < 0)
			hang_up(m);
	}
	listen_to(j, heard_ack);
}
