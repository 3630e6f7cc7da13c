/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end that took it for granted that its peer speaks veRoCE, and whose peer does not
 * (veRoCE 13.1).
 */
#include "sim/veroce.h"

enum { MS = 1000000 };

static bool is_veroce(const struct duo_packet *p, const void *arg)
{
	return p->veroce;
}

/*
 * A knows that B's host speaks veRoCE, B believes that A's does not. What A asks while B's QP is
 * not ready nobody hears; the first message must still find out.
 */
static void peer_that_was_ready_late_is_asked_again(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.protocol[DUO_A] = v.protocol[DUO_B] = NIC_PROTOCOL_AUTO;
	veroce_opt = v;

	struct sim s = {.duo = duo_create(1, veroce_tweak)};
	struct duo_rule *deaf = duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
								  .opcode = DUO_ANY,
								  .nth = DUO_ANY,
								  .match = is_veroce,
								  .fate = DUO_DROP});
	struct duo_pair p = duo_connect(s.duo, &o);
	struct duo_wr w;

	s.abuf = duo_buf(&s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(&s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	w = duo_write_wr(1, s.bbuf, 0, 10, s.abuf, 0);
	assert_true(duo_post(p.b, &w));
	duo_idle(s.duo);
	duo_expect(s.duo, &p.b->sent, 1, WC_SUCCESS);
	deaf->off = true;
	s.a = duo_qp_create(&s.duo->host[DUO_A], &o);
	s.b = duo_qp_create(&s.duo->host[DUO_B], &o);
	assert_int_equal(duo_qp_to_init(s.a) | duo_qp_to_init(s.b), 0);
	assert_int_equal(duo_qp_to_rtr(s.a, s.b) | duo_qp_to_rts(s.a), 0);
	duo_run_for(s.duo, 1000 * MS);
	assert_int_equal(duo_qp_to_rtr(s.b, s.a) | duo_qp_to_rts(s.b), 0);
	w = duo_write_wr(2, s.abuf, 0, 10, s.bbuf, 0);
	assert_true(duo_post(s.a, &w));
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	sim_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_that_was_ready_late_is_asked_again),
	};

	duo_fail_hook = sim_fail;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
