/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A place in the kernel's order of sockets for a process that joins: a slot whose name is free, and in each
 * lane a socket with this index, held and read by no member.
 *
 * The first attempt is a likely place: that of a dead member, or the end, where a new socket goes. A datagram
 * to ourselves proves it. The proof fails while the kernel still closes the sockets of a process that died a
 * moment ago (then the attempt is undone and repeated for a short while), and if there are sockets that no
 * member gave us, or that moved when others were closed. In that case a search follows: a datagram for each
 * index shows which of our sockets has it.
 *
 * A datagram for an index beyond the last socket may arrive at any socket, so the search is certain only for
 * indices below the number of sockets that we hold. To reach higher ones we bind more sockets, which the
 * invariant (group_state.h) requires anyway.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group/group_address.h"
#include "group/group_join.h"
#include "group/group_steer.h"
#include "io/fd_away.h"
#include "io/net.h"
#include "io/udp/udp.h"

enum {
	PROOF_MS = 30, /* time for a datagram from us to us, given a processor */
	PROOF_TRIES = 3,
	ROUNDS = 4,
	DRAIN_MAX = 100000 /* datagrams discarded from an adopted socket */
};

/* ---- reasons ---- */

static bool name_is_free(const struct join *j, unsigned slot)
{
	return j->members[slot].state == NOBODY;
}

/* Nobody has it, and it may be ours. */
static bool may_be_ours(const struct join *j, unsigned slot)
{
	return name_is_free(j, slot) && (!j->cfg->as || slot == j->cfg->as - 1);
}

/* GROUP_SLOTS: there is none. */
static unsigned free_name(const struct join *j)
{
	unsigned s = 0;

	while (s < GROUP_SLOTS && !name_is_free(j, s))
		s++;
	return s;
}

static int explain_full(struct join *j)
{
	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		if (j->members[s].state != SILENT || free_name(j) == GROUP_SLOTS)
			continue;
		snprintf(j->why, j->why_bytes,
			 "no slot on UDP port %u can be had while process %ld of this user, and "
			 "perhaps "
			 "others, do not answer (stopped, or in a debugger?)",
			 j->cfg->ports[0], (long)j->members[s].peer.pid);
		return -ENOSPC;
	}
	snprintf(j->why, j->why_bytes, "all %d slots on UDP port %u are taken by processes of this user", GROUP_SLOTS,
		 j->cfg->ports[0]);
	return -ENOSPC;
}

static int explain_unproven(struct join *j, unsigned lane)
{
	snprintf(
		j->why, j->why_bytes,
		"a datagram sent to ourselves on UDP port %u (IPv%c) does not arrive: the loopback interface is down or has a firewall, or there are other processes that join at the same time",
		j->g->lanes[lane].port, j->g->lanes[lane].family == UDP_V4 ? '4' : '6');
	return -EAGAIN;
}

/* ---- sockets ---- */

static int bind_lane(struct join *j, const struct group_lane *lane, bool shared)
{
	union udp_address a;
	socklen_t len = lane_address(lane, &a);
	int fd = udp_rx_socket(lane->family);
	int one = 1, err;

	if (fd < 0)
		return join_explain(j, fd, "make a UDP socket");
	if ((shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0) ||
	    bind(fd, (struct sockaddr *)&a, len) < 0) {
		err = -errno;
		close(fd);
		return join_explain_bind(j, err, lane);
	}
	err = shared ? steer_attach(fd, j->g->requests_slot) : 0;
	if (err < 0) {
		close(fd);
		return join_explain(j, err, "attach a program to the UDP socket");
	}
	return fd;
}

/* Where a new socket goes, as far as we know: behind all. */
static unsigned end(const struct join *j)
{
	unsigned at = 0;

	for (unsigned s = 0; s < GROUP_SLOTS; s++)
		if (!name_is_free(j, s) && j->members[s].state != FOREIGN)
			at = s + 1;
	for (unsigned lane = 0; lane < j->g->lane_count; lane++)
		for (unsigned i = at; i < GROUP_SOCKETS_MAX; i++)
			if (j->g->socks[lane][i].fd >= 0)
				at = i + 1;
	return at;
}

/* One more of each lane. */
static int bind_more(struct join *j)
{
	struct group *g = j->g;
	unsigned at = end(j);

	if (at >= GROUP_SOCKETS_MAX)
		return explain_full(j);
	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int fd = bind_lane(j, &g->lanes[lane], true);

		if (fd < 0)
			return fd;
		if (!group_hold(g, lane, at, 1, &fd))
			return join_explain(j, -EPROTO, "make a UDP socket");
		j->fresh[lane][at] = true;
	}
	return 0;
}

static int bind_until(struct join *j, unsigned held)
{
	int err = 0;

	while (err == 0 && group_held(j->g) < held)
		err = bind_more(j);
	return err;
}

