/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of RoCEv2 QPs: never more in flight than the algorithm allows, with any report of marks. */
#include "congestion/congestion.h"
#include "support/test.h"

enum { MTU = 1024 };

static bool mark_some(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_MARK_CE;
	return congestion_is_data(p) && p->from == DUO_A && p->index % 3 == 0;
}

struct watch {
	const struct duo_qp *q;
	struct duo *duo;
	uint64_t widest, narrowest;
};

/* Called as packets leave; the requester's PSNs, which only grow, show what is in flight. */
static void watch_window(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct watch *w = ctx;
	const struct requester *req = &w->q->qp->gbn->req;
	uint64_t flying = (uint64_t)((p->bth.psn - req->una) & PSN_MASK) * MTU, window;

	if (p->from != DUO_A || !congestion_is_data(p))
		return;
	window = congestion_window(congestion_at(w->q));
	DUO_CHECK(w->duo, !flying || flying + MTU <= window);
	w->widest = window > w->widest ? window : w->widest;
	w->narrowest = window < w->narrowest ? window : w->narrowest;
}

TEST(no_more_is_in_flight_than_the_window)
{
	static const enum cc_algorithm algorithms[] = {CC_NONE, CC_SWIFT, CC_DCTCP};

	for (size_t i = 0; i < 2 * COUNT(algorithms); i++) {
		struct congestion_options c = congestion_options(algorithms[i / 2]);
		struct duo_options o = duo_options();
		struct watch w = {.narrowest = UINT64_MAX};
		struct sim s;

		c.ce_echo = i & 1;
		s = congestion_start_sim(&c, &o, 1, 4 << 20);
		s.duo->latency_ns = 20000;
		s.duo->script = mark_some;
		w.q = s.a;
		w.duo = s.duo;
		s.duo->tap = watch_window;
		s.duo->tap_ctx = &w;
		congestion_write(&s, 1, 4 << 20);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		assert_true(w.widest <= c.window_bytes);
		if (algorithms[i / 2] == CC_NONE)
			assert_int_equal(w.narrowest, c.window_bytes);
		else
			assert_true(w.narrowest < w.widest);
		/* Marks are reported by one or the other, never by both. */
		if (c.ce_echo)
			assert_int_equal(duo_count(s.duo, DUO_ANY, OP_CNP), 0);
		else
			assert_true(duo_count(s.duo, DUO_B, OP_CNP) > 0);
		sim_end(&s);
	}
}

/* An ACK reports a mark if and only if a packet since the last ACK was marked. */
TEST(echo_is_of_what_the_ack_acknowledges)
{
	enum { MARKED = 5, WRITES = 10 };
	struct congestion_options c = congestion_options(CC_DCTCP);
	struct duo_options o = duo_options();
	struct sim s;
	uint32_t psn;

	c.ce_echo = true;
	s = congestion_start_sim(&c, &o, 1, BUF_BYTES);
	psn = psn_add(s.a->opt.psn[DUO_A], MARKED);
	duo_rule(s.duo, (struct duo_rule){.from = DUO_A, .opcode = DUO_ANY, .nth = MARKED, .fate = DUO_MARK_CE});
	for (uint64_t i = 0; i < WRITES; i++) {
		congestion_write(&s, i, MTU);
		duo_wait(s.duo, &s.a->sent, i + 1);
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	}
	for (size_t i = 0; i < duo_count(s.duo, DUO_B, OP_RC_ACK); i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_B, OP_RC_ACK, i);

		assert_int_equal(p->bth.becn, p->bth.psn == psn);
	}
	assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ACK), WRITES);
	sim_end(&s);
}

TEST(packet_that_is_timed_asks_for_its_ack)
{
	struct congestion_options c = congestion_options(CC_SWIFT);
	struct duo_options o = duo_options();
	struct sim s = congestion_start_sim(&c, &o, 1, BUF_BYTES);
	size_t asked = 0;

	congestion_write(&s, 1, 8 * MTU);
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	for (size_t i = 0; i < s.duo->wire_count; i++)
		asked += s.duo->wire[i].from == DUO_A && s.duo->wire[i].bth.ackreq;
	assert_true(duo_packet(s.duo, DUO_A, DUO_ANY, 0)->bth.ackreq);
	assert_true(asked < 8); /* not every packet is timed */
	sim_end(&s);
}
