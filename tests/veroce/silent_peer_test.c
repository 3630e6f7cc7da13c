/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that answers nothing any more. It is an error of requests alone: a responder has no timer in the standard
 * (IBTA 9.9.2.1 is about the requester), so it keeps its responses until something is heard (veRoCE 7.4).
 */
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/work.h"

enum { MTU = 1024, READ_BYTES = 5 * MTU, READS = 3, EARLIER_NS = 20000000 };

static void post_reads(struct sim *s, struct duo_qp *qp)
{
	bool is_a = qp == s->a;

	for (uint64_t i = 0; i < READS; i++) {
		duo_must_post(qp, duo_read_wr(i, is_a ? s->abuf : s->bbuf, 32768 + i * READ_BYTES, READ_BYTES,
					      is_a ? s->bbuf : s->abuf, 0));
	}
}

static bool is_response(const struct duo_packet *p, const void *arg)
{
	return veroce_is_data(p) && p->info->flags & F_RESPONSE;
}

static struct duo_rule *lose_responses(struct duo *d, enum duo_side from)
{
	return duo_rule(
		d, (struct duo_rule){
			   .from = from, .opcode = DUO_ANY, .nth = DUO_ANY, .match = is_response, .fate = DUO_DROP});
}

/* READs go both ways when one end goes to ERR. */
TEST(a_peer_in_error_fails_the_oldest_request)
{
	for (int heard = 0; heard < 2; heard++) { /* B's requests were acknowledged, or not */
		struct sim s = VEROCE_SIM(o.timeout = 12, o.retry_cnt = 2);

		lose_responses(s.duo, DUO_A);
		lose_responses(s.duo, DUO_B);
		post_reads(&s, s.a);
		duo_run_for(s.duo, EARLIER_NS); /* so that B has waited longer for acknowledgements than for answers */
		post_reads(&s, s.b);
		duo_run_for(s.duo, heard ? 100 * DUO_LATENCY_NS : DUO_LATENCY_NS / 2);
		DUO_CHECK(s.duo, tx_outstanding(&s.b->qp->veroce->w->q.tx) == (heard ? 0 : READS));
		assert_int_equal(duo_qp_to_state(s.a, QPS_ERR), 0);
		duo_idle(s.duo);
		for (uint64_t i = 0; i < READS; i++) {
			duo_expect(s.duo, &s.a->sent, i, WC_WR_FLUSH_ERR);
			duo_expect(s.duo, &s.b->sent, i, i ? WC_WR_FLUSH_ERR : WC_RETRY_EXC_ERR);
		}
		assert_false(duo_had_event(s.b->host, EVENT_QP_FATAL, s.b));
		sim_end(&s);
	}
}

/* Nothing comes from the peer after its READs were executed. Later it is back, with a request that it repeats or a new
 * one. */
TEST(a_mere_responder_waits)
{
	static const struct {
		uint8_t timeout, retry_cnt;
	} cases[] = {{10, 1}, {12, 7}, {0, 7}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (int lost = 0; lost < 2; lost++) {
			struct duo_rule *away, *on_the_way;
			size_t sent;
			struct sim s = VEROCE_SIM(v.paths = 1 + 3 * (i & 1), o.timeout = cases[i].timeout,
						  o.retry_cnt = cases[i].retry_cnt);

			s.a->qp->timeout = 0; /* it has all the time */
			post_reads(&s, s.a);
			on_the_way = lose_responses(s.duo, DUO_B);
			on_the_way->off = !lost;
			duo_run_for(s.duo, 3 * DUO_LATENCY_NS / 2); /* they were executed */
			away = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
			duo_run_for(s.duo, 1000000000);
			sent = s.duo->wire_count;
			DUO_CHECK(s.duo, s.b->qp->veroce->w->unheard);
			DUO_CHECK(s.duo, !pair_flying(s.b->qp->veroce->pair));
			duo_run_for(s.duo, 1000000000);
			for (; sent < s.duo->wire_count; sent++)
				DUO_CHECK(s.duo, s.duo->wire[sent].from == DUO_A);
			DUO_CHECK(s.duo,
				  qp_state(s.b->qp) == QPS_RTS && !duo_had_event(s.b->host, EVENT_QP_FATAL, s.b));
			away->off = on_the_way->off = true;
			if (!lost)
				post_reads(&s, s.a);
			duo_idle(s.duo);
			for (uint64_t k = 0; k < READS * (lost ? 1 : 2); k++) {
				duo_expect(s.duo, &s.a->sent, k % READS, WC_SUCCESS);
				assert_memory_equal(s.abuf->p + 32768 + k % READS * READ_BYTES, s.bbuf->p, READ_BYTES);
			}
			DUO_CHECK(s.duo,
				  qp_state(s.b->qp) == QPS_RTS && !s.b->qp->veroce->w); /* nothing is left to do */
			sim_end(&s);
		}
	}
}

/* The responder's own error is reported when the responses before it were acknowledged; the QP fails without that as
 * well. */
VEROCE_TEST(an_error_does_not_wait_for_ever, o.timeout = 10, o.retry_cnt = 1)
{
	struct duo_wr bad;

	post_reads(&s, s.a);
	bad = duo_write_wr(READS, s.abuf, 0, 8, s.bbuf, BUF_BYTES);
	assert_true(duo_post(s.a, &bad));
	duo_run_for(s.duo, 3 * DUO_LATENCY_NS / 2);
	duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	duo_drop(s.duo, DUO_B, DUO_ANY, DUO_ANY);
	duo_idle(s.duo);
	assert_int_equal(qp_state(s.b->qp), QPS_ERR);
	assert_true(duo_had_event(s.b->host, EVENT_QP_ACCESS_ERR, s.b));
	assert_false(duo_had_event(s.b->host, EVENT_QP_FATAL, s.b));
	for (uint64_t i = 0; i <= READS; i++)
		duo_expect(s.duo, &s.a->sent, i, i < READS ? WC_SUCCESS : WC_RETRY_EXC_ERR);
}
