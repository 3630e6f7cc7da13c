/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CE marks and CNPs of RoCEv2 (IBTA A17.9.3): which QPs send them and how often, their format, their
 * effect on a rate, and which QPs are exempt.
 */
#include "congestion/congestion.h"
#include "support/test.h"

enum { MTU = 1024, ECT0 = 2, CE = 3, CNP_NS = 50000, CNP_TOS = 48 << 2 };

static bool mark_data(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_MARK_CE;
	return congestion_is_data(p) && p->from == DUO_A;
}

static bool mark_responses(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_MARK_CE;
	return congestion_is_data(p) && p->from == DUO_B;
}

static struct sim start(const struct congestion_options *c)
{
	struct duo_options o = duo_options();

	return congestion_start_sim(c, &o, 1, 4 << 20);
}

/* The packets that a QP's host has to send now, with their TOS; the packets are lost. */
static size_t output(struct duo_qp *q, struct pkt *burst, size_t max)
{
	return nic_output(q->host->nic, burst, max, q->host->duo->now_ns);
}

/* Delivers a marked, empty WRITE to B, as A would send it. */
static void forge_marked(struct sim *s, uint32_t psn)
{
	uint8_t buf[DUO_PACKET_MAX], ext[RETH_LEN] = {0};
	struct flow flow = duo_flow(s->duo, DUO_B, DUO_GID_IPV4);
	struct bth bth = {.opcode = OP_RC_WRITE_ONLY, .pkey = 0xffff, .dqpn = s->b->qpn, .psn = psn, .ackreq = true};
	uint32_t len = duo_build(s->duo, DUO_B, DUO_GID_IPV4, &bth, ext, sizeof(ext), NULL, 0, buf);

	flow.tos = CE;
	assert_int_equal(duo_inject(s->duo, DUO_B, &flow, buf, len), 0);
}

