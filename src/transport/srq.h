/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queue (IBTA 10.2.9): a receive queue that several QPs take from. */
#ifndef TRANSPORT_SRQ_H
#define TRANSPORT_SRQ_H

#include <stdint.h>

#include "mem/mr.h"
#include "queue/event.h"
#include "queue/rq.h"

struct srq {
	struct rq rq;
	struct pd *pd;
	uint32_t limit; /* an event is raised when fewer WQEs than this are left; 0: not armed */
	uint32_t users; /* QPs */
	struct event_source event;
};

#endif
