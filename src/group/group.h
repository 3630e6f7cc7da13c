/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes of one user share the UDP ports of RDMA, without a daemon, a file or a privilege.
 *
 * Each member owns a slot, 0 .. 126, and one receive socket per lane (a UDP port and an IP family).
 * The sockets of a lane are an SO_REUSEPORT group with a classic BPF program that delivers to the
 * socket whose index is bits 23..17 of the BTH destination QPN: the slot. So a member draws its
 * QPNs from slot << 17 .. (slot << 17) + 0x1ffff. QPN 1 is every member's: a message of connection management
 * goes by the communication id that it names, whose highest 7 bits are a slot too; one that names none, a request,
 * arrives at the slot of group_steer_requests(). A packet for a slot that nobody has may arrive at any member: see group_forward.
 *
 * The kernel numbers the sockets of a group in the order of bind. When one is closed, the last takes its
 * index. So the socket of slot s keeps its index, whichever sockets others close, as long as more than s
 * sockets of the lane stay open: only the last one ever moves. Therefore:
 *
 *	- every member of slot s holds descriptors of more than s sockets of each lane, its own among
 *	  them, and so depends on no other member;
 *	- which ones does not matter. Members pass them to each other, so that few are needed: a process
 *	  that joins gets all that the others hold, and gives them the sockets that it binds. From members
 *	  that do not answer, because they are stopped or wait for a processor, it takes them where the
 *	  kernel permits that (pidfd_getfd(2)); else it binds as many as it needs;
 *	- the sockets of a dead member live on, unread, in the others, and the next joiner adopts them.
 *	  They are closed when the last member is gone;
 *	- a joiner proves with a datagram to itself that its index is its slot before it starts, and
 *	  writes its slot on the socket. A socket that bears the slot of a living member is read by that
 *	  member alone, even if a joiner got another index for it: UC and UD packets are not sent again.
 *
 * Members find each other by abstract socket names, which belong to a network namespace and vanish
 * with their owner, kill -9 included: "verbena.<uid>.<port>.<slot>", and ".lock", which a joiner holds. A
 * name grants no rights: both ends check the peer's uid.
 *
 * A group receives at every address of the host, or at given ones alone. Then there can be several, of one user or of
 * several, with different addresses: each has slots, sockets and shared memory of its own, and the names of its slots are
 * "verbena.<uid>.<port>@<hash of the addresses>.<slot>". The kernel gives an address and a port to the sockets of one user
 * only, and every address to those of one user who asks for all. Between groups of one user it would mix the sockets of an
 * address, so the first member of a group looks whether another group has one of its addresses. Two groups of one user may
 * be beside each other if one has every address and the other only addresses that no interface has, as 127.0.0.2.
 *
 * One user in one network namespace is one domain of trust. Any process of that user can have the
 * sockets of all members by asking, read what arrives and send from their ports, and can pass a member a
 * packet with any source. It could do the same by binding the port, without any member. Where a uid may
 * belong to more than one user (link_uid_is_certain), there is no group.
 *
 * Where a kernel coalesces the packets of one sender (GRO on a real interface), those of two slots
 * can come in one datagram, which goes where its first packet belongs.
 */
#pragma once

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
	GROUP_PORT_NONE = 0,
	GROUP_ADDRESSES_MAX = 4,
	GROUP_LANES_MAX = GROUP_ADDRESSES_MAX * GROUP_PORTS_MAX, /* or two families instead of addresses */
	GROUP_SOCKETS_MAX = 256,                                 /* of a lane: one for each slot, and others held */
	GROUP_FORWARD_BYTES_MAX = 9216,                          /* larger packets are not forwarded */
	GROUP_WHY_BYTES = 320                                    /* room for every reason given below */
};

struct group;

struct group_address {
	uint8_t gid[16];
	uint32_t ifindex; /* of a link-local address, which is one of its interface; else 0 */
};

/* What distinguishes the groups of a network namespace. */
struct group_id {
	uid_t uid;
	uint16_t port;
	uint64_t addresses; /* a hash of them, in whichever order; 0: every address of the host */
};

