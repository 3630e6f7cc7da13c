/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wrapper that takes packets to processes of this host through memory, and all others to the back end below.
 *
 * Between two processes there is a ring (shm_ring.h) each way, in a memory file of its own. Who sends makes it, with a
 * bell: an eventfd that wakes the one who takes. How the two descriptors reach the other process, and how the end of a
 * process is noticed, is the caller's business (group.h). Until the other end takes from the ring, and when it is gone,
 * packets go below.
 *
 * A packet goes through memory if its addresses are both the host's own and the slot of its destination QPN, the high 7
 * bits, has a ring. Management datagrams go below, and so does what is sent to a multicast group. The packets are the
 * same bytes as on a wire; what a ring holds for another slot, or from another host, is dropped.
 *
 * Of packets that leave their payload out (struct pkt_far) the ring has the rest, and who takes them reads the payload
 * of several trains at once in the sender's memory (process_vm_readv(2)), before it looks at them: into the packets, or
 * where the nic says that it belongs. Of long payload the sender writes some there (process_vm_writev(2)), if it polls
 * meanwhile. What cannot be read is dropped as if a network had lost it, and so is what the sender has taken back
 * meanwhile. Where the kernel does not let it, the sender learns that from the ring, and sends whole packets.
 *
 * What a full ring has no room for is kept until it has (shm_spill.h), and the caller is told to send nothing more
 * there (shm_turn()), so a taker that is stopped holds up nobody but those who send to it, and nothing is lost.
 * Datagrams, whose senders cannot wait, are dropped when too many are kept, as by a socket whose buffer is full. What
 * was sent below before a ring was accepted is received before what is in the ring.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loan.h"
#include "io/io.h"

enum {
	SHM_SLOTS = 127,
	SHM_QPN_SHIFT = 17,
	SHM_ADDRESSES_MAX = 64,
	SHM_RETRY_NS_MIN = 50000,   /* a full ring is looked at again after so long, */
	SHM_RETRY_NS_MAX = 5000000, /* and if nothing was taken after twice as long, up to this */
	SHM_AGAIN_NS = 1000000000   /* after a ring was lost another one to the same slot is wanted */
};

struct shm_config {
	unsigned slot;                            /* our own */
	uint8_t addresses[SHM_ADDRESSES_MAX][16]; /* the host's, in GID form */
	size_t address_count;
	uint32_t bytes_max;           /* of all rings that are made here */
	struct io_counters *counters; /* *borrowed* */
	/* Whether the process that takes from the ring to that slot runs, or is stopped; another one may have the slot
	 * by then. NULL: nobody knows. */
	bool (*lives)(void *ctx, unsigned slot);
	void *lives_ctx;
};

/* Asks where the payload of packets belongs, as nic_place(), with whose conditions shm_recv() complies. */
struct shm_placer {
	size_t (*place)(void *ctx, const struct pkt *, size_t n, bool begins, uint8_t **spots);
	void *ctx;
};

/* *Takes* lower on success. 0 or a negative errno. */
int shm_open_io(struct io **, struct io *lower, const struct shm_config *);

/* The host's addresses have changed: at most SHM_ADDRESSES_MAX, in GID form. Packets that are in rings already are
 * received all the same. */
__attribute__((cold)) void shm_set_addresses(struct io *, const uint8_t (*addresses)[16], size_t count);

/*
 * Payload that packets left out is then read to where it belongs, not into the packet (pkt.far_at), where that is
 * known. Before there is a ring.
 */
void shm_set_placer(struct io *, struct shm_placer);

/*
 * The next slot that packets were sent to and that has no ring, each once; -1: none. The caller calls shm_make() for
 * it, or not.
 */
int shm_next_wanted(struct io *);

/*
 * Makes the ring to a slot. The two descriptors, memory and bell, are *lent* until the next call for that slot: the
 * caller gives them to the slot's process, which calls shm_take_ring(). To our own slot there is nobody to give them
 * to, and the ring is ready. 0 or a negative errno; -EEXIST: there is one; -EDQUOT: the others take all of bytes_max.
 */
int shm_make(struct io *, unsigned slot, uint64_t now_ns, int fds[2]);
/* The ring to a slot is of no use any more: its process ended, or could not be reached. */
__attribute__((cold)) void shm_lose(struct io *, unsigned slot, uint64_t now_ns);

/*
 * The ring from a slot, made by its process, which is known by `pid`; instead of an older one. *Takes* both
 * descriptors, also when it fails: -EPROTO if they are not what shm_make() makes, -EINVAL, -ENOMEM.
 */
int shm_take_ring(struct io *, unsigned slot, pid_t pid, const int fds[2]);
/* The process with that slot has ended: what it sent is still received. */
void shm_end_ring(struct io *, unsigned slot);

/*
 * All rings to others are of no use any more; what is in those from others is still received. Others may be wanted again
 * at once. What is kept for want of room is lost.
 */
__attribute__((cold)) void shm_leave(struct io *);

/* What the ring to a slot says of its process since the last such look, if there is one. */
enum shm_sight {
	SHM_UNSEEN,
	SHM_RAN,  /* it has taken something, or all there was */
	SHM_WAITS /* it has not, or does not know of the ring yet */
};
enum shm_sight shm_look_at(struct io *, unsigned slot);
/* Whether packets to that slot go through memory now. */
bool shm_reaches(const struct io *, unsigned slot);
/*
 * A process: whether it is reached through memory, whether it reads ours, and whether its ring is full, so that packets
 * of connected queue pairs should not be sent to it. What packets to it leave out is lent by the loan, which is here
 * until the io is closed.
 */
struct shm_peer {
	unsigned slot;
	bool reached, reads, full;
	struct loan *loan;
};
/* Before packets are made: puts what was kept into rings that have room for it. True: shm_next_change() has something.
 */
bool shm_turn(struct io *, uint64_t now_ns);
/* A process for which something has changed, as it is now. False: there is no other. */
bool shm_next_change(struct io *, struct shm_peer *);
/* Whether packets came through memory lately, where nobody sends more than is taken, and none by sockets, which lose
 * what is too much. */
bool shm_has_all(const struct io *, uint64_t now_ns);
/* How many packets wait for room in rings. They are lost with this process. */
size_t shm_kept(const struct io *);
