/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair that hangs on command (nic_qp_hang()), in both protocols: none of its timers does anything meanwhile, however
 * long it lasts, and they go on when it ends. The channel loses what it sends and what is sent to it, as the engine's
 * wrapper does.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { BYTES = 3000, TIMEOUT = 8, RETRIES = 3 };

/*
 * 4.096 us * 2^8 is a millisecond; with all retries, and what veRoCE adds to them, a queue pair fails within the second. The
 * nic looks ten times a second at the timer of one that hangs; a long hang ends between two looks.
 */
static const uint64_t timeout_ns = 4096 << TIMEOUT, long_ns = 30030000000, soon_ns = 10000000, short_ns = 5000;

static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

static enum protocol speaks;
static bool stops;

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = speaks;
	c->transport.paths = 1;
}

static bool channel(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_DROP;
	return stops;
}

static struct sim begin(size_t protocol)
{
	struct duo_options o = duo_options();

	speaks = protocols[protocol];
	stops = false;
	o.timeout = TIMEOUT;
	o.retry_cnt = RETRIES;

	struct sim s = sim_on(duo_create(1, tweak), &o);

	s.duo->script = channel;
	/* veRoCE has agreed on everything, and has seen a round trip. */
	duo_do(s.a, duo_write_wr(1, s.abuf, 0, BYTES, s.bbuf, 0));
	duo_idle(s.duo);
	return s;
}

/* A test of `s`, once in each protocol. */
#define BOTH_TEST(name)                                         \
	static void name##_in(struct sim s);                    \
	TEST(name)                                              \
	{                                                       \
		for (size_t i = 0; i < COUNT(protocols); i++) { \
			struct sim s = begin(i);                \
                                                                \
			name##_in(s);                           \
			sim_end(&s);                            \
		}                                               \
	}                                                       \
	static void name##_in(struct sim s)

static void hang(struct sim *s, struct duo_qp *q, bool on)
{
	stops = on;
	nic_qp_hang(q->host->nic, q->qp, on, duo_now(q->host));
}

static void post(struct sim *s, uint64_t id)
{
	duo_must_post(s->a, duo_write_wr(id, s->abuf, 0, BYTES, s->bbuf, 0));
}

static void assert_waits(struct sim *s, size_t packets, uint64_t timeouts)
{
	assert_int_equal(s->a->sent.n, s->a->sent.taken);
	assert_int_equal(qp_state(s->a->qp), QPS_RTS);
	assert_int_equal(duo_count(s->duo, DUO_A, DUO_ANY), packets);
	assert_int_equal(nic_counters(s->a->host->nic)->timeouts, timeouts);
}

static uint64_t timeouts(const struct sim *s)
{
	return nic_counters(s->a->host->nic)->timeouts;
}

/* Every packet is lost, so that nothing but the timer can send the request again. */
BOTH_TEST(timer_starts_again_when_the_hang_ends)
{
	uint64_t before = timeouts(&s);
	size_t packets;

	stops = true;
	post(&s, 2);
	duo_run_for(s.duo, timeout_ns / 8);
	packets = duo_count(s.duo, DUO_A, DUO_ANY);
	hang(&s, s.a, true);
	duo_run_for(s.duo, long_ns);
	assert_waits(&s, packets, before);
	duo_reload(s.a->host); /* as it is */
	duo_run_for(s.duo, long_ns);
	assert_waits(&s, packets, before);
	hang(&s, s.a, false);
	duo_run_for(s.duo, soon_ns);
	assert_int_equal(s.a->sent.n, 2);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, BYTES);
}

/* It has all its retries, and then fails as ever if nobody answers. */
BOTH_TEST(retries_are_counted_from_the_end_of_the_hang)
{
	uint64_t before = timeouts(&s);

	stops = true;
	post(&s, 2);
	post(&s, 3);
	duo_run_for(s.duo, timeout_ns / 8);
	hang(&s, s.a, true);
	duo_run_for(s.duo, long_ns);
	hang(&s, s.a, false);
	stops = true;
	duo_finish(s.a, 2, WC_RETRY_EXC_ERR);
	duo_expect(s.duo, &s.a->sent, 3, WC_WR_FLUSH_ERR);
	assert_true(timeouts(&s) >= before + RETRIES);
}

/* A hang that is over before the timer is due changes nothing: the request is repeated when it would have been. */
BOTH_TEST(short_hang_makes_no_timeout)
{
	uint64_t before = timeouts(&s);
	size_t packets;

	stops = true;
	post(&s, 2);
	duo_run_for(s.duo, short_ns);
	packets = duo_count(s.duo, DUO_A, DUO_ANY);
	hang(&s, s.a, true);
	duo_run_for(s.duo, short_ns);
	hang(&s, s.a, false);
	stops = true;
	duo_run_for(s.duo, 1);
	assert_waits(&s, packets, before);
	stops = false;
	duo_finish(s.a, 2, WC_SUCCESS);
}

/* What is posted meanwhile leaves when it is over. */
BOTH_TEST(posted_during_a_hang)
{
	uint64_t before = timeouts(&s);
	size_t packets = duo_count(s.duo, DUO_A, DUO_ANY);

	hang(&s, s.a, true);
	post(&s, 2);
	duo_run_for(s.duo, long_ns);
	assert_waits(&s, packets, before);
	hang(&s, s.a, false);
	duo_run_for(s.duo, soon_ns);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_int_equal(timeouts(&s), before);
}

/* The wait after an RNR NAK is a timer's, too. */
BOTH_TEST(hang_during_the_wait_of_an_rnr_nak)
{
	size_t packets;

	duo_must_post(s.a, duo_send_wr(2, s.abuf, 0, BYTES));
	while (!nic_counters(s.a->host->nic)->rnrs_received)
		duo_run_for(s.duo, 1000);
	packets = duo_count(s.duo, DUO_A, DUO_ANY);
	hang(&s, s.a, true);
	duo_run_for(s.duo, long_ns);
	assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), packets);
	assert_true(duo_recv(s.b, 3, s.bbuf, 0, BYTES));
	hang(&s, s.a, false);
	duo_run_for(s.duo, soon_ns);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 3, WC_SUCCESS);
}

/* Who hangs may be the responder: its requester goes on asking, and both go on afterwards. */
BOTH_TEST(responder_hangs)
{
	hang(&s, s.b, true);
	post(&s, 2);
	duo_run_for(s.duo, timeout_ns * 2);
	hang(&s, s.b, false);
	duo_finish(s.a, 2, WC_SUCCESS);
}
