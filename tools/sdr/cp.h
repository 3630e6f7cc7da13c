/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of sdr_cp. The ends meet by TCP or through ssh, where the settings of the end that asks, the sender's list,
 * and what of it the receiver has, are exchanged (cp_wire.h). Blocks that are wanted go by messages of the way that was
 * asked for, several small files in one. The digest of each file follows where the ends have met.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <assert.h>

#include "sdr/cp_list.h"
#include "sdr/cp_progress.h"
#include "sdr/chosen_scheme.h"
#include "sdr/meet.h"

enum {
	CP_MESSAGE_LOG = 22,
	CP_DEPTH_LOG = 4,
	CP_DEPTH = 1 << CP_DEPTH_LOG, /* messages under way */
	CP_MESSAGE = 1 << CP_MESSAGE_LOG,
};
static_assert((int)CP_MESSAGE == (int)CP_BLOCK, "a block is a message");

/* Settings that the end that asks sends and both use, in the order of the wire. */
enum plan_number {
	PLAN_MAGIC,
	PLAN_MTU,
	PLAN_CHUNK,
	PLAN_RTT_US,
	PLAN_SCHEME,
	PLAN_RATE,
	PLAN_FILL,
	PLAN_FETCH, /* the end that asks receives */
	PLAN_NUMBERS
};

#define CP_MAGIC UINT64_C(0x7364725f63703035) /* "sdr_cp05" */

struct cp {
	const char *host;  /* that is asked; NULL: this end is asked */
	const char *there; /* the path at the other end, if it is told that; else NULL */
	const char *path, *device;
	const char *shell, *remote;
	uint64_t port, gid_index;
	bool quiet, sync, sends;
	bool serves; /* the other end has started this one */
	uint64_t plan[PLAN_NUMBERS];

	int tcp;
	char address[MEET_ADDRESS]; /* this end's, by which the two have met; "": not known */
	struct cp_list list;
	struct cp_progress progress;
	uint64_t bytes;      /* that are sent */
	uint64_t done_bytes; /* of these */

	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_mr *mr;
	uint8_t *memory; /* CP_DEPTH messages */
	uint32_t lkey;
	struct scheme_way way;
};

/* The list is known and all that is not sent is kept: opens the device and connects. */
void cp_connect(struct cp *);
/* The peer was heard, or nothing is expected of it any more. */
void cp_close(struct cp *);
static inline uint8_t *cp_memory(const struct cp *cp, uint64_t message)
{
	return cp->memory + message % CP_DEPTH * CP_MESSAGE;
}

/* The exit status: 1 if something was left out. */
int cp_send(struct cp *);
int cp_receive(struct cp *);
