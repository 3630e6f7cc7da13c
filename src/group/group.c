/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member while it lives: it answers joiners and tools, and forwards packets and takes forwarded
 * ones. group_join.c makes a process a member.
 *
 * All descriptors that can wake us are in one epoll instance; the engine waits on that instance's
 * descriptor.
 */
#include "group/group.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group/group_link.h"
#include "group/group_state.h"
#include "group/group_steer.h"
#include "io/fd_away.h"
#include "io/udp/udp.h"
#include "io/uncancelled.h"
#include "space/space.h"

enum {
	EVENTS_MAX = 16,        /* of one group_service */
	MESSAGES_MAX = 16,      /* of one client in one group_service */
	LISTENER_EVENT = 0xffff /* other events carry the client's index */
};

/* ---- life ---- */

struct group *group_new(void)
{
	struct group *g = space_get(sizeof(*g));

	if (!g)
		return NULL;
	g->command_of = g->command_fd = g->asker = g->looker = -1;
	g->epoll = g->listener = g->spare = g->stat_fd = g->shared_fd = g->watch = g->heir = -1;
	memset(g->clients, 0xff, sizeof(g->clients));
	memset(g->peers, 0xff, sizeof(g->peers));
	group_rings_init(g);
	group_socks_init(g);
	return g;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void group_reset(struct group *g)
{
	/* The name goes last: as long as others can find it, nobody adopts our slot. */
	group_socks_close(g);
	for (unsigned i = 0; i < GROUP_CLIENTS_MAX; i++)
		close_fd(&g->clients[i]);
	for (unsigned i = 0; i < GROUP_SLOTS; i++)
		close_fd(&g->peers[i]);
	group_unwatch(g);
	close_fd(&g->heir);
	close_fd(&g->command_fd);
	group_rings_close(g);
	group_shared_close(g);
	close_fd(&g->epoll);
	close_fd(&g->spare);
	close_fd(&g->listener);
	g->slot = 0;
	g->lane_count = 0;
	g->requests_slot = 0;
	g->head = g->lent = g->count = 0;
}

void group_close(struct group *g)
{
	group_reset(g);
	space_put(g, sizeof(*g));
}

void group_child_after_fork(struct group *g)
{
	/* close() removes nothing from an epoll instance that the parent still has. */
	group_close(g);
}

unsigned group_slot(const struct group *g)
{
	return g->slot;
}

size_t group_rx_fds(const struct group *g, int *fds, size_t max)
{
	size_t n = 0;

	for (; n < g->lane_count && n < max; n++)
		fds[n] = g->socks[n][g->slot].fd;
	return n;
}

bool group_has_ipv6(const struct group *g)
{
	for (unsigned i = 0; i < g->lane_count; i++)
		if (g->lanes[i].family == UDP_V6)
			return true;
	return false;
}

int group_fd(const struct group *g)
{
	return g->epoll;
}

int group_publish(struct group *g)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER_EVENT};

	g->epoll = fd_away(epoll_create1(EPOLL_CLOEXEC));
	if (g->epoll < 0)
		return -errno;
	if (g->listener < 0)
		return 0;
	g->spare = fd_away(fcntl(g->listener, F_DUPFD_CLOEXEC, 0));
	if (g->spare < 0 || epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->listener, &ev) < 0)
		return -errno;
	return link_publish(g->listener);
}

/* ---- answering ---- */

static void forget_command(struct group *g)
{
	g->command_of = -1;
	g->command_kind = GROUP_COMMAND_NONE;
	close_fd(&g->command_fd);
}

void group_drop_client(struct group *g, unsigned i)
{
	g->gives[i] = false;
	g->somebody_left |= g->watches[i];
	if (g->command_of == (int)i)
		forget_command(g);
	if (g->asker == (int)i)
		g->asker = -1;
	if (g->looker == (int)i)
		g->looker = -1;
	g->watches[i] = false;
	group_ring_dropped(g, i);
	close_fd(&g->clients[i]);
}

static int reply(struct group *g, int link, enum group_msg_type type, const int *fds, size_t n)
{
	struct group_msg m = {.type = type,
			      .slot = (uint16_t)g->slot,
			      .held = (uint16_t)group_held(g),
			      .digest = group_digest(g),
			      .lane_count = g->lane_count};
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	memcpy(m.lanes, g->lanes, sizeof(m.lanes));
	return link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, fds, n);
}

