/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two parts of the wrapper share: shm_rings.c, which makes and ends rings, and shm.c, which moves packets.
 *
 * Private to src/io.
 */
#ifndef IO_SHM_STATE_H
#define IO_SHM_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/shm.h"
#include "io/shm_far.h"
#include "io/shm_ring.h"
#include "io/shm_spill.h"

enum { SHM_FLOWS_MAX = 64, SHM_FAR_TRAINS_MAX = 32 };

/* A record of packets that leave bytes out, as it lies in a ring. */
struct far_record {
	uint64_t revocations;
	uint8_t packets[SHM_FAR_BYTES_MAX]; /* shm_far.h */
};

/* A train whose packets lack what is read with that of others. */
struct far_train {
	size_t here, there;         /* its first pieces */
	size_t packet, packets_end; /* those that were handed out */
	uint64_t revocations;
};

struct ring_out {
	struct shm_memory *memory; /* NULL: there is no ring */
	struct shm_putter putter;
	int memory_fd, bell; /* -1: none */
	bool dirty;          /* something was put and not published */
	struct shm_spill *spill; /* what it has no room for yet */
	uint64_t again_ns;   /* before that no other is wanted */
	uint64_t probe;      /* for the taker to read */
};

struct ring_in {
	struct shm_memory *memory;
	struct shm_taker taker;
	int bell;
	pid_t pid;    /* of its process */
	uint64_t revocations_at; /* there, as it has told us */
	bool mine;    /* the memory is that of the ring to ourselves */
	bool begun;   /* the sockets hold nothing older */
	bool ending;  /* its process has ended */
	uint32_t looks, vain; /* before it begins */
	uint32_t vain_bells;
};

struct shm {
	struct io io;
	struct io *lower;
	struct shm_config config;
	const _Atomic uint64_t *revocations; /* of what our packets leave out; NULL: there are none */
	int epoll_fd; /* the bells */
	uint64_t came_ns;  /* when packets last came through memory */
	uint64_t looked_ns; /* at the sockets */

	uint8_t live[SHM_SLOTS]; /* slots with a ring to us */
	unsigned live_count, turn;
	struct ring_in in[SHM_SLOTS];
	struct ring_out out[SHM_SLOTS];
	uint64_t wanted[2]; /* slots, a bit each */
	struct shm_reach reach;
	bool reach_changed;
	uint64_t retry_ns;  /* when to look again whether full rings have room */
	uint64_t retry_wait_ns;

	/* The train that is being handed out, and the memory of all that were lent. */
	uint8_t *buffer;
	struct far_record description;
	struct shm_far far; /* of the trains below */
	struct far_train far_trains[SHM_FAR_TRAINS_MAX];
	size_t far_count;
	uint32_t used;
	uint32_t flow_count;
	const uint8_t *at;
	const struct flow *flow;
	uint32_t left, segment, index;
	struct flow flows[SHM_FLOWS_MAX];
};

/* Ends the ring from a slot, or to one; harmless if there is none. */
void shm_free_in(struct shm *, unsigned slot);
void shm_free_out(struct shm *, unsigned slot);
/* Closes it unless it is -1, and makes it that. */
void shm_close_fd(int *fd);

#endif