/* Discards the packets that the last owner left unread. */
static void drain(int fd)
{
	for (unsigned i = 0; i < DRAIN_MAX; i++)
		if (recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != EINTR)
			return;
}

/*
 * Whether no member receives on the socket at a place. Its last owner's name is free then, and *name, a descriptor
 * to close, keeps it so; -1 where none is needed.
 */
static bool is_left(struct join *j, unsigned lane, unsigned at, int *name)
{
	int owner = group_owner(j->g, lane, at);

	*name = -1;
	if (owner == GROUP_NOBODY || (j->g->listener >= 0 && owner == (int)j->g->slot) ||
	    (j->cfg->name_fd > 0 && owner == (int)j->cfg->as - 1))
		return true;
	if (name_is_free(j, (unsigned)owner))
		*name = link_reserve(&j->g->id, owner);
	/* Another joiner has it, perhaps one that is stopped: this attempt does without the socket. */
	if (*name == -EADDRINUSE)
		j->members[owner].state = RESERVED;
	return *name >= 0;
}

/* Our slot's name is ours, so no member receives on another socket that bears the slot. */
static void claim(struct group *g, unsigned lane)
{
	for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++)
		if (group_owner(g, lane, i) == (int)g->slot)
			group_claim(g, lane, i, GROUP_NOBODY);
	group_claim(g, lane, g->slot, (int)g->slot);
}

static int prepare(struct join *j)
{
	struct group *g = j->g;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int fd = g->socks[lane][g->slot].fd;
		int err = steer_attach(fd, g->requests_slot), name;

		if (err < 0)
			return join_explain(j, err, "attach a program to the UDP socket");
		if (!is_left(j, lane, g->slot, &name))
			return explain_unproven(j, lane);
		claim(g, lane);
		if (name >= 0)
			close(name);
		udp_rx_prepare(fd, g->lanes[lane].family);
		drain(fd);
		j->fresh[lane][g->slot] = true;
	}
	return 0;
}

/* ---- datagrams to ourselves ---- */

/*
 * The datagram looks like a BTH with an unused opcode, so any other receiver drops it. False: this host
 * has no loopback to send it over.
 */
static bool send_probe(const struct group_lane *lane, int fd, uint8_t *probe, unsigned slot)
{
	union udp_address a;
	socklen_t len = lane_destination(lane, &a);

	probe[0] = GROUP_PROBE_OPCODE;
	probe[5] = (uint8_t)(slot << 1);
	return sendto(fd, probe, GROUP_PROBE_BYTES, 0, (struct sockaddr *)&a, len) >= 0 ||
	       (errno != ENETUNREACH && errno != EADDRNOTAVAIL && errno != ENETDOWN && errno != EHOSTUNREACH);
}

static int probe_socket(const struct group_lane *lane)
{
	return net_socket(lane->family == UDP_V4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The slot that a datagram read from fd was sent for, if it is like `probe`; -1: it is another. */
static int read_probe(int fd, const uint8_t *probe)
{
	uint8_t buf[GROUP_PROBE_BYTES + 1];

	if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) != GROUP_PROBE_BYTES || memcmp(buf, probe, 5) != 0 ||
	    memcmp(buf + 6, probe + 6, GROUP_PROBE_BYTES - 6) != 0)
		return -1;
	return buf[5] >> 1;
}

static bool proof_arrives(int fd, const uint8_t *proof, unsigned slot)
{
	uint64_t until = clock_now_ms() + PROOF_MS;

	for (uint64_t now; (now = clock_now_ms()) < until;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		/* Other packets here were sent to this slot's last owner. */
		if (poll(&p, 1, (int)(until - now)) > 0 && read_probe(fd, proof) == (int)slot)
			return true;
	}
	return false;
}

/* Whether a datagram for our slot arrives at our socket; true also if it cannot be tried. */
static bool prove_lane(const struct group *g, unsigned lane)
{
	int fd = probe_socket(&g->lanes[lane]);
	bool proven = false;

	for (unsigned i = 0; fd >= 0 && !proven && i < PROOF_TRIES; i++) {
		uint8_t proof[GROUP_PROBE_BYTES];

		if (getrandom(proof, sizeof(proof), 0) != sizeof(proof))
			break;
		proven = !send_probe(&g->lanes[lane], fd, proof, g->slot) ||
			 proof_arrives(g->socks[lane][g->slot].fd, proof, g->slot);
	}
	if (fd >= 0)
		close(fd);
	return proven;
}

/* ---- what is likely ---- */

