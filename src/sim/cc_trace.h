/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What congestion control does to chosen flows: stands between their hosts and the network, and after each
 * call of a host looks at its nic. A record for each change, of each path.
 */
#ifndef SIM_CC_TRACE_H
#define SIM_CC_TRACE_H

#include <stdint.h>

#include "sim/channel.h"
#include "sim/results.h"

struct cc_trace;

/* Borrows all but the count until it is destroyed. NULL: no memory. */
struct cc_trace *cc_trace_create(struct network *, struct host **hosts, uint32_t host_count,
				 struct results *);
/* Before its hosts are. Harmless on NULL. */
void cc_trace_destroy(struct cc_trace *);

/* A flow that is to be traced begins to send on that channel; without memory it is not traced. */
void cc_trace_begin(struct cc_trace *, uint32_t flow, uint32_t src, const struct channel *);
/* It is done, and the channel may go. Harmless if it was not begun. */
void cc_trace_end(struct cc_trace *, uint32_t flow, uint32_t src);

#endif
