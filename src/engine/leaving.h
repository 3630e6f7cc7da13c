/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a device whose time stands still leaves the host's sockets and the group, and has them again: where it left, or in
 * another network namespace. By the engine's thread, with the lock held.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/state.h"

/* Everything that is on its way leaves, as far as it can at once. Before time stands still. */
void leaving_settle(struct engine *);
/* Closes all sockets but those by which tools reach it. */
void leaving_leave(struct engine *);
/*
 * The addresses that queue pairs are connected from or ids of rdma_cm are bound to, counted from 0, each once. False: there are
 * no more.
 */
bool leaving_address(const struct engine *, uint32_t index, uint8_t gid[16]);
/* Whether an id of rdma_cm is bound to an address, by the name that programs know it by. */
bool leaving_cm_uses(const struct engine *, const uint8_t gid[16]);
/* Writes an address as people do, and returns `text`. */
const char *leaving_address_text(const uint8_t gid[16], char *text, size_t bytes);
/*
 * Joins the group where sockets are made now (io/net.h), `here`, where it left, or elsewhere, with the same slot and from
 * the same ports. strict: only if queue pairs have their addresses there, or can go on under others (nic_roam()). 0, or a negative errno with a sentence in why,
 * and it is as it was.
 */
int leaving_return(struct engine *, bool here, bool strict, char *why, size_t why_bytes);
