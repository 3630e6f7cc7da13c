/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records what congestion control does to chosen flows: it stands between their hosts and the network, and
 * after each call of a host it queries the nic. There is a record for each change of each path.
 */
#pragma once

#include <stdint.h>

#include "sim/channel.h"
#include "sim/results.h"

struct cc_trace;

/* Borrows its arguments until it is destroyed. NULL: no memory. */
struct cc_trace *cc_trace_create(struct network *, struct host **hosts, uint32_t host_count, struct results *);
/* To be called before its hosts are destroyed. Harmless on NULL. */
void cc_trace_destroy(struct cc_trace *);

/* A traced flow begins to send on that channel; without memory it is not traced. */
void cc_trace_begin(struct cc_trace *, uint32_t flow, uint32_t src, const struct channel *);
/* The flow is done, and the channel may be closed. Harmless if it was not begun. */
void cc_trace_end(struct cc_trace *, uint32_t flow, uint32_t src);
