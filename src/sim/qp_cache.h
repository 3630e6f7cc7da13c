/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of queue pairs that a NIC has at hand: so many of them, those used last. Another's is fetched
 * first, one after the other, and takes the place of the one that was not used for longest.
 */
#ifndef SIM_QP_CACHE_H
#define SIM_QP_CACHE_H

#include <stdint.h>

struct qp_cache;

/* `room` queue pairs, 1 or more, none at first. NULL: no memory. */
struct qp_cache *qp_cache_create(uint32_t room, uint64_t miss_ps);
/* Harmless on NULL. */
void qp_cache_destroy(struct qp_cache *);

/*
 * A queue pair is used: when its state is at hand, now_ps or later. `key` is anybody's number for it but
 * UINT64_MAX. Times of one cache never go back.
 */
uint64_t qp_cache_use(struct qp_cache *, uint64_t key, uint64_t now_ps);
/* How often it was not there. */
uint64_t qp_cache_misses(const struct qp_cache *);

#endif