struct group_config {
	uint16_t ports[GROUP_PORTS_MAX]; /* UDP ports to receive on; the first one names the group */
	size_t port_count;
	/* Where to receive; none: at every address of the host. No address twice. */
	struct group_address addresses[GROUP_ADDRESSES_MAX];
	size_t address_count;
	/* The addresses that devices of this host have without such a choice. *Borrowed* for the call. */
	const struct group_address *host;
	size_t host_count;
	bool no_ipv6;         /* without a choice: IPv4 alone */
	bool no_taking;       /* as if no process may inspect another; for tests */
	unsigned join_ms_max; /* how long to wait for the lock and to try then; 0: as long as its holder lives, and 10 s
			       */
	/*
	 * A descriptor that processes of this user get on request (`verbena stat`): a memfd with
	 * counters. *Borrowed*; -1: none.
	 */
	int stat_fd;
	struct io_counters *counters; /* *borrowed*; NULL: not counted */
	/* How much memory all members share, the same for all; it is zero at first. 0: none. */
	size_t shared_bytes;
	int shared_fd; /* the memory of a group whose members have ended, for who finds no member. *Borrowed*; 0: none
			*/
	bool rings;    /* other members may offer rings */
	unsigned as;   /* 1 + the slot that it must be; 0: any */
	int name_fd;   /* that slot's name, which this process has kept. *Borrowed*; 0: it has not */
	/* By what is in it, the slot that packets go to which name nobody; NULL: 0. */
	unsigned (*requests_slot)(const void *shared);
};

/*
 * Joins. Blocks for some milliseconds, for about a second if members do not answer, as long as others join before it, of
 * which a line on standard error tells after some seconds, and for about join_ms_max at most. Returns 0, or a negative
 * errno with a sentence in why:
 *	-EADDRINUSE  a port is used by another user, another program or another group of this user (why names it and, if
 *	             there is one, an address that is free)
 *	-ENOSPC      all slots are taken, or the sockets of stopped members are in the way
 *	-ETIMEDOUT   other processes hold the lock too long (why names them), or datagrams to ourselves
 *	             do not arrive
 *	-EMFILE      the limit of open files is too low (why has the limit)
 *	-EPROTO      the members here speak another version or use other ports
 *	-EEXIST      another process has the slot that it must be (why names it)
 */
int group_open(struct group **, const struct group_config *, char *why, size_t why_bytes);

/*
 * For a process that receives on no UDP port: only tools see it, by group_query() with GROUP_PORT_NONE. It takes a
 * slot, and only group_service() has something to do. Never blocks. 0 or a negative errno; -ENOSPC: all slots are
 * taken; -EPERM: its uid may be that of several users.
 */
int group_open_portless(struct group **, int stat_fd, struct io_counters *);

/* Leaves: closes every descriptor. The sockets live on in the other members. */
void group_close(struct group *);

/*
 * In a child after fork: closes the child's copies of every descriptor and frees the group, without
 * effect on the parent. A child that keeps them would keep the parent's slot alive.
 */
void group_child_after_fork(struct group *);

/* That of this process: the high bits of its QPNs. */
unsigned group_slot(const struct group *);

/* Memory that every process of the group may write at any time: the reader judges what it reads. NULL: there is none.
 */
void *group_shared(const struct group *);

/* From now on packets that name nobody arrive at that slot's member. 0 or a negative errno. */
int group_steer_requests(struct group *, unsigned slot);
/* The kernel has lost what it was told of that, and of packets for slots. */
void group_steer_again(struct group *);

/*
 * The end of the process with another slot is noticed by group_service() from now on, instead of any that was watched
 * before; and that one notices ours. 0, or a negative errno; -ECONNREFUSED: it has ended already.
 */
int group_watch(struct group *, unsigned slot);
void group_unwatch(struct group *);
bool group_is_watching(const struct group *);
bool group_watch_ended(const struct group *);
/* Whether that process is stopped, as far as that can be seen. A look into /proc. */
bool group_watched_is_stopped(const struct group *);
/* Whether a process that watches us has ended since the last call. */
bool group_somebody_left(struct group *);

