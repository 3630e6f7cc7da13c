/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two ends of sdr_cp say to each other by TCP or through ssh: frames of a type and at most CP_FRAME_MAX bytes.
 *
 *     type 32 | length 32 | payload
 *
 * A peer that ends with an error says why, and so does this end: every error ends the program.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CP_FRAME_MAX = 16384,
	CP_RECORD_LEN = 12, /* of CP_HASHES, without the hashes */
	CP_ITEM_LEN = 11,   /* of CP_ITEM, what is done to it */
};

enum cp_frame_type {
	CP_FAIL = 0x6661696c, /* a sentence; where a number of meet.h is expected, it is none */
	/* The end that asks begins. */
	CP_FILTER = 0, /* include 8, pattern; none: that was all */
	CP_PATH,       /* what is wanted, or where to, at the other end; none: that was all */
	CP_MET,        /* answers it: the address of the end that asks, as text; none: not known */
	/* Then the sender's list comes by messages. */
	CP_LIST,   /* entries 32, bytes 64 */
	CP_DIGEST, /* 16 bytes: of the next message */
	CP_SENT,   /* of the list: none; of files: how many things are left out 32. All is acknowledged */
	/* The receiver says what of it is there. */
	CP_SAME,   /* any number of {entry 32, count 32}: files that are there, by their lengths and times */
	CP_HASHES, /* of blocks that are there: any number of {entry 32, first block 32, count 32, count x hash 16
		    * bytes}; none: that was all */
	CP_KEEP,   /* answers a CP_HASHES: any number of {entry 32, block 32} that need not be sent */
	CP_ITEM, /* entry 32, CP_ITEM_LEN bytes, and where entry is none of the list, a name: what is done (cp_items.h) */
	CP_HOLES, /* the sender's: any number of {entry 32, first block 32, count 32} without data; none: that was all */
	/* Then the files come by messages. */
	CP_BAD,     /* entry 32: it cannot be read any more, and what has arrived is not it */
	CP_VERDICT, /* files that are not as they were sent 32, things that could not be done 32 */
	CP_FRAME_TYPES
};

struct cp_frame {
	enum cp_frame_type type;
	uint32_t length;
	uint8_t payload[CP_FRAME_MAX];
};

/* Takes a connection of meet() or remote_start(). From here on a TCP peer whose machine is silent counts as gone after a
 * minute, and die() tells the peer why; where this end is `served`, its user is the peer's, who reads it there alone. */
void cp_wire_open(int tcp, bool served);
void cp_say(enum cp_frame_type, const void *payload, size_t length);
/* The next frame, if it is here. */
bool cp_hear(struct cp_frame *);
/* Waits for the next frame; for one that has that type. */
void cp_await(struct cp_frame *);
void cp_expect(struct cp_frame *, enum cp_frame_type);
/* The peer has said what makes no sense. */
void cp_nonsense(void) __attribute__((noreturn));
