/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE: probes of a path that is down, and what brings it up again (veRoCE 9.1). */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MS = 1000000, PROBE_NS = MS, LOST_NS = 20 * MS };

/* Path 1 of A is down, and A has work that keeps it asking: a SEND that waits for a receive. */
static struct sim start(void)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo_wr x;
	struct sim s;

	v.paths = 2;
	o.rnr_retry = 7;
	o.min_rnr_timer = 20; /* 10 ms */
	s = veroce_start_sim(&v, &o, 1);
	x = duo_send_wr(1, s.abuf, 0, 100);
	assert_true(duo_post(s.a, &x));
	duo_run_for(s.duo, 100000);
	path_silent(s.a->qp->veroce->pair, 1, UINT8_MAX, s.duo->now_ns);
	assert_true(s.a->qp->veroce->pair->path[1].down);
	return s;
}

static void finish(struct sim *s)
{
	assert_true(duo_recv(s->b, 11, s->bbuf, 0, 100));
	duo_finish(s->a, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->b->received, 11, WC_SUCCESS);
	sim_end(s);
}

/* Three answers in a row: a lost answer or probe makes the count begin anew. */
TEST(three_answers_in_a_row_bring_a_path_up)
{
	static const struct {
		int nth; /* answer that is lost; none for DUO_ANY */
		uint32_t probes;
	} rows[] = {{DUO_ANY, 3}, {0, 4}, {1, 5}, {2, 6}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = start();
		const struct path *path = &s.a->qp->veroce->pair->path[1];
		const struct duo_packet *probe, *before;

		if (rows[i].nth != DUO_ANY)
			duo_drop(s.duo, DUO_B, OP_RTT_RESPONSE, rows[i].nth);
		for (int k = 0; path->down && k < 1000; k++)
			duo_run_for(s.duo, MS / 10);
		assert_false(path->down);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_RTT_REQUEST), rows[i].probes);
		for (uint32_t k = 1; k < rows[i].probes; k++) {
			bool lost = (int)k - 1 == rows[i].nth;

			before = duo_packet(s.duo, DUO_A, OP_RTT_REQUEST, k - 1);
			probe = duo_packet(s.duo, DUO_A, OP_RTT_REQUEST, k);
			assert_int_equal(probe->path, 1);
			assert_in_range(probe->sent_ns - before->sent_ns, lost ? LOST_NS : PROBE_NS,
					(lost ? LOST_NS : PROBE_NS) + MS / 10);
		}
		finish(&s);
	}
}

/* Of a path that is longer than all that were measured, probes that are missed leave the next ones more time. */
TEST(probes_find_out_how_long_a_path_is)
{
	struct sim s = start();
	const struct path *path = &s.a->qp->veroce->pair->path[1];

	s.duo->path_ns[1] = 50 * MS;
	for (int k = 0; path->down && k < 20000; k++)
		duo_run_for(s.duo, MS / 10);
	assert_false(path->down);
	/* Eight each that waited 20, 40 and 80 ms in vain, and three that were answered. */
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RTT_REQUEST), 27);
	finish(&s);
}

/* A late or forged answer says nothing about the probe that is on its way. */
TEST(an_answer_to_another_probe_is_none)
{
	struct sim s = start();
	const struct nic_counters *n = nic_counters(s.a->host->nic);
	struct path *path = &s.a->qp->veroce->pair->own[1];
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, OP_RTT_RESPONSE, DUO_ANY);
	uint64_t dropped;

	while (!path->probe_sent_ns)
		duo_run_for(s.duo, MS / 10);
	dropped = n->rx_dropped;
	for (uint32_t i = 1; i <= 10; i++) {
		struct veroce_packet p = {
			.bth = {.opcode = OP_RTT_RESPONSE, .dqpn = s.a->qpn},
			.rtt = {.context = 1, .tx1 = (uint32_t)path->probe_sent_ns - i},
		};

		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(n->rx_dropped, dropped + i);
	}
	assert_true(path->down && path->probe_sent_ns && !path->good);
	lost->off = true;
	finish(&s);
}

/* An idle queue pair sends nothing, even if a path is down. */
VEROCE_TEST(paths_without_work_are_not_probed, v.paths = 2)
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);

	assert_true(duo_post(s.a, &w));
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	path_silent(s.a->qp->veroce->pair, 1, UINT8_MAX, s.duo->now_ns);
	assert_true(duo_post(s.a, &w));
	duo_wait(s.duo, &s.a->sent, 2);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	duo_drop(s.duo, DUO_B, OP_RTT_RESPONSE, DUO_ANY);
	duo_run_for(s.duo, 500 * MS);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RTT_REQUEST), 0);
}

/* The stamps of the last answer to a probe. */
static void take_stamps(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct veroce_packet v;

	if (p->bth.opcode == OP_RTT_RESPONSE && veroce_decode(&v, data, p->len))
		*(struct rtteth *)ctx = v.rtt;
}

/* RX1 is when the probe came, TX2 when the answer left; TX1 and the context come back as they were. */
VEROCE_TEST(an_answer_has_the_stamps_of_both_ways)
{
	struct rtteth answer = {0};
	struct veroce_packet p = {
		.bth = {.opcode = OP_RTT_REQUEST, .dqpn = s.b->qpn},
		.rtt = {.context = 0x12345600, .tx1 = 0xfedcba98},
	};
	uint32_t came_ns = (uint32_t)s.duo->now_ns;

	s.duo->tap = take_stamps;
	s.duo->tap_ctx = &answer;
	veroce_forge(s.duo, DUO_B, &p, NULL);
	duo_run_for(s.duo, 100);
	assert_int_equal(answer.context, p.rtt.context);
	assert_int_equal(answer.tx1, p.rtt.tx1);
	assert_int_equal(answer.rx1, came_ns);
	assert_in_range(answer.tx2 - came_ns, 0, 100);
	duo_idle(s.duo);
}
