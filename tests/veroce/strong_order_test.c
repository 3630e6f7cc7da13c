/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * strong_order: a program that polls memory never sees a byte before one that was sent earlier, and
 * everything completes as usual (veRoCE 7.6; out-of-order O35, R16).
 */
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"

enum { PACKETS = 12 };

static void fill_packets(struct duo_buf *b, uint32_t mtu)
{
	for (uint32_t i = 0; i < PACKETS; i++)
		memset(b->p + i * mtu, (int)(i + 1), mtu);
}

/* How many packets of the WRITE are in memory; none may be behind one that is not. */
static uint32_t visible(const struct sim *s, uint32_t mtu)
{
	static const uint8_t nothing[PACKETS * 4096];
	uint32_t n = 0;

	DUO_CHECK(s->duo, mtu <= 4096);
	while (n < PACKETS && s->bbuf->p[n * mtu] && s->bbuf->p[n * mtu + mtu - 1])
		n++;
	DUO_CHECK(s->duo, !memcmp(s->bbuf->p + n * mtu, nothing, (PACKETS - n) * mtu));
	return n;
}

static void poll_memory(struct sim *s, uint32_t mtu)
{
	uint32_t seen = 0;

	for (uint64_t i = 0; seen < PACKETS; i++) {
		uint32_t now = visible(s, mtu);

		DUO_CHECK(s->duo, now >= seen);
		seen = now;
		DUO_CHECK(s->duo, i < 2000000);
		duo_run_for(s->duo, i < 2000 ? 10 : 1000);
	}
}

static struct sim begin(struct veroce_options *v, const struct duo_options *o, uint64_t seed)
{
	struct sim s;

	v->order = ORDER_STRONG;
	v->paths = 1 + seed % 4;
	s = veroce_start_sim(v, o, seed);
	memset(s.bbuf->p, 0, BUF_BYTES);
	fill_packets(s.abuf, o->mtu);
	return s;
}

TEST(memory_fills_in_the_order_sent)
{
	static const uint8_t ranks[][PACKETS] = {
		{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		{5, 0, 1, 2, 3, 4, 11, 6, 7, 8, 9, 10},
		{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10},
	};
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (size_t k = 0; k < 2 * COUNT(ranks); k++) {
			struct sim s = begin(&v, &o, k);
			struct veroce_order order = {.psn = o.psn[DUO_A],
						     .count = PACKETS,
						     .rank = ranks[k / 2],
						     .step_ns = 100,
						     .lost = k & 1 ? 0x209 : 0};

			veroce_set_order(s.duo, &order);
			duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, PACKETS * o.mtu, s.bbuf, 0));
			poll_memory(&s, o.mtu);
			duo_finish(s.a, 1, WC_SUCCESS);
			sim_end(&s);
		}
	}
}

TEST(everything_completes_whatever_is_lost)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);

		struct sim s = begin(&v, &o, seed);
		struct duo_wr w = duo_write_wr(0, s.abuf, 0, PACKETS * o.mtu, s.bbuf, 0);

		for (int side = 0; side < DUO_SIDES; side++) {
			s.duo->faults[side].drop_ppm = 50000;
			s.duo->faults[side].duplicate_ppm = 50000;
			s.duo->faults[side].delay_ppm = 300000;
			s.duo->faults[side].delay_ns_max = 20000;
		}
		assert_true(duo_post(s.a, &w));
		poll_memory(&s, o.mtu);
		duo_wait(s.duo, &s.a->sent, 1);
		duo_expect(s.duo, &s.a->sent, 0, WC_SUCCESS);
		memset(s.bbuf->p + 60000, 0, 8);
		for (uint64_t i = 1; i <= 40; i++) {
			struct duo_wr x = duo_send_wr(i, s.abuf, 0, 2 * o.mtu + 1);

			if (i % 3 == 0)
				x = duo_read_wr(i, s.abuf, 51200, 3 * o.mtu - 1, s.bbuf, 0);
			else if (i % 3 == 1)
				x = duo_fetch_add_wr(i, s.abuf, 65000, s.bbuf, 60000, 1);
			else
				assert_true(duo_recv(s.b, i, s.bbuf, 16384, 3 * o.mtu));
			assert_true(duo_post(s.a, &x));
			duo_run_for(s.duo, 3000);
		}
		duo_idle(s.duo);
		for (uint64_t i = 1; i <= 40; i++) {
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
			if (i % 3 == 2)
				duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
		}
		assert_int_equal(*(uint64_t *)(s.bbuf->p + 60000), 14);
		assert_memory_equal(s.abuf->p + 51200, s.bbuf->p, 3 * o.mtu - 1);
		sim_end(&s);
	}
}

/* Packets beyond the limit are dropped, and sent again when there is room. */
VEROCE_TEST(more_than_can_be_kept_is_sent_again, v.order = ORDER_STRONG, v.rx_window = 4096, v.early_bytes = 1 << 20,
	    o.mtu = 256)
{
	enum { SENT = 1124, MTU = 256, BYTES = 1 << 20 };

	const struct nic_counters *n;
	struct duo_buf *from, *to;
	struct duo_rule *block;
	struct duo_wr w;

	n = nic_counters(s.b->host->nic);
	from = duo_buf(s.a->host, SENT * MTU, ALL_ACCESS);
	to = duo_buf(s.b->host, SENT * MTU, ALL_ACCESS);
	duo_fill(from, 1);
	block = veroce_block(s.duo, &s.a->opt.psn[DUO_A]);
	w = duo_write_wr(1, from, 0, SENT * MTU, to, 0);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 2 * DUO_LATENCY_NS);
	/* A queue pair alone gets half of what there is. */
	assert_int_equal(n->rx_early_kept + n->rx_dropped, SENT - 1);
	assert_in_range(n->rx_early_kept, 500, BYTES / 2 / MTU);
	assert_in_range(s.b->host->nic->tp.early_bytes, BYTES / 2 - 1024, BYTES / 2);
	block->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(to->p, from->p, SENT * MTU);
}
