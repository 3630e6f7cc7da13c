/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a veRoCE receiver tells beside what has arrived: how many copies came in vain (13.2), which packet
 * was slow (9.1), and all that on a path that works (5.3, 5).
 */
#include "nic/state.h"
#include "sim/veroce.h"

enum { MTU = 1024 };

static struct sim start(uint32_t paths)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	v.paths = paths;
	return veroce_start_sim(&v, &o, 1);
}

static void write_to(struct sim *s, uint64_t wr_id, uint32_t packets)
{
	struct duo_wr w = duo_write_wr(wr_id, s->abuf, 0, packets * MTU, s->bbuf, 0);

	assert_true(duo_post(s->a, &w));
	duo_wait(s->duo, &s->a->sent, s->a->sent.taken + 1); /* no longer, lest the queue pairs rest */
	duo_expect(s->duo, &s->a->sent, wr_id, WC_SUCCESS);
}

/* The count of the last stamped acknowledgement of B. */
static void take_dups(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct veroce_packet v;

	if (p->from == DUO_B && p->bth.opcode == OP_RC_ACK && p->bth.ts &&
	    veroce_decode(&v, data, p->len))
		*(int *)ctx = v.tse.dups;
}

static void copies_are_counted(void **state)
{
	struct sim s = start(1);
	int dups = -1;

	s.duo->tap = take_dups;
	s.duo->tap_ctx = &dups;
	for (int i = 0; i < 5; i++) {
		struct duo_rule *twice = duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
									   .opcode = OP_RC_WRITE_FIRST,
									   .nth = DUO_ANY,
									   .fate = DUO_DUPLICATE,
									   .n = 100});

		write_to(&s, (uint64_t)i, 3);
		twice->off = true;
		assert_int_equal(dups, i + 1);
	}
	sim_end(&s);
}

/* Sixteen packets a path may overtake another one. */
static void a_packet_far_behind_is_slow(void **state)
{
	static const struct {
		uint32_t paths, behind;
		bool told;
	} rows[] = {{1, 16, false}, {1, 17, true}, {2, 32, false}, {2, 33, true}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = start(rows[i].paths);

		duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
						  .opcode = OP_RC_WRITE_FIRST,
						  .nth = 0,
						  .fate = DUO_HOLD,
						  .n = rows[i].behind});
		write_to(&s, 1, 60);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_SLOW_PACKET), rows[i].told);
		sim_end(&s);
	}
}

/* B knows that nothing gets through on the path that A's packets come by. */
static void answers_leave_a_path_that_is_down(void **state)
{
	struct sim s = start(2);
	struct pair *pair = s.b->qp->veroce->pair;
	size_t acks[2] = {0};

	for (uint64_t i = 0; i < 20; i++)
		write_to(&s, i, 1);
	assert_true(pair_begin(&s.b->host->nic->tp.pairs, pair));
	duo_drop(s.duo, DUO_B, OP_RTT_REQUEST, DUO_ANY);
	path_silent(pair, 1, UINT8_MAX, s.duo->now_ns);
	assert_true(pair->path[1].down);
	for (size_t k = s.duo->wire_count, i = 20; i < 60; i++) {
		write_to(&s, i, 1);
		for (; k < s.duo->wire_count; k++) {
			const struct duo_packet *p = &s.duo->wire[k];

			acks[p->path] += p->from == DUO_B && p->bth.opcode == OP_RC_ACK;
		}
	}
	assert_true(pair->path[1].down);
	assert_int_equal(acks[1], 0);
	assert_int_equal(acks[0], 40);
	sim_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_counted),
		cmocka_unit_test(a_packet_far_behind_is_slow),
		cmocka_unit_test(answers_leave_a_path_that_is_down),
	};

	duo_fail_hook = sim_fail;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
