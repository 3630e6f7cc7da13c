/* SPDX-License-Identifier: BSD-2-Clause */
/* An end that assumes that its peer speaks veRoCE, and whose peer does not (veRoCE 13.1). */
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"

enum { MS = 1000000 };

/*
 * A knows that B's host speaks veRoCE, but B has restarted and does not. A's requests are lost while B's
 * QP is not ready; A must still find out by its first message, which B drops too.
 */
TEST(peer_that_was_ready_late_is_asked_again)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo_pair first;
	struct duo_wr w;
	struct sim s;

	o.timeout = 17; /* 4 s */
	v.protocol[DUO_A] = v.protocol[DUO_B] = PROTOCOL_AUTO;
	s = veroce_start_sim(&v, &o, 1);
	assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_VEROCE);
	first = (struct duo_pair){s.a, s.b};
	s.b->host->nic->tp.config.protocol = PROTOCOL_ROCEV2; /* as the next process there may be set */
	s.a = duo_qp_create(first.a->host, &o);
	s.b = duo_qp_create(first.b->host, &o);
	assert_int_equal(duo_qp_to_init(s.a) | duo_qp_to_init(s.b), 0);
	assert_int_equal(duo_qp_to_rtr(s.a, s.b) | duo_qp_to_rts(s.a), 0);
	w = duo_write_wr(2, s.abuf, 0, 10, s.bbuf, 0);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 1000 * MS); /* all that it asks by itself */
	assert_int_equal(duo_qp_to_rtr(s.b, s.a) | duo_qp_to_rts(s.b), 0);
	duo_finish(s.a, 2, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 10);
	assert_false(veroce_last(s.duo, DUO_A, OP_RC_WRITE_ONLY)->veroce);
	assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_UNKNOWN);
	sim_end(&s);
}

/* A peer that stops answering may have restarted: next time nothing is assumed. */
VEROCE_TEST(peer_that_is_gone_is_asked_anew, o.timeout = 10, v.protocol[DUO_A] = v.protocol[DUO_B] = PROTOCOL_AUTO)
{
	struct duo_rule *gone = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);

	assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_VEROCE);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 10, s.bbuf, 0));
	duo_finish(s.a, 1, WC_RETRY_EXC_ERR);
	assert_int_equal(pair_speaks(s.a->qp->veroce->pair, s.duo->now_ns), PAIR_UNKNOWN);
	gone->off = true;
}

/*
 * An end whose peer acknowledges but never sends CAPS asks eight times by the clock, and six more
 * times after acknowledgements.
 */
TEST(peer_that_never_answers_is_not_asked_for_ever)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo *duo;

	veroce_opt = v;
	duo = duo_create(1, veroce_tweak);
	duo_drop(duo, DUO_B, OP_CAPS_REQUEST, DUO_ANY);
	duo_drop(duo, DUO_B, OP_CAPS_RESPONSE, DUO_ANY);

	struct sim s = sim_on(duo, &o);

	for (uint64_t i = 0; i < 2000; i++) {
		duo_must_post(s.a, duo_write_wr(i, s.abuf, 0, 100, s.bbuf, 0));
		duo_run_for(s.duo, MS);
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	}
	assert_int_equal(duo_count(s.duo, DUO_A, OP_CAPS_REQUEST), 8 + 6);
	assert_false(veroce_is_answered(s.a->qp->veroce));
	sim_end(&s);
}

/*
 * An end that does not know yet, and has nothing to send, goes on asking: after 1, 2, 4 .. ms, and
 * every 200 ms in the end.
 */
TEST(peer_that_is_silent_is_asked_on)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo *d;

	veroce_opt = v;
	veroce_opt.protocol[DUO_A] = PROTOCOL_AUTO;
	d = duo_create(1, veroce_tweak);
	duo_drop(d, DUO_ANY, DUO_ANY, DUO_ANY);
	duo_connect(d, &o);
	duo_run_for(d, UINT64_C(2000) * MS);
	for (size_t i = 1; i < 14; i++) {
		uint64_t gap_ns = duo_packet(d, DUO_A, OP_CAPS_REQUEST, i)->sent_ns -
				  duo_packet(d, DUO_A, OP_CAPS_REQUEST, i - 1)->sent_ns;
		uint64_t wanted_ns = i < 9 ? (uint64_t)MS << (i - 1) : 200 * MS;

		assert_in_range(gap_ns, wanted_ns, wanted_ns + 1000);
	}
	duo_destroy(d);
}
