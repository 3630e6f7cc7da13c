/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements between hosts whose packets leave in trains (veRoCE 5.3, 12.2): half of the window for one of them, unless the
 * peer is a base peer, the sender's window is small or something is missing.
 */
#include "veroce/veroce.h"

#include "nic/state.h"
#include "transport/veroce/work.h"

enum { MIB = 1 << 20, WINDOW = MIB / 4 };

static void transfer(struct sim *s, bool read)
{
	struct duo_buf *a = duo_buf(s->a->host, MIB, ALL_ACCESS), *b = duo_buf(s->b->host, MIB, ALL_ACCESS);
	struct duo_wr w = read ? duo_read_wr(1, a, 0, MIB, b, 0) : duo_write_wr(1, a, 0, MIB, b, 0);

	duo_fill(a, 3);
	duo_fill(b, 4);
	assert_true(duo_post(s->a, &w));
	duo_wait(s->duo, &s->a->sent, 1);
	duo_expect(s->duo, &s->a->sent, 1, WC_SUCCESS);
	assert_memory_equal(a->p, b->p, MIB);
	duo_idle(s->duo);
}

static void half_of_the_window_is_acknowledged_at_once(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.window_bytes = WINDOW;
	for (int read = 0; read < 2; read++) {
		struct sim s = veroce_start_sim(&v, &o, 1);

		transfer(&s, read);
		assert_in_range(duo_count(s.duo, read ? DUO_A : DUO_B, read ? OP_RC_ACK_RSP : OP_RC_ACK), 8, 10);
		assert_int_equal(nic_counters(s.a->host->nic)->tail_probes, 0);
		assert_int_equal(nic_counters(s.b->host->nic)->tail_probes, 0);
		sim_end(&s);
	}
}

/* Who has not answered CAPS may not ask before its window is full. */
static void a_base_peer_is_acknowledged_every_sixteenth_packet(void **state)
{
	struct duo_options o = duo_options();

	veroce_opt = veroce_options();
	for (int silent = 0; silent < 2; silent++) {
		struct duo *d = duo_create(1, veroce_tweak);
		struct duo_pair p;

		if (silent)
			duo_drop(d, DUO_A, OP_CAPS_RESPONSE, DUO_ANY);
		p = duo_connect(d, &o);
		duo_run_for(d, 10000);
		assert_true(veroce_wake(&p.b->host->nic->tp, p.b->qp));
		assert_int_equal(p.b->qp->veroce->w->q_in.ack_packets, silent ? VEROCE_ACK_PACKETS : VEROCE_ACK_PACKETS_RARE);
		duo_destroy(d);
	}
}

/* Between hosts that know each other a message may leave before the answer has come. */
static void an_answer_that_comes_later_counts(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s;

	v.window_bytes = WINDOW;
	s = veroce_start_sim(&v, &o, 1);
	transfer(&s, false);

	struct duo_pair p = duo_connect(s.duo, &o);
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 4096, s.bbuf, 0);

	assert_true(duo_post(p.a, &w));
	duo_wait(s.duo, &p.a->sent, 1);
	duo_expect(s.duo, &p.a->sent, 1, WC_SUCCESS);
	assert_int_equal(p.b->qp->veroce->w->q_in.ack_packets, WINDOW / 2 / 1024);
	assert_int_equal(p.a->qp->veroce->w->q.ackreq_now, WINDOW / 2 / 1024);
	sim_end(&s);
}

/* Sixteen paths begin with a few packets each. */
static void a_small_window_is_asked_for_twice(void **state)
{
	enum { FIRST = 64, APART_MAX = 8 };
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s;
	size_t apart = 0;

	v.paths = 16;
	v.cc = VEROCE_CC_SWIFT;
	s = veroce_start_sim(&v, &o, 1);
	transfer(&s, false);
	for (size_t i = 0, n = 0; n < FIRST; i++) {
		const struct duo_packet *p = &s.duo->wire[i];

		if (p->from != DUO_A || !veroce_is_data(p))
			continue;
		n++;
		apart = p->bth.ackreq ? 0 : apart + 1;
		assert_true(apart <= APART_MAX);
	}
	sim_end(&s);
}

