/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READs and atomics under veRoCE: executed in their turn and once, answered in a PSN space that the
 * responder itself repairs (veRoCE 7.4, 7.5; out-of-order O10 to O17; R8, R9, R13).
 */
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/work.h"

/* Of space R. */
static bool is_response(const struct duo_packet *p, const void *arg)
{
	return veroce_is_data(p) && p->info->flags & F_RESPONSE;
}

static bool is_first_response(const struct duo_packet *p, const void *arg)
{
	return is_response(p, arg) && !p->bth.retrans;
}

static bool is_ack_of_responses(const struct duo_packet *p, const void *arg)
{
	return p->veroce && (p->bth.opcode == OP_RC_ACK_RSP || p->bth.opcode == OP_RC_SACK_RSP);
}

static struct duo_rule *lose(struct duo *d, enum duo_side from, duo_match *match)
{
	return duo_rule(d, (struct duo_rule){
				   .from = from, .opcode = DUO_ANY, .nth = DUO_ANY, .match = match, .fate = DUO_DROP});
}

/* out-of-order O10 */
TEST(reads_are_executed_in_the_order_sent)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		uint32_t first = o.psn[DUO_A], at = 0;
		struct duo_rule *block = veroce_block(s.duo, &first);

		duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 3 * o.mtu, s.bbuf, 0));
		duo_must_post(s.a, duo_read_wr(2, s.abuf, 3 * o.mtu, 2 * o.mtu, s.bbuf, 3 * o.mtu));
		duo_run_for(s.duo, 50000);
		for (size_t k = 0; k < s.duo->wire_count; k++)
			assert_false(is_response(&s.duo->wire[k], NULL));
		block->off = true;
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 5 * o.mtu);
		for (size_t k = 0; k < s.duo->wire_count; k++) {
			const struct duo_packet *p = &s.duo->wire[k];

			if (!is_first_response(p, NULL))
				continue;
			assert_int_equal(p->bth.psn, psn_add(first, at));
			assert_int_equal(p->msn, psn_add(v.sent.reads, at < 3 ? 1 : 2));
			assert_int_equal(p->aeth.msn, p->msn);
			assert_int_equal(p->po, at < 3 ? at : at - 3);
			at++;
		}
		assert_int_equal(at, 5);
		sim_end(&s);
	}
}

/* out-of-order O11, R8 */
TEST(read_returns_what_was_written_before_it)
{
	static const uint8_t rank[] = {1, 3, 2, 0};
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (uint32_t hole = 0; hole < 3; hole++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			uint32_t psn = psn_add(o.psn[DUO_A], hole);
			struct veroce_order order = {.psn = o.psn[DUO_A], .count = 4, .rank = rank};
			struct duo_rule *block = veroce_block(s.duo, &psn);

			order.lost = 1u << hole;
			veroce_set_order(s.duo, &order);
			duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * o.mtu, s.bbuf, 0));
			duo_must_post(s.a, duo_read_wr(2, s.abuf, 20000, 3 * o.mtu, s.bbuf, 0));
			duo_run_for(s.duo, 50000);
			assert_int_equal(s.a->sent.n, 0);
			block->off = true;
			duo_finish(s.a, 1, WC_SUCCESS);
			duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
			assert_memory_equal(s.abuf->p + 20000, s.abuf->p, 3 * o.mtu);
			sim_end(&s);
		}
	}
}

/* out-of-order O12, problem F */
TEST(lost_response_is_repaired_by_the_responder)
{
	for (int base = 0; base < 2; base++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();

		v.base[DUO_A] = base;
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			struct veroce_order order = {
				.from = DUO_B, .responses = true, .psn = o.psn[DUO_A], .count = 8, .lost = 1 << 3};

			veroce_set_order(s.duo, &order);
			duo_do(s.a, duo_read_wr(1, s.abuf, 0, 8 * o.mtu - 3, s.bbuf, 0));
			assert_memory_equal(s.abuf->p, s.bbuf->p, 8 * o.mtu - 3);
			assert_true(duo_count(s.duo, DUO_A, OP_RC_SACK_RSP) > 0);
			assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 1);
			assert_true(nic_counters(s.b->host->nic)->retransmits > 0);
			assert_int_equal(nic_counters(s.b->host->nic)->timeouts, 0);
			sim_end(&s);
		}
	}
}

/* out-of-order O13, R13 */
VEROCE_VARIANTS_TEST(responses_that_are_all_lost_are_sent_again)
{
	lose(s.duo, DUO_B, is_first_response);
	duo_do(s.a, duo_read_wr(1, s.abuf, 0, 5 * s.a->opt.mtu, s.bbuf, 0));
	assert_memory_equal(s.abuf->p, s.bbuf->p, 5 * s.a->opt.mtu);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 1);
}

