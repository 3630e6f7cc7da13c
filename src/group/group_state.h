/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a group, shared by the files that build it (group_join.h) and group.c, which runs it.
 * Private to src/group.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "group/group.h"
#include "group/group_msg.h"

enum {
	GROUP_CLIENTS_MAX =
		448, /* of every other member: one forwards to us, one watches us, one is of a ring; and some others */
	GROUP_FORWARDED_MAX = 16,
	GROUP_WATCH_EVENT = 0xfffe, /* of `watch`; clients' are below */
	GROUP_RING_EVENT = 0x10000, /* and the slot: of `ring_links` */
	GROUP_OFFERS_MAX = 8,
	GROUP_PROBE_BYTES = 28,
	GROUP_PROBE_OPCODE = 0xff /* of BTH; unused by any protocol */
};

/* Whether a packet is a joiner's datagram to itself (group_place.c) that went astray. */
static inline bool group_is_probe(const struct pkt *p)
{
	return p->len == GROUP_PROBE_BYTES && p->data[0] == GROUP_PROBE_OPCODE;
}

struct forwarded {
	struct flow flow;
	uint32_t len;
	unsigned hops;
	uint8_t data[GROUP_FORWARD_BYTES_MAX];
};

struct group_socket {
	int fd;          /* -1: none */
	uint64_t cookie; /* identifies a socket, also through several descriptors */
};

/*
 * Invariants of a member:
 *	it holds more sockets of each lane than `slot`, its own among them, and none twice;
 *	the index of its own in the kernel is `slot`;
 *	its own bear `slot` (group_claim).
 *
 * The second follows from the first once it is true: see group.h. A socket's place in `socks` is the
 * index that it had when it was last located. It may have moved since, unless a member receives on it,
 * so the place is a guess. Its owner is known for certain: the socket bears it.
 */
struct group {
	struct group_id id;
	unsigned slot;
	struct group_lane lanes[GROUP_LANES_MAX];
	uint8_t lane_count;
	int stat_fd;
	struct io_counters *counters;

	int epoll;
	int listener; /* -1: the process is alone, and no other can find it */
	int spare;    /* closed for a moment to refuse a caller when no descriptor is left */
	int clients[GROUP_CLIENTS_MAX];
	bool gives[GROUP_CLIENTS_MAX];   /* in the middle of ADOPT, with the right to */
	bool watches[GROUP_CLIENTS_MAX]; /* it waits for our end */
	bool somebody_left;              /* one of them has ended */
	int watch;                       /* to the member whose end we want to know; -1: none */
	pid_t watched_pid;
	bool watch_ended;
	int heir;      /* connection to the process that waits for our end; -1: none */
	int shared_fd; /* -1: none */
	void *shared;
	size_t shared_bytes;
	unsigned requests_slot; /* where packets go that name nobody */
	int peers[GROUP_SLOTS]; /* connections that we forward over, made when needed */
	struct group_socket socks[GROUP_LANES_MAX][GROUP_SOCKETS_MAX];

	/* Rings: connections that live as long as the ring's two ends. */
	bool takes_rings;
	int ring_links[GROUP_SLOTS];                  /* to whom we offered one; -1: none */
	int16_t ring_of[GROUP_CLIENTS_MAX];           /* the slot of a client that offered us one; -1: none */
	uint64_t ring_in_ended[2], ring_out_ended[2]; /* not yet reported; a bit for each slot */
	struct {
		unsigned client;
		int fds[GROUP_RING_FDS];
	} offers[GROUP_OFFERS_MAX]; /* not yet reported, oldest first */
	unsigned offer_count;

	/* Forwarded to us: `lent` from head on are with the caller, count in all. */
	struct forwarded ring[GROUP_FORWARDED_MAX];
	unsigned head, lent, count;
	int command_of; /* the client whose command waits; -1: none does */
	enum group_command_kind command_kind;
	int command_fd; /* that came with it; -1: none */
	char command[GROUP_MSG_TEXT_MAX + 1];
	int looker; /* the client that waits for a look at the QPs; -1: none does */
	uint64_t look_from;
	int asker; /* the client that group_keep_asker() was called for; -1: none, or it has left */
	bool away; /* group_leave() */
	struct io_counters own_counters; /* for an opener that counts nothing */
	uint8_t message[GROUP_MSG_BYTES_MAX];
};

/* Everything closed and no memory but itself; NULL without memory. */
struct group *group_new(void);

/* Closes every descriptor and forgets lanes, slot and connections; the group can be built again. */
void group_reset(struct group *);
/* Makes the name in g->listener reachable, if there is one. 0 or a negative errno. */
int group_publish(struct group *);

/* Unmaps the memory that all members share, if it is mapped. */
void group_shared_close(struct group *);

/* One connection, to others or to us, is over. */
void group_drop_client(struct group *, unsigned client);

/* ---- group_ring.c ---- */

/* No rings; and closes those that there are. */
void group_rings_init(struct group *);
void group_rings_close(struct group *);
/* A client offers a ring. Takes fds. 0, or a negative errno: it is dropped. */
int group_ring_offered(struct group *, unsigned client, unsigned slot, const int *fds);
/* The client is dropped. */
void group_ring_dropped(struct group *, unsigned client);
/* An event of the member with a slot, which was offered a ring: nothing is ever said but the end. */
void group_ring_hung_up(struct group *, unsigned slot);

/* ---- the sockets that are held: group_socks.c ---- */

/* No sockets; and closes those that are held. */
void group_socks_init(struct group *);
void group_socks_close(struct group *);

/* The least number of sockets held in any lane. */
unsigned group_held(const struct group *);

/* Equal for two members that hold the same sockets, and otherwise different but by chance. */
uint64_t group_digest(const struct group *);

/*
 * Adds sockets of a lane that arrived, as those of the indices from `first` on, to those that are held.
 * Takes every descriptor: those of sockets that are held already, or find no room, are closed. The last
 * message about an index is right. False: one of them is not a socket of its lane, and none was added.
 */
bool group_hold(struct group *, unsigned lane, unsigned first, unsigned count, const int *fds);

/*
 * The slot of the member that receives on the socket at a place, or of the last one that did. It is written on the
 * socket, where all its holders see the same value; messages between processes may be outdated.
 */
enum { GROUP_NOBODY = -1 };
int group_owner(const struct group *, unsigned lane, unsigned at);
/* Only for the process that has the slot's name; GROUP_NOBODY takes back. */
void group_claim(const struct group *, unsigned lane, unsigned at, int slot);

/* The lane that a descriptor is a receive socket of; -1: of none. */
int group_lane_of(const struct group *, int fd);

/*
 * Adds a socket of a lane, of unknown index, at the first free place from `at` on, unless it is held already.
 * Takes fd. Returns its place; GROUP_SOCKETS_MAX: there was no room.
 */
unsigned group_add(struct group *, unsigned lane, unsigned at, int fd);

/* Swaps two places of a lane. */
void group_swap(struct group *, unsigned lane, unsigned a, unsigned b);

/*
 * Sends the sockets that are held, or those of them that `chosen` names by lane and place, and then a record
 * without any. 0 or a negative errno.
 */
typedef bool group_chosen(const void *ctx, unsigned lane, unsigned at);
int group_give(const struct group *, int link, enum group_msg_type type, group_chosen *chosen, const void *ctx);
