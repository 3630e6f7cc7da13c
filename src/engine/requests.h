/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of connection management that name no communication ID of the receiver. They go to the process that listens.
 * If no process does, they are kept for a moment before they are refused (docs/rdmacm.md 7.4).
 *
 * Private to src/engine.
 */
#pragma once

#include <stdint.h>

#include "engine/loop.h"

/* Memory for loop->requests; none of it is written before a message is kept. NULL: no memory. */
struct requests *requests_new(void);
void requests_free(struct requests *); /* NULL is harmless */

/* Gives a packet for QPN 1 to the cm or to another process, or keeps it; *borrows* it. hops: how often it was passed
 * on. */
__attribute__((cold)) void requests_take(struct loop *, const struct pkt *, unsigned hops, uint64_t now_ns);
/* Tries the kept messages again. True: one went to the cm of this process. */
bool requests_again(struct loop *, uint64_t now_ns);
uint64_t requests_deadline_ns(const struct loop *); /* UINT64_MAX: nothing is kept */
