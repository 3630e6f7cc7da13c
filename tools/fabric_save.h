/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena fabric --save`: asks a manager for the service level of every pair of adapters, and writes what it set into
 * a file that `verbena sim` reads (docs/fabric.md has the format).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

enum {
	FABRIC_SAVE_TID = 0xffff, /* in the highest bits of the transaction ids of our queries */
	FABRIC_SAVE_TURN_MS = 20, /* how often fabric_save_turn() wants to be called */
};

struct fabric_save;

/* NULL, after a complaint: no memory, or a fabric that has no such file, with the reason. */
struct fabric_save *fabric_save_new(struct fabric *, const char *path);
void fabric_save_free(struct fabric_save *);

/*
 * A turn: once all links are active, makes the next query, to the manager's node. False: there is nothing to ask now.
 * The answer goes to fabric_save_answer().
 */
bool fabric_save_turn(struct fabric_save *, struct fabric_mad *query);
void fabric_save_answer(struct fabric_save *, const uint8_t mad[MAD_LEN]);

/* Whether all answers are there. */
bool fabric_save_is_whole(const struct fabric_save *);
/* Writes the file. 0, or the exit status after a complaint. */
int fabric_save_write(const struct fabric_save *);
