/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strong order (veRoCE 7.6, out-of-order R16): for programs that poll memory, a responder writes it in
 * PSN order only. An early packet is then kept as it came, up to PARKED_MAX of them, recorded as
 * arrived, and taken when its turn comes; one beyond that is dropped, and sent again.
 */
#include <string.h>

#include "transport/veroce/veroce.h"

enum { PARKED_MAX = 1024 };

struct parked_packet {
	uint32_t len;
	uint8_t bytes[];
};

static size_t ring_bytes(void)
{
	return PARKED_MAX * sizeof(struct parked_packet *);
}

static struct parked_packet **place_of(const struct veroce *vr, uint32_t psn)
{
	return &vr->w->parked[psn % PARKED_MAX];
}

/* Where payload is not carried, there is nothing behind the headers. */
static uint32_t bytes_there(const struct transport *tp, const struct pkt *pkt)
{
	uint32_t headers = veroce_header_len(pkt->data[0]) + TSETH_LEN;

	return tp->mrs.no_payload && headers < pkt->len ? headers : pkt->len;
}

bool strong_order_park(struct transport *tp, struct veroce *vr, const struct pkt *pkt, uint32_t psn)
{
	struct veroce_packet again;
	struct parked_packet *k;

	if (((psn - vr->w->q_in.rx.epsn) & PSN_MASK) >= PARKED_MAX)
		return false;
	if (!vr->w->parked) {
		vr->w->parked = pool_get(&tp->pool, ring_bytes());
		if (!vr->w->parked)
			return false;
		memset(vr->w->parked, 0, ring_bytes());
	}
	k = pool_get(&tp->pool, sizeof(*k) + pkt->len);
	if (!k)
		return false;
	k->len = pkt->len;
	memcpy(k->bytes, pkt->data, bytes_there(tp, pkt));
	/* It must be judged the same way again when its turn comes. */
	if (!veroce_decode(&again, k->bytes, k->len) ||
	    !rx_record(&vr->w->q_in.rx, &tp->pool, psn, NULL)) {
		pool_put(&tp->pool, k, sizeof(*k) + k->len);
		return false;
	}
	*place_of(vr, psn) = k;
	return true;
}

bool strong_order_at(const struct veroce *vr, uint32_t psn, struct veroce_packet *p)
{
	const struct parked_packet *k = vr->w->parked ? *place_of(vr, psn) : NULL;

	/* It was judged when it came. */
	return k && veroce_decode(p, k->bytes, k->len);
}

void strong_order_unpark(struct transport *tp, struct veroce *vr, uint32_t psn)
{
	struct parked_packet **at = vr->w->parked ? place_of(vr, psn) : NULL;

	if (!at || !*at)
		return;
	pool_put(&tp->pool, *at, sizeof(**at) + (*at)->len);
	*at = NULL;
	if (rx_has_holes(&vr->w->q_in.rx))
		return;
	pool_put(&tp->pool, vr->w->parked, ring_bytes());
	vr->w->parked = NULL;
}

void strong_order_drop(struct transport *tp, struct veroce *vr)
{
	for (uint32_t i = 0; vr->w->parked && i < PARKED_MAX; i++) {
		if (vr->w->parked[i])
			pool_put(&tp->pool, vr->w->parked[i],
				 sizeof(**vr->w->parked) + vr->w->parked[i]->len);
	}
	pool_put(&tp->pool, vr->w->parked, ring_bytes());
	vr->w->parked = NULL;
}
