/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lays packets out in trains. Invariant: burst[i].ip_id is the packet's place in its train, so a
 * train begins wherever it is 0.
 */
#include <assert.h>
#include <string.h>

#include "transport/tx.h"

#include "mem/mr.h"

void tx_start(struct tx *tx, struct pkt *burst, size_t max)
{
	tx->used = 0;
	tx->burst = burst;
	tx->count = 0;
	tx->max = max > 2 * TX_ANSWERS ? max - TX_ANSWERS : max;
	tx->most = max;
	tx->bytes = 0;
	tx->turn++;
	tx->flow = NULL;
	tx->train_open = false;
	tx->train_count = 0;
	tx->train_bytes = 0;
	tx->kept = NULL;
	tx->kept_for = NULL;
	tx->int_stack = NULL;
}

uint8_t *tx_room_behind_data(struct tx *tx, uint32_t len)
{
	if (tx->count == tx->most || tx->used + len > TX_ARENA_BYTES)
		return NULL;
	/* The train that it begins does not open the turn again. */
	tx->max = 0;
	return tx->arena + tx->used;
}

const struct flow *tx_keep_flow(struct tx *tx, const struct flow *flow)
{
	size_t at = (tx->used + _Alignof(struct flow) - 1) & ~(_Alignof(struct flow) - 1);

	if (tx->kept && !memcmp(tx->kept, flow, sizeof(*flow)))
		return tx->kept;
	if (TX_ARENA_BYTES - at < sizeof(*flow))
		return NULL;
	memcpy(tx->arena + at, flow, sizeof(*flow));
	tx->kept = (const struct flow *)(tx->arena + at);
	tx->kept_for = NULL;
	tx->used = at + sizeof(*flow);
	tx->train_open = false;
	return tx->kept;
}

static bool joins_train(const struct tx *tx, const struct flow *flow, uint32_t dqpn, uint32_t len)
{
	return tx->train_open && tx->flow == flow && tx->dqpn == dqpn && len <= tx->train_len &&
	       tx->train_count < tx->train_max && tx->train_bytes + len <= PKT_TRAIN_BYTES_MAX;
}

/* What was noted is this packet's, or that of one that was given up. */
static void leave_out(struct mr_far *far, struct pkt *pkt)
{
	if (far->len && far->to >= pkt->data && far->to + far->len <= pkt->data + pkt->len) {
		pkt->far_at = (uint16_t)(far->to - pkt->data);
		pkt->far_bytes = (uint16_t)far->len;
	}
	far->len = 0;
}

void tx_commit(struct tx *tx, const struct flow *flow, uint32_t dqpn, uint32_t bytes)
{
	struct pkt *pkt = &tx->burst[tx->count];
	uint32_t len = bytes + tx->seal->overhead;

	assert(tx->count < tx->most);
	assert(tx->used + len <= TX_ARENA_BYTES);
	if (!joins_train(tx, flow, dqpn, len)) {
		tx->flow = flow;
		tx->dqpn = dqpn;
		tx->train_len = len;
		tx->train_bytes = 0;
		tx->train_count = 0;
	}
	*pkt = (struct pkt){.data = tx->arena + tx->used,
			    .flow = flow,
			    .len = len,
			    .ip_id = tx->train_count,
			    .train = 1,
			    .int_stack = tx->int_stack};
	tx->int_stack = NULL;
	tx->train_open = len == tx->train_len;
	tx->train_bytes += len;
	tx->train_count++;
	tx->used += len;
	tx->bytes += len;
	tx->count++;
	if (tx->seal->seal)
		tx->seal->seal(tx, pkt);
	else if (tx->far)
		leave_out(tx->far, pkt);
}

void tx_commit_bytes(struct tx *tx, const struct flow *flow, uint32_t len)
{
	struct pkt *last = tx->count ? &tx->burst[tx->count - 1] : NULL;

	assert(tx->used + len <= TX_ARENA_BYTES);
	if (last && last->flow == flow && !last->event)
		last->len += len;
	else
		tx_commit_event(tx, flow, NULL)->len = len;
	tx->used += len;
	tx->bytes += len;
}

struct pkt *tx_commit_event(struct tx *tx, const struct flow *flow, const struct stream_event *event)
{
	struct pkt *pkt = &tx->burst[tx->count++];

	assert(tx->count <= tx->most);
	*pkt = (struct pkt){.data = tx->arena + tx->used, .flow = flow, .event = event};
	return pkt;
}

size_t tx_finish(struct tx *tx)
{
	for (size_t i = tx->count; i-- > 1;) {
		if (tx->burst[i].ip_id)
			tx->burst[i - 1].train = (uint16_t)(tx->burst[i].train + 1);
	}
	return tx->count;
}
