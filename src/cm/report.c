/* SPDX-License-Identifier: BSD-2-Clause */
/* What tools show: counters and listeners. */
#include <string.h>

#include "cm/state.h"
#include "wire/cm_rej.h"

void cm_report(const struct cm *cm, struct cm_counters *out)
{
	const uint32_t *in = cm->in_state;

	*out = cm->counters;
	out->ids = cm->id_count;
	out->listeners = cm->listener_count;
	out->connecting = in[CONN_REQ_SENT] + in[CONN_REP_RCVD] + in[CONN_REQ_RCVD] + in[CONN_REP_SENT] +
			  in[CONN_SIDR_REQ_SENT] + in[CONN_SIDR_REQ_RCVD];
	out->established = in[CONN_ESTABLISHED];
	out->disconnecting = in[CONN_DREQ_SENT] + in[CONN_DREQ_RCVD] + in[CONN_TIMEWAIT];
}

static size_t channel_listeners(const struct cm_channel *ch, struct cm_listener *out, size_t max)
{
	size_t n = 0;

	for (const struct list *l = ch->ids.next; l != &ch->ids && n < max; l = l->next) {
		const struct cm_id *id = container_of(l, struct cm_id, link);

		if (id->state == ID_LISTENING)
			out[n++] = (struct cm_listener){.space = id->space, .addr = id->local};
	}
	return n;
}

size_t cm_report_listeners(const struct cm *cm, struct cm_listener *out, size_t max)
{
	size_t n = 0;

	for (const struct list *l = cm->channels.next; l != &cm->channels; l = l->next)
		n += channel_listeners(container_of(l, struct cm_channel, link), out + n, max - n);
	return n;
}

void count_reject(struct cm_rejects *r, uint16_t reason)
{
	switch (reason) {
	case CM_REJ_SERVICE_ID:
		r->no_listener++;
		break;
	case CM_REJ_CONSUMER:
		r->program++;
		break;
	case CM_REJ_STALE:
		r->stale++;
		break;
	case CM_REJ_TIMEOUT:
		r->timeout++;
		break;
	default:
		r->other++;
	}
}
