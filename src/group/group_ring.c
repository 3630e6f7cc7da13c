/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings between members: their descriptors are passed over a connection of their own, which breaks when a process at
 * one of its ends has ended, however it ended, or does not want the ring.
 *
 * Who offers a ring says which slot it has; that is believed only of the process that has the slot's name. So the
 * process that writes into a ring is the one that other members know by that slot.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group/group_link.h"
#include "group/group_state.h"

void group_rings_init(struct group *g)
{
	memset(g->ring_links, 0xff, sizeof(g->ring_links));
	memset(g->ring_of, 0xff, sizeof(g->ring_of));
}

void group_rings_close(struct group *g)
{
	for (unsigned i = 0; i < GROUP_SLOTS; i++) {
		if (g->ring_links[i] >= 0)
			close(g->ring_links[i]);
	}
	for (unsigned i = 0; i < g->offer_count; i++)
		link_close_all(g->offers[i].fds, GROUP_RING_FDS);
	g->offer_count = 0;
	memset(g->ring_in_ended, 0, sizeof(g->ring_in_ended));
	memset(g->ring_out_ended, 0, sizeof(g->ring_out_ended));
	group_rings_init(g);
}

int group_offer_ring(struct group *g, unsigned slot, const int fds[GROUP_RING_FDS])
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = GROUP_RING_EVENT + slot};
	struct group_msg m = {.type = GROUP_RING, .slot = (uint16_t)g->slot};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	struct link_peer peer;
	int link, err;

	if (slot >= GROUP_SLOTS || slot == g->slot || g->listener < 0)
		return -EINVAL;
	link = link_connect(&g->id, (int)slot, &peer);
	if (link < 0)
		return link;
	/* In another PID namespace it would not recognise us. */
	err = peer.pid ? link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, fds, GROUP_RING_FDS) : -ESRCH;
	if (!err && epoll_ctl(g->epoll, EPOLL_CTL_ADD, link, &ev) < 0)
		err = -errno;
	if (err) {
		close(link);
		return err;
	}
	if (g->ring_links[slot] >= 0)
		close(g->ring_links[slot]);
	g->ring_links[slot] = link;
	return 0;
}

/* Whether the process at the other end of a connection is the one with that slot's name. */
static bool has_slot(const struct group *g, int link, unsigned slot)
{
	pid_t pid = link_peer_of(link).pid;

	return pid && slot != g->slot && group_pid(g, slot) == pid;
}

static void forget_offer(struct group *g, unsigned i)
{
	g->offer_count--;
	memmove(&g->offers[i], &g->offers[i + 1], (g->offer_count - i) * sizeof(g->offers[0]));
}

/* Takes a client's offer back that was not reported yet. False: there is none. */
static bool withdraw_offer(struct group *g, unsigned client)
{
	for (unsigned i = 0; i < g->offer_count; i++) {
		if (g->offers[i].client != client)
			continue;
		link_close_all(g->offers[i].fds, GROUP_RING_FDS);
		forget_offer(g, i);
		return true;
	}
	return false;
}

/* The ring from that slot is replaced: the end of the older one, which may be noticed later, is not the end of the new
 * one. */
static void forget_older(struct group *g, unsigned slot)
{
	for (unsigned i = 0; i < GROUP_CLIENTS_MAX; i++) {
		if (g->ring_of[i] != (int)slot)
			continue;
		g->ring_of[i] = -1;
		withdraw_offer(g, i);
	}
}

int group_ring_offered(struct group *g, unsigned client, unsigned slot, const int *fds)
{
	if (!g->takes_rings || g->offer_count == GROUP_OFFERS_MAX || g->ring_of[client] >= 0 ||
	    !has_slot(g, g->clients[client], slot)) {
		link_close_all(fds, GROUP_RING_FDS);
		return -EPERM;
	}
	forget_older(g, slot);
	g->ring_of[client] = (int16_t)slot;
	g->offers[g->offer_count].client = client;
	memcpy(g->offers[g->offer_count].fds, fds, sizeof(g->offers[0].fds));
	g->offer_count++;
	return 0;
}

void group_ring_dropped(struct group *g, unsigned client)
{
	int slot = g->ring_of[client];

	if (slot < 0)
		return;
	g->ring_of[client] = -1;
	if (withdraw_offer(g, client))
		return;
	g->ring_in_ended[slot / 64] |= UINT64_C(1) << slot % 64;
}

void group_refuse_ring(struct group *g, unsigned slot)
{
	for (unsigned i = 0; i < GROUP_CLIENTS_MAX; i++) {
		if (g->clients[i] < 0 || g->ring_of[i] != (int)slot)
			continue;
		close(g->clients[i]);
		g->clients[i] = -1;
		g->ring_of[i] = -1;
	}
}

bool group_ring_lives(const struct group *g, unsigned slot)
{
	uint8_t junk;

	return g->ring_links[slot] >= 0 && recv(g->ring_links[slot], &junk, sizeof(junk), MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

void group_ring_hung_up(struct group *g, unsigned slot)
{
	if (g->ring_links[slot] < 0 || group_ring_lives(g, slot))
		return;
	close(g->ring_links[slot]);
	g->ring_links[slot] = -1;
	g->ring_out_ended[slot / 64] |= UINT64_C(1) << slot % 64;
}

static bool next_bit(uint64_t bits[2], unsigned *slot)
{
	for (unsigned i = 0; i < 2; i++) {
		if (bits[i]) {
			*slot = i * 64 + (unsigned)__builtin_ctzll(bits[i]);
			bits[i] &= bits[i] - 1;
			return true;
		}
	}
	return false;
}

/* Ends first: an offer is reported after the end of the ring that it replaces. */
bool group_next_ring(struct group *g, struct group_ring *out)
{
	*out = (struct group_ring){.fds = {-1, -1}};
	if (next_bit(g->ring_in_ended, &out->slot)) {
		out->kind = GROUP_RING_IN_ENDED;
		return true;
	}
	if (next_bit(g->ring_out_ended, &out->slot)) {
		out->kind = GROUP_RING_OUT_ENDED;
		return true;
	}
	if (!g->offer_count)
		return false;
	out->kind = GROUP_RING_OFFERED;
	out->slot = (unsigned)g->ring_of[g->offers[0].client];
	out->pid = link_peer_of(g->clients[g->offers[0].client]).pid;
	memcpy(out->fds, g->offers[0].fds, sizeof(out->fds));
	forget_offer(g, 0);
	return true;
}
