/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes of one user share the UDP ports of RDMA, without a daemon, a file or a privilege.
 *
 * Each member owns a slot, 0 .. 126, and one receive socket per lane (a UDP port and an IP family).
 * The sockets of a lane are an SO_REUSEPORT group with a classic BPF program that delivers to the
 * socket whose index is bits 23..17 of the BTH destination QPN: the slot. So a member draws its
 *QPNs from slot << 17 .. (slot << 17) + 0x1ffff. QPN 1 (CM) thus arrives at slot 0, and what is
 *addressed to a slot that nobody has may arrive at anybody: see group_forward.
 *
 * The kernel numbers the sockets of a group in the order of bind and fills the hole when one is
 * closed, so none may be closed while any member lives. Therefore:
 *
 *	- every member holds a descriptor of the sockets 0 .. k-1 of each lane, for some k above
 *	  its own slot: what has been passed to it when it joined and since;
 *	- the sockets of a dead member live on, unread, in the others, and the next to join adopts
 *	  them. Only when the last member is gone is everything gone;
 *	- a newcomer proves with a datagram to itself that its index is its slot before it starts.
 *
 * Members find each other by abstract socket names, which belong to a network namespace and vanish
 * with their owner, kill -9 included: "verbena.<uid>.<port>.<slot>", and ".lock" which a joiner
 * holds. A name grants nothing: both ends check the peer's uid.
 *
 * Where a kernel coalesces the packets of one sender (GRO on a real interface), those of two slots
 * can come in one datagram, which goes where its first packet belongs.
 */
#ifndef IO_GROUP_H
#define IO_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pkt.h"
#include "io/io.h"

enum {
	GROUP_SLOTS = 127, /* slot 127 would hold QPN 0xffffff, the multicast QPN */
	GROUP_SLOT_SHIFT = 17,
	GROUP_PORTS_MAX = 2,
	GROUP_LANES_MAX = 2 * GROUP_PORTS_MAX,
	GROUP_FORWARD_BYTES_MAX = 9216, /* larger packets are not forwarded */
	GROUP_WHY_BYTES = 256           /* room enough for every reason given below */
};

struct group;

struct group_config {
	uint16_t
		ports[GROUP_PORTS_MAX]; /* UDP ports to receive on; the first one names the group */
	size_t port_count;
	bool no_ipv6;
	unsigned join_ms_max; /* how long to wait for the lock and for others; 0: 10 s */
	/*
	 * A descriptor lent to whoever of this user asks (`verbena stat`): a memfd with counters.
	 * *Borrowed*; -1: none.
	 */
	int stat_fd;
	struct io_counters *counters; /* *borrowed*; NULL: not counted */
};

/*
 * Joins. Blocks for at most about join_ms_max. 0, or a negative errno with a sentence in why:
 *	-EADDRINUSE  a port is used by another user or another program (who, where it can be told)
 *	-ENOSPC      all slots are taken
 *	-ETIMEDOUT   another process holds the lock too long (which), or a member that holds what we
 *	             need does not answer (which), or datagrams to ourselves do not arrive
 *	-EMFILE      the limit of open files is too low (what it is, what is needed)
 *	-EPROTO      the members here speak another version or use other ports
 */
int group_open(struct group **, const struct group_config *, char *why, size_t why_bytes);

/* Leaves: closes every descriptor. The sockets live on in the other members. */
void group_close(struct group *);

/*
 * In a child after fork: closes the child's copies of every descriptor and frees the group, without
 * effect on the parent. A child that keeps them would keep the parent's slot alive.
 */
void group_child_after_fork(struct group *);

unsigned group_slot(const struct group *);

/* Receive sockets of this member, for struct udp_config. *Lent* until group_close. */
size_t group_rx_fds(const struct group *, int *fds, size_t max);
bool group_has_ipv6(const struct group *);

/* Becomes readable when group_service or group_recv_forwarded has something to do. */
int group_fd(const struct group *);

/* Answers what other processes ask. Never blocks; bounded work. Engine thread only. */
void group_service(struct group *);

/*
 * Hands a packet that belongs to another slot to its member; *borrows* it. False: it was dropped,
 * because nobody has the slot, or its member is behind, or it is our own slot. Never blocks.
 */
bool group_forward(struct group *, unsigned slot, const struct pkt *);

/*
 * Packets that other members handed over, as io_recv would have: *lent* until the next call. Each
 * has a train of 1. Call until it returns 0.
 */
size_t group_recv_forwarded(struct group *, struct pkt *pkts, size_t max);

/* The slot that a packet with BTH at data belongs to; shorter ones belong to slot 0. */
static inline unsigned group_slot_of(const struct pkt *p)
{
	return p->len < 6 ? 0 : p->data[5] >> 1;
}

struct group_member {
	unsigned slot;
	pid_t pid;   /* 0: in a PID namespace that we cannot see */
	int stat_fd; /* the caller closes it; -1: it has none, or did not answer in time */
	bool answered;
};

enum { GROUP_ALL_SLOTS = -1 };

/*
 * For tools that are no member: the live members of uid's group in this network namespace, or the
 * one of a slot. Waits for answers for wait_ms at most. Returns how many were stored, or a negative
 * errno.
 */
ssize_t group_query(uid_t uid, uint16_t port, int slot, unsigned wait_ms,
		    struct group_member *members, size_t max);

#endif
