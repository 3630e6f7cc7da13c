/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of trains in memory that two processes share: one puts, the other takes. Pure: it maps nothing, waits for
 * nothing and asks nobody.
 *
 * Neither end trusts the other. What an end reads of the memory it reads once, into memory of its own, and judges
 * there; its own position is never read back. So the worst that a peer's nonsense does is SHM_BAD, or bytes that are no
 * packet.
 *
 * The memory, in units of 64 bytes:
 *
 *	 0      magic, of the version      written before the other end sees it
 *	 1      tail, taken_back           the putting end writes them: where the next record will begin, for
 *	                                   shm_unread() alone, and the lots that are not lent any more (base/loan.h)
 *	 2      head, given_back           the taking end writes them
 *	 3      accepted, asleep           see shm_accept() and shm_sleep()
 *	 4      probes                     where each process has which mark (shm_mark.h): the putting one's before the
 *	                                   other end sees the memory, the taking one's before it accepts
 *	 5 ..   job                        see shm_job.h
 *	64 ..   records, each from the start of a unit and in one piece
 *
 *	record  length (4 bytes), packet length (2), kind (1), and the place in its train of the first packet (1); the
 *	        flow if it is not that of the record before; then packets of a train, back to back: all of one length but
 *	        the last, which may be shorter. A long train takes several records, so that the other end takes the first
 *	        ones meanwhile. With a kind of their own, bytes that describe the packets of a train instead (shm.c)
 *
 * Where the next record will begin there is a kind of 0. The first word of the first of several records is written
 * last, and shows them all. So the taking end waits for one cache line, and a short record is in it.
 *
 * Positions are bytes from the first record, less than SHM_ROOM_BYTES. head == tail: it is empty. So that a full one
 * differs, a unit stays free.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "io/shm/shm_job.h"

enum {
	SHM_UNIT_BYTES = 64,
	SHM_HEADER_BYTES = 4096,
	SHM_MEMORY_BYTES = 128 << 10, /* so a pair of processes has 256 KiB, one ring each way */
	SHM_ROOM_BYTES = SHM_MEMORY_BYTES - SHM_HEADER_BYTES,
	SHM_RECORDS_MAX = SHM_ROOM_BYTES / SHM_UNIT_BYTES
};

struct shm_memory {
	_Atomic uint64_t magic;
	_Alignas(SHM_UNIT_BYTES) _Atomic uint32_t tail;
	_Atomic uint64_t taken_back;
	_Alignas(SHM_UNIT_BYTES) _Atomic uint32_t head;
	_Atomic uint64_t given_back;
	_Alignas(SHM_UNIT_BYTES) _Atomic uint32_t accepted;
	_Atomic uint32_t asleep;
	_Alignas(SHM_UNIT_BYTES) struct shm_probe {
		_Atomic uint64_t at, value;
	} probe, taker_probe;
	struct shm_job job;
};

/* Prepares zeroed memory, SHM_MEMORY_BYTES aligned to a page, before anybody else has it. */
void shm_memory_init(struct shm_memory *);
/* Whether it was prepared by this version. */
bool shm_memory_is_known(const struct shm_memory *);

/* ---- the end that puts ---- */

struct shm_putter {
	struct shm_memory *memory;
	uint32_t tail;                 /* the next record's place */
	uint32_t published;            /* the other end knows of all before */
	uint32_t head;                 /* as it was last read */
	uint8_t first[SHM_UNIT_BYTES]; /* the unit in which the first record begins that is not published; it is not
					  there yet */
	bool has_flow;
	struct flow flow; /* of the record before */
};

/* At the ring's beginning. The memory is *borrowed*, for as long as this end is used. */
void shm_putter_init(struct shm_putter *, struct shm_memory *);
/* Whether the other end takes from it. What it says may change at any time. */
bool shm_is_accepted(const struct shm_putter *);
/* Whether it also reads this process's memory. */
bool shm_is_read(const struct shm_putter *);
/* The other end takes nothing more of what it reads. */
void shm_take_all_back(struct shm_putter *);

enum shm_verdict {
	SHM_DONE,
	SHM_NONE,    /* there is no train */
	SHM_NO_ROOM, /* in the ring, or in the caller's buffer */
	SHM_BAD      /* the peer wrote nonsense: the ring cannot be used any more */
};

struct shm_train {
	uint32_t len;     /* 1 .. PKT_TRAIN_BYTES_MAX */
	uint32_t segment; /* 1 .. len: of a packet but the last; at most PKT_TRAIN_MAX of them */
	uint8_t first;    /* the first packet's place in its train, less than PKT_TRAIN_MAX */
	bool far;         /* the bytes describe packets; `segment` is any number */
	bool new_flow;    /* taken: shm_taker.flow was not that of the train before */
};

/* Copies the packets of a train, or some of them. Never SHM_NONE. The other end sees nothing before shm_publish(). */
enum shm_verdict shm_put(struct shm_putter *, const struct flow *, const uint8_t *data, const struct shm_train *);
/* Whether at least half of it is free. Nonsense counts as free: who puts next finds it. */
bool shm_is_half_free(struct shm_putter *);
/*
 * Where the other end has begun to take what it has not given back; any number, as that end says. If it is another one
 * after a while, or there is nothing left to take, that end has run meanwhile.
 */
uint32_t shm_taken_up_to(const struct shm_putter *);
/* Whether the other end has given all room back. */
bool shm_is_empty(const struct shm_putter *);
/* Shows what was put. True: the other end sleeps, and does not see it before it is woken. */
bool shm_publish(struct shm_putter *);
/* Whether it sleeps still, with something to take, and the caller is the one to wake it: that is true once. */
bool shm_wakes(struct shm_putter *);

/* ---- the end that takes ---- */

struct shm_taker {
	struct shm_memory *memory;
	uint32_t head;
	uint32_t released; /* the other end may write over all before */
	bool has_flow;
	struct flow flow; /* of the last train; a private copy */
};

/* Likewise. */
void shm_taker_init(struct shm_taker *, struct shm_memory *);
/* From now on trains are taken; `reads`: this process can read the other's memory. */
void shm_accept(struct shm_taker *, bool reads);
/* Whether there is a train, or nonsense. */
bool shm_has_some(const struct shm_taker *);
/* How many bytes were put and not taken, as the peer says. */
uint32_t shm_unread(const struct shm_taker *);
/* Whether the next train, if there is one, describes packets: the peer says so, and may say something else in a moment.
 */
bool shm_next_is_far(const struct shm_taker *);
/* Copies the next train to `to`, which has room for `room` bytes, and describes it. */
enum shm_verdict shm_take(struct shm_taker *, uint8_t *to, uint32_t room, struct shm_train *);
/* Gives the room of what was taken back. */
void shm_release(struct shm_taker *);
/* The lots up to this one must not be read, and what was read of them is not to be taken. Asked before reading and
 * afterwards. */
uint64_t shm_taken_back(const struct shm_taker *);
/* All lots up to this one are read, or dropped. */
void shm_give_back(struct shm_taker *, uint64_t lot);
/*
 * Says that this end will not look again before it is woken. What was put before that wakes nobody, so ask
 * shm_has_some() once more afterwards.
 */
void shm_sleep(struct shm_taker *);