/*
 * A process that is no member, and survives this one, gets the memory that members share: by group_config.shared_fd it
 * can begin where the last member ended. It listens at that abstract name, and takes one record. Our end looks to it
 * like that of any connection, unless there was a second record, by which we leave nothing to do. An heir that is not
 * there is none.
 */
void group_name_heir(struct group *, const char *name);
void group_leave_nothing(struct group *);

/* The process with another slot, as our PID namespace numbers it; 0: none that can be seen. */
pid_t group_pid(const struct group *, unsigned slot);

/*
 * Whether a process has that slot: false only if none has. A stopped process has it still. One to three
 * system calls; never blocks, no cancellation point.
 */
bool group_lives(const struct group *, unsigned slot);
/* Whether the process with that slot is stopped, as far as that can be seen. */
bool group_is_stopped(const struct group *, unsigned slot);

/* ---- rings: memory between two members (io/shm/shm.h), which the group passes on and does not look into ---- */

enum { GROUP_RING_FDS = 2 };

/*
 * Gives the member with a slot, another than ours, copies of the descriptors of a ring. From then on group_next_ring()
 * tells of that member's end. Never blocks. 0 or a negative errno. It may not want them: then it hangs up, which looks
 * like its end.
 */
int group_offer_ring(struct group *, unsigned slot, const int fds[GROUP_RING_FDS]);
/*
 * Whether the very process that was offered a ring to that slot still runs, or is stopped, and has not hung up: another
 * one may have the slot meanwhile. A system call; never blocks.
 */
bool group_ring_lives(const struct group *, unsigned slot);

enum group_ring_kind {
	GROUP_RING_OFFERED,  /* by the member with the slot; the caller owns fds */
	GROUP_RING_IN_ENDED, /* the member that offered it has ended, or gave it up */
	GROUP_RING_OUT_ENDED /* the member that it was offered to has ended, or does not want it */
};

struct group_ring {
	enum group_ring_kind kind;
	unsigned slot;
	pid_t pid; /* OFFERED: of that member */
	int fds[GROUP_RING_FDS];
};

/* The ring that the member with a slot offered is not wanted, and it shall know. */
void group_refuse_ring(struct group *, unsigned slot);
/* What happened to rings since; false: no more. Only what group_service() has noticed. */
bool group_next_ring(struct group *, struct group_ring *);

/* Receive sockets of this member, for struct udp_config. *Lent* until group_close. */
size_t group_rx_fds(const struct group *, int *fds, size_t max);
bool group_has_ipv6(const struct group *);

/* Becomes readable when group_service or group_recv_forwarded has something to do. */
int group_fd(const struct group *);

/* Answers requests of other processes. Never blocks; bounded work. Engine thread only. */
void group_service(struct group *);

/*
 * Hands a packet that belongs to another slot to its member; *borrows* it. False: it was dropped, because
 * nobody has the slot, or its member is behind, or it is our own slot, or a joiner sent it to itself. Never blocks.
 * No cancellation point. hops: how often it was passed on before.
 */
__attribute__((cold)) bool group_forward(struct group *, unsigned slot, const struct pkt *, unsigned hops);

/*
 * Packets that other members forwarded, in the form of io_recv: *lent* until the next call. Each
 * has a train of 1. Call until it returns 0.
 */
size_t group_recv_forwarded(struct group *, struct pkt *pkts, size_t max);

/* ---- a member that is away for a while, or goes for good: group_return.c ---- */

/*
 * Leaves all but its name: its sockets are closed, the memory that members share stays. Whoever joins meanwhile does not
 * wait for it, and tools get its counters and give it commands.
 */
void group_leave(struct group *);
/*
 * Joins with the same slot, by group_open() with these settings but for `as` and `name_fd`, where it left, if `here`, or
 * elsewhere. *again is that member, and the old one stays what it was. Fails as group_open().
 */
