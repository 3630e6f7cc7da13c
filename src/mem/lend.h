/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger of lent memory: payload that is not copied into a packet, because the process of this host that gets the
 * packet reads it where it is. What a turn of a queue pair lends to its peer is a lot, and base/loan.h says how lots
 * come back.
 *
 * The bytes of a send request the program must not touch before that is complete: they are taken back when it fails.
 * Those of a READ's response it may change, as READs read what is there sooner or later (IBTA 10.8.3.3): they are taken
 * back when their region or window closes. The queue pair and the region know the last lot with such bytes of theirs.
 * Nobody waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loan.h"

/* A process that reads what is left where it is. */
struct borrower {
	struct list link;   /* in lender.borrowers */
	struct loan *loan;  /* the back end's; NULL: it is lent nothing */
	uint64_t responses; /* the last lot with READ responses in it */
};

/*
 * Bytes that were not copied. At most one piece a packet, whose pieces are read in the order of their places in it.
 */
struct mr_far {
	const uint8_t *to; /* their place in the packet, where a struct pkt_far was written */
	uint32_t len;      /* 0: there are none */
};

struct lender {
	uint64_t lot;          /* the one that is being lent */
	struct borrower *to;   /* whom it is lent to */
	uint64_t *requests;    /* is set to the number of a lot once it has bytes of a request */
	struct list borrowers; /* READ responses that were lent to them may be out */
	struct mr_far far;     /* of the packet that is laid out */
	bool copies;           /* what is read now is copied all the same (mr_set_copies()) */
};

/* Nothing is lent. */
void lender_init(struct lender *);
/* Not lent to, so far. The loan is borrowed; NULL: it never is. */
void borrower_init(struct borrower *, struct loan *);
/* Begins a lot. */
void lender_begin(struct lender *, struct borrower *to, uint64_t *requests);
/* Notes the bytes instead of copying them. False: they are to be copied. */
bool lender_lend_request(struct lender *, uint8_t *to, const void *from, size_t len);
bool lender_lend_response(struct lender *, uint8_t *to, const void *from, size_t len);
/* Takes lots back up to this one: those of one process, or all that READ responses were lent in. */
void borrower_take_back(struct borrower *, uint64_t lot);
void lender_take_back_responses(struct lender *, uint64_t lot);
/* Whether READ responses may still be read. */
bool lender_lends_responses(struct lender *);
