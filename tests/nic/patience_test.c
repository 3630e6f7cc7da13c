/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC, both protocols: packets that wait for a processor are not lost, and a peer that waits for one is not dead.
 * A pause in which no process ran causes no retransmission, and a silent peer of the same host is kept unless it
 * is known to be gone, or to have run all the time.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 1024, WRITES = 3 };

static const uint64_t pause_ns = 3000000000, patience_ns = 5000000000;
/* Timeout 14, retry 7: eight times 67 ms. */
static const uint64_t given_up_ns = 540000000, one_timeout_ns = 70000000;

static enum protocol speaks;
static bool same_host;
static uint64_t patience;
static uint8_t retries = 7;

static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = speaks;
	c->transport.paths = 1;
	c->transport.veroce.cc = VEROCE_CC_NONE;
	c->transport.patience_ns = patience;
	c->qpn_slot = side == DUO_A ? 5 : 70;
	if (same_host)
		duo_same_host(c);
}

static struct sim begin(size_t protocol)
{
	struct duo_options o = duo_options();

	o.retry_cnt = retries;
	speaks = protocols[protocol];

	struct sim s = sim_on(duo_create(1, tweak), &o);

	duo_idle(s.duo);
	return s;
}

/* A test of `s`, once in each protocol. */
#define PROTOCOLS_TEST(name, on_this_host, ns, retry_cnt)       \
	static void name##_in(struct sim s);                    \
	TEST(name)                                              \
	{                                                       \
		same_host = on_this_host;                       \
		patience = ns;                                  \
		retries = retry_cnt;                            \
		for (size_t i = 0; i < COUNT(protocols); i++) { \
			struct sim s = begin(i);                \
                                                                \
			name##_in(s);                           \
			sim_end(&s);                            \
		}                                               \
	}                                                       \
	static void name##_in(struct sim s)

static void post_writes(struct sim *s)
{
	for (uint64_t i = 0; i < WRITES; i++)
		duo_must_post(s->a, duo_write_wr(i, s->abuf, i * MTU, MTU, s->bbuf, i * MTU));
}

static void expect_writes(struct sim *s)
{
	for (uint64_t i = 0; i < WRITES; i++)
		duo_expect(s->duo, &s->a->sent, i, WC_SUCCESS);
	assert_memory_equal(s->bbuf->p, s->abuf->p, WRITES * MTU);
}

/* Requests are under way and are read when the pause is over; then the clock is read, too. */
PROTOCOLS_TEST(pause_of_both_ends_has_nothing_repeated, false, 0, 7)
{
	const struct nic_counters *n = nic_counters(s.a->host->nic);

	for (int rounds = 0; rounds < 3; rounds++) {
		post_writes(&s);
		duo_run_for(s.duo, DUO_LATENCY_NS / 2);
		s.duo->now_ns += pause_ns;
		duo_idle(s.duo);
		expect_writes(&s);
	}
	assert_int_equal(n->timeouts + n->tail_probes + n->retransmits, 0);
}

/* A pause is forgiven once: lost packets are repeated, even if every timer is late. */
PROTOCOLS_TEST(what_was_lost_in_a_pause_is_repeated, false, 0, 7)
{
	const struct nic_counters *n = nic_counters(s.a->host->nic);
	struct duo_rule *lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	int pauses = 0;

	post_writes(&s);
	duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
	lost->off = true;
	while (!n->retransmits) {
		s.duo->now_ns += pause_ns;
		duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
		assert_true(++pauses <= 3);
	}
	duo_idle(s.duo);
	expect_writes(&s);
}

enum sight { PEER_GONE, PEER_WAITS, PEER_RUNS };

/* What A's owner says of B whenever it is asked. */
static void report(struct sim *s, enum sight peer)
{
	struct nic *nic = s->a->host->nic;
	int slot;

	while ((slot = nic_next_doubt(nic)) >= 0) {
		assert_int_equal(slot, 70);
		if (peer == PEER_GONE)
			nic_peer_gone(nic, (uint32_t)slot, s->duo->now_ns);
		else
			nic_peer_lives(nic, (uint32_t)slot, peer == PEER_RUNS, s->duo->now_ns);
	}
}

/* Until the completion with error, or so long. */
static uint64_t until_given_up(struct sim *s, uint64_t most_ns, enum sight peer)
{
	uint64_t begun_ns = s->duo->now_ns;

	while (!s->a->sent.n && s->duo->now_ns - begun_ns < most_ns) {
		duo_run_for(s->duo, 1000000);
		report(s, peer);
	}
	return s->duo->now_ns - begun_ns;
}

