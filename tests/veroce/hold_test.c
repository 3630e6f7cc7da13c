/* SPDX-License-Identifier: BSD-2-Clause */
/* An end that will be silent asks its peer to wait, and the peer does (veRoCE 13.4). B is the one that is silent. */
#include "nic/state.h"
#include "veroce/forgery.h"
#include "transport/veroce/hold.h"
#include "transport/veroce/work.h"

enum { LEN = 20 * MTU };

static const uint64_t MS = 1000000;

/* The program's patience: 0.54 s, as most programs set it. */
#define PATIENCE (o.timeout = 14, o.retry_cnt = 7)

/* As if its sockets were closed: what is sent to it is lost. Time passes at A alone. */
struct silence {
	struct duo_rule *lost;
};

static struct silence fall_silent(struct sim *s, uint32_t ms)
{
	nic_hold(s->b->host->nic, ms, 0);
	duo_run_for(s->duo, 4 * DUO_LATENCY_NS);
	return (struct silence){duo_drop(s->duo, DUO_A, DUO_ANY, DUO_ANY)};
}

static void speak_again(struct sim *s, struct silence *q)
{
	q->lost->off = true;
	nic_resume(s->b->host->nic);
}

static bool a_waits(const struct sim *s)
{
	return s->a->qp->veroce->held;
}

static void write_some(struct sim *s, uint64_t id)
{
	duo_must_post(s->a, duo_write_wr(id, s->abuf, 0, LEN, s->bbuf, 0));
}

static void expect_written(struct sim *s, uint64_t id)
{
	duo_finish(s->a, id, WC_SUCCESS);
	assert_memory_equal(s->abuf->p, s->bbuf->p, LEN);
}

/* Packets of A's since then that are neither probes nor acknowledgements. */
static size_t requests_since(const struct sim *s, size_t from)
{
	size_t n = 0;

	for (size_t i = from; i < s->duo->wire_count; i++)
		n += s->duo->wire[i].from == DUO_A && s->duo->wire[i].info->flags & F_REQUEST;
	return n;
}

/* ---- a hold ------------------------------------------------------------------------------------------ */

VEROCE_TEST(work_that_is_posted_meanwhile_waits, PATIENCE)
{
	struct silence q = fall_silent(&s, 10000);
	size_t from = s.duo->wire_count, probes;

	assert_true(a_waits(&s));
	write_some(&s, 1);
	duo_run_for(s.duo, 3000 * MS);
	assert_int_equal(requests_since(&s, from), 0);
	assert_int_equal(count_a(&s)->timeouts, 0);
	probes = duo_count(s.duo, DUO_A, OP_RTT_REQUEST);
	assert_true(probes >= 29 && probes <= 31); /* one in 100 ms */
	speak_again(&s, &q);
	expect_written(&s, 1);
	assert_int_equal(count_a(&s)->holds_received, 1);
	assert_false(a_waits(&s));
}

VEROCE_TEST(work_under_way_is_not_timed_out, PATIENCE, v.paths = 4)
{
	struct duo_rule *lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	struct silence q;

	write_some(&s, 1);
	duo_must_post(s.a, duo_read_wr(2, s.abuf, LEN, LEN, s.bbuf, LEN));
	duo_run_for(s.duo, DUO_LATENCY_NS);
	lost->off = true;
	q = fall_silent(&s, 5000);
	duo_run_for(s.duo, 3000 * MS);
	assert_int_equal(count_a(&s)->timeouts, 0);
	speak_again(&s, &q);
	expect_written(&s, 1);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_memory_equal(s.abuf->p + LEN, s.bbuf->p + LEN, LEN);
	assert_int_equal(count_a(&s)->timeouts, 0);
}

/* A READ of A that was acknowledged and not answered. */
VEROCE_TEST(responses_are_waited_for, PATIENCE)
{
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, DUO_ANY);
	struct silence q;

	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 100, s.bbuf, 0));
	duo_run_for(s.duo, 100 * DUO_LATENCY_NS);
	q = fall_silent(&s, 5000);
	duo_run_for(s.duo, 3000 * MS);
	lost->off = true;
	speak_again(&s, &q);
	duo_finish(s.a, 1, WC_SUCCESS);
}

VEROCE_TEST(the_end_that_asked_sends_nothing_else)
{
	size_t from;

	nic_hold(s.b->host->nic, 50, 0);
	duo_must_post(s.b, duo_write_wr(1, s.bbuf, 0, LEN, s.abuf, 0));
	from = s.duo->wire_count;
	duo_run_for(s.duo, 20 * MS);
	for (; from < s.duo->wire_count; from++)
		assert_true(s.duo->wire[from].bth.opcode == OP_HOLD || s.duo->wire[from].bth.opcode == OP_HELD);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_HOLD), 3);
	assert_int_equal(nic_hold_awaits(s.b->host->nic), 0);
	nic_resume(s.b->host->nic);
	duo_finish(s.b, 1, WC_SUCCESS);
	assert_false(a_waits(&s));
}

