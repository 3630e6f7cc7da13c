/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests before a mistake are done before the mistake is reported (out-of-order R11, problem K). */
#include "veroce/veroce.h"

/* Nothing is lost, nothing reordered: READ and atomic were executed, so their answers are owed. */
static void reads_before_a_mistake_are_answered(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		struct duo_wr r = duo_read_wr(1, s.abuf, 0, 3 * o.mtu, s.bbuf, 0);
		struct duo_wr add = duo_fetch_add_wr(2, s.abuf, 20000, s.bbuf, 20000, 1);
		struct duo_wr bad = duo_write_wr(3, s.abuf, 0, 10, s.bbuf, BUF_BYTES);

		assert_true(duo_post(s.a, &r));
		assert_true(duo_post(s.a, &add));
		assert_true(duo_post(s.a, &bad));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 3, WC_REM_ACCESS_ERR);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 3 * o.mtu);
		sim_end(&s);
	}
}

static bool is_first_response(const struct duo_packet *p, const void *arg)
{
	return veroce_is_data(p) && p->info->flags & F_RESPONSE && !p->bth.retrans;
}

/* The answers are due until they have arrived. */
static void answers_that_are_lost_are_repeated_before_a_mistake_is_told(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		struct duo_wr r = duo_read_wr(1, s.abuf, 0, 3 * o.mtu, s.bbuf, 0);
		struct duo_wr add = duo_fetch_add_wr(2, s.abuf, 20000, s.bbuf, 20000, 1);
		struct duo_wr bad = duo_write_wr(3, s.abuf, 0, 10, s.bbuf, BUF_BYTES);

		duo_rule(s.duo, (struct duo_rule){.from = DUO_B,
						  .opcode = DUO_ANY,
						  .nth = DUO_ANY,
						  .match = is_first_response,
						  .fate = DUO_DROP});
		assert_true(duo_post(s.a, &r));
		assert_true(duo_post(s.a, &add));
		assert_true(duo_post(s.a, &bad));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 3, WC_REM_ACCESS_ERR);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 3 * o.mtu);
		sim_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_before_a_mistake_are_answered),
		cmocka_unit_test(answers_that_are_lost_are_repeated_before_a_mistake_is_told),
	};

	duo_fail_hook = sim_fail;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
