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
	out->req_sent = in[CONN_REQ_SENT];
	out->req_rcvd = in[CONN_REQ_RCVD];
	out->rep_sent = in[CONN_REP_SENT];
	out->rep_rcvd = in[CONN_REP_RCVD];
	out->sidr_req_sent = in[CONN_SIDR_REQ_SENT];
	out->sidr_req_rcvd = in[CONN_SIDR_REQ_RCVD];
	out->connecting =
		out->req_sent + out->req_rcvd + out->rep_sent + out->rep_rcvd + out->sidr_req_sent + out->sidr_req_rcvd;
	out->established = in[CONN_ESTABLISHED];
	out->dreq_sent = in[CONN_DREQ_SENT];
	out->dreq_rcvd = in[CONN_DREQ_RCVD];
	out->timewait = in[CONN_TIMEWAIT];
	out->disconnecting = out->dreq_sent + out->dreq_rcvd + out->timewait;
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
#define COUNT(number, name) \
	case number: r->name++; break;
		CM_REJ_REASONS(COUNT)
#undef COUNT
	default: r->other++;
	}
}