TEST(cnp_looks_as_the_annex_draws_it)
{
	struct congestion_options c = congestion_options(CC_DCQCN);
	struct sim s = start(&c);
	uint32_t qpn = s.a->qpn;
	/* IBTA A17.9.3: BTH with BECN, 16 reserved bytes; the harness checks the ICRC. */
	/* clang-format off */
	uint8_t golden[] = {0x81, 0x00, 0xff, 0xff, 0x40, (uint8_t)(qpn >> 16), (uint8_t)(qpn >> 8),
			    (uint8_t)qpn, 0, 0, 0, 0, /* */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	/* clang-format on */
	struct pkt burst[8];
	uint16_t ip_id;

	forge_marked(&s, s.a->opt.psn[DUO_A]);
	assert_int_equal(output(s.b, burst, 8), 2); /* and an ACK */
	assert_int_equal(burst[0].len, sizeof(golden) + ICRC_LEN);
	assert_memory_equal(burst[0].data, golden, sizeof(golden));
	assert_int_equal(burst[0].flow->tos, CNP_TOS);
	assert_int_equal(burst[0].flow->dport, 4791);
	assert_memory_equal(burst[0].flow->dst, s.a->host->gids[DUO_GID_IPV4].raw, 16);
	assert_true(icrc_check(&s.duo->icrc, &burst[0], 0, &ip_id));
	assert_int_equal(burst[1].data[0], OP_RC_ACK);
	assert_int_equal(burst[1].flow->tos & 3, ECT0); /* travels with data */
	sim_end(&s);
}

/* Both, with a turn for each: the first one's CNP does not delay the second's. */
TEST(a_cnp_and_the_ack_behind_it_go_before_data)
{
	struct congestion_options c = congestion_options(CC_NONE);
	struct duo_options o = duo_options();
	struct duo_pair other;
	struct duo_wr w;
	struct pkt pkt;
	struct sim s;

	c.no_trains = true;
	s = start(&c);
	other = duo_connect(s.duo, &o);
	w = duo_write_wr(1, s.bbuf, 0, 1 << 20, s.abuf, 0);
	assert_true(duo_post(other.b, &w));
	assert_int_equal(output(s.b, &pkt, 1), 1);
	assert_int_equal(pkt.data[0], OP_RC_WRITE_FIRST);
	forge_marked(&s, s.a->opt.psn[DUO_A]);
	assert_int_equal(output(s.b, &pkt, 1), 1);
	assert_int_equal(pkt.data[0], OP_CNP);
	assert_int_equal(output(s.b, &pkt, 1), 1);
	assert_int_equal(pkt.data[0], OP_RC_ACK);
	assert_int_equal(output(s.b, &pkt, 1), 1);
	assert_int_equal(pkt.data[0], OP_RC_WRITE_MIDDLE);
	duo_idle(s.duo); /* the packet taken above is lost */
	duo_expect(s.duo, &other.b->sent, 1, WC_SUCCESS);
	sim_end(&s);
}

TEST(marks_are_told_once_an_interval)
{
	/* The interval is the nic's, or, if that has none, that of the responder's algorithm. */
	static const struct {
		enum cc_algorithm algorithm;
		const char *t_cnp;
		uint64_t interval_ns, least_ns;
	} rows[] = {
		{CC_NONE, NULL, 0, CNP_NS},      {CC_NONE, NULL, 4000, 4000},  {CC_NONE, NULL, 50000, 50000},
		{CC_NONE, NULL, 200000, 200000}, {CC_DCQCN, "20us", 0, 20000}, {CC_DCQCN_FW, "100us", 0, 100000},
		{CC_DCQCN, "20us", 4000, 4000},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct congestion_options c = congestion_options(rows[i].algorithm);
		uint64_t least = rows[i].least_ns, last_mark = 0, began;
		struct sim s;
		size_t n;

		if (rows[i].t_cnp) {
			assert_int_equal(cc_params_set(&c.params, "t_cnp", rows[i].t_cnp), 0);
			c.off[DUO_A] = true;
		}
		c.cnp_interval_ns = rows[i].interval_ns;
		c.window_bytes = 64 * 1024;
		s = start(&c);
		s.duo->latency_ns = 5000;
		s.duo->script = mark_data;
		began = s.duo->now_ns;
		congestion_write(&s, 1, 4 << 20);
		duo_finish(s.a, 1, WC_SUCCESS);
		n = duo_count(s.duo, DUO_B, OP_CNP);
		for (size_t k = 0; k < s.duo->wire_count; k++) {
			if (s.duo->wire[k].fate == DUO_MARK_CE)
				last_mark = s.duo->wire[k].sent_ns + s.duo->latency_ns;
		}
		/* Data comes all the time, so a CNP leaves as soon as it may. */
		DUO_CHECK(s.duo, n >= (last_mark - began) / (least + 2 * s.duo->latency_ns) &&
					 n <= 2 + (last_mark - began) / least);
		for (size_t k = 0; k < n; k++) {
			const struct duo_packet *p = duo_packet(s.duo, DUO_B, OP_CNP, k);

			assert_true(p->bth.becn);
			assert_int_equal(p->bth.dqpn, s.a->qpn);
			if (k)
				assert_true(p->sent_ns >= duo_packet(s.duo, DUO_B, OP_CNP, k - 1)->sent_ns + least);
		}
		assert_int_equal(nic_counters(s.b->host->nic)->cnps_sent, n);
		assert_int_equal(nic_counters(s.a->host->nic)->cnps_received, n);
		assert_int_equal(nic_counters(s.a->host->nic)->cnps_sent, 0);
		sim_end(&s);
	}
}

TEST(mark_within_the_interval_is_told_at_its_end)
{
	struct congestion_options c = congestion_options(CC_DCQCN);
	struct sim s = start(&c);

	forge_marked(&s, s.a->opt.psn[DUO_A]);
	duo_run_for(s.duo, 1000);
	forge_marked(&s, psn_add(s.a->opt.psn[DUO_A], 1));
	forge_marked(&s, psn_add(s.a->opt.psn[DUO_A], 2));
	duo_run_for(s.duo, CNP_NS / 2);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_CNP), 1);
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_CNP), 2);
	assert_int_equal(duo_packet(s.duo, DUO_B, OP_CNP, 1)->sent_ns - duo_packet(s.duo, DUO_B, OP_CNP, 0)->sent_ns,
			 CNP_NS);
	sim_end(&s);
}

TEST(cnp_cuts_the_rate_which_recovers)
{
	static const enum cc_algorithm algorithms[] = {CC_DCQCN, CC_DCQCN_FW, CC_RTTCC};

	for (size_t i = 0; i < COUNT(algorithms); i++) {
		struct congestion_options c = congestion_options(algorithms[i]);
		uint64_t before, cut;
		struct sim s;

		c.line_rate_bps = 1000000000;
		c.base_rtt_ns = 2 * DUO_LATENCY_NS;
		s = start(&c);
		before = congestion_at(s.a)->cc.rate_bps;
		assert_int_equal(before, c.line_rate_bps);
		s.duo->script = mark_data;
		congestion_write(&s, 1, 64 * 1024);
		duo_wait(s.duo, &s.a->sent, 1);
		cut = congestion_at(s.a)->cc.rate_bps;
		assert_true(nic_counters(s.a->host->nic)->cnps_received);
		if (cut >= before)
			fail_msg("%s: %ju after CNPs", cc_name(algorithms[i]), (uintmax_t)cut);
		s.duo->script = NULL;
		congestion_write(&s, 2, 4 << 20);
		duo_wait(s.duo, &s.a->sent, 2);
		if (congestion_at(s.a)->cc.rate_bps <= cut)
			fail_msg("%s: still %ju", cc_name(algorithms[i]), (uintmax_t)cut);
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		sim_end(&s);
	}
}

