/* SPDX-License-Identifier: BSD-2-Clause */
/* veRoCE: what a SEND that finds no receive does to other queue pairs (veRoCE 6.3, 7). */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 1024, WINDOW = 16 * 1024, SMALL = 8 * 1024, LONG_NS = 50000000, FILLED = WINDOW - 2 * MTU };

static uint64_t in_flight(const struct sim *s)
{
	const struct pair *p = s->a->qp->veroce->pair;

	return p->sent_bytes - p->gone_bytes;
}

/* A path whose round trip is known may have a window in flight. */
static void open_window(struct sim *s)
{
	duo_do(s->a, duo_write_wr(0, s->abuf, 0, 2 * WINDOW, s->bbuf, 0));
	memset(s->bbuf->p, 0, 2 * WINDOW);
}

/*
 * The peer has taken what is behind the SEND, and says so once. If that is lost, it is acknowledged with the SEND
 * alone: a window that waits for that would keep other queue pairs from sending until the program posts a receive,
 * which it may do only when it has heard from one of them.
 */
TEST(the_window_is_free_for_other_queue_pairs)
{
	static const enum veroce_loss losses[] = {LOSS_FAST, LOSS_BASE, LOSS_IRN};

	for (size_t i = 0; i < 2 * COUNT(losses); i++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		struct duo_buf *from, *to;
		struct duo_rule *lost;
		struct duo_pair other;
		struct duo_wr w[2];
		struct sim s;

		v.loss = losses[i / 2];
		v.paths = i % 2 ? 4 : 1;
		v.window_bytes = WINDOW;
		s = veroce_start_sim(&v, &o, 1);
		other = duo_connect(s.duo, &o);
		from = duo_buf(other.a->host, SMALL, ALL_ACCESS);
		to = duo_buf(other.b->host, SMALL, ALL_ACCESS);
		duo_fill(from, 3);
		duo_idle(s.duo);
		open_window(&s);
		lost = duo_drop(s.duo, DUO_B, OP_RC_SACK, DUO_ANY);
		w[0] = duo_send_wr(0, s.abuf, 0, 100);
		w[1] = duo_write_wr(1, s.abuf, 0, 2 * WINDOW, s.bbuf, 0);
		assert_true(duo_post_chain(s.a, w, 2));
		while (!nic_counters(s.a->host->nic)->rnrs_received)
			duo_run_for(s.duo, DUO_LATENCY_NS);
		duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
		assert_true(in_flight(&s) >= FILLED);
		w[0] = duo_write_wr(2, from, 0, SMALL, to, 0);
		assert_true(duo_post(other.a, &w[0]));
		duo_run_for(s.duo, LONG_NS);
		assert_int_equal(s.a->sent.n, s.a->sent.taken);
		duo_expect(s.duo, &other.a->sent, 2, WC_SUCCESS);
		assert_memory_equal(to->p, from->p, SMALL);
		lost->off = true;
		assert_true(duo_recv(s.b, 7, s.bbuf, 2 * WINDOW, 100));
		duo_finish(s.a, 0, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, 7, WC_SUCCESS);
		assert_memory_equal(s.bbuf->p, s.abuf->p, 2 * WINDOW);
		assert_int_equal(in_flight(&s), 0);
		assert_int_equal(s.a->qp->veroce->pair->idle_bytes, 0);
		sim_end(&s);
	}
}

/* A queue pair that ends while it waits takes back what it had in flight. */
VEROCE_TEST(a_queue_pair_that_ends_meanwhile_leaves_nothing, v.window_bytes = WINDOW)
{
	struct duo_wr w[2];

	open_window(&s);
	duo_drop(s.duo, DUO_B, OP_RC_SACK, DUO_ANY);
	w[0] = duo_send_wr(0, s.abuf, 0, 100);
	w[1] = duo_write_wr(1, s.abuf, 0, 2 * WINDOW, s.bbuf, 0);
	assert_true(duo_post_chain(s.a, w, 2));
	while (!nic_counters(s.a->host->nic)->rnrs_received)
		duo_run_for(s.duo, DUO_LATENCY_NS);
	assert_true(s.a->qp->veroce->pair->idle_bytes >= FILLED);
	assert_int_equal(duo_qp_to_state(s.a, QPS_ERR), 0);
	duo_idle(s.duo);
	assert_int_equal(in_flight(&s), 0);
	assert_int_equal(s.a->qp->veroce->pair->idle_bytes, 0);
	duo_expect(s.duo, &s.a->sent, 0, WC_WR_FLUSH_ERR);
	duo_expect(s.duo, &s.a->sent, 1, WC_WR_FLUSH_ERR);
}
