/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events (IBTA 11.6.3): what happened to which object. */
#pragma once

#include <stdint.h>

#include "base/list.h"

/* The numbers of enum ibv_event_type. */
enum event_type {
	EVENT_CQ_ERR = 0,
	EVENT_QP_FATAL = 1,
	EVENT_QP_REQ_ERR = 2,
	EVENT_QP_ACCESS_ERR = 3,
	EVENT_COMM_EST = 4,
	EVENT_SQ_DRAINED = 5,
	EVENT_DEVICE_FATAL = 8,
	EVENT_PORT_ACTIVE = 9,
	EVENT_PORT_ERR = 10,
	EVENT_SRQ_ERR = 14,
	EVENT_SRQ_LIMIT_REACHED = 15,
	EVENT_QP_LAST_WQE_REACHED = 16,
	EVENT_GID_CHANGE = 18
};

struct async_event {
	enum event_type type;
	void *owner; /* of the CQ, QP or SRQ; the core knows nothing of ports' events */
};

/*
 * What an object that can raise events carries, so that raising one needs no memory: a bit for each
 * kind that is waiting to be taken. One kind raised twice before it is taken is one event.
 */
struct event_source {
	struct list link;
	void *owner;
	uint32_t pending; /* 1 << enum event_type */
};

static inline void event_raise(struct list *pending, struct event_source *s, enum event_type type)
{
	if (!s->pending)
		list_append(pending, &s->link);
	s->pending |= 1u << type;
}