/* Of HOLDs those are lost whose bit is not set. */
static bool lose_others(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	uint32_t *mask = ctx;
	bool arrives = *mask & 1;

	if (p->bth.opcode != OP_HOLD)
		return false;
	*mask >>= 1;
	*fate = DUO_DROP;
	return !arrives;
}

/* A copy goes on each path, up to three: any one of them is enough, and any answer. */
TEST(one_copy_of_three_is_enough)
{
	for (uint32_t mask = 0; mask < 8; mask++) {
		struct sim s = VEROCE_SIM(v.paths = 3);
		uint32_t arrive = mask;

		s.duo->script = lose_others;
		s.duo->script_ctx = &arrive;
		nic_hold(s.b->host->nic, 1000, 0);
		duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
		assert_int_equal(a_waits(&s), mask != 0);
		assert_int_equal(nic_hold_awaits(s.b->host->nic), mask == 0);
		for (size_t i = 1; i < duo_count(s.duo, DUO_B, OP_HOLD); i++)
			assert_int_not_equal(duo_packet(s.duo, DUO_B, OP_HOLD, i)->path,
					     duo_packet(s.duo, DUO_B, OP_HOLD, i - 1)->path);
		s.duo->script = NULL;
		nic_resume(s.b->host->nic);
		sim_end(&s);
	}
}

/* ---- its end --------------------------------------------------------------------------------------------- */

VEROCE_TEST(a_peer_that_dies_while_it_is_waited_for_fails_by_the_usual_rules, PATIENCE)
{
	uint64_t began_ns = s.duo->now_ns;

	fall_silent(&s, 2000);
	write_some(&s, 1);
	duo_finish(s.a, 1, WC_RETRY_EXC_ERR);
	assert_true(s.duo->now_ns - began_ns > 2000 * MS + 500 * MS);
	assert_true(s.duo->now_ns - began_ns < 2000 * MS + 2000 * MS);
	assert_int_equal(duo_qp_to_state(s.b, QPS_ERR), 0);
}

VEROCE_TEST(an_answer_to_a_probe_ends_it, PATIENCE)
{
	struct duo_rule *lost;
	struct silence q = fall_silent(&s, 10000);

	write_some(&s, 1);
	duo_run_for(s.duo, 950 * MS);
	lost = duo_drop(s.duo, DUO_B, OP_HOLD, DUO_ANY); /* RESUME */
	speak_again(&s, &q);
	duo_run_for(s.duo, 20 * MS);
	assert_true(a_waits(&s));
	duo_run_for(s.duo, 100 * MS);
	assert_false(a_waits(&s));
	assert_true(lost->hits >= 3);
	expect_written(&s, 1);
}

/* Nothing of A's is under way, so it sends no probes. */
VEROCE_TEST(any_later_packet_ends_it, PATIENCE)
{
	struct silence q = fall_silent(&s, 10000);

	duo_run_for(s.duo, 950 * MS);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RTT_REQUEST), 0);
	duo_drop(s.duo, DUO_B, OP_HOLD, DUO_ANY);
	speak_again(&s, &q);
	duo_do(s.b, duo_write_wr(1, s.bbuf, 0, 100, s.abuf, 0));
	assert_false(a_waits(&s));
}

VEROCE_TEST(packets_that_were_sent_before_do_not_end_it, v.paths = 4, PATIENCE)
{
	struct silence q;

	s.duo->path_ns[1] = 30 * MS;
	s.duo->path_ns[2] = 60 * MS;
	duo_must_post(s.b, duo_write_wr(1, s.bbuf, 0, 60 * MTU, s.abuf, 0));
	duo_run_for(s.duo, 2 * DUO_LATENCY_NS);
	q = fall_silent(&s, 10000);
	duo_run_for(s.duo, 90 * MS);
	assert_true(a_waits(&s));
	speak_again(&s, &q);
	duo_finish(s.b, 1, WC_SUCCESS);
	assert_false(a_waits(&s));
}

VEROCE_TEST(a_late_copy_does_not_begin_it_again)
{
	struct veroce_packet p = {.bth = {.opcode = OP_HOLD, .dqpn = s.a->qpn},
				  .hold = {.ms = 5000, .source_qpn = s.b->qpn, .nonce = s.a->qp->veroce->nonce}};

	for (int i = 0; i < 3; i++) {
		nic_hold(s.b->host->nic, 1000, 0);
		duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
		assert_true(a_waits(&s));
		p.hold.number = s.a->qp->veroce->held_number;
		nic_resume(s.b->host->nic);
		duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_false(a_waits(&s));
	}
}

/* Numbers go round without 0. */
VEROCE_TEST(numbers_wrap)
{
	s.b->host->nic->tp.hold_number = 0xfffe;
	for (int i = 0; i < 3; i++) {
		nic_hold(s.b->host->nic, 1000, 0);
		assert_int_not_equal(s.b->host->nic->tp.hold_number, 0);
		duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
		assert_true(a_waits(&s));
		nic_resume(s.b->host->nic);
		duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
		assert_false(a_waits(&s));
	}
}

