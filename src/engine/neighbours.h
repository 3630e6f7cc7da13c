/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings to other processes of the group: their making, and their end. Called by the holder of the engine's lock, for a
 * loop that has `shm`.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdint.h>

#include "engine/loop.h"

enum { SHM_BYTES_AUTO = 8 << 20 }; /* for the rings of a process: 64 of them */

/* Once: the rings ask the nic from now on. */
void neighbours_begin(struct loop *);
/* Before packets are made: tells the nic which processes are reached, and which of them take no more. */
void neighbours_look(struct loop *, uint64_t now_ns);
/* Whether a process of the group has run since the last such question, as far as that can be seen. */
bool neighbours_ran(struct loop *, unsigned slot);
/* For struct shm_config: of a group. */
bool neighbours_reader_lives(void *group, unsigned slot);
/* Whether packets wait for room, which are lost with this process; *waiting is set to their number. */
bool neighbours_keep_waiting(struct loop *, size_t *waiting, uint64_t now_ns);
/* After output: makes the rings that packets wanted. */
void neighbours_meet(struct loop *, uint64_t now_ns);
/* After group_service(): takes the rings that others made, and gives up those of the dead. */
void neighbours_serve(struct loop *, uint64_t now_ns);
