/* SPDX-License-Identifier: BSD-2-Clause */
/* A nic that is saved and loaded again, and all pointers of the duo to what belongs to it. */
#include <string.h>

#include "duo/duo.h"

enum { OBJECTS_MAX = 4096 };

/* Peers echo 32 bits of a stamp, and some periods are counted from where the clock begins: 5 s = 2^9 * 5^10 ns. */
#define CLOCK_STEP_NS (9765625 * (UINT64_C(1) << 32))

/* All objects of a nic, by kind. */
struct objects {
	void *at[NIC_OBJECTS][OBJECTS_MAX];
	size_t count[NIC_OBJECTS];
};

static void find_objects(const struct duo_host *h, struct objects *o)
{
	for (int k = 0; k < NIC_OBJECTS; k++) {
		o->count[k] = nic_objects(h->nic, k, o->at[k], OBJECTS_MAX);
		DUO_CHECK(h->duo, o->count[k] < OBJECTS_MAX);
	}
}

struct moves {
	const struct duo *duo;
	struct objects before, after;
};

static void *moved(const struct moves *m, enum nic_object kind, void *p)
{
	for (size_t i = 0; p && i < m->before.count[kind]; i++) {
		if (m->before.at[kind][i] == p)
			return m->after.at[kind][i];
	}
	return NULL; /* it is destroyed */
}

static void move_all(const struct moves *m, struct duo_host *h)
{
	for (int k = 0; k < NIC_OBJECTS; k++)
		DUO_CHECK(h->duo, m->before.count[k] == m->after.count[k]);
	h->pd = moved(m, NIC_PD, h->pd);
	for (struct duo_buf *b = h->duo->bufs; b; b = b->next) {
		if (b->host == h)
			b->mr = moved(m, NIC_MR, b->mr);
	}
	for (struct duo_qp *q = h->duo->qps; q; q = q->next) {
		if (q->host != h)
			continue;
		q->qp = moved(m, NIC_QP, q->qp);
		q->send_cq = moved(m, NIC_CQ, q->send_cq);
		q->recv_cq = moved(m, NIC_CQ, q->recv_cq);
		q->srq = moved(m, NIC_SRQ, q->srq);
	}
	for (size_t i = 0; i < h->cq_event_count; i++)
		h->cq_events[i] = moved(m, NIC_CQ, h->cq_events[i]);
}

void duo_reload(struct duo_host *h)
{
	static struct moves m;
	struct duo *d = h->duo;
	struct nic_image image, again;
	int64_t blocks;

	m.duo = d;
	find_objects(h, &m.before);
	DUO_CHECK(d, !nic_save(h->nic, duo_now(h), &image));
	nic_destroy(h->nic);
	blocks = !!image.bytes + !!image.owners;
	DUO_CHECK(d, h->heap.blocks == blocks);
	h->clock_ns = h->clock_ns ? 0 : CLOCK_STEP_NS;
	DUO_CHECK(d, !nic_load(&h->config, &image, duo_now(h), &h->nic));
	DUO_CHECK(d, !nic_save(h->nic, duo_now(h), &again));
	DUO_CHECK(d, again.size == image.size && !memcmp(again.bytes, image.bytes, image.size));
	nic_image_free(&again);
	nic_image_free(&image);
	find_objects(h, &m.after);
	move_all(&m, h);
	d->reloads++;
}
