/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queue (IBTA 10.2.9): a receive queue that several QPs take from. */
#ifndef TRANSPORT_SRQ_H
#define TRANSPORT_SRQ_H

#include <stdint.h>

#include "mem/mr.h"
#include "queue/event.h"
#include "queue/rq.h"

/* The attributes with which a program creates one. */
struct srq_init {
	uint32_t max_wr;
	uint32_t max_sge; /* of each WQE; 0: 1 */
	uint32_t limit;   /* as in struct srq */
	void *owner;      /* of its events */
};

struct srq {
	struct rq rq;
	struct pd *pd;
	uint32_t limit; /* an event is raised when fewer WQEs than this are left; 0: not armed */
	uint32_t users; /* QPs */
	struct event_source event;
};

#endif
