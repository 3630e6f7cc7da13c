/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nic that will be silent makes RoCEv2 requesters wait with what the standard has for that: RNR NAKs (veRoCE 13.4). B is
 * the one that is silent.
 */
#include "duo/sim.h"
#include "wire/psn.h"

enum { LEN = 20 * 1024 };

static const uint64_t MS = 1000000, RNR_NS = 655360000;

/* The program's patience: 0.54 s. */
#define PATIENCE (o.timeout = 14, o.retry_cnt = 7)

static void expect_refused(const struct sim *s, size_t times)
{
	assert_int_equal(duo_count_syndrome(s->duo, DUO_B, AETH_RNR_NAK | 0), times);
	assert_int_equal(nic_hold_awaits(s->b->host->nic), 0);
}

/* From the refusal on: nothing reaches B for so long, and then all does. */
static void be_silent(struct sim *s, uint64_t ns)
{
	struct duo_rule *lost = duo_drop(s->duo, DUO_A, DUO_ANY, DUO_ANY);

	duo_run_for(s->duo, ns);
	lost->off = true;
	nic_resume(s->b->host->nic);
}

static struct duo_wr work(struct sim *s, int kind)
{
	switch (kind) {
	case 0: return duo_write_wr(1, s->abuf, 0, LEN, s->bbuf, 0);
	case 1: return duo_read_wr(1, s->abuf, 0, LEN, s->bbuf, 0);
	case 2: return duo_fetch_add_wr(1, s->abuf, 0, s->bbuf, 0, 1);
	default: return duo_send_wr(1, s->abuf, 0, LEN);
	}
}

TEST(the_next_request_of_any_kind_is_refused)
{
	for (int kind = 0; kind < 4; kind++) {
		struct sim s = SIM(PATIENCE);
		uint64_t word;

		memcpy(&word, s.bbuf->p, 8);
		assert_true(duo_recv(s.b, 2, s.bbuf, 0, LEN));
		nic_hold(s.b->host->nic, 1000, 1000);
		assert_int_equal(nic_hold_awaits(s.b->host->nic), 1);
		duo_must_post(s.a, work(&s, kind));
		duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
		expect_refused(&s, 1);
		be_silent(&s, 600 * MS);
		assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
		if (kind == 2) {
			assert_int_equal(*(uint64_t *)s.bbuf->p, word + 1);
			assert_memory_equal(s.abuf->p, &word, 8);
		} else {
			assert_memory_equal(s.abuf->p, s.bbuf->p, LEN);
		}
		if (kind == 3)
			duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
		sim_end(&s);
	}
}

static bool is_behind(const struct duo_packet *p, const void *arg)
{
	return psn_diff(p->bth.psn, *(const uint32_t *)arg) >= 0;
}

/* What was executed is not executed again, and the rest follows. */
SIM_TEST(a_message_is_refused_in_its_middle, PATIENCE)
{
	const uint32_t half = psn_add(s.a->opt.psn[DUO_A], 10);
	struct duo_rule *late = duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
								  .opcode = DUO_ANY,
								  .nth = DUO_ANY,
								  .match = is_behind,
								  .arg = &half,
								  .fate = DUO_DELAY,
								  .n = 10 * DUO_LATENCY_NS});

	duo_must_post(s.a, work(&s, 0));
	duo_run_for(s.duo, 2 * DUO_LATENCY_NS);
	late->off = true;
	assert_memory_equal(s.abuf->p, s.bbuf->p, 10 * 1024);
	nic_hold(s.b->host->nic, 1000, 1000);
	duo_run_for(s.duo, 100 * DUO_LATENCY_NS);
	expect_refused(&s, 1);
	be_silent(&s, 600 * MS);
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, LEN);
	assert_int_equal(nic_counters(s.b->host->nic)->rx_write_requests, 1);
}

/* 655 ms, and then all of the program's retries: more than without. */
SIM_TEST(retries_begin_after_the_wait, PATIENCE)
{
	uint64_t began_ns = s.duo->now_ns;

	nic_hold(s.b->host->nic, 1000, 1000);
	duo_must_post(s.a, work(&s, 0));
	duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
	be_silent(&s, 1100 * MS);
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_true(s.duo->now_ns - began_ns > RNR_NS + 400 * MS);
}

/* Who waits long enough by itself is not made to wait longer than the pause. */
SIM_TEST(a_patient_requester_is_not_refused, PATIENCE)
{
	nic_hold(s.b->host->nic, 10000, 260);
	assert_int_equal(nic_hold_awaits(s.b->host->nic), 0);
	duo_do(s.a, work(&s, 0));
	expect_refused(&s, 0);
	nic_resume(s.b->host->nic);
}

SIM_TEST(without_a_timeout_nobody_is_refused, o.timeout = 0)
{
	nic_hold(s.b->host->nic, 10000, 10000);
	duo_do(s.a, work(&s, 0));
	expect_refused(&s, 0);
}

/* An end that only answers was told no timeout: it takes its peer's to be the usual one. */
SIM_TEST(who_only_answers_takes_the_usual_patience, o.timeout = 18)
{
	struct duo_options o = s.a->opt;
	struct duo_qp *a = duo_qp_create(s.a->host, &o), *b = duo_qp_create(s.b->host, &o);
	struct nic_patience p;

	assert_int_equal(duo_qp_to_init(a) | duo_qp_to_init(b) | duo_qp_to_rtr(a, b) | duo_qp_to_rtr(b, a), 0);
	assert_int_equal(duo_qp_to_rts(a), 0);
	assert_true(nic_patience(s.b->host->nic, &p));
	assert_int_equal(p.ns, 8 * (4096ull << 14));
	assert_int_equal(p.qpn, b->qpn);
	nic_hold(s.b->host->nic, 1000, 1000);
	duo_must_post(a, work(&s, 0));
	duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, AETH_RNR_NAK | 0), 1);
	nic_resume(s.b->host->nic);
	duo_finish(a, 1, WC_SUCCESS);
}

SIM_TEST(patience_is_that_of_the_program, PATIENCE)
{
	struct nic_patience p;

	assert_true(nic_patience(s.b->host->nic, &p));
	assert_int_equal(p.ns, 8 * (4096ull << 14));
	assert_int_equal(p.qpn, s.b->qpn);
	assert_int_equal(p.protocol, NIC_SPEAKS_ROCEV2);
}
