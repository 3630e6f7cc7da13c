/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two nics whose QPs are joined by a byte pipe, in place of TCP: it keeps the order and loses nothing, but cuts and
 * merges at any byte, and grants room in pieces. Everything is a function of the seed and the calls made.
 *
 * It always checks: no packet exceeds the room granted, nothing follows a FIN, nothing leaks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "nic/nic.h"
#include "support/heap.h"

enum pipe_side { PIPE_A, PIPE_B, PIPE_SIDES };

enum { PIPE_ROOM = 256 << 10, PIPE_CQES = 4096, PIPE_MEM = 1 << 20, PIPE_WRS = 256 };

struct pipe_end {
	struct heap heap;
	struct nic *nic;
	struct pd *pd;
	struct cq *cq;
	struct srq *srq;
	struct qp *qp;
	struct mr *mr;
	uint8_t *mem; /* a region with all rights; its iova is PIPE_IOVA */
	/* what it sent and the other end has not taken yet */
	uint8_t *wire;
	size_t wire_at, wire_len, wire_room; /* wire_len bytes from wire_at on; wire has room for wire_room in all */
	uint64_t sent_bytes;
	uint32_t granted; /* room that it has left */
	uint32_t owed;    /* bytes taken whose room was not granted again */
	bool fin, fin_taken;
};

#define PIPE_IOVA UINT64_C(0x560012000000)

struct pipe {
	struct pipe_end end[PIPE_SIDES];
	struct prng rng;
	uint64_t now_ns;
	size_t piece_max; /* bytes handed over at once; 0: all there are */
	bool places;      /* bytes are put where the nic says that they belong, a random part of them */
	uint64_t placed;  /* so many were */
};

struct pipe_config {
	uint64_t seed;
	size_t piece_max;
	bool no_crc;
	bool places;            /* as io/tcp/ does */
	bool markers;           /* both ways */
	uint16_t segment_bytes; /* 0: 1448 */
	uint8_t reads;          /* max_rd_atomic and max_dest_rd_atomic; 0: 4 */
	uint32_t recv_wrs;      /* 0: PIPE_WRS */
	size_t mem_bytes;       /* of each end; 0: PIPE_MEM */
	bool srq;               /* B has one */
	bool rfc7306;           /* atomics and immediate data */
	bool hears_first;       /* B waits for A's first message */
	bool sends_first;       /* and A's is an RDMA Write without bytes */
};

/* A connected pair. */
void pipe_open(struct pipe *, const struct pipe_config *);
/* Destroys all; memory that is left is a failure. */
void pipe_close(struct pipe *);

/* Moves pieces until nothing moves any more. */
void pipe_run(struct pipe *);
/* One round: each end's output, then a piece each way. False: nothing moved. */
bool pipe_step(struct pipe *);
/* Puts bytes on the wire as if that end had sent them. */
void pipe_inject(struct pipe *, enum pipe_side, const uint8_t *, size_t);
/* The other end is told that the stream is gone. */
void pipe_reset(struct pipe *, enum pipe_side to);

struct pipe_wr {
	enum wr_opcode opcode;
	uint32_t flags; /* WR_SIGNALED is added unless `quiet` */
	bool quiet;
	uint32_t at, len;    /* in the sender's memory */
	uint32_t to;         /* offset in the peer's */
	uint64_t remote_va;  /* 0: PIPE_IOVA + to */
	uint32_t rkey, lkey; /* 0: the right ones */
	uint32_t imm_or_key;
	uint64_t compare_add, swap; /* of atomics */
	uint64_t wr_id;
};

void pipe_post(struct pipe *, enum pipe_side, const struct pipe_wr *);
/* Receives into [at, at + len) of the end's memory. */
void pipe_post_recv(struct pipe *, enum pipe_side, uint64_t wr_id, uint32_t at, uint32_t len);
/* Takes the oldest completion; false: there is none. */
bool pipe_poll(struct pipe *, enum pipe_side, struct cqe *);
/* The oldest completion is this one. */
void pipe_expect(struct pipe *, enum pipe_side, uint64_t wr_id, enum wc_status);
/* The next asynchronous event of that end; -1: none. */
int pipe_event(struct pipe *, enum pipe_side);

/* A test (support/test.h) of `p`, the file's pipe, opened with seed 1 and what follows the name. */
#define PIPE_TEST(name, ...)                                                  \
	static void name##_on(void);                                          \
	TEST(name)                                                            \
	{                                                                     \
		pipe_open(&p, &(struct pipe_config){.seed = 1, __VA_ARGS__}); \
		name##_on();                                                  \
		pipe_close(&p);                                               \
	}                                                                     \
	static void name##_on(void)
