/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE between processes of one host, where the receiver now and then gets no processor, for as long as on a busy
 * machine: nothing is lost then, and next to nothing is sent again. Lost packets are repeated as soon as the peer
 * is known to run.
 */
#include "support/test.h"
#include "veroce/veroce.h"
#include "support/sim_checks.h"

enum { MTU = 1024, PAIRS = 8, WRITES = 3, STALLS = 6 };

static const uint64_t ms = 1000000;
/* As where nics are pumped by processes (engine/start.c). */
static const uint64_t pto_ns = 2000000, rto_ns = 5000000;

struct stalled {
	struct sim s;
	struct duo_pair pair[PAIRS];
	const struct nic_counters *n;
	uint64_t from_ns, to_ns; /* B is not run */
	uint32_t lose;           /* how many last packets of WRITEs are lost first */
	bool mute;               /* B answers no RTT requests */
};

static bool is_last(const struct duo_packet *p)
{
	return p->from == DUO_A && p->veroce && p->payload_len && p->info->flags & F_REQUEST;
}

/* Packets for B wait in its socket while it is not run, and B sends nothing meanwhile. */
static bool not_run(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct stalled *t = ctx;

	*fate = DUO_DROP;
	if (is_last(p) && t->lose) {
		t->lose--;
		return true;
	}
	if (t->mute && p->bth.opcode == OP_RTT_RESPONSE)
		return true;
	*fate = DUO_DELAY;
	*n = t->to_ns - p->sent_ns;
	return p->sent_ns >= t->from_ns && p->sent_ns < t->to_ns;
}

static void tweak(struct nic_config *c, enum duo_side side)
{
	veroce_tweak(c, side);
	c->transport.veroce.pto_ns_min = pto_ns;
	c->transport.veroce.rto_ns_min = rto_ns;
	c->transport.patience_ns = 5000 * ms;
	c->qpn_slot = side == DUO_A ? 5 : 70;
}

/* On every pair, each of one packet. */
static void post(struct stalled *t, uint32_t writes)
{
	for (uint32_t i = 0; i < PAIRS * writes; i++) {
		duo_must_post(t->pair[i % PAIRS].a,
			      duo_write_wr(i / PAIRS, t->s.abuf, i * MTU, MTU, t->s.bbuf, i * MTU));
	}
}

static void expect(struct stalled *t, uint32_t writes)
{
	for (uint32_t i = 0; i < PAIRS * writes; i++)
		duo_expect(t->s.duo, &t->pair[i % PAIRS].a->sent, i / PAIRS, WC_SUCCESS);
	assert_memory_equal(t->s.bbuf->p, t->s.abuf->p, PAIRS * writes * MTU);
	duo_fill(t->s.bbuf, 2);
}

static void begin(struct stalled *t)
{
	struct duo_options o = duo_options();

	*t = (struct stalled){.lose = 0};
	veroce_opt = veroce_options();
	veroce_opt.same_host = true;
	t->s = (struct sim){.duo = duo_create(1, tweak)};
	for (int i = 0; i < PAIRS; i++)
		t->pair[i] = duo_connect(t->s.duo, &o);
	t->s.a = t->pair[0].a;
	t->s.b = t->pair[0].b;
	t->s.abuf = duo_buf(&t->s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	t->s.bbuf = duo_buf(&t->s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	duo_fill(t->s.abuf, 1);
	duo_idle(t->s.duo);
	t->n = nic_counters(t->s.a->host->nic);
	t->s.duo->script = not_run;
	t->s.duo->script_ctx = t;
	post(t, 1); /* round trips are known */
	duo_idle(t->s.duo);
	expect(t, 1);
}

static void stall(struct stalled *t, uint64_t ns)
{
	t->from_ns = t->s.duo->now_ns;
	t->to_ns = t->from_ns + ns;
}

static void stalls(uint64_t stall_ns, uint64_t probes_max)
{
	struct stalled t;

	begin(&t);
	for (uint64_t i = 1; i <= STALLS; i++) {
		post(&t, WRITES);
		duo_run_for(t.s.duo, i * DUO_LATENCY_NS / 2);
		stall(&t, stall_ns);
		duo_run_for(t.s.duo, stall_ns + 20 * ms);
		expect(&t, WRITES);
		DUO_CHECK(t.s.duo, t.n->tail_probes <= i * probes_max);
		DUO_CHECK(t.s.duo, t.n->retransmits <= 2 * t.n->tail_probes);
		DUO_CHECK(t.s.duo, t.n->timeouts == 0);
	}
	DUO_CHECK(t.s.duo, t.n->path_probes > 0);
	sim_end(&t.s);
}

TEST(peer_that_is_not_run_is_sent_nothing_again)
{
	stalls(10 * ms, 0);
	stalls(100 * ms, 0);
}

TEST(long_stall_is_probed_once_for_all_queue_pairs)
{
	stalls(200 * ms, 1);
}

/* All QPs belong to one pair of hosts: one asks for all. */
TEST(tails_that_are_lost_are_repaired_as_soon_as_the_peer_runs)
{
	static const uint64_t stall_ms[] = {0, 10, 50};

	for (size_t i = 0; i < COUNT(stall_ms); i++) {
		struct stalled t;

		begin(&t);
		t.lose = PAIRS;
		post(&t, 1);
		duo_run_for(t.s.duo, 10 * DUO_LATENCY_NS);
		stall(&t, stall_ms[i] * ms);
		/* Questions to a silent peer are at most 16 ms apart. */
		duo_run_for(t.s.duo, stall_ms[i] * ms + (stall_ms[i] ? 20 * ms : 2 * pto_ns));
		expect(&t, 1);
		assert_int_equal(t.n->retransmits, PAIRS);
		assert_int_equal(t.n->timeouts, 0);
		sim_end(&t.s);
	}
}

/* The proof is there when the probe is due: it costs the repair no time. */
TEST(lost_tail_of_a_peer_that_runs_is_repaired_when_the_probe_is_due)
{
	struct stalled t;
	struct duo_wr w;

	begin(&t);
	t.lose = 1;
	w = duo_write_wr(0, t.s.abuf, 0, MTU, t.s.bbuf, 0);
	assert_true(duo_post(t.s.a, &w));
	duo_run_for(t.s.duo, pto_ns + pto_ns / 8);
	duo_expect(t.s.duo, &t.s.a->sent, 0, WC_SUCCESS);
	assert_int_equal(t.n->retransmits, 1);
	sim_end(&t.s);
}

TEST(tail_lost_to_a_peer_that_answers_no_question_is_repaired)
{
	struct stalled t;

	begin(&t);
	t.mute = true;
	t.lose = 1;
	post(&t, 1);
	duo_run_for(t.s.duo, 150 * ms);
	expect(&t, 1);
	sim_end(&t.s);
}
