/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters page: what one process's engine did, in shared memory whose descriptor any other
 * process of the user may ask the group for. Readers see each number whole, but not all numbers of
 * one instant; the nic's are at most about 10 ms old while there is traffic, and exact without
 * traffic.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/cm.h"
#include "engine/engine.h"
#include "faults/log.h"
#include "io/by_interface.h"
#include "io/io.h"
#include "limits/limits.h"
#include "nic/nic.h"

#define STATS_MAGIC 0x76626e61u /* "vbna" */

enum { STATS_VERSION = 13, STATS_COMM_BYTES = 16, STATS_LISTENERS_MAX = 32, STATS_QPS_MAX = 64 };

struct limit_counters {
	uint64_t quota_refusals; /* objects that were not made, because a quota was used up */
	uint64_t rate_waits;     /* times that data had to wait for the device's rate or share */
};

/* Written by one engine; programs with the same STATS_VERSION and size have the same layout. */
struct stats_page {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes; /* sizeof(struct stats_page), a second guard against another layout */
	int32_t pid;
	uint32_t slot; /* the high bits of the process's QPNs */
	uint32_t port; /* UDP ports: of RoCEv2 */
	uint32_t veroce_port;
	uint32_t device;               /* which of the process's devices it is */
	uint32_t iwarp;                /* a bit for each device of the process that speaks iWARP */
	char given[DEVICE_NAME_BYTES]; /* the name of the only device; empty: its kind's */
	char comm[STATS_COMM_BYTES];
	uint64_t started_ns; /* CLOCK_REALTIME */
	struct nic_counters nic;
	struct io_counters io;           /* the back end counts here directly */
	struct io_interfaces interfaces; /* likewise; of UDP and RoCEv1's frames */
	struct cm_counters cm;           /* as old as the nic's */
	struct limit_counters limit;
	struct limits_report
		limits; /* of the device, as old as the nic's counters; processes is 0 where there are none */
	uint32_t listener_count;
	struct cm_listener listeners[STATS_LISTENERS_MAX]; /* the first ones */
	/* QPs belong together, unlike counters: stats_read_qps(). */
	_Atomic uint32_t qps_turn;               /* odd while they are written */
	uint32_t qp_count;                       /* of `qps` */
	struct nic_qp_report qps[STATS_QPS_MAX]; /* some, if there are more */
	struct fault_log faults;
};

/*
 * A fresh page in a memory file, mapped for writing; started_ns is since 1970. *fd is the caller's, opened
 * close-on-exec, and a process that gets it can only read. Where the host allows no memory file (memfd_create refused,
 * RLIMIT_FSIZE) *fd is -1: the page is the process's own, and tools cannot look into it. NULL with errno.
 */
struct stats_page *stats_create(int *fd, uint64_t started_ns);
/* Takes both, as stats_create() gave them. */
void stats_destroy(struct stats_page *, int fd);

/* A memory file of that size, which may be sealed, or -1 where the host allows none. */
int stats_make_file(const char *name, size_t bytes);

/*
 * Maps the page behind fd, which may come from any process, for reading. NULL: it is no page of this
 * version, or it could shrink. The caller keeps fd and unmaps with stats_unmap().
 */
const struct stats_page *stats_map(int fd);
void stats_unmap(const struct stats_page *);

/* The engine's: writes what nic_report_qps() tells. */
void stats_write_qps(struct stats_page *, const struct nic *);
/*
 * Copies the rows, at most STATS_QPS_MAX, as they were at one instant; or -EAGAIN: their process does not finish
 * writing them. Of a row only the values of type, state and way are certain to be known ones.
 */
int stats_read_qps(const struct stats_page *, struct nic_qp_report *);

/* A counter by name, for tables and JSON, in the order in which to show them. */
struct stats_field {
	const char *name;
	size_t offset; /* of a uint64_t in struct stats_page */
};
/* The counters by name, in the order of the page. */
const struct stats_field *stats_fields(size_t *count);

static inline uint64_t stats_value(const struct stats_page *p, const struct stats_field *f)
{
	return *(const volatile uint64_t *)((const char *)p + f->offset);
}
