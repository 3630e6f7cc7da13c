/* SPDX-License-Identifier: BSD-2-Clause */
/* A resting veRoCE queue pair needs memory to work: its behaviour when there is none. */
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"

enum { BYTES = 5000, GETS_MAX = 6 };

static struct duo_wr wr_of(const struct sim *s, int kind)
{
	switch (kind) {
	case 0: return duo_write_wr(1, s->abuf, 0, BYTES, s->bbuf, 0);
	case 1: return duo_read_wr(1, s->abuf, 0, BYTES, s->bbuf, 0);
	default: return duo_send_wr(1, s->abuf, 0, BYTES);
	}
}

/* With any piece missing, at either end, the QP tries again until there is memory. */
TEST(memory_that_comes_late_is_found)
{
	for (int i = 0; i < 3 * DUO_SIDES * GETS_MAX; i++) {
		enum duo_side side = i % DUO_SIDES;
		int kind = i / DUO_SIDES % 3;
		struct sim s = veroce_default();
		struct duo_wr w = wr_of(&s, kind);

		if (kind == 2)
			assert_true(duo_recv(s.b, 11, s.bbuf, 0, BYTES));
		s.duo->host[side].heap.gets_left = i / DUO_SIDES / 3;
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 20000000);
		s.duo->host[side].heap.gets_left = -1;
		duo_finish(s.a, 1, WC_SUCCESS);
		if (kind == 2)
			duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, BYTES);
		sim_end(&s);
	}
}

/* The QP does not try more often than that, and not for ever: the program gets an error. */
TEST(memory_that_never_comes_ends_the_qp)
{
	for (int gets = 0; gets < 2; gets++) {
		struct sim s = veroce_default();
		struct duo_wr w = wr_of(&s, 0);

		s.a->host->heap.gets_left = gets;
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 1500000000);
		assert_int_equal(s.a->sent.n, 0);
		assert_int_equal(qp_state(s.a->qp), QPS_RTS);
		duo_run_for(s.duo, 1500000000);
		duo_expect(s.duo, &s.a->sent, 1, WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		assert_true(duo_had_event(s.a->host, EVENT_QP_FATAL, s.a));
		s.a->host->heap.gets_left = -1;
		sim_end(&s);
	}
}

/* A lack of memory that ended does not count when memory is lacking again. */
VEROCE_TEST(memory_that_came_is_forgiven)
{
	struct pool *pool = &s.a->host->nic->tp.pool;

	for (uint64_t round = 0; round < 3; round++) {
		struct duo_wr w = duo_write_wr(round, s.abuf, 0, BYTES, s.bbuf, 0);
		void *taken[256];
		size_t n = 0;

		s.a->host->heap.gets_left = 0;
		while (n < COUNT(taken) && (taken[n] = pool_get(pool, 1024)))
			n++;
		assert_true(n < COUNT(taken));
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 1500000000);
		assert_int_equal(s.a->sent.n, round);
		s.a->host->heap.gets_left = -1;
		while (n)
			pool_put(pool, taken[--n], 1024);
		duo_finish(s.a, round, WC_SUCCESS);
	}
}