/* ---- strangers, and peers that know nothing of it --------------------------------------------------------- */

TEST(a_forged_hold_does_nothing)
{
	enum { NONCE, SOURCE, NUMBER, TOO_LONG, OLDER, RIGHT, ROWS };

	for (int wrong = 0; wrong < ROWS; wrong++) {
		struct sim s = veroce_default();
		struct veroce_packet p = {
			.bth = {.opcode = OP_HOLD, .dqpn = s.a->qpn},
			.hold = {.ms = 10000, .number = 7, .source_qpn = s.b->qpn, .nonce = s.a->qp->veroce->nonce}};
		uint64_t dropped = count_a(&s)->rx_dropped;

		s.a->qp->veroce->held_number = wrong == OLDER ? 8 : 0;
		p.hold.nonce ^= wrong == NONCE;
		p.hold.source_qpn ^= wrong == SOURCE;
		p.hold.number = wrong == NUMBER ? 0 : 7;
		p.hold.ms += wrong == TOO_LONG;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(a_waits(&s), wrong == RIGHT);
		assert_int_equal(count_a(&s)->rx_dropped, dropped + (wrong != RIGHT));
		write_some(&s, 1);
		expect_written(&s, 1);
		sim_end(&s);
	}
}

/* Nobody has asked for it. */
VEROCE_TEST(a_forged_answer_does_nothing)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_HELD, .dqpn = s.b->qpn},
		.hold = {.ms = 1000, .number = 1, .source_qpn = s.a->qpn, .nonce = s.b->qp->veroce->nonce}};

	veroce_forge(s.duo, DUO_B, &p, NULL);
	nic_hold(s.b->host->nic, 1000, 0);
	p.hold.number = 9;
	veroce_forge(s.duo, DUO_B, &p, NULL);
	assert_int_equal(nic_hold_awaits(s.b->host->nic), 1);
	duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
	assert_int_equal(nic_hold_awaits(s.b->host->nic), 0);
	nic_resume(s.b->host->nic);
}

/* It is not asked, and waits as long as its program lets it. */
TEST(a_peer_that_did_not_agree_is_not_asked)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		struct sim s = VEROCE_SIM(v.base[side] = true, PATIENCE);
		struct silence q = fall_silent(&s, 10000);

		write_some(&s, 1);
		duo_run_for(s.duo, 300 * MS);
		speak_again(&s, &q);
		expect_written(&s, 1);
		assert_int_equal(duo_count(s.duo, DUO_ANY, OP_HOLD), 0);
		sim_end(&s);
	}
}

/* A queue pair that waits leaves the windows that it shares to others. */
TEST(others_have_the_room_that_it_does_not_use)
{
	struct sim s = VEROCE_SIM(v.window_bytes = 16 * MTU, PATIENCE);
	struct duo_options o = duo_options();
	struct duo_pair other = duo_connect(s.duo, &o);
	struct duo_rule *lost;

	duo_idle(s.duo);
	lost = duo_drop(s.duo, DUO_A, OP_RC_WRITE_MIDDLE, DUO_ANY);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 60 * MTU, s.bbuf, 0));
	duo_run_for(s.duo, DUO_LATENCY_NS / 2);
	nic_hold(s.b->host->nic, 10000, 0);
	other.b->qp->veroce->holds = false;
	other.b->qp->veroce->hold_left = 0;
	duo_run_for(s.duo, 4 * DUO_LATENCY_NS);
	lost->off = true;
	assert_true(a_waits(&s));
	duo_must_post(other.a, duo_write_wr(2, s.abuf, 0, 40 * MTU, s.bbuf, 0));
	duo_run_for(s.duo, 50 * MS);
	duo_expect(s.duo, &other.a->sent, 2, WC_SUCCESS);
	assert_true(a_waits(&s));
	nic_resume(s.b->host->nic);
	duo_finish(s.a, 1, WC_SUCCESS);
	sim_end(&s);
}

/* ---- what is known of peers' patience ------------------------------------------------------------------------ */

TEST(patience_is_that_of_the_least_patient)
{
	struct sim s = VEROCE_SIM(PATIENCE);
	struct duo_options o = duo_options();
	struct nic_patience p;

	assert_true(nic_patience(s.b->host->nic, &p));
	assert_int_equal(p.ns, 8 * (4096ull << 14) + 10000 * MS);
	assert_int_equal(p.qpn, s.b->qpn);
	assert_int_equal(p.protocol, NIC_SPEAKS_VEROCE);
	o.timeout = 10;
	o.retry_cnt = 1;
	duo_connect(s.duo, &o);
	duo_idle(s.duo);
	assert_true(nic_patience(s.b->host->nic, &p));
	assert_int_equal(p.ns, 2 * (4096ull << 10) + 10000 * MS);
	sim_end(&s);
}

VEROCE_TEST(a_peer_without_a_timeout_never_fails, o.timeout = 0)
{
	struct nic_patience p;

	assert_false(nic_patience(s.b->host->nic, &p));
}