/* -EAGAIN: another process is about to take it. */
static int reserve(struct join *j, unsigned slot)
{
	struct group *g = j->g;
	int fd = j->cfg->name_fd > 0 ? fd_away(fcntl(j->cfg->name_fd, F_DUPFD_CLOEXEC, 0))
				     : link_reserve(&j->g->id, (int)slot);

	if (fd == -1)
		fd = -errno;
	if (fd == -EADDRINUSE) {
		j->members[slot].state = RESERVED;
		return -EAGAIN;
	}
	if (fd < 0)
		return join_explain(j, fd, "take a slot");
	g->listener = fd;
	g->slot = slot;
	return 0;
}

static void let_go(struct join *j)
{
	for (unsigned lane = 0; j->g->listener >= 0 && lane < j->g->lane_count; lane++)
		if (group_owner(j->g, lane, j->g->slot) == (int)j->g->slot)
			group_claim(j->g, lane, j->g->slot, GROUP_NOBODY);
	if (j->g->listener >= 0)
		close(j->g->listener);
	j->g->listener = -1;
	j->g->slot = 0;
}

static bool is_likely_left(const struct join *j, unsigned lane, unsigned at)
{
	int owner = group_owner(j->g, lane, at);

	return owner == GROUP_NOBODY || name_is_free(j, (unsigned)owner);
}

/* GROUP_SLOTS: there is none. */
static unsigned likely_slot(const struct join *j)
{
	const struct group *g = j->g;

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		bool whole = may_be_ours(j, s);

		for (unsigned lane = 0; whole && lane < g->lane_count; lane++)
			whole = g->socks[lane][s].fd >= 0 && is_likely_left(j, lane, s);
		if (whole)
			return s;
	}
	return GROUP_SLOTS;
}

static int take_likely(struct join *j)
{
	struct group *g = j->g;
	unsigned slot;
	int err;

	do {
		/* This runs more than once if another user has one of our names. */
		while ((slot = likely_slot(j)) == GROUP_SLOTS) {
			/* If there is a name left, its socket may have been mislaid. */
			if (end(j) >= GROUP_SLOTS) {
				explain_full(j);
				return free_name(j) < GROUP_SLOTS ? -EAGAIN : -ENOSPC;
			}
			err = bind_more(j);
			if (err < 0)
				return err;
		}
		err = bind_until(j, slot + 1);
		if (err == 0)
			err = reserve(j, slot);
	} while (err == -EAGAIN && j->members[slot].state == RESERVED);
	if (err == 0)
		err = prepare(j);
	for (unsigned lane = 0; err == 0 && lane < g->lane_count; lane++)
		if (!prove_lane(g, lane))
			err = explain_unproven(j, lane);
	if (err == -EAGAIN)
		let_go(j);
	return err;
}

/* ---- what is found out ---- */

/* By lane and index: the place in socks of the socket with this index; -1: it is not ours. */
struct found {
	int16_t at[GROUP_LANES_MAX][GROUP_SLOTS];
};

struct survey {
	struct pollfd fds[GROUP_LANES_MAX * GROUP_SOCKETS_MAX];
	struct {
		uint16_t lane, at;
		int owner;
	} of[GROUP_LANES_MAX * GROUP_SOCKETS_MAX];
	nfds_t count;
	uint8_t probes[GROUP_LANES_MAX][GROUP_PROBE_BYTES];
	int names[GROUP_SLOTS]; /* of the dead whose sockets are read: nobody takes them meanwhile; -1: none */
};

static void survey_add(struct join *j, struct survey *v, unsigned lane, unsigned at)
{
	int owner = group_owner(j->g, lane, at), name;

	if (owner == GROUP_NOBODY || v->names[owner] < 0) {
		if (!is_left(j, lane, at, &name))
			return;
		if (owner != GROUP_NOBODY)
			v->names[owner] = name;
	}
	drain(j->g->socks[lane][at].fd);
	v->fds[v->count] = (struct pollfd){.fd = j->g->socks[lane][at].fd, .events = POLLIN};
	v->of[v->count].lane = (uint16_t)lane;
	v->of[v->count].at = (uint16_t)at;
	v->of[v->count++].owner = owner;
}

/* Finds the sockets that no member reads, and sends a datagram for each slot that none has. */
static void survey_begin(struct join *j, struct survey *v)
{
	struct group *g = j->g;

	v->count = 0;
	memset(v->names, 0xff, sizeof(v->names));
	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int fd = probe_socket(&g->lanes[lane]);

		for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++)
			if (g->socks[lane][i].fd >= 0)
				survey_add(j, v, lane, i);
		if (getrandom(v->probes[lane], GROUP_PROBE_BYTES, 0) != GROUP_PROBE_BYTES)
			memset(v->probes[lane], (int)lane, GROUP_PROBE_BYTES);
		for (unsigned s = 0; fd >= 0 && s < GROUP_SLOTS; s++)
			if (name_is_free(j, s))
				send_probe(&g->lanes[lane], fd, v->probes[lane], s);
		if (fd >= 0)
			close(fd);
	}
}