static void take_forwarded(struct group *g, const struct group_msg *m)
{
	struct pkt p = {.data = (uint8_t *)m->data, .len = m->data_len};
	struct forwarded *f = &g->ring[(g->head + g->count) % GROUP_FORWARDED_MAX];

	assert(g->count < GROUP_FORWARDED_MAX);
	/* A packet that is not ours is not passed on a second time: it would circulate. */
	if (group_slot_of(&p) != g->slot && group_slot_of(&p) != GROUP_ANY_SLOT) {
		g->counters->forward_dropped++;
		return;
	}
	f->flow = m->flow;
	f->hops = m->first + 1u;
	f->len = m->data_len;
	memcpy(f->data, m->data, m->data_len);
	g->count++;
	g->counters->forward_received++;
}

static bool same_lanes(const struct group *g, const struct group_msg *m)
{
	if (m->lane_count != g->lane_count)
		return false;
	for (unsigned i = 0; i < g->lane_count; i++)
		if (m->lanes[i].family != g->lanes[i].family || m->lanes[i].port != g->lanes[i].port)
			return false;
	return true;
}

/*
 * Only a joiner may give sockets, and a joiner has the lock; so no other process of the user can,
 * by mistake or otherwise.
 */
static bool has_lock(const struct group *g, struct link_peer who)
{
	for (unsigned level = 0; level < LINK_LOCKS; level++) {
		struct link_peer holder;
		int fd = link_connect(&g->id, LINK_LOCK - (int)level, &holder);

		if (fd >= 0)
			close(fd);
		if (fd >= 0 && holder.pid == who.pid)
			return true;
	}
	return false;
}

/* Takes fds. */
static int adopt(struct group *g, unsigned client, const struct group_msg *m, const int *fds)
{
	int link = g->clients[client];

	if (!g->gives[client])
		g->gives[client] = has_lock(g, link_peer_of(link));
	if (!g->gives[client] || !same_lanes(g, m)) {
		link_close_all(fds, m->count);
		return -EPERM;
	}
	if (m->count)
		return group_hold(g, m->lane, m->first, m->count, fds) ? 0 : -EPROTO;
	g->gives[client] = false;
	return reply(g, link, GROUP_ACK, NULL, 0);
}

static void say(const struct group *g, unsigned client, const char *sentence)
{
	struct group_msg m = {.type = GROUP_FAULTED, .slot = (uint16_t)g->slot};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	size_t len = strnlen(sentence, GROUP_MSG_TEXT_MAX);

	link_send(g->clients[client], buf, group_msg_encode(buf, &m), sentence, len, NULL, 0);
}

/* One at a time. Takes fds. */
static int take_command(struct group *g, unsigned client, const struct group_msg *m, const int *fds, size_t n)
{
	static const enum group_command_kind kinds[] = {[GROUP_FAULT] = GROUP_COMMAND_FAULT,
							[GROUP_FREEZE] = GROUP_COMMAND_FREEZE,
							[GROUP_MOVE] = GROUP_COMMAND_MOVE};

	if (g->command_of >= 0) {
		link_close_all(fds, n);
		say(g, client, "another command is being obeyed");
		return 0;
	}
	memcpy(g->command, m->data, m->data_len);
	g->command[m->data_len] = 0;
	g->command_of = (int)client;
	g->command_kind = kinds[m->type];
	g->command_fd = n ? fds[0] : -1;
	return 0;
}

bool group_next_command(struct group *g, enum group_command_kind kind, char *text, size_t bytes)
{
	if (g->command_of < 0 || g->command_kind != kind)
		return false;
	snprintf(text, bytes, "%s", g->command);
	return true;
}

int group_take_command_fd(struct group *g)
{
	int fd = g->command_fd;

	g->command_fd = -1;
	return fd;
}

/* Who asked may have hung up. */
void group_answer_command(struct group *g, const char *sentence)
{
	if (g->command_of >= 0)
		say(g, (unsigned)g->command_of, sentence);
	forget_command(g);
}

void group_keep_asker(struct group *g)
{
	g->asker = g->command_of;
}

bool group_asker_left(struct group *g)
{
	return g->asker < 0;
}

/* Who is away can neither give nor take anything. */
static bool is_for_members(enum group_msg_type type)
{
	return type != GROUP_STAT && type != GROUP_WATCH && type != GROUP_FAULT && type != GROUP_FREEZE &&
	       type != GROUP_MOVE;
}

