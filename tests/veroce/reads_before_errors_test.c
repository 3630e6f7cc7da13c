/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests before a mistake are done before the mistake is reported (out-of-order R11, problem K). */
#include "support/test.h"
#include "veroce/veroce.h"

/* Nothing is lost, nothing reordered: READ and atomic were executed, so their answers are owed. */
VEROCE_VARIANTS_TEST(reads_before_a_mistake_are_answered)
{
	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_must_post(s.a, duo_fetch_add_wr(2, s.abuf, 20000, s.bbuf, 20000, 1));
	duo_must_post(s.a, duo_write_wr(3, s.abuf, 0, 10, s.bbuf, BUF_BYTES));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 3, WC_REM_ACCESS_ERR);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 3 * s.a->opt.mtu);
}

static bool is_first_response(const struct duo_packet *p, const void *arg)
{
	return veroce_is_data(p) && p->info->flags & F_RESPONSE && !p->bth.retrans;
}

/* The answers are due until they have arrived. */
VEROCE_VARIANTS_TEST(answers_that_are_lost_are_repeated_before_a_mistake_is_told)
{
	duo_rule(s.duo, (struct duo_rule){.from = DUO_B,
					  .opcode = DUO_ANY,
					  .nth = DUO_ANY,
					  .match = is_first_response,
					  .fate = DUO_DROP});
	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_must_post(s.a, duo_fetch_add_wr(2, s.abuf, 20000, s.bbuf, 20000, 1));
	duo_must_post(s.a, duo_write_wr(3, s.abuf, 0, 10, s.bbuf, BUF_BYTES));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 3, WC_REM_ACCESS_ERR);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 3 * s.a->opt.mtu);
}

/* A program that destroys the queue pair for the event does not take the NAK away from its peer. */
VEROCE_TEST(the_event_of_a_mistake_comes_when_the_nak_has_left)
{
	duo_rule(s.duo, (struct duo_rule){.from = DUO_B,
					  .opcode = DUO_ANY,
					  .nth = DUO_ANY,
					  .match = is_first_response,
					  .fate = DUO_DROP});
	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 3 * s.a->opt.mtu, s.bbuf, 0));
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 10, s.bbuf, BUF_BYTES));
	while (!duo_had_event(s.b->host, EVENT_QP_ACCESS_ERR, s.b))
		duo_run_for(s.duo, 100);
	duo_qp_destroy(s.b);
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_REM_ACCESS_ERR);
}

/* A region that goes between a READ and its answer is a mistake, too. */
TEST(reads_before_one_whose_region_is_gone_are_answered)
{
	for (int loss = 0; loss < 3; loss++) {
		struct duo_wr first, second;
		struct sim s = VEROCE_SIM(v.loss = (enum veroce_loss)loss, v.rx_window = 128, o.mtu = 256);
		struct duo_buf *gone = duo_buf(s.b->host, 2 * s.a->opt.mtu, ALL_ACCESS);

		/* More packets than the window has. */
		first = duo_read_wr(1, s.abuf, 0, BUF_BYTES - 2 * s.a->opt.mtu, s.bbuf, 0);
		second = duo_read_wr(2, s.abuf, BUF_BYTES - 2 * s.a->opt.mtu, 2 * s.a->opt.mtu, gone, 0);
		duo_rule(s.duo, (struct duo_rule){.from = DUO_B,
						  .opcode = DUO_ANY,
						  .nth = DUO_ANY,
						  .match = is_first_response,
						  .fate = DUO_DROP});
		assert_true(duo_post(s.a, &first));
		assert_true(duo_post(s.a, &second));
		while (!duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_FIRST))
			duo_run_for(s.duo, 100);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_LAST), 0);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 2);
		duo_buf_free(gone);
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_REM_ACCESS_ERR);
		assert_memory_equal(s.abuf->p, s.bbuf->p, first.sge[0].len);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		sim_end(&s);
	}
}
