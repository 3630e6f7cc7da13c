/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of connection management that name no communication id of a receiver's: they go to the process that listens,
 * and what nobody listens for is kept for a moment before it is refused (docs/rdmacm.md 7.4).
 *
 * Private to src/engine.
 */
#ifndef ENGINE_REQUESTS_H
#define ENGINE_REQUESTS_H

#include <stdint.h>

#include "engine/loop.h"

/* Memory for loop->requests, which is touched when something is kept. NULL: there is none. */
struct requests *requests_new(void);
void requests_free(struct requests *); /* NULL is harmless */

/* Takes in, passes on or keeps a packet for QPN 1; *borrows* it. hops: how often it was passed on before. */
void requests_take(struct loop *, const struct pkt *, unsigned hops, uint64_t now_ns);
/* Those that are kept, if somebody may listen by now. True: one was taken in. */
bool requests_again(struct loop *, uint64_t now_ns);
uint64_t requests_deadline_ns(const struct loop *); /* UINT64_MAX: nothing is kept */

#endif