int group_return(const struct group *, const struct group_config *, bool here, struct group **again, char *why,
		 size_t why_bytes);
/*
 * From now on the member is that one, which is *taken*. Connections from others are kept, but for rings; elsewhere only that
 * of the tool whose command is being obeyed.
 */
void group_replace(struct group *, struct group *again, bool here);

/* ---- commands of tools ---- */

enum group_command_kind {
	GROUP_COMMAND_NONE,
	GROUP_COMMAND_FAULT,  /* for the fault engine */
	GROUP_COMMAND_FREEZE, /* about time that stands still */
	GROUP_COMMAND_MOVE    /* to go to another network namespace */
};

/*
 * A command of that kind that was not answered yet. False: there is none. Each is answered: with a sentence about what is
 * wrong with it, or with "".
 */
bool group_next_command(struct group *, enum group_command_kind, char *text, size_t bytes);
/* The descriptor that came with it; the caller owns it. -1: none, or it was taken. */
int group_take_command_fd(struct group *);
void group_answer_command(struct group *, const char *sentence);
/* The tool whose command waits stays connected while it wants what it has asked for: asker_left() tells of its end. */
void group_keep_asker(struct group *);
bool group_asker_left(struct group *);

/*
 * A tool asks what this process's QPs do, from a place on that it says, 0 at first; false: none does. It is answered with a
 * copy of a descriptor; -1: it may ask again later.
 */
bool group_next_look(struct group *, uint64_t *from);
void group_answer_look(struct group *, int fd);

/* How often the packet with this index of group_recv_forwarded() was passed on, ours included. */
unsigned group_hops(const struct group *, size_t i);

/* A packet for QPN 1 that names nobody's communication id: whoever finds that it concerns him has it. */
enum { GROUP_ANY_SLOT = GROUP_SLOTS };

/* Of a packet for QPN 1, GROUP_ANY_SLOT included. */
unsigned group_slot_of_mad(const struct pkt *);

/* The slot that a packet with BTH at data belongs to; shorter ones belong to slot 0. */
static inline unsigned group_slot_of(const struct pkt *p)
{
	if (p->len < 8)
		return 0;
	if (p->data[5] || p->data[6] || p->data[7] != 1)
		return p->data[5] >> 1;
	return group_slot_of_mad(p);
}

struct group_member {
	unsigned slot;
	pid_t pid;   /* 0: in a PID namespace that we cannot see */
	int stat_fd; /* the caller closes it; -1: it has none, or did not answer in time */
	bool answered;
};

enum { GROUP_ALL_SLOTS = -1 };

/*
 * For tools, which are not members: the live members of a group of this network namespace, or
 * the member of one slot. Waits for answers for wait_ms at most. Returns how many were stored, or a
 * negative errno.
 */
ssize_t group_query(const struct group_id *, int slot, unsigned wait_ms, struct group_member *members, size_t max);

struct group_command {
	enum group_command_kind kind;
	const char *text;
	int fd;     /* GROUP_COMMAND_MOVE: *borrowed* */
	bool stays; /* the connection is returned, and is the caller's to close */
	unsigned wait_ms;
};

/*
 * For tools too: gives a command to the process of a member, which must be the one with that slot still. *said gets its
 * answer. 0, or the connection that stays; or a negative errno; -ESRCH: the slot is another process's by now;
 * -ETIMEDOUT: it does not answer.
 */
int group_command(const struct group_id *, const struct group_member *, const struct group_command *, char *said,
		  size_t said_bytes);

/*
 * For tools too: asks the process of a member, as group_command() does, what its QPs do from that place on. The
 * descriptor, which the caller closes, or a negative errno; -EAGAIN: not now; -EPROTO: it is of another version.
 */
int group_look(const struct group_id *, const struct group_member *, uint64_t from, unsigned wait_ms);

/*
 * For tools too: the groups on that port that have members in this network namespace, of every user, and that of uid at
 * every address, as the first one, whether it has members or not. How many were stored, at least 1.
 */
size_t group_list(uid_t uid, uint16_t port, struct group_id *ids, size_t max);
