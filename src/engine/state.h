/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State that engine.c (the calls of programs' threads) and thread.c (the engine's own) share; waiting.h says who does
 * the work.
 *
 * Private to src/engine.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/config.h"
#include "engine/engine.h"
#include "engine/env.h"
#include "engine/gids.h"
#include "engine/lock.h"
#include "engine/loop.h"
#include "engine/qps_page.h"
#include "engine/waiting.h"
#include "faults/faults.h"
#include "group/group.h"
#include "limits/limits.h"
#include "io/udp/mcast.h"
#include "io/raw/raw.h"
#include "io/udp/udp.h"

/* waiting.h draws them. */
enum thread_state { THREAD_RUN, THREAD_NAP, THREAD_AWAIT, THREAD_BLOCKED };

enum { PORT_DEEDS_MAX = 16 };

/* Faults of the link and of GIDs, which the thread does: the port's table is its own. */
struct port_deeds {
	struct fault_deed deeds[PORT_DEEDS_MAX]; /* under the lock */
	atomic_uint count;                       /* likewise, but the thread peeks without */
	bool link_down;                          /* under the lock */
};

struct engine {
	/* Read by every call, written by few. */
	struct engine_env *env;
	struct env_host host; /* env, unless engine_set_env() gave another one */
	struct config config;
	unsigned device;
	struct gid_table gids;
	struct group *group;
	struct limits *limits; /* the place among the processes of the device; NULL: it has no limits. Lock */
	uint32_t quotas_told;  /* a bit for each quota that was refused and not given since; lock */
	/* Innermost of loop.io, which closes it: the UDP sockets, RoCEv1's packet socket, or TCP streams; the others
	 * are NULL. */
	struct io *udp;
	struct io *raw;
	struct io *tcp;
	struct io *mcast; /* around udp; NULL without it */
	uint32_t paths;   /* UDP source ports of the back end, in each family */
	uint16_t sport_ipv4[UDP_PATHS_MAX];
	uint16_t sport_ipv6[UDP_PATHS_MAX]; /* 0: no IPv6 */
	bool may_cancel;     /* the back end makes calls that are cancellation points: streams, raw frames, a capture */
	size_t rcvbuf_bytes; /* as the kernel counts */
	int stat_fd;
	int port_fd;     /* of port.h; -1: none */
	bool port_stale; /* the table is; the thread alone */
	struct port_deeds port_deeds;
	_Atomic bool renamed;      /* the map gives the port's GIDs other names; the thread tells of it */
	_Atomic bool freeze_asked; /* a tool has; the thread does it */
	uint64_t wall_at_0_ns;     /* the wall clock's time when that of the environment was 0 */
	pthread_t thread;

	/* Any thread. */
	_Alignas(64) struct lock lock;

	/* Written by pollers and posters, on every call. */
	_Alignas(64) struct polls polls;

	/* Written by the thread; a hand-over turns NAP into RUN. A futex. */
	_Alignas(64) _Atomic uint32_t state;
	_Atomic bool serve_wanted; /* the thread leaves the group's requests to the next poll, which clears this */

	/* Under the lock. */
	_Alignas(64) struct loop loop;
	uint64_t opened_ns;        /* when it was started */
	uint32_t qps_made;         /* ever */
	uint32_t hold_max;         /* packets that faults may hold back */
	bool wrapped;              /* loop.io has the wrapper for faults */
	bool deaf;                 /* what is there to read wakes nobody: nothing is taken. Lock */
	bool knows_qps;            /* the fault engine does */
	int cancel_state;          /* to which engine_unlock() brings the holder's thread back */
	uint64_t sleep_until_ns;   /* in BLOCKED */
	uint64_t turned_ns;        /* the last turn's time: that of the next is no earlier */
	_Atomic uint64_t moved_ns; /* when packets last moved; the thread peeks without the lock */
	struct qps_round qps_round;
	bool closed; /* the process exits, or forked away: turns do nothing */
	bool forked; /* forked away */
};

/* Reads the back end's source ports; before there is a thread, or with the lock held. */
void engine_note_paths(struct engine *);
/* Likewise: tells the back end which interface each GID has, or that the routes of the host have changed. */
void engine_note_gids(struct engine *);

/* The speed of the link: that of the settings, or of the fastest interface; 0: unknown. */
uint64_t engine_line_rate_bps(const struct engine *);

/* The slot that requests go to which name nobody, by the memory that members share; 0 before there is one. */
unsigned engine_requests_slot(const void *shared);
/* All settings of a group but its ports: otherwise as below. */
int engine_group_members(const struct engine *, const struct gid_table *, struct group_config *,
			 struct group_address host[NIC_GIDS_MAX], char *why, size_t why_bytes);
/*
 * The settings of the group that shares the UDP ports, of a host with those addresses; *host is lent to them. 0, or a
 * negative errno with a sentence in why.
 */
int engine_group_settings(const struct engine *, const struct gid_table *, struct group_config *,
			  struct group_address host[NIC_GIDS_MAX], char *why, size_t why_bytes);

/* Lock held. A turn and everything that follows from it; true when packets moved. No cancellation point. */
bool engine_turn(struct engine *, enum loop_work, uint64_t now_ns);
/* Lock held. Answers the group's requests, and takes serve_wanted back. No cancellation point. */
void engine_serve_group(struct engine *, uint64_t now_ns);
/*
 * Lock held: does the work that others left, wakes the thread if it would sleep too long, and
 * releases the lock.
 */
void engine_leave(struct engine *);

/* Watches the descriptors of the loop, the port and the group, and makes the thread. 0 or a negative errno. */
int thread_start(struct engine *);
/* Any thread. */
void thread_end_nap(struct engine *);

/* The process exits: ends the engine, within `tries`, which are used up. end.c. */
void engine_end(struct engine *, int *tries);
