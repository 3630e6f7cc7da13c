/* SPDX-License-Identifier: BSD-2-Clause */
/* What trims cut: the window of their path, or that of all paths of the pair. */
#include "support/pair_fixture.h"
#include "support/test.h"

/* ---- among paths ------------------------------------------------------------------------------------- */

/* `packets` leave on each path and every one is trimmed. */
static void trim_all(struct fixture *f, uint32_t packets)
{
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		for (uint32_t k = 0; k < packets; k++)
			path_sent(&f->config, f->pair, i, PACKET, start_ns);
	}
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		for (uint32_t k = 0; k < packets; k++) {
			path_trimmed(f->pair, i, PACKET, start_ns);
			path_lost(f->pair, i, PACKET, start_ns);
		}
	}
}

FIXTURE_TEST(a_trim_cuts_its_path_and_no_other, 2, CC_SWIFT)
{
	uint64_t before = f->pair->path[1].cc.cwnd_bytes;
	uint64_t window = f->pair->window_bytes;

	for (uint32_t i = 0; i < 2; i++)
		path_sent(&f->config, f->pair, i, PACKET, start_ns);
	path_trimmed(f->pair, 1, PACKET, start_ns);
	assert_true(f->pair->path[1].cc.cwnd_bytes < before);
	assert_int_equal(f->pair->path[0].cc.cwnd_bytes, before);
	assert_int_equal(f->pair->window_bytes, window);
}

/* The least windows of all paths may be more than there is room for. */
FIXTURE_TEST(trims_that_no_path_can_answer_shrink_the_window_of_all, 16, CC_SWIFT)
{
	uint64_t now_ns = start_ns + 1000000, window;
	uint32_t held = 0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->pair->window_bytes, f->pair->buffer_bytes);
		trim_all(f, 8);
	}
	while (held < 1000 && send(f, PACKET))
		held++;
	assert_int_equal(held, 1);
	/* ... which opens again while nothing more is trimmed. */
	window = f->pair->window_bytes;
	for (int i = 0; i < 200; i++) {
		path_sent(&f->config, f->pair, 0, PACKET, now_ns);
		ack(f, 0, 1, now_ns, now_ns + 1000);
		now_ns += 1000;
	}
	assert_true(window < PACKET && f->pair->window_bytes == f->pair->buffer_bytes);
}

FIXTURE_TEST(a_path_whose_packets_are_trimmed_is_not_dead, 2, CC_SWIFT)
{
	path_silent(f->pair, 0, 7, start_ns);
	path_trimmed(f->pair, 0, PACKET, start_ns);
	path_silent(f->pair, 0, 7, start_ns);
	assert_false(f->pair->path[0].down);
}

/* ---- by itself --------------------------------------------------------------------------------------- */

enum { BUFFER = 1 << 20, LEAST = 2 * MTU, FLYING = 100 * PACKET };

/* A pair with so much in flight. */
static struct pair flying_pair(void)
{
	return (struct pair){
		.window_bytes = BUFFER, .buffer_bytes = BUFFER, .cwnd_least_bytes = LEAST, .sent_bytes = FLYING};
}

/* The oldest packet was trimmed, and another one leaves for it. */
static void trim_one(struct pair *p, bool path_is_least)
{
	trim_window_cut(p, PACKET, path_is_least);
	p->gone_bytes += PACKET;
	p->sent_bytes += PACKET;
}

/* One whose paths have a window together. */
static struct pair cut_pair(void)
{
	struct pair p = flying_pair();

	for (int i = 0; p.window_bytes == BUFFER && i < 1000; i++)
		trim_one(&p, true);
	assert_true(p.window_bytes < BUFFER);
	return p;
}

/* A round trip later, in which everything arrived. Returns how much the window has grown. */
static uint64_t calm_round(struct pair *p)
{
	uint64_t before = p->window_bytes;

	p->gone_bytes = p->sent_bytes;
	p->sent_bytes += FLYING;
	trim_window_grow(p);
	return p->window_bytes - before;
}

TEST(what_was_trimmed_is_taken_off_what_flies)
{
	struct pair p = cut_pair();

	assert_int_equal(p.window_bytes, FLYING - PACKET);
	p.gone_bytes += FLYING / 2;
	trim_one(&p, true);
	assert_int_equal(p.window_bytes, FLYING / 2 - PACKET);
	for (int i = 0; i < 1000; i++) {
		trim_one(&p, true);
		assert_in_range(p.window_bytes, 1, BUFFER);
	}
}

/* Few trims are answered by the windows of their paths, unless these can be no less. */
TEST(a_few_trims_cut_only_where_no_path_can_answer)
{
	struct pair p = cut_pair();
	uint64_t window;

	calm_round(&p);
	window = p.window_bytes;
	trim_one(&p, false);
	assert_int_equal(p.window_bytes, window);
	trim_one(&p, true);
	assert_int_equal(p.window_bytes, window - PACKET);
}

TEST(nothing_is_cut_where_nothing_is_controlled)
{
	struct pair p = flying_pair();

	p.cwnd_least_bytes = 0;
	for (int i = 0; i < 1000; i++)
		trim_one(&p, true);
	assert_int_equal(p.window_bytes, BUFFER);
}

TEST(it_grows_a_round_trip_after_it_was_made)
{
	struct pair p = cut_pair();
	uint64_t window = p.window_bytes, made = p.sent_bytes - PACKET;

	p.gone_bytes = made - 1;
	trim_window_grow(&p);
	assert_int_equal(p.window_bytes, window);
	p.gone_bytes = made;
	trim_window_grow(&p);
	assert_int_equal(p.window_bytes, window + LEAST / 32);
}

/* Twice as fast after each eight rounds of calm, and as slowly as ever after the next trim that no path answers. */
TEST(it_grows_faster_while_it_is_calm)
{
	struct pair p = cut_pair();

	p.window_bytes = PACKET;
	for (uint32_t i = 1; i <= 24; i++)
		assert_int_equal(calm_round(&p), (uint64_t)(LEAST / 32) << i / 8);
	trim_one(&p, true);
	assert_int_equal(calm_round(&p), LEAST / 32);
}
