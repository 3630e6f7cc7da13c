/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One turn of the loop that pumps packets between a nic and an io. It knows no thread, lock or
 * clock: the holder of the engine's lock calls it with the time.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/cm.h"
#include "engine/engine.h"
#include "engine/stats.h"
#include "group/group.h"
#include "io/io.h"
#include "nic/nic.h"

struct faults;
struct loop_stash;
struct requests;

struct loop {
	struct nic *nic;
	struct cm *cm; /* or NULL: management datagrams are dropped */
	struct io *io;
	struct io *shm;        /* in `io`, or `io` itself: the rings to processes of this host; NULL: none */
	struct io *tcp;        /* likewise TCP connections that put bytes where they belong; NULL: none do */
	struct group *group;   /* or NULL */
	struct limits *limits; /* of the device, if they are of what it sends; NULL: none are. Borrowed */
	uint64_t behind_ns;    /* how far the time is behind the clock by which processes share limits */
	uint64_t data_due_ns;  /* when data may leave, while they wait */
	bool data_waits;       /* for that, and the nic knows */
	struct faults *faults; /* on command; NULL: none */
	uint64_t lived_ns[GROUP_SLOTS + 1]; /* when the group last said that a silent process lives; 0: never */
	const struct engine_sink *sink;
	const struct engine_cm_sink *cm_sink; /* or NULL */
	struct stats_page *page;              /* or NULL */
	unsigned int slot;
	bool streams;          /* the packets are those of TCP connections, which the cm assigns to QPs */
	bool unread;           /* the last turn left input behind because of its bound */
	uint32_t unread_turns; /* how many turns in a row did so */
	size_t moved;          /* packets that the last turn took and sent */
	bool more;             /* the last turn left output behind because of its bound */
	bool owes;             /* the last turn of input did nothing else */
	uint64_t stirred_ns;   /* when a packet last arrived, or last left without a timer as the reason */
	uint64_t page_due_ns;
	unsigned rings_told;       /* causes for which there are no rings: neighbours.c */
	uint32_t listens_shown;    /* the listeners in the page are those of this count of the cm */
	uint64_t qps_shown;        /* likewise QPs, of this count of the nic */
	struct loop_stash *stash;  /* packets that the kernel had no room for */
	struct map_file *map;      /* names of addresses (map_file.h); NULL: they have none. Borrowed */
	struct requests *requests; /* connection requests that nobody listens for yet; or NULL */
	struct {
		bool takes_part;      /* the process uses connection management */
		bool serves;          /* it is the registrar, and has looked for dead processes since it became that */
		int watched;          /* slot of the registrar, if that is another process */
		uint64_t look_ns;     /* when to check whether that process is stopped */
		unsigned looks;       /* how often it has looked for dead processes since one left */
		uint64_t again_at_ns; /* when to look for them next; UINT64_MAX: not again */
	} registrar;
};

/*
 * The caller has set nic, cm, io, group, sink and page, which are borrowed until loop_fini(); the rest
 * is zero. 0 or -ENOMEM.
 */
int loop_init(struct loop *);
void loop_fini(struct loop *);

/* From the least to the most. */
enum loop_work {
	LOOP_POSTED, /* output and events: what a post waits for */
	LOOP_OUTPUT, /* everything but input and expiry */
	LOOP_POLLED, /* input and events; the rest, too, if nothing came, if packets wait to leave, or if the last such
			turn left it out */
	LOOP_ALL
};

/* One bounded turn; true when a packet moved or may be waiting to, so another turn is worthwhile. */
bool loop_turn(struct loop *, enum loop_work, uint64_t now_ns);

/* Serves other processes of the group and takes the packets that they passed on. */
void loop_serve_group(struct loop *, uint64_t now_ns);

/* When the next turn is due although nothing arrives; UINT64_MAX: never, in the present state. */
uint64_t loop_deadline_ns(const struct loop *);

/* After a change of a QP without traffic, which would bring the page up to date soon. */
void loop_show_qps(struct loop *);
/* Before a rest: the counters page is brought up to date and files are flushed. */
void loop_rest(struct loop *);
