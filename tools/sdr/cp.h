/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of sdr_cp. The ends meet by TCP or through ssh, where they exchange the settings of the end that asks, what of
 * the files the receiver has, and digests (cp_wire.h). The list of files and then the blocks that are wanted go by
 * messages of the way that was asked for, several small files in one.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <assert.h>

#include "sdr/cp_filter.h"
#include "sdr/cp_flow.h"
#include "sdr/cp_list.h"
#include "sdr/cp_progress.h"
#include "sdr/meet.h"

static_assert((int)CP_MESSAGE == (int)CP_BLOCK, "a block is a message");

/* Settings that the end that asks sends and both use, in the order of the wire. */
enum plan_number {
	PLAN_MAGIC,
	PLAN_MTU,
	PLAN_CHUNK,
	PLAN_RTT_US,
	PLAN_SCHEME,
	PLAN_RATE, /* Mbit/s, or: */
	PLAN_FILL,
	PLAN_FETCH, /* the end that asks receives */
	PLAN_CHECKSUM,
	PLAN_NAMES,
	PLAN_ATTRIBUTES,
	PLAN_OWNERS,
	PLAN_DELETE,
	PLAN_DRY,
	PLAN_ITEMS,
	PLAN_NUMBERS
};

#define CP_MAGIC UINT64_C(0x7364725f63703036) /* "sdr_cp06" */

/* The rate finds itself. To an sdr_cp that does not know it, it is the largest number, which is hardly a limit. */
enum { CP_RATE_MAX = 9999999, CP_RATE_AUTO };

enum { CP_PATHS_MAX = 4096 };

struct cp {
	const char *host; /* that is asked; NULL: this end is asked */
	/* What is copied from, or where to; and the same at the other end, if it is told that. */
	const char *path[CP_PATHS_MAX], *there[CP_PATHS_MAX];
	uint32_t path_count, there_count;
	const char *device, *shell, *remote;
	uint64_t port, gid_index;
	bool quiet, sync, sends, stats, json;
	bool serves; /* the other end has started this one, or this is one of many that it may come to, and names the path */
	bool waits; /* for any number of senders, who may write below base */
	const char *allowed;
	int base; /* a folder; -1: paths are the user's */
	uint64_t plan[PLAN_NUMBERS];
	struct cp_filter filter;

	int tcp;
	char address[MEET_ADDRESS]; /* this end's, by which the two have met; "": not known */
	struct cp_list list;
	struct cp_progress progress;
	uint64_t list_bytes;
	uint64_t bytes; /* that are sent */
	uint64_t start_ns, end_ns;
	/* Things that the sender left out, and that are not as they were sent; whose attributes could not all be set, or
	 * that could not be deleted; and that were. */
	uint32_t left_out, wrong, failed, deleted;

	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_mr *mr;
	uint8_t *memory; /* CP_DEPTH messages */
	uint32_t lkey;
	struct scheme_way way;
};

/* The two ends, once they are connected. */
void cp_send(struct cp *);
void cp_receive(struct cp *);
/* Nothing more can be done now: sleeps until the network, or the peer if it is `heard`, has something, or progress is to be
 * shown. */
void cp_rest(const struct cp *, bool heard);
/* It is known which bytes are sent. */
void cp_start(struct cp *);
/* Prints a line for the user, if this end has one who reads lines. */
void cp_tell(const struct cp *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