static void answer_looker(struct group *g, unsigned client, int fd)
{
	struct group_msg m = {.type = GROUP_QPS_FD, .slot = (uint16_t)g->slot};
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	link_send(g->clients[client], buf, group_msg_encode(buf, &m), NULL, 0, &fd, fd >= 0);
}

/* One at a time, as with commands. */
static int take_look(struct group *g, unsigned client, const struct group_msg *m)
{
	if (g->looker >= 0) {
		answer_looker(g, client, -1);
		return 0;
	}
	g->looker = (int)client;
	g->look_from = m->digest;
	return 0;
}

bool group_next_look(struct group *g, uint64_t *from)
{
	*from = g->look_from;
	return g->looker >= 0;
}

void group_answer_look(struct group *g, int fd)
{
	answer_looker(g, (unsigned)g->looker, fd);
	g->looker = -1;
}

/* Does what one message asks. A negative errno: drop the client. Takes fds. */
static int handle(struct group *g, unsigned client, const struct group_msg *m, const int *fds, size_t n)
{
	int link = g->clients[client];

	if (n != group_msg_fds(m) || (g->away && is_for_members(m->type))) {
		link_close_all(fds, n);
		return -EPROTO;
	}
	switch (m->type) {
	case GROUP_HELLO: return reply(g, link, GROUP_INFO, NULL, 0);
	case GROUP_FETCH: return group_give(g, link, GROUP_FDS, NULL, NULL);
	case GROUP_ADOPT: return adopt(g, client, m, fds);
	case GROUP_STAT: return reply(g, link, GROUP_STAT_FD, &g->stat_fd, g->stat_fd >= 0);
	case GROUP_SHARE: return reply(g, link, GROUP_SHARE_FD, &g->shared_fd, g->shared_fd >= 0);
	case GROUP_WATCH: g->watches[client] = true; return 0;
	case GROUP_FORWARD: take_forwarded(g, m); return 0;
	case GROUP_RING: return group_ring_offered(g, client, m->slot, fds);
	case GROUP_FAULT:
	case GROUP_FREEZE:
	case GROUP_MOVE: return take_command(g, client, m, fds, n);
	case GROUP_QPS: return take_look(g, client, m);
	default: link_close_all(fds, n); return -EPROTO;
	}
}

static void serve_client(struct group *g, unsigned i)
{
	for (unsigned k = 0; k < MESSAGES_MAX && g->count < GROUP_FORWARDED_MAX; k++) {
		int fds[GROUP_MSG_FDS_MAX];
		size_t n = 0;
		struct group_msg m;
		ssize_t len = link_recv(g->clients[i], g->message, sizeof(g->message), fds, GROUP_MSG_FDS_MAX, &n);

		if (len == -EAGAIN)
			return;
		if (len <= 0) {
			group_drop_client(g, i);
			return;
		}
		switch (group_msg_decode(&m, g->message, (size_t)len)) {
		case GROUP_MSG_OK:
			if (handle(g, i, &m, fds, n) == 0)
				continue;
			break;
		case GROUP_MSG_OTHER_VERSION:
			/* Answer with the version that we speak. */
			reply(g, g->clients[i], GROUP_INFO, NULL, 0);
			link_close_all(fds, n);
			break;
		case GROUP_MSG_BAD: link_close_all(fds, n); break;
		}
		group_drop_client(g, i);
		return;
	}
}

static void admit(struct group *g, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	uid_t uid = link_peer_of(fd).uid;

	/* root may read every user's counters. */
	if (uid != geteuid() && uid != 0) {
		close(fd);
		return;
	}
	for (unsigned i = 0; i < GROUP_CLIENTS_MAX; i++) {
		if (g->clients[i] >= 0)
			continue;
		ev.data.u32 = i;
		if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
			break;
		g->clients[i] = fd;
		return;
	}
	close(fd);
}

static void accept_clients(struct group *g)
{
	for (unsigned k = 0; k < EVENTS_MAX; k++) {
		int fd = fd_away(accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));

		if (fd >= 0) {
			admit(g, fd);
			continue;
		}
		if (errno != EMFILE && errno != ENFILE)
			return;
		/* Refuse the connection; otherwise the listener stays readable and the engine never
		 * sleeps again. */
		close_fd(&g->spare);
		fd = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			close(fd);
		g->spare = fd_away(fcntl(g->listener, F_DUPFD_CLOEXEC, 0));
		if (fd < 0)
			return;
	}
}