/* out-of-order O14: a new request releases the slots in place of the lost acknowledgements. */
VEROCE_VARIANTS_TEST(new_reads_release_what_was_answered, o.max_rd_atomic = o.max_dest_rd_atomic = 4)
{
	struct duo_rule *silent = lose(s.duo, DUO_A, is_ack_of_responses);

	memset(s.bbuf->p, 0, 8);
	for (uint64_t k = 0; k < 40; k++) {
		struct duo_wr r = duo_read_wr(k, s.abuf, 1024 + 24 * k, 24, s.bbuf, 32);

		if (k % 3 == 2)
			r = duo_fetch_add_wr(k, s.abuf, 8 * k, s.bbuf, 0, 1);
		assert_true(duo_post(s.a, &r));
	}
	duo_run_for(s.duo, 100000000);
	for (uint64_t k = 0; k < 40; k++)
		duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
	/* Only what no request released is sent again. */
	for (size_t k = 0; k < s.duo->wire_count; k++) {
		const struct duo_packet *p = &s.duo->wire[k];

		DUO_CHECK(s.duo, !is_response(p, NULL) || !p->bth.retrans ||
					 ((p->bth.psn - s.a->opt.psn[DUO_A]) & PSN_MASK) >= 36);
	}
	silent->off = true;
	duo_idle(s.duo);
	assert_int_equal(*(uint64_t *)s.bbuf->p, 13);
	for (uint64_t k = 0, n = 0; k < 40; k++) {
		if (k % 3 == 2)
			assert_int_equal(*(uint64_t *)(s.abuf->p + 8 * k), n++);
		else
			assert_memory_equal(s.abuf->p + 1024 + 24 * k, s.bbuf->p + 32, 24);
	}
	assert_int_equal(qp_state(s.b->qp), QPS_RTS);
}

/* out-of-order O15, R9 */
TEST(lost_atomic_answer_is_repeated_not_executed)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int lost = 1; lost <= 5; lost++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			uint64_t *word = (uint64_t *)s.bbuf->p;

			*word = 1000;
			for (int k = 0; k < lost; k++)
				duo_drop(s.duo, DUO_B, OP_RC_ATOMIC_ACK, 0);
			duo_must_post(s.a, duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 3));
			duo_run_for(s.duo, 30000);
			/* The word changes further; the answer carries the value found then. */
			assert_int_equal(*word, 1003);
			*word = 5;
			duo_finish(s.a, 1, WC_SUCCESS);
			assert_int_equal(*word, 5);
			assert_int_equal(*(uint64_t *)s.abuf->p, 1000);
			assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ATOMIC_ACK), lost + 1);
			sim_end(&s);
		}
	}
}

/* ---- out-of-order O16 ------------------------------------------------------------------------ */

struct taken {
	int opcode;
	uint32_t len;
	uint8_t data[DUO_PACKET_MAX];
};

/* Keeps the first packet with that opcode. */
static void take(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct taken *t = ctx;

	if (!p->veroce || p->bth.opcode != t->opcode || t->len)
		return;
	t->len = p->len;
	memcpy(t->data, data, p->len);
}

static void repeat(struct sim *s, const struct taken *t, int times)
{
	struct flow flow = duo_flow(s->duo, DUO_B, DUO_GID_IPV4);

	flow.dport = VEROCE_UDP_PORT;
	for (int k = 0; k < times; k++)
		duo_inject(s->duo, DUO_B, &flow, t->data, t->len);
}

VEROCE_VARIANTS_TEST(repeated_atomic_request_is_executed_once)
{
	uint64_t *word = (uint64_t *)s.bbuf->p;
	struct duo_wr add = duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 1);
	struct taken t = {.opcode = OP_RC_FETCH_ADD};
	struct duo_rule *block = lose(s.duo, DUO_B, is_response);

	*word = 41;
	s.duo->tap = take;
	s.duo->tap_ctx = &t;
	assert_true(duo_post(s.a, &add));
	duo_run_for(s.duo, 20000);
	assert_true(t.len > 0);
	repeat(&s, &t, 10);
	assert_int_equal(*word, 42);
	duo_run_for(s.duo, 20000);
	block->off = true;
	duo_idle(s.duo);
	repeat(&s, &t, 10);
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_int_equal(*word, 42);
	assert_int_equal(*(uint64_t *)s.abuf->p, 41);
}

