/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One turn of the loop that pumps packets between a nic and an io. It knows no thread, lock or
 * clock: the holder of the engine's lock calls it with the time.
 *
 * Private to src/engine.
 */
#ifndef ENGINE_LOOP_H
#define ENGINE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/cm.h"
#include "engine/engine.h"
#include "engine/stats.h"
#include "group/group.h"
#include "io/io.h"
#include "nic/nic.h"

struct loop_stash;
struct requests;

struct loop {
	struct nic *nic;
	struct cm *cm; /* or NULL: management datagrams are dropped */
	struct io *io;
	struct io *shm; /* in `io`, or `io` itself: the rings to processes of this host; NULL: none */
	struct group *group; /* or NULL */
	const struct engine_sink *sink;
	const struct engine_cm_sink *cm_sink; /* or NULL */
	struct stats_page *page; /* or NULL */
	unsigned int slot;
	bool streams; /* packets are those of streams, and the cm's to deal out */
	bool unread; /* the last turn left input behind because of its bound */
	uint32_t unread_turns; /* how many turns in a row did so */
	bool more; /* the last turn left output behind because of its bound */
	uint64_t stirred_ns; /* when a packet last came, or left other than by a timer */
	uint64_t page_due_ns;
	uint32_t listens_shown; /* the page's listeners are those of then */
	struct loop_stash *stash; /* packets that the kernel had no room for */
	struct requests *requests; /* that came before their listener; or NULL */
	struct {
		bool takes_part;  /* the process uses connection management */
		bool serves;      /* it is the registrar, and has looked for the dead since it is */
		int watched;      /* the registrar's slot, if it is another's */
		uint64_t look_ns; /* when to look whether it is stopped */
		unsigned looks;   /* for the dead, since somebody left */
		uint64_t again_at_ns; /* when to look for them again; UINT64_MAX: no more */
	} registrar;
};

/*
 * The caller has set nic, cm, io, group, sink and page, which are borrowed until loop_fini(); the rest
 * is zero. 0 or -ENOMEM.
 */
int loop_init(struct loop *);
void loop_fini(struct loop *);

enum loop_work {
	LOOP_OUTPUT, /* turns of output and events */
	LOOP_ALL     /* input and expiry before them */
};

/* One bounded turn; true when a packet moved or may be waiting to, so another turn is worthwhile. */
bool loop_turn(struct loop *, enum loop_work, uint64_t now_ns);

/* Serves other processes of the group and takes the packets that they passed on. */
void loop_serve_group(struct loop *, uint64_t now_ns);

/* When the next turn is due although nothing arrives; UINT64_MAX: never, in the present state. */
uint64_t loop_deadline_ns(const struct loop *);

/* Before a rest: the counters page is brought up to date and files are flushed. */
void loop_rest(struct loop *);

#endif
