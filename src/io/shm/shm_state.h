/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the wrapper share: shm_rings.c, which makes and ends rings, shm.c, which moves packets,
 * shm_reading.c, which reads what they leave out, and shm_help.c, in which two processes do that together.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/shm/shm.h"
#include "io/shm/shm_far.h"
#include "io/shm/shm_mark.h"
#include "io/shm/shm_ring.h"
#include "io/shm/shm_spill.h"

enum {
	SHM_BUFFER_BYTES = 256 << 10, /* at least a train, in the L2 cache: what one call reads */
	SHM_PLACED_BYTES =
		1152
		<< 10, /* likewise of payload that is read to its place: the buffer's pages behind are not touched */
	SHM_FLOWS_MAX = 64,
	SHM_FAR_TRAINS_MAX = 32,
	SHM_LENT_MAX = 16
};

/* A record of packets that leave bytes out, as it lies in a ring. */
struct far_record {
	uint64_t lot;
	uint8_t packets[SHM_FAR_BYTES_MAX]; /* shm_far.h */
};

enum { SHM_FAR_HEAD_BYTES = offsetof(struct far_record, packets) };

/* A train whose packets lack what is read with that of others. */
struct far_train {
	size_t here, there;         /* its first pieces */
	size_t packet, packets_end; /* those that were handed out */
	uint64_t lot;
};

/* Memory that packets left out: addresses [from, end), of lots `first` to `last`. */
struct lent {
	uintptr_t from, end;
	uint64_t first, last;
};

struct ring_out {
	struct shm_memory *memory; /* NULL: there is no ring */
	struct shm_putter putter;
	int memory_fd, bell;            /* -1: none */
	bool dirty;                     /* something was put and not published */
	uint32_t seen;                  /* how far its process had taken when shm_look_at() was last called */
	struct shm_spill *spill;        /* what it has no room for yet */
	uint64_t again_ns;              /* before that no other is wanted */
	struct lent lent[SHM_LENT_MAX]; /* by packets that may not be read yet; the latest ones */
	unsigned lent_last;
	pid_t helped_pid; /* of the taker, as that of a ring from it; 0: not known */
	bool helps;       /* it was the one then */
};

struct ring_in {
	struct shm_memory *memory;
	struct shm_taker taker;
	int bell;
	struct shm_process process;
	bool mine;    /* the memory is that of the ring to ourselves */
	bool begun;   /* the sockets hold nothing older */
	bool ending;  /* its process has ended */
	bool foreign; /* the taker's flow is not between addresses of this host, or not yet: its packets are dropped */
	uint32_t ended;       /* so many records were taken since then */
	uint32_t looks, vain; /* before it begins */
	uint32_t vain_bells;
	bool unhelped; /* its process took too long to help once */
};

/* Slots, a bit each, as in struct shm_peer. */
struct shm_reach {
	uint64_t slots[2], readers[2], full[2];
};

struct shm {
	struct io io;
	struct io *lower;
	struct shm_config config;
	pid_t pid; /* a child of it has this memory, too */
	struct shm_mark *mark;
	int epoll_fd;       /* the bells */
	uint64_t came_ns;   /* when packets last came through memory */
	uint64_t looked_ns; /* at the sockets */
	uint64_t below_ns;  /* when something was last sent there, or came */

	uint8_t live[SHM_SLOTS]; /* slots with a ring to us */
	unsigned live_count, turn;
	struct ring_in in[SHM_SLOTS];
	struct ring_out out[SHM_SLOTS];
	struct loan loans[SHM_SLOTS];
	uint64_t wanted[2];  /* slots, a bit each */
	uint64_t owed[2];    /* slots of processes that sleep and are not woken yet: shm.c */
	uint64_t lending[2]; /* slots to which packets left out what was not yet seen to be read */
	struct shm_reach reach;
	uint64_t changed[2]; /* slots of which shm_next_change() is still to speak */
	uint64_t retry_ns;   /* when to look again whether full rings have room */
	uint64_t retry_wait_ns;

	/* The train that is being handed out. */
	struct far_record description;
	struct shm_far far; /* of the trains below */
	struct far_train far_trains[SHM_FAR_TRAINS_MAX];
	size_t far_count;
	struct shm_placer placer; /* .place NULL: there is none */
	size_t placed;            /* so many pieces from the first that are read to their place */
	bool placing;             /* the next one may be, too */
	bool asked;               /* a row has begun */
	uint32_t used;
	uint32_t flow_count;
	const uint8_t *at;
	const struct flow *flow;
	uint32_t left, segment, index;
	uint16_t packets; /* in `left` */
	struct flow flows[SHM_FLOWS_MAX];
	uint8_t buffer[SHM_PLACED_BYTES]; /* of all that were lent */
};

/* The first one is left free: shm_mark.h. */
struct shm_pieces {
	struct iovec *pieces;
	size_t count;
};

/* Reads pieces of the process's memory, `bytes` in all here and there. False: not all of it is there, or can be read
 * any more. */
bool shm_read(struct ring_in *, struct shm_pieces to, struct shm_pieces from, size_t bytes);

/* From now on what these packets leave out may be given to the other end of the ring. */
__attribute__((noinline)) void shm_lend(struct shm *, struct ring_out *, const struct pkt *, size_t n);
/* Copies some of what other processes read of this one's memory at this moment. True: there was something. */
bool shm_help(struct shm *);
/*
 * Reads pieces, `bytes` in all here and there, together with the other process. SHM_UNHELPED: nothing was read, and the
 * caller does so alone. Otherwise as shm_read().
 */
enum shm_help_result { SHM_ALL, SHM_NOT_ALL, SHM_UNHELPED };
enum shm_help_result shm_read_with_help(struct shm *, struct ring_in *, const struct iovec *to,
					const struct iovec *from, size_t bytes);

/*
 * Lays out the packets that a train describes, in the same place, and notes what they lack; *t becomes the train's.
 * False: it is nonsense.
 */
__attribute__((noinline)) bool shm_lay_out(struct shm *, struct shm_train *t, uint8_t *to);
/* Forgets the train that was laid out last. */
void shm_forget_last(struct shm *);
/*
 * Asks for the places of packets [first, n) that were handed out, as long as they are known. Those from `far` on are of
 * the train that was laid out last. All pieces before theirs are placed. What a packet says is not known any more when
 * others were handled before it: only the first ones of a call are asked for, and between them come at most packets
 * that the nic lets pass.
 */
__attribute__((noinline)) void shm_ask_for_places(struct shm *, struct pkt *, size_t first, size_t far, size_t n);
/*
 * Reads what packets lack: of all trains at once, and if something is not there, of each, so that one that is lost does
 * not take others with it. The number of packets that are left.
 */
__attribute__((noinline)) size_t shm_fetch(struct shm *, struct ring_in *, struct pkt *, size_t n);

/* Ends the ring from a slot, or to one; harmless if there is none. */
void shm_free_in(struct shm *, unsigned slot);
void shm_free_out(struct shm *, unsigned slot);
/* What the nic is told of that slot has changed. */
static inline void shm_note_change(struct shm *s, unsigned slot)
{
	s->changed[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* Closes it unless it is -1, and makes it that. */
void shm_close_fd(int *fd);