/* out-of-order O17, R8 */
VEROCE_VARIANTS_TEST(atomic_waits_for_the_write_before_it)
{
	uint64_t *word = (uint64_t *)(s.bbuf->p + s.a->opt.mtu), *mine = (uint64_t *)(s.abuf->p + s.a->opt.mtu);
	uint32_t hole = psn_add(s.a->opt.psn[DUO_A], 1);
	struct duo_rule *block = veroce_block(s.duo, &hole);

	*mine = 777;
	*word = 777000;
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_must_post(s.a, duo_cmp_swap_wr(2, s.abuf, 20000, s.bbuf, s.a->opt.mtu, 777, 888));
	duo_run_for(s.duo, 50000);
	assert_int_equal(*word, 777000);
	block->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_int_equal(*word, 888);
	assert_int_equal(*(uint64_t *)(s.abuf->p + 20000), 777);
}

/* out-of-order R9: a counter that misses nothing and counts nothing twice, and READs between. */
TEST(atomics_count_exactly_whatever_happens)
{
	enum { ADDS = 150 };

	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
		v.paths = 1 + seed % 4;
		v.loss = seed % 3;
		v.base[DUO_A] = seed % 5 == 0;
		o.max_rd_atomic = 1 + seed % 16;
		o.max_dest_rd_atomic = o.max_rd_atomic;

		struct sim s = veroce_start_sim(&v, &o, seed);
		uint32_t posted = 0;

		memset(s.bbuf->p, 0, 8);
		for (int side = 0; side < DUO_SIDES; side++) {
			s.duo->faults[side].drop_ppm = 100000;
			s.duo->faults[side].duplicate_ppm = 100000;
			s.duo->faults[side].delay_ppm = 200000;
			s.duo->faults[side].delay_ns_max = 50000;
		}
		while (posted < ADDS) {
			struct duo_wr w = duo_fetch_add_wr(posted, s.abuf, 8 * posted, s.bbuf, 0, 1);

			if (duo_post(s.a, &w))
				posted++;
			else
				duo_run_for(s.duo, 50000);
		}
		duo_idle(s.duo);
		assert_int_equal(*(uint64_t *)s.bbuf->p, ADDS);
		for (uint64_t k = 0; k < ADDS; k++) {
			duo_expect(s.duo, &s.a->sent, k, WC_SUCCESS);
			assert_int_equal(((uint64_t *)s.abuf->p)[k], k);
		}
		sim_end(&s);
	}
}

/* 4.1, 4.2: as many as the peer can record, also in space R; 128 if it has acknowledged, but not announced it. */
TEST(responses_are_never_more_than_the_peer_records)
{
	static const uint32_t windows[] = {0, 128, 512};

	for (size_t i = 0; i < COUNT(windows); i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct duo_rule *silent;
		struct duo_buf *to, *from;
		struct duo_pair p;
		struct duo_wr r;
		struct sim s;
		uint32_t most = windows[i] ? windows[i] : 128, ahead = 0;

		o.mtu = 256;
		v.rx_window = windows[i];
		veroce_opt = v;
		s.duo = duo_create(1, veroce_tweak);
		if (!windows[i]) {
			duo_drop(s.duo, DUO_ANY, OP_CAPS_REQUEST, DUO_ANY);
			duo_drop(s.duo, DUO_ANY, OP_CAPS_RESPONSE, DUO_ANY);
		}
		p = duo_connect(s.duo, &o);
		s.a = p.a;
		s.b = p.b;
		duo_idle(s.duo);
		to = duo_buf(s.a->host, 800 * o.mtu, ALL_ACCESS);
		from = duo_buf(s.b->host, 800 * o.mtu, ALL_ACCESS);
		r = duo_read_wr(1, to, 0, 800 * o.mtu, from, 0);
		if (!windows[i])
			duo_do(s.b, duo_write_wr(0, from, 0, 4, to, 0));
		silent = lose(s.duo, DUO_A, is_ack_of_responses);
		assert_true(duo_post(s.a, &r));
		duo_run_for(s.duo, 300000);
		for (size_t k = 0; k < s.duo->wire_count; k++) {
			uint32_t d = (s.duo->wire[k].bth.psn - o.psn[DUO_A]) & PSN_MASK;

			if (is_response(&s.duo->wire[k], NULL) && d >= ahead)
				ahead = d + 1;
		}
		assert_int_equal(ahead, most);
		silent->off = true;
		duo_finish(s.a, 1, WC_SUCCESS);
		sim_end(&s);
	}
}

/*
 * R13: a READ that was received and is not answered yet fails by the program's timeout, like any request
 * without an answer, and not before, even if the responder is slow.
 */
