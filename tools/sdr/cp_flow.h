/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in their order, each in a place of a ring of memory: first those of the list, then those of files. For each
 * its digest goes where the ends have met, and a message is right if that is its own.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbena/sdr.h>

#include "sdr/chosen_scheme.h"

struct cp;

enum {
	CP_MESSAGE_LOG = 22,
	CP_DEPTH_LOG = 4,
	CP_DEPTH = 1 << CP_DEPTH_LOG, /* messages under way */
	CP_MESSAGE = 1 << CP_MESSAGE_LOG,
};

/* The sending end's. */
struct cp_out {
	struct cp *cp;
	uint64_t filled, started, there; /* messages */
	uint64_t filled_bytes, there_bytes;
	uint64_t all_bytes; /* of all that will be sent, as far as it is known */
	uint64_t bytes[CP_DEPTH];
	struct verbena_sdr_send send[CP_DEPTH];
	uint64_t start_ns, start_bytes;  /* when and where the rate was looked at first */
	struct verbena_sdr_ec_attr said; /* the choice that was printed last */
};

/* Where the next message is written; NULL: all places are taken. */
uint8_t *cp_out_memory(const struct cp_out *);
/* It is written: bytes is at least 1. Its digest is told. */
void cp_out_add(struct cp_out *, uint64_t bytes);
/* Sends what may be sent, and sees what has arrived. False: nothing happened. */
bool cp_out_turn(struct cp_out *);
static inline bool cp_out_idle(const struct cp_out *o)
{
	return o->there == o->filled;
}

/* The receiving end's. */
struct cp_in {
	struct cp *cp;
	uint64_t posted, there; /* messages */
	uint64_t digests;       /* messages whose digests are here */
	uint64_t bytes[CP_DEPTH];
	uint64_t digest[2 * CP_DEPTH][2]; /* as they came: the sender may be ahead of what is taken by a ring */
	struct verbena_sdr_recv recv[CP_DEPTH];
};

/* Wants the next message, of so many bytes. False: it cannot yet. */
bool cp_in_post(struct cp_in *, uint64_t bytes);
/* A digest has come; false: nobody waits for one. */
bool cp_in_digest(struct cp_in *, const uint8_t digest[16]);
/* The oldest message and its bytes, if it is here with its digest; NULL: it is not. `right`: it is what was sent. It stays
 * until cp_in_done(). */
const uint8_t *cp_in_take(struct cp_in *, uint64_t *bytes, bool *right);
void cp_in_done(struct cp_in *);