/* At most once an interval, like a responder's CNPs. */
TEST(marked_read_responses_cut_the_rate_of_who_asked)
{
	struct congestion_options c = congestion_options(CC_DCQCN);
	struct sim s = start(&c);
	uint64_t rate;

	s.duo->script = mark_responses;
	congestion_read(&s, 1, 16 * MTU);
	duo_wait(s.duo, &s.a->sent, 1);
	rate = congestion_at(s.a)->cc.rate_bps;
	assert_int_equal(rate, c.line_rate_bps / 2); /* the paper's first cut, and one only */
	assert_int_equal(duo_count(s.duo, DUO_ANY, OP_CNP), 0);
	assert_int_equal(congestion_at(s.b)->cc.rate_bps, c.line_rate_bps);
	duo_finish(s.a, 1, WC_SUCCESS);
	sim_end(&s);
}

/* The QP reports marks to others, and keeps its own kind of window, which ignores CNPs. */
TEST(nic_without_an_algorithm_answers_marks_and_obeys_none)
{
	struct congestion_options c = congestion_options(CC_DCQCN);
	uint32_t window;
	struct pkt burst[8];
	struct sim s;
	struct duo_wr w;

	c.off[DUO_B] = true;
	s = start(&c);
	s.duo->script = mark_data;
	congestion_write(&s, 1, 64 * MTU);
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_true(nic_counters(s.a->host->nic)->cnps_received);
	assert_non_null(congestion_at(s.b));
	assert_null(congestion_governing(s.b->qp));

	window = s.b->qp->gbn->req.cc.window_bytes;
	w = duo_write_wr(2, s.bbuf, 0, 1 << 20, s.abuf, 0);
	assert_true(duo_post(s.b, &w));
	assert_int_equal(output(s.b, burst, 8), 8);
	assert_int_equal(burst[0].flow->tos & 3, 0);
	s.duo->script = mark_responses;
	duo_finish(s.b, 2, WC_SUCCESS);
	assert_true(s.b->qp->gbn->req.cc.window_bytes > window); /* grew, since it ignores marks */
	sim_end(&s);
}

TEST(only_what_somebody_listens_to_is_ect)
{
	for (int i = -1; i < CC_ALGORITHMS; i++) {
		struct congestion_options c = congestion_options(i < 0 ? CC_NONE : (enum cc_algorithm)i);
		struct pkt burst[8];
		struct sim s;

		c.off[DUO_A] = i < 0;
		s = start(&c);
		congestion_write(&s, 1, MTU);
		assert_int_equal(output(s.a, burst, 8), 1);
		assert_int_equal(burst[0].flow->tos, i <= CC_NONE ? 0 : ECT0);
		duo_finish(s.a, 1, WC_SUCCESS);
		sim_end(&s);
	}
}

/*
 * A query returns the traffic class that the program gave; a new one set in SQD becomes ECT as
 * well.
 */
TEST(traffic_class_is_answered_as_it_was_given)
{
	enum { GIVEN = 0x68, LATER = 0xa0 };
	struct congestion_options c = congestion_options(CC_DCQCN);
	struct sim s = start(&c);
	struct qp_attr attr = {.state = QPS_SQD}, told;
	struct qp_init init;
	struct pkt burst[8];

	nic_qp_query(s.a->host->nic, s.a->qp, &told, &init);
	assert_int_equal(told.av.traffic_class, 0);
	for (int i = 0; i < 2; i++) {
		uint8_t given = i ? LATER : GIVEN;

		attr.state = QPS_SQD;
		assert_int_equal(nic_qp_modify(s.a->host->nic, s.a->qp, &attr, QPA_STATE, s.duo->now_ns), 0);
		attr.av = duo_av(s.a->host, s.b->host, DUO_GID_IPV4);
		attr.av.traffic_class = given;
		assert_int_equal(nic_qp_modify(s.a->host->nic, s.a->qp, &attr, QPA_STATE | QPA_AV, s.duo->now_ns), 0);
		attr.state = QPS_RTS;
		assert_int_equal(nic_qp_modify(s.a->host->nic, s.a->qp, &attr, QPA_STATE, s.duo->now_ns), 0);
		nic_qp_query(s.a->host->nic, s.a->qp, &told, &init);
		assert_int_equal(told.av.traffic_class, given);
		congestion_write(&s, (uint64_t)i, MTU);
		assert_int_equal(output(s.a, burst, 8), 1);
		assert_int_equal(burst[0].flow->tos, given | ECT0);
		duo_finish(s.a, (uint64_t)i, WC_SUCCESS);
	}
	sim_end(&s);
}