static uint64_t silence_until_given_up(struct sim *s, uint64_t most_ns, enum sight peer)
{
	duo_drop(s->duo, DUO_B, DUO_ANY, DUO_ANY);
	post_writes(s);
	return until_given_up(s, most_ns, peer);
}

static void expect_given_up(struct sim *s)
{
	duo_finish(s->a, 0, WC_RETRY_EXC_ERR);
	for (uint64_t i = 1; i < WRITES; i++)
		duo_expect(s->duo, &s->a->sent, i, WC_WR_FLUSH_ERR);
}

PROTOCOLS_TEST(silent_process_of_this_host_is_kept, true, patience_ns, 7)
{
	assert_in_range(silence_until_given_up(&s, patience_ns - 1000000000, PEER_RUNS), patience_ns - 1000000000,
			patience_ns);
	assert_int_equal(s.a->sent.n, 0);
	duo_pass_all(s.duo);
	duo_idle(s.duo);
	expect_writes(&s);
}

/* However long it does not run. Then it has its patience once more, and it is in time if it answers within that. */
PROTOCOLS_TEST(silent_process_that_does_not_run_is_kept, true, patience_ns, 7)
{
	silence_until_given_up(&s, 10 * patience_ns, PEER_WAITS);
	until_given_up(&s, patience_ns - one_timeout_ns, PEER_RUNS);
	assert_int_equal(s.a->sent.n, 0);
	duo_pass_all(s.duo);
	duo_idle(s.duo);
	expect_writes(&s);
}

/* Nobody is judged by who was away for long: what it knows of its peer is that it ran at some time meanwhile. */
PROTOCOLS_TEST(who_was_away_gives_nobody_up, true, patience_ns, 7)
{
	silence_until_given_up(&s, 2 * given_up_ns, PEER_RUNS);
	s.duo->now_ns += 2 * patience_ns;
	until_given_up(&s, patience_ns - one_timeout_ns, PEER_RUNS);
	assert_int_equal(s.a->sent.n, 0);
	duo_pass_all(s.duo);
	duo_idle(s.duo);
	expect_writes(&s);
}

static bool is_first(const struct duo_packet *p, const void *arg)
{
	const struct duo_qp *q = arg;

	return p->bth.psn == q->opt.psn[DUO_A];
}

/* It was stopped for longer than the retries last, and the first thing that it says then is that a packet is missing.
 */
PROTOCOLS_TEST(process_that_was_stopped_may_miss_a_packet, true, patience_ns, 7)
{
	const struct nic_counters *n = nic_counters(s.a->host->nic);

	struct duo_rule *lost = duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
								  .opcode = OP_RC_WRITE_ONLY,
								  .nth = DUO_ANY,
								  .match = is_first,
								  .arg = s.a,
								  .fate = DUO_DROP});

	duo_stop(s.b->host, s.duo->now_ns + 2 * given_up_ns);
	post_writes(&s);
	duo_run_for(s.duo, 2 * given_up_ns - 1);
	assert_int_equal(s.a->sent.n, 0);
	if (speaks == PROTOCOL_ROCEV2)
		assert_true(n->timeouts > s.a->opt.retry_cnt);
	lost->off = true;
	duo_idle(s.duo);
	if (speaks == PROTOCOL_ROCEV2)
		assert_true(n->naks_received > 0);
	expect_writes(&s);
}

/* A peer of this host that misses a packet has not lost it in a network: that the program allows no retry ends nothing.
 */
PROTOCOLS_TEST(packet_that_is_missing_on_this_host_is_sent_again, true, patience_ns, 0)
{
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_ONLY, 0);
	post_writes(&s);
	duo_idle(s.duo);
	expect_writes(&s);
}

PROTOCOLS_TEST(patience_ends, true, patience_ns, 7)
{
	assert_in_range(silence_until_given_up(&s, UINT64_MAX, PEER_RUNS), patience_ns,
			patience_ns + 3 * one_timeout_ns);
	expect_given_up(&s);
}

PROTOCOLS_TEST(process_that_is_gone_is_given_up_as_asked_for, true, patience_ns, 7)
{
	assert_in_range(silence_until_given_up(&s, UINT64_MAX, PEER_GONE), given_up_ns - one_timeout_ns,
			given_up_ns + one_timeout_ns);
	expect_given_up(&s);
}

PROTOCOLS_TEST(peer_on_another_host_is_given_up_as_asked_for, false, patience_ns, 7)
{
	assert_in_range(silence_until_given_up(&s, UINT64_MAX, PEER_RUNS), given_up_ns - one_timeout_ns,
			given_up_ns + one_timeout_ns);
	expect_given_up(&s);
}
