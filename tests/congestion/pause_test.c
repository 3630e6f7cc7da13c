/* SPDX-License-Identifier: BSD-2-Clause */
/* nic_pause(): while paused only answers leave, and afterwards everything is delivered; both engines. */
#include "congestion/congestion.h"
#include "support/test.h"

enum { MTU = 1024, BYTES = 32 * MTU, PAUSE_NS = 100000 };

static struct sim start(enum protocol protocol, enum cc_algorithm algorithm)
{
	struct congestion_options c = congestion_options(algorithm);
	struct duo_options o = duo_options();
	struct sim s;

	c.protocol = protocol;
	s = congestion_start_sim(&c, &o, 1, 4 * BYTES);
	duo_idle(s.duo);
	return s;
}

static size_t data_from(const struct duo *d, enum duo_side side, size_t since)
{
	size_t n = 0;

	for (size_t i = since; i < d->wire_count; i++)
		n += d->wire[i].from == side && congestion_is_data(&d->wire[i]);
	return n;
}

static bool mark_data(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_MARK_CE;
	return congestion_is_data(p);
}

static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

TEST(paused_requester_sends_no_data)
{
	for (size_t i = 0; i < 2 * COUNT(protocols); i++) {
		struct sim s = start(protocols[i / 2], i & 1 ? CC_DCQCN : CC_SWIFT);
		struct nic *nic = s.a->host->nic;
		size_t since = s.duo->wire_count;

		nic_pause(nic, true);
		congestion_write(&s, 1, BYTES);
		duo_run_for(s.duo, PAUSE_NS);
		assert_int_equal(data_from(s.duo, DUO_A, since), 0);
		nic_pause(nic, false);
		/* In the middle too. */
		while (data_from(s.duo, DUO_A, since) < 4)
			duo_run_for(s.duo, 1);
		nic_pause(nic, true);
		congestion_write(&s, 2, 4 * BYTES);
		since = s.duo->wire_count;
		duo_run_for(s.duo, PAUSE_NS);
		assert_int_equal(data_from(s.duo, DUO_A, since), 0);
		nic_pause(nic, false);
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_memory_equal(s.bbuf->p, s.abuf->p, 4 * BYTES);
		sim_end(&s);
	}
}

TEST(paused_responder_answers_but_sends_no_read_responses)
{
	for (size_t i = 0; i < COUNT(protocols); i++) {
		struct sim s = start(protocols[i], CC_DCQCN);
		struct nic *nic = s.b->host->nic;
		size_t since = s.duo->wire_count;
		struct duo_wr r = duo_read_wr(2, s.abuf, 2 * BYTES, BYTES, s.bbuf, 2 * BYTES);

		s.duo->script = mark_data;
		nic_pause(nic, true);
		congestion_write(&s, 1, BYTES);
		duo_wait(s.duo, &s.a->sent, 1); /* acknowledged as ever */
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		if (protocols[i] == PROTOCOL_ROCEV2)
			assert_true(duo_count(s.duo, DUO_B, OP_CNP) > 0);
		assert_true(duo_post(s.a, &r));
		duo_run_for(s.duo, PAUSE_NS);
		assert_int_equal(data_from(s.duo, DUO_B, since), 0);
		assert_int_equal(s.a->sent.n, 1);
		nic_pause(nic, false);
		duo_finish(s.a, 2, WC_SUCCESS);
		assert_memory_equal(s.abuf->p + 2 * BYTES, s.bbuf->p + 2 * BYTES, BYTES);
		sim_end(&s);
	}
}

/* A pause longer than the peer's timeout costs retransmissions, and nothing else. */
TEST(long_pause_is_survived)
{
	for (size_t i = 0; i < COUNT(protocols); i++) {
		struct sim s = start(protocols[i], CC_DCQCN);
		struct nic *nic = s.b->host->nic;

		nic_pause(nic, true);
		congestion_read(&s, 1, BYTES);
		duo_run_for(s.duo, 150000000);
		nic_pause(nic, false);
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, BYTES);
		sim_end(&s);
	}
}

TEST(pausing_twice_or_with_nothing_to_do_is_harmless)
{
	struct sim s = start(PROTOCOL_ROCEV2, CC_DCQCN);
	struct nic *nic;

	for (int i = 0; i < 2; i++)
		nic_pause(s.a->host->nic, true);
	for (int i = 0; i < 2; i++)
		nic_pause(s.a->host->nic, false);
	nic_pause(s.a->host->nic, true);
	congestion_write(&s, 1, MTU);
	duo_run_for(s.duo, 1000);
	nic = s.a->host->nic;
	duo_qp_destroy(s.a); /* while it waits for the pause to end */
	nic_pause(nic, false);
	duo_idle(s.duo);
	duo_destroy(s.duo);
}
