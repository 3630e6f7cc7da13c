/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a virtual device may have, counted over all of its processes: objects, and bytes on the wire.
 *
 * The devices of a user in a network namespace share one file of memory in /dev/shm, which has a row for each device and
 * in it a place for each of its processes. A place is a lock on a byte of the file (F_OFD_SETLK), which ends with its
 * process, however that ends. What a process counted is in its own place, which it alone writes; so when it is gone, all
 * of it is given back by whoever joins next, or finds no room. Processes that join wait for each other; nobody else waits
 * for anybody, so a process that is stopped holds up no other.
 *
 * It is the limited program's own library that keeps to all this: it holds between one's own jobs, and is no protection
 * from a program that would not have it.
 *
 * Calls are the engine's, with its lock held. Times are the host's clock, in nanoseconds, one for all processes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIMITS_NAME_BYTES = 24, LIMITS_DEVICES_MAX = 32, LIMITS_PROCESSES_MAX = 128 };

/* hca_object is what the rdma controller of control groups (rdma.max) calls so: every object of these and other kinds. */
enum limit { LIMIT_QPS, LIMIT_CQS, LIMIT_MRS, LIMIT_MR_BYTES, LIMIT_HCA_OBJECT, LIMITS };

const char *limit_name(enum limit);

struct limits_config {
	uint64_t quota[LIMITS]; /* 0: none */
	uint64_t rate_bps;      /* 0: none */
	uint32_t burst_bytes;   /* 0: what the rate sends in 4 ms, and a train at least */
	uint32_t weight;        /* of a share of the line; 0: it takes no part */
};

/* Whether there is any limit. */
bool limits_are_given(const struct limits_config *);

/*
 * Reads a list of quotas, "qps=1024, mr_bytes=4G". Each is at least 1. False with a sentence in why, and *out as it was.
 */
bool limits_parse_quota(uint64_t out[LIMITS], const char *text, char *why, size_t why_bytes);

enum { LIMITS_TEXT_BYTES = 256 };
/* "rate 2Gbps weight 3 qps=1024"; empty: there are none. */
void limits_text(const struct limits_config *, char text[LIMITS_TEXT_BYTES]);

/* A process's place in its device. */
struct limits;

/*
 * Takes a place in the device of that name; line_bps is the speed of the link that weights are shares of, or 0. 0, or a
 * negative errno with a sentence in why:
 *	-EBUSY   the device has other limits (why has both)
 *	-ENOSPC  all places of the device, or of devices, are taken
 *	-EPERM   the file is another user's
 *	-ETIMEDOUT  another process joins and does not go on
 * and what else keeps it from having the file. No limits is an error of the caller's.
 */
int limits_join(struct limits **, const char *device, const struct limits_config *, uint64_t line_bps, uint64_t now_ns,
		char *why, size_t why_bytes);
/* Gives the place back, and all that was counted there; removes the file if nobody is left. NULL is harmless. */
void limits_leave(struct limits *);
/* In a child of fork, which has no place: closes its copy. NULL is harmless. */
void limits_forget(struct limits *);

/* ---- quotas ---- */

/*
 * This process is about to have that many, some of them more than it has. False: that would be more than the device may
 * have, of *over; nothing has changed.
 */
bool limits_take(struct limits *, const uint64_t wanted[LIMITS], enum limit *over);
/* This process has that many now. */
void limits_note(struct limits *, const uint64_t have[LIMITS]);

/* ---- rate and share ---- */

/* Whether the device has a rate or a weight, so that what it sends counts. */
bool limits_pace(const struct limits *);
/* When data may leave; at or before now_ns: now. Acknowledgements may always. */
uint64_t limits_due_ns(struct limits *, uint64_t now_ns);
/* So many bytes leave now. If there were not enough tokens for them, all processes of the device wait until there are. */
void limits_send(struct limits *, uint64_t bytes, uint64_t now_ns);

/* ---- reports ---- */

struct limits_report {
	struct limits_config config;
	uint64_t used[LIMITS]; /* by all processes */
	uint64_t rate_bps;     /* what it may send now: the rate, or its share; 0: unlimited */
	uint64_t sent_bytes;   /* since its first process came */
	uint32_t processes;
};

void limits_report(const struct limits *, struct limits_report *);
/* For tools, which take no place. False: no process has a place in such a device. */
bool limits_look(const char *device, struct limits_report *);