/* What asks is answered with all that has arrived, which the sender needs while packets and acknowledgements are lost. */
static void who_loses_packets_asks_as_often_as_ever(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	size_t copies = 0, asks = 0;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct sim s = veroce_start_sim(&v, &o, seed);

		s.duo->faults[DUO_A].drop_ppm = s.duo->faults[DUO_B].drop_ppm = 50000;
		transfer(&s, false);
		for (size_t i = 0; i < s.duo->wire_count; i++) {
			const struct duo_packet *p = &s.duo->wire[i];

			copies += p->from == DUO_A && veroce_is_data(p) && p->bth.retrans;
			asks += p->from == DUO_A && veroce_is_data(p) && p->bth.retrans && p->bth.ackreq;
		}
		sim_end(&s);
	}
	print_message("%zu copies, %zu ask\n", copies, asks);
	assert_true(asks >= copies / VEROCE_ACKREQ_PACKETS);
}

/*
 * The Last packet, which asks, is lost. What is missing before it is told with the sixteenth packet or after 20 us, and if
 * nothing is, all is acknowledged after 25.
 */
static void a_hole_is_reported_soon(void **state)
{
	static const struct {
		uint32_t packets;
		int lost; /* of the Middle packets; DUO_ANY: none */
		uint64_t wait_ns;
	} rows[] = {{60, 20, 0}, {10, 3, 20000}, {60, DUO_ANY, 25000}};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		bool read = i & 1;
		enum duo_side from = read ? DUO_B : DUO_A;
		uint64_t came_ns, told_ns;
		struct sim s;

		o.psn[DUO_A] = o.psn[DUO_B] = 0;
		v.window_bytes = WINDOW;
		s = veroce_start_sim(&v, &o, 1);

		struct duo_buf *a = duo_buf(s.a->host, MIB, ALL_ACCESS), *b = duo_buf(s.b->host, MIB, ALL_ACCESS);
		struct duo_wr w = read ? duo_read_wr(1, a, 0, rows[i / 2].packets * 1024, b, 0)
				       : duo_write_wr(1, a, 0, rows[i / 2].packets * 1024, b, 0);

		if (rows[i / 2].lost != DUO_ANY)
			duo_drop(s.duo, from, read ? OP_RC_READ_RESPONSE_MIDDLE : OP_RC_WRITE_MIDDLE, rows[i / 2].lost);
		duo_drop(s.duo, from, read ? OP_RC_READ_RESPONSE_LAST : OP_RC_WRITE_LAST, 0);
		assert_true(duo_post(s.a, &w));
		duo_wait(s.duo, &s.a->sent, 1);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		came_ns = duo_packet(s.duo, from, read ? OP_RC_READ_RESPONSE_LAST : OP_RC_WRITE_LAST, 0)->sent_ns + DUO_LATENCY_NS;
		told_ns = rows[i / 2].lost == DUO_ANY
				  ? duo_packet(s.duo, !from, read ? OP_RC_ACK_RSP : OP_RC_ACK, 0)->sent_ns
				  : duo_packet(s.duo, !from, read ? OP_RC_SACK_RSP : OP_RC_SACK, 0)->sent_ns;
		assert_in_range(told_ns, came_ns + rows[i / 2].wait_ns, came_ns + rows[i / 2].wait_ns + 2 * DUO_LATENCY_NS);
		duo_idle(s.duo);
		sim_end(&s);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(half_of_the_window_is_acknowledged_at_once),
	cmocka_unit_test(a_base_peer_is_acknowledged_every_sixteenth_packet),
	cmocka_unit_test(an_answer_that_comes_later_counts),
	cmocka_unit_test(a_small_window_is_asked_for_twice),
	cmocka_unit_test(who_loses_packets_asks_as_often_as_ever),
	cmocka_unit_test(a_hole_is_reported_soon),
};

SIM_MAIN(tests)
