/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Early packets that wait for their turn (veRoCE 7.6, out-of-order R16; docs/veroce.md, "Order in memory"):
 * each is copied as it arrived, with its headers decoded, and its record (struct rx_meta) points to it until all
 * packets before it are handled. early_lands() decides which packets wait.
 *
 * Invariant: transport.early_bytes is the sum of all receivers' early_bytes, at most early_bytes_max. A
 * receiver may keep as much as is left free, so a single one gets half of the whole, and each gets some.
 * A packet that finds no room is dropped without a record, and sent again; the packet whose turn it is needs none.
 */
#include <string.h>

#include "transport/veroce/early.h"

/* The memory of a kept packet, with its part of the record. */
static uint32_t bytes_of(const struct veroce_packet *p)
{
	return (uint32_t)(sizeof(struct early_packet) + sizeof(struct rx_meta)) + p->payload_len;
}

static bool fits(const struct transport *tp, const struct receiver *in, uint32_t bytes)
{
	return (uint64_t)in->early_bytes + bytes + tp->early_bytes <= tp->config.veroce.early_bytes_max;
}

/* Without payload (no_payload) there is nothing to copy. */
static bool copy_payload(struct transport *tp, struct early_packet *k, const struct veroce_packet *p)
{
	uint8_t *to;

	k->p.payload = (const uint8_t *)k;
	if (!p->payload_len || tp->mrs.no_payload)
		return true;
	to = pool_get(&tp->pool, p->payload_len);
	if (!to)
		return false;
	memcpy(to, p->payload, p->payload_len);
	k->payload = to;
	k->p.payload = to;
	return true;
}

bool early_keep(struct transport *tp, struct receiver *in, const struct veroce_packet *p)
{
	if (!fits(tp, in, bytes_of(p)) || !early_put(tp, in, p))
		return false;
	tp->counters.rx_early_kept++;
	return true;
}

bool early_put(struct transport *tp, struct receiver *in, const struct veroce_packet *p)
{
	struct rx_meta m = {.opcode = p->bth.opcode};
	struct early_packet *k = pool_get(&tp->pool, sizeof(*k));

	if (!k)
		return false;
	*k = (struct early_packet){.p = *p};
	m.early = k;
	if (!copy_payload(tp, k, p) || !rx_record(&in->rx, &tp->pool, p->bth.psn, &m)) {
		early_free(tp, k);
		return false;
	}
	tp->early_bytes += bytes_of(p);
	in->early_bytes += bytes_of(p);
	return true;
}

struct early_packet *early_take(struct transport *tp, struct receiver *in, struct rx_meta *m)
{
	struct early_packet *k = m->early;

	m->early = NULL;
	tp->early_bytes -= bytes_of(&k->p);
	in->early_bytes -= bytes_of(&k->p);
	return k;
}

void early_free(struct transport *tp, struct early_packet *k)
{
	pool_put(&tp->pool, k->payload, k->p.payload_len);
	pool_put(&tp->pool, k, sizeof(*k));
}

void early_drop(struct transport *tp, struct receiver *in)
{
	for (uint32_t psn = in->rx.epsn; in->early_bytes; psn = psn_add(psn, 1)) {
		struct rx_meta *m = rx_meta_at(&in->rx, psn);

		if (m && m->early)
			early_free(tp, early_take(tp, in, m));
	}
}
