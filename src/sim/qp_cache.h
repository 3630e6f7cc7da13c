/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of queue pairs that a NIC has at hand: a fixed number, those used last. Any other state is
 * fetched first, one at a time, and replaces the one that was not used for longest.
 *
 * Private to src/sim.
 */
#pragma once

#include <stdint.h>

struct qp_cache;

/* Room for `room` queue pairs, at least 1; empty at first. NULL: no memory. */
struct qp_cache *qp_cache_create(uint32_t room, uint64_t miss_ps);
/* Harmless on NULL. */
void qp_cache_destroy(struct qp_cache *);

/*
 * A queue pair is used; returns when its state is at hand, now_ps or later. `key` identifies the queue
 * pair and is not UINT64_MAX. Calls must not go back in time.
 */
uint64_t qp_cache_use(struct qp_cache *, uint64_t key, uint64_t now_ps);
/* How often a state was not at hand. */
uint64_t qp_cache_misses(const struct qp_cache *);
