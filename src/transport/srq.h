/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queue (IBTA 10.2.9): a receive queue that several QPs take from. One of an XRC domain (A14.2) has a
 * number, by which packets name it, and a CQ of its own.
 */
#pragma once

#include <stdint.h>

#include "mem/mr.h"
#include "queue/event.h"
#include "queue/rq.h"

struct cq;

/* The XRC domain: its XRC_RECV QPs receive for all of its SRQs. */
struct xrcd {
	uint32_t users; /* QPs and SRQs */
};

/* The attributes with which a program creates one. */
struct srq_init {
	uint32_t max_wr;
	uint32_t max_sge;  /* of each WQE; 0: 1 */
	uint32_t limit;    /* as in struct srq */
	struct xrcd *xrcd; /* NULL: an ordinary one */
	struct cq *cq;     /* of one with a domain */
	void *owner;       /* of its events */
};

struct srq {
	struct rq rq;
	struct pd *pd;
	uint32_t limit; /* an event is raised when fewer WQEs than this are left; 0: not armed */
	uint32_t users; /* QPs; not those of an XRC domain */
	struct event_source event;
	struct rq_slots before; /* of the size before, while WQEs of then are held */

	struct xrcd *xrcd; /* NULL: it has none, and none of what follows */
	struct cq *cq;
	uint32_t number; /* 24 bits, not 0 */
	struct srq *same_bucket;
};
