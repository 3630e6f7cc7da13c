/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a program sends while the simulation runs, by calls: the workload kind `program`. Ranks send to each
 * other; the n-th receive of a rank from a source with a tag takes the n-th message from there with that tag. What the
 * program does at a time is a callback's work: it may send, receive and schedule more.
 *
 * Callbacks are called by the workload's reports (workload.h), never from within the calls below, and one after the
 * other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program;

typedef void (*program_callback)(void *context);

/* NULL: no memory. The workload borrows it and must be gone before. */
struct program *program_create(void);
/* Harmless on NULL. */
void program_free(struct program *);

/* How many ranks there are, 0 before the workload has it; they have the numbers below. */
uint32_t program_ranks(const struct program *);

/*
 * A message of 0 .. WORKLOAD_BYTES_MAX bytes, one without any travels as a byte, or of less where the run's protocol
 * has a bound (program_limit()). `done` is called when the sender knows that all of it has arrived; NULL: nobody is. A
 * message of a rank to itself takes no time. 0; -ERANGE: there is no such rank; -EMSGSIZE; -ENOMEM.
 */
int program_send(struct program *, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t tag, program_callback done,
		 void *context);
/* `done` is called when its message has arrived. 0, -ERANGE, -ENOMEM. */
int program_receive(struct program *, uint32_t rank, uint32_t from, uint64_t tag, program_callback done, void *context);
/* `due` is called at that time, or at once if it is over. 0, -ENOMEM. */
int program_schedule(struct program *, uint64_t at_ps, program_callback due, void *context);

/* No message may be longer. */
void program_limit(struct program *, uint64_t bytes_max);
uint64_t program_bytes_max(const struct program *);

/* Once stopped it calls nothing back and sends nothing; what has become due meanwhile waits. */
void program_stop(struct program *, bool stopped);
bool program_is_stopped(const struct program *);

/* How many receives wait for a message. If there are any, *first is the oldest of them. */
struct program_wait {
	uint32_t rank, from;
	uint64_t tag;
};

uint64_t program_waits(const struct program *, struct program_wait *first);