/* Nothing is ever said on it but the end. */
static bool watch_is_over(struct group *g)
{
	uint8_t junk;

	return g->watch >= 0 && (recv(g->watch, &junk, sizeof(junk), MSG_DONTWAIT) >= 0 || errno != EAGAIN);
}

void group_steer_again(struct group *g)
{
	group_steer_requests(g, g->requests_slot);
}

int group_steer_requests(struct group *g, unsigned slot)
{
	int err = 0;

	g->requests_slot = slot;
	for (unsigned lane = 0; lane < g->lane_count && !err; lane++)
		err = steer_attach(g->socks[lane][g->slot].fd, slot);
	return err;
}

void group_service(struct group *g)
{
	struct epoll_event ev[EVENTS_MAX];
	int n = epoll_wait(g->epoll, ev, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 == LISTENER_EVENT)
			accept_clients(g);
		else if (ev[i].data.u32 == GROUP_WATCH_EVENT)
			g->watch_ended = watch_is_over(g);
		else if (ev[i].data.u32 >= GROUP_RING_EVENT)
			group_ring_hung_up(g, ev[i].data.u32 - GROUP_RING_EVENT);
		else if (g->clients[ev[i].data.u32] >= 0)
			serve_client(g, ev[i].data.u32);
	}
}

bool group_lives(const struct group *g, unsigned slot)
{
	struct link_peer peer;
	int link, state;

	if (slot == g->slot || slot >= GROUP_SLOTS)
		return slot == g->slot;
	state = cancel_off();
	link = link_connect(&g->id, (int)slot, &peer);
	if (link >= 0)
		close(link);
	cancel_restore(state);
	return link != -ECONNREFUSED;
}

/* ---- forwarding ---- */

static int peer_link(struct group *g, unsigned slot)
{
	struct link_peer peer;

	if (g->peers[slot] < 0)
		g->peers[slot] = link_connect(&g->id, (int)slot, &peer);
	if (g->peers[slot] < 0)
		g->peers[slot] = -1;
	return g->peers[slot];
}

static bool forward(struct group *g, unsigned slot, const struct pkt *p, unsigned hops)
{
	struct group_msg m = {
		.type = GROUP_FORWARD, .slot = (uint16_t)g->slot, .first = (uint16_t)hops, .flow = *p->flow};
	uint8_t head[GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN];
	size_t len = group_msg_encode(head, &m);

	if (slot >= GROUP_SLOTS || slot == g->slot || p->len > GROUP_FORWARD_BYTES_MAX)
		return false;
	/* The second try is for a connection to a member that has died, whose slot was leased
	 * again. */
	for (int try = 0; try < 2; try++) {
		int link = peer_link(g, slot);

		if (link < 0)
			return false;

		int err = link_send(link, head, len, p->data, p->len, NULL, 0);

		if (err == 0 || err == -EAGAIN)
			return err == 0;
		close_fd(&g->peers[slot]);
	}
	return false;
}

bool group_forward(struct group *g, unsigned slot, const struct pkt *p, unsigned hops)
{
	bool sent;
	int state;

	if (group_is_probe(p))
		return false;
	state = cancel_off();
	sent = forward(g, slot, p, hops);
	cancel_restore(state);
	++*(sent ? &g->counters->forward_sent : &g->counters->forward_dropped);
	return sent;
}

unsigned group_hops(const struct group *g, size_t i)
{
	return g->ring[(g->head + i) % GROUP_FORWARDED_MAX].hops;
}

size_t group_recv_forwarded(struct group *g, struct pkt *pkts, size_t max)
{
	size_t n = 0;

	g->head = (g->head + g->lent) % GROUP_FORWARDED_MAX;
	g->count -= g->lent;
	g->lent = 0;
	if (!g->count)
		group_service(g);
	for (; n < max && n < g->count; n++) {
		struct forwarded *f = &g->ring[(g->head + n) % GROUP_FORWARDED_MAX];

		pkts[n] = (struct pkt){.data = f->data, .flow = &f->flow, .len = f->len, .train = 1};
	}
	g->lent = (unsigned)n;
	return n;
}