TEST(a_slow_responder_is_waited_for_as_long_as_the_program_says)
{
	static const struct {
		uint8_t timeout, retry_cnt;
		uint64_t delay_ns;
		bool done;
	} cases[] = {
		{14, 0, 40000000, true}, /* 67 ms of patience */
		{14, 1, 100000000, true},   {13, 3, 90000000, true},    {0, 1, 2000000000, true}, /* no end of it */
		{10, 1, 2000000000, false},                                                       /* 8 ms */
		{10, 0, 2000000000, false}, {13, 7, 5000000000, false}, /* 268 ms; it is asked more often than ever
									   later */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t patience_ns = (UINT64_C(4096) << cases[i].timeout) * (cases[i].retry_cnt + 1u);
		struct sim s = VEROCE_SIM(o.timeout = cases[i].timeout, o.retry_cnt = cases[i].retry_cnt);

		duo_rule(s.duo, (struct duo_rule){.from = DUO_B,
						  .opcode = DUO_ANY,
						  .nth = DUO_ANY,
						  .match = is_response,
						  .fate = DUO_DELAY,
						  .n = cases[i].delay_ns});
		duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 100, s.bbuf, 0));
		if (cases[i].done) {
			duo_finish(s.a, 1, WC_SUCCESS);
			assert_memory_equal(s.abuf->p, s.bbuf->p, 100);
			assert_true(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST) > 1);
		} else {
			duo_run_for(s.duo, patience_ns);
			assert_int_equal(s.a->sent.n, 0);
			/* A timer of T may take T to 4 T (IBTA C9-141). */
			duo_run_for(s.duo, 3 * patience_ns);
			assert_int_equal(s.a->sent.n, 1);
			duo_finish(s.a, 1, WC_RETRY_EXC_ERR);
		}
		sim_end(&s);
	}
}

/*
 * A READ with some responses, and then no more, is requested again as soon and as often as at first: the
 * responses show that the responder is slow, not gone.
 */
VEROCE_TEST(asking_begins_anew_when_something_arrives)
{
	enum { FIRST_NS = 2000000 }; /* four of the shortest timeouts */

	struct duo_rule *first, *last;
	uint64_t sent_ns, gap_ns = FIRST_NS, since_ns;
	size_t asked;

	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0)); /* the round trip is known */
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	first = duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_FIRST, DUO_ANY);
	last = duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_LAST, DUO_ANY);
	since_ns = s.duo->now_ns;
	duo_must_post(s.a, duo_read_wr(2, s.abuf, 0, 2048, s.bbuf, 0));
	for (asked = 1; asked < 5; asked++) {
		while (duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST) <= asked)
			duo_run_for(s.duo, 10000);
		sent_ns = duo_packet(s.duo, DUO_A, OP_RC_READ_REQUEST, asked)->sent_ns;
		assert_in_range(sent_ns - since_ns, gap_ns, gap_ns + 10000);
		gap_ns = asked > 1 ? 2 * gap_ns : gap_ns;
		since_ns = sent_ns;
	}
	first->off = true;
	while (s.a->qp->veroce->w->r_in.rx.epsn == s.a->opt.psn[DUO_A])
		duo_run_for(s.duo, 1000);
	since_ns = s.duo->now_ns;
	asked = duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST);
	for (int i = 0; i < 2; i++, asked++) {
		while (duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST) <= asked)
			duo_run_for(s.duo, 10000);
		sent_ns = duo_packet(s.duo, DUO_A, OP_RC_READ_REQUEST, asked)->sent_ns;
		assert_in_range(sent_ns - since_ns, FIRST_NS - 10000, FIRST_NS + 10000);
		since_ns = sent_ns;
	}
	last->off = true;
	duo_finish(s.a, 2, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 2048);
}

/* A larger limit does not discard executed requests: their answers are sent again unchanged. */
VEROCE_TEST(a_higher_limit_forgets_nothing, o.max_rd_atomic = 2, o.max_dest_rd_atomic = 1)
{
	struct qp_attr sqd = {.state = QPS_SQD}, more = {.max_dest_rd_atomic = 8, .max_rd_atomic = 8};
	struct duo_wr w;
	struct duo_rule *lost = lose(s.duo, DUO_B, is_response);

	*(uint64_t *)s.bbuf->p = 100;
	w = duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 1);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 20 * DUO_LATENCY_NS);
	assert_int_equal(*(uint64_t *)s.bbuf->p, 101);
	assert_int_equal(nic_qp_modify(s.b->host->nic, s.b->qp, &sqd, QPA_STATE, s.duo->now_ns), 0);
	assert_int_equal(nic_qp_modify(s.b->host->nic, s.b->qp, &more, QPA_MAX_DEST_RD_ATOMIC, s.duo->now_ns), 0);
	w = duo_fetch_add_wr(2, s.abuf, 8, s.bbuf, 0, 1);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 20 * DUO_LATENCY_NS);
	assert_int_equal(*(uint64_t *)s.bbuf->p, 102);
	lost->off = true;
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 2; i++) {
		duo_expect(s.duo, &s.a->sent, i + 1, WC_SUCCESS);
		assert_int_equal(((uint64_t *)s.abuf->p)[i], 100 + i);
	}
}