/*
 * As read_probe. If there are two joiners, as when one passed the lock, the other may have taken a
 * socket by now.
 */
static int survey_read(struct join *j, struct survey *v, nfds_t i)
{
	unsigned lane = v->of[i].lane;

	if (group_owner(j->g, lane, v->of[i].at) == v->of[i].owner)
		return read_probe(v->fds[i].fd, v->probes[lane]);
	v->fds[i].fd = -1;
	return -1;
}

static void survey_end(struct survey *v)
{
	for (unsigned s = 0; s < GROUP_SLOTS; s++)
		if (v->names[s] >= 0)
			close(v->names[s]);
}

static void survey(struct join *j, struct survey *v, struct found *found)
{
	uint64_t quiet_from;

	memset(found, 0xff, sizeof(*found));
	survey_begin(j, v);
	quiet_from = clock_now_ms() + PROOF_MS;
	for (uint64_t now; (now = clock_now_ms()) < quiet_from;) {
		if (poll(v->fds, v->count, (int)(quiet_from - now)) <= 0)
			continue;
		for (nfds_t i = 0; i < v->count; i++) {
			unsigned lane = v->of[i].lane;
			int slot = v->fds[i].revents ? survey_read(j, v, i) : -1;

			if (slot < 0 || slot >= GROUP_SLOTS)
				continue;
			found->at[lane][slot] = (int16_t)v->of[i].at;
			quiet_from = now + PROOF_MS;
		}
	}
	survey_end(v);
}

/* Puts the sockets that were located for certain in their places. */
static void put_in_order(struct group *g, struct found *found)
{
	unsigned certain = group_held(g) < GROUP_SLOTS ? group_held(g) : GROUP_SLOTS;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int16_t *at = found->at[lane];

		for (unsigned s = 0; s < certain; s++) {
			if (at[s] < 0 || at[s] == (int)s)
				continue;
			group_swap(g, lane, s, (unsigned)at[s]);
			for (unsigned k = s + 1; k < GROUP_SLOTS; k++)
				if (at[k] == (int)s)
					at[k] = at[s];
			at[s] = (int16_t)s;
		}
	}
}

/* The first slot whose sockets we certainly have in every lane; GROUP_SLOTS: there is none. */
static unsigned found_slot(const struct join *j, const struct found *found)
{
	unsigned certain = group_held(j->g);

	for (unsigned s = 0; s < GROUP_SLOTS && s < certain; s++) {
		bool whole = may_be_ours(j, s);

		for (unsigned lane = 0; lane < j->g->lane_count; lane++)
			whole &= found->at[lane][s] >= 0;
		if (whole)
			return s;
	}
	return GROUP_SLOTS;
}

/* How many sockets we need so that the lowest index we may have becomes certain in every lane. */
static unsigned wanted(const struct join *j, const struct found *found)
{
	const struct group *g = j->g;
	unsigned most = group_held(g) + 1 > j->cfg->as ? group_held(g) + 1 : j->cfg->as;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		unsigned s = 0;

		while (s < GROUP_SLOTS && found->at[lane][s] < 0)
			s++;
		if (s < GROUP_SLOTS && s + 1 > most)
			most = s + 1;
	}
	return most;
}

static int take_found(struct join *j)
{
	struct group *g = j->g;
	struct survey v;
	struct found found;

	j->digest = 0; /* our sockets have moved: the members get all of them */
	for (unsigned round = 0; round < ROUNDS && !join_lock_is_passed(j); round++) {
		unsigned slot;
		int err;

		survey(j, &v, &found);
		slot = found_slot(j, &found);
		if (slot == GROUP_SLOTS) {
			if (wanted(j, &found) > GROUP_SLOTS)
				return explain_full(j);
			err = bind_until(j, wanted(j, &found));
			if (err < 0)
				return err;
			continue;
		}
		put_in_order(g, &found);
		err = reserve(j, slot);
		if (err == 0)
			err = prepare(j);
		if (err != -EAGAIN)
			return err;
		let_go(j);
	}
	return explain_unproven(j, 0);
}

/* ---- entry points ---- */

int join_place(struct join *j)
{
	bool all_told = true;
	int err;

	memset(j->fresh, 0, sizeof(j->fresh));
	err = take_likely(j);
	for (unsigned s = 0; s < GROUP_SLOTS; s++)
		all_told &= j->members[s].state != SILENT && j->members[s].state != RESERVED;
	if (err != -EAGAIN || (all_told && clock_now_ms() < j->closing_until_ms))
		return err;
	return take_found(j);
}

int join_place_alone(struct join *j)
{
	struct group *g = j->g;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int fd = bind_lane(j, &g->lanes[lane], false);

		if (fd < 0)
			return fd;
		g->socks[lane][0] = (struct group_socket){.fd = fd};
	}
	return 0;
}
