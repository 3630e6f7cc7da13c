/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A veRoCE retransmission equals the first copy (out-of-order R14): it differs in its Retrans bit, its path,
 * its time stamp and AckReq, and in nothing else.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 256, PACKETS = 256 };

struct kept {
	struct veroce_packet p;
	struct reth reth; /* all zero: none */
	uint8_t payload[MTU];
};

struct watch {
	struct duo *duo;
	struct kept kept[DUO_SIDES][PACKETS]; /* by sender and PSN from the first */
	uint32_t psn;
	uint32_t copies;
};

static void compare(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct watch *w = ctx;
	struct kept *k = &w->kept[p->from][(p->bth.psn - w->psn) & (PACKETS - 1)];
	struct veroce_packet v;

	if (!veroce_is_data(p))
		return;
	DUO_CHECK(w->duo, veroce_decode(&v, data, p->len));
	DUO_CHECK(w->duo, ((p->bth.psn - w->psn) & PSN_MASK) < PACKETS);
	if (!v.bth.retrans) {
		k->p = v;
		k->reth = p->reth;
		memcpy(k->payload, v.payload, v.payload_len);
		return;
	}
	w->copies++;
	DUO_CHECK(w->duo, v.bth.opcode == k->p.bth.opcode && v.bth.psn == k->p.bth.psn);
	DUO_CHECK(w->duo, v.bth.se == k->p.bth.se && v.bth.pad == k->p.bth.pad);
	DUO_CHECK(w->duo, v.msn == k->p.msn && v.rqmsn == k->p.rqmsn && v.po == k->p.po);
	DUO_CHECK(w->duo, p->reth.va == k->reth.va && p->reth.rkey == k->reth.rkey && p->reth.len == k->reth.len);
	if (v.bth.opcode == OP_RC_ATOMIC_ACK)
		DUO_CHECK(w->duo, v.orig == k->p.orig);
	DUO_CHECK(w->duo, v.payload_len == k->p.payload_len && !memcmp(v.payload, k->payload, v.payload_len));
}

VEROCE_TEST(copies_are_what_was_sent, v.paths = 4, o.mtu = MTU)
{
	static struct watch w;

	w = (struct watch){.duo = s.duo, .psn = s.a->opt.psn[DUO_A]};
	s.duo->tap = compare;
	s.duo->tap_ctx = &w;
	for (int side = 0; side < DUO_SIDES; side++)
		s.duo->faults[side].drop_ppm = 200000;
	for (uint64_t i = 0; i < 8; i++) {
		struct duo_wr r[] = {
			duo_write_wr(4 * i, s.abuf, 1000 * i, 1000, s.bbuf, 1000 * i),
			duo_send_wr(4 * i + 1, s.abuf, 9000 + i, 600),
			duo_read_wr(4 * i + 2, s.abuf, 20000 + 900 * i, 900, s.bbuf, 30000),
			duo_fetch_add_wr(4 * i + 3, s.abuf, 40000 + 8 * i, s.bbuf, 50000, 1),
		};

		assert_true(duo_recv(s.b, i, s.bbuf, 60000, 600));
		for (size_t k = 0; k < COUNT(r); k++)
			assert_true(duo_post(s.a, &r[k]));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 32; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	s.b->received.taken = s.b->received.n;
	assert_true(w.copies > 20);
}
