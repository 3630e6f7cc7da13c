/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbena-sim: a simulated network as the back end of another simulator.
 *
 * A scenario of verbena-sim(1) says what network there is and what its hosts speak. The program says what is sent: its
 * ranks, which are hosts of the scenario, send messages to each other, and it is called back when they are sent, when
 * they have arrived, and when a time has come. It is what a front end as ASTRA-sim's needs.
 *
 * Callbacks are called by verbena_sim_run() alone, one after the other, in the order of simulated time; what happens at
 * one time has an order that is the same in each run. A callback may make every call but verbena_sim_run() and
 * verbena_sim_report(). Time stands still while it runs. The library has no threads; a simulation may be used by one
 * thread at a time, and several simulations by several threads.
 *
 * Calls that return an int return 0, or -1 with errno and a sentence in verbena_sim_why().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VERBENA_SIM_API __attribute__((visibility("default")))

struct verbena_sim;

typedef void (*verbena_sim_callback)(void *context);

/* ---- a simulation */

/* Opens a scenario: the path of a file, or the name of one that came with Verbena. Settings are overrides,
 * "section.key=value", that a NULL ends; NULL: none. Rank i is host i, and the scenario's workloads do not run: one that is
 * called `program` is added, and runs alone. But if the scenario has one with `kind = program`, that says which hosts the
 * ranks are and of which class their data is, and all others run as well. NULL, errno and a sentence in why, which is cut to
 * why_bytes: EINVAL: the scenario is wrong, and the sentence names file, line and key; ENOMEM. */
VERBENA_SIM_API struct verbena_sim *verbena_sim_open(const char *scenario, const char *const *settings, char *why,
						     size_t why_bytes);
/* Ends the simulation and frees all of it; callbacks that are outstanding are never called. Called by a callback, it lets
 * verbena_sim_run() return VERBENA_SIM_CLOSED once the callback has returned, and the simulation is gone then. Harmless on
 * NULL. */
VERBENA_SIM_API void verbena_sim_close(struct verbena_sim *);
/* How many ranks there are, numbered from 0. */
VERBENA_SIM_API uint32_t verbena_sim_ranks(const struct verbena_sim *);
/* The simulated time, in picoseconds from 0. */
VERBENA_SIM_API uint64_t verbena_sim_now(const struct verbena_sim *);
/* What the last call that failed, or the end of verbena_sim_run(), has to say: a sentence, or "". The simulation's until
 * its next call. */
VERBENA_SIM_API const char *verbena_sim_why(const struct verbena_sim *);

/* ---- what ranks do */

/* The longest message. */
#define VERBENA_SIM_BYTES_MAX (UINT64_C(1) << 44)

/* Sends a message, which travels as one of the scenario's protocol, on a queue pair that all messages between the two ranks
 * share. One of 0 bytes travels as a byte; one of a rank to itself takes no time. `done` is called when the sender knows that
 * all of it has arrived, or never if its queue pair breaks; it may be NULL. ERANGE: there is no such rank; EMSGSIZE: it is
 * longer than VERBENA_SIM_BYTES_MAX, or with SDR than 1 GiB; ENOMEM. */
VERBENA_SIM_API int verbena_sim_send(struct verbena_sim *, uint32_t src, uint32_t dst, uint64_t bytes, uint64_t tag,
				     verbena_sim_callback done, void *context);
/* `done` is called when the message has arrived that this receive takes: the n-th receive of a rank from a source with a tag
 * takes the n-th message that came from there with that tag. Which of the two comes first does not matter. ERANGE, ENOMEM. */
VERBENA_SIM_API int verbena_sim_receive(struct verbena_sim *, uint32_t rank, uint32_t from, uint64_t tag,
					verbena_sim_callback done, void *context);
/* `due` is called after that time, which may be 0; what was scheduled first for one time is called first. ERANGE: it would be
 * more than 106 days after the beginning; ENOMEM. */
VERBENA_SIM_API int verbena_sim_schedule(struct verbena_sim *, uint64_t delay_ps, verbena_sim_callback due,
					 void *context);

/* ---- time */

enum verbena_sim_end {
	VERBENA_SIM_DONE = 0,    /* no message is under way, nothing is scheduled, no receive waits */
	VERBENA_SIM_UNTIL = 1,   /* the time has come, or an end that the scenario has (run.until, run.events) */
	VERBENA_SIM_STOPPED = 2, /* verbena_sim_stop() was called */
	VERBENA_SIM_CLOSED = 3,  /* verbena_sim_close() was called by a callback */
	/* It cannot go on, and verbena_sim_why() says why: receives wait for what nobody sends, a queue pair has broken, or
	 * buffers wait for each other. */
	VERBENA_SIM_STUCK = 4,
};

#define VERBENA_SIM_NEVER UINT64_MAX

/* Lets time go on until nothing is left to happen, or to until_ps with all that happens then; VERBENA_SIM_NEVER: no such
 * time. It can be called again, as more is sent and scheduled. An enum verbena_sim_end, or -1: EBUSY: by a callback; EINVAL:
 * after verbena_sim_report(); ENOMEM; EIO: an invariant of the simulation does not hold. */
VERBENA_SIM_API int verbena_sim_run(struct verbena_sim *, uint64_t until_ps);
/* Lets verbena_sim_run() return when the callback that calls this has returned; what else is due waits for the next run.
 * Between two runs it does nothing. */
VERBENA_SIM_API void verbena_sim_stop(struct verbena_sim *);

/* ---- results */

/* Writes to a folder, which is made, the report that verbena-sim(1) writes: messages, ports, queues and figures as CSV and
 * JSON, and a page. It ends the simulation: nothing but verbena_sim_close() and the looks at it may follow. EBUSY: by a callback;
 * EINVAL: it has been called before; EIO: a file cannot be written; ENOMEM. */
VERBENA_SIM_API int verbena_sim_report(struct verbena_sim *, const char *folder);

#ifdef __cplusplus
}
#endif
