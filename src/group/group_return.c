/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member that is away keeps the name of its slot, so nobody takes that, and answers nobody but tools: to joiners it is
 * one that does not answer. It returns by joining as a new member does, in memory of its own, which then takes the place
 * of what it was: so a return that fails changes nothing. Others hold sockets with its slot on them, as of one that has
 * ended; what arrived there meanwhile is discarded, as a network would lose it.
 */
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "group/group_state.h"

enum { CHUNK_BYTES = 4096 };

void group_leave(struct group *g)
{
	group_socks_close(g);
	for (unsigned i = 0; i < GROUP_SLOTS; i++) {
		if (g->peers[i] >= 0)
			close(g->peers[i]);
		g->peers[i] = -1;
	}
	for (unsigned i = 0; i < GROUP_CLIENTS_MAX; i++) {
		if (g->clients[i] >= 0 && g->ring_of[i] >= 0)
			group_drop_client(g, i);
	}
	group_rings_close(g);
	group_unwatch(g);
	g->head = g->lent = g->count = 0;
	g->away = true;
}

/* Gives a connection to another struct of the same member. */
static void hand_on(struct group *from, struct group *to, unsigned client)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = client};

	if (epoll_ctl(to->epoll, EPOLL_CTL_ADD, from->clients[client], &ev) < 0)
		return;
	to->clients[client] = from->clients[client];
	to->watches[client] = from->watches[client];
	from->clients[client] = -1;
}

static void hand_on_all(struct group *from, struct group *to, bool here)
{
	for (unsigned i = 0; i < GROUP_CLIENTS_MAX; i++) {
		if (from->clients[i] >= 0 && (here || (int)i == from->command_of))
			hand_on(from, to, i);
	}
	if (from->command_of >= 0 && to->clients[from->command_of] >= 0) {
		to->command_of = from->command_of;
		to->command_kind = from->command_kind;
		to->command_fd = from->command_fd;
		from->command_fd = -1;
	}
	to->asker = from->asker;
	to->heir = from->heir;
	from->heir = -1;
}

static void exchange(struct group *a, struct group *b)
{
	uint8_t *pa = (uint8_t *)a, *pb = (uint8_t *)b, chunk[CHUNK_BYTES];
	size_t n;

	for (size_t at = 0; at < sizeof(*a); at += n) {
		n = sizeof(*a) - at < sizeof(chunk) ? sizeof(*a) - at : sizeof(chunk);
		memcpy(chunk, pa + at, n);
		memcpy(pa + at, pb + at, n);
		memcpy(pb + at, chunk, n);
	}
}

int group_return(const struct group *g, const struct group_config *cfg, bool here, struct group **again, char *why,
		 size_t why_bytes)
{
	struct group_config c = *cfg;

	c.as = g->slot + 1;
	if (here) {
		c.name_fd = g->listener;
		/* If no other member is left. */
		c.shared_fd = g->shared_fd > 0 ? g->shared_fd : 0;
	}
	return group_open(again, &c, why, why_bytes);
}

void group_replace(struct group *g, struct group *again, bool here)
{
	bool counts_here = again->counters == &again->own_counters;

	hand_on_all(g, again, here);
	exchange(g, again);
	if (counts_here)
		g->counters = &g->own_counters;
	group_close(again);
}
