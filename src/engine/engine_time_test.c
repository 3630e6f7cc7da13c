/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running engine in virtual time: who does the work when, a poller, a poster or the thread, to the nanosecond.
 */
#include <unistd.h>

#include "base/prng.h"
#include "support/engine_ends.h"
#include "support/virtual_env.h"

enum { STUCK_S = 600 };

static const uint64_t us = 1000, ms = 1000000, s = 1000000000;

/* A program that polls, each time a microsecond later. */
static void poll_for(uint64_t ns)
{
	for (uint64_t until_ns = virtual.now_ns + ns; virtual.now_ns < until_ns;) {
		engine_poll(engine);
		virtual_pass(1 * us);
	}
}

/* Until the thread has done everything and sleeps for good. */
static void calm_down(void)
{
	virtual_pass(10 * s);
	assert_int_equal(atomic_load(&engine->state), THREAD_BLOCKED);
}

static void open_pair(struct pair *p)
{
	pair_open(p);
	calm_down();
}

static void close_pair(struct pair *p)
{
	assert_int_equal(virtual.trains, 0);
	reap(&p->a);
	reap(&p->b);
	pair_close(p);
	calm_down();
}

/* Passes until that end has a completion; how long that takes. */
static uint64_t until_complete(struct end *e)
{
	uint64_t begun_ns = virtual.now_ns;

	while (!cq_depth(e->cq)) {
		assert_true(virtual.now_ns - begun_ns < 1 * s);
		virtual_pass(100);
	}
	return virtual.now_ns - begun_ns;
}

/* A message each way while the program polls: there is traffic, so the thread naps. */
static void poll_with_traffic(struct pair *p, uint64_t ns)
{
	post_recv(&p->b);
	assert_true(post_send(&p->a, WR_SEND));
	poll_for(ns);
	assert_int_equal(reap(&p->a), 1);
	assert_int_equal(reap(&p->b), 1);
	assert_int_equal(atomic_load(&engine->state), THREAD_NAP);
}

TEST(a_thread_that_sleeps_takes_a_packet_when_it_arrives)
{
	struct pair p;

	open_pair(&p);
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	assert_int_equal(virtual.tail - virtual.head, 1);
	assert_in_range(until_complete(&p.b), virtual.wire_ns, virtual.wire_ns + 100);
	assert_int_equal(virtual.naps, 0);
	until_complete(&p.a);
	close_pair(&p);
}

TEST(the_thread_takes_over_50_us_after_the_last_poll)
{
	struct pair p;

	open_pair(&p);
	for (int round = 0; round < 20; round++) {
		poll_with_traffic(&p, 300 * us + (uint64_t)round * 17 * us);
		post_recv(&p.b);
		assert_true(post_send(&p.a, WR_SEND));
		assert_in_range(until_complete(&p.b), 45 * us, 50 * us);
		until_complete(&p.a);
		reap(&p.a);
		reap(&p.b);
	}
	close_pair(&p);
}

TEST(the_thread_takes_over_at_once_when_the_program_hands_over)
{
	struct pair p;

	open_pair(&p);
	poll_with_traffic(&p, 300 * us);
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	engine_hand_over(engine);
	assert_in_range(until_complete(&p.b), virtual.wire_ns, virtual.wire_ns + 1 * us);
	close_pair(&p);
}

/* It takes the thread's naps no time of its own: the poller fetches the packets. */
TEST(while_a_program_polls_the_thread_takes_nothing)
{
	uint64_t end_ns;
	unsigned naps;
	struct pair p;

	open_pair(&p);
	poll_with_traffic(&p, 300 * us);
	naps = virtual.naps;
	end_ns = virtual.now_ns + 100 * ms;
	while (virtual.now_ns < end_ns) {
		post_recv(&p.b);
		assert_true(post_send(&p.a, WR_SEND));
		while (!cq_depth(p.b.cq) || !cq_depth(p.a.cq)) {
			virtual_pass(1 * us);
			assert_int_equal(atomic_load(&engine->state), THREAD_NAP);
			engine_poll(engine);
		}
		reap(&p.a);
		reap(&p.b);
	}
	assert_in_range(virtual.naps - naps, 100, 200);
	close_pair(&p);
}

TEST(an_idle_engine_has_a_heartbeat_for_100_ms_and_then_sleeps)
{
	unsigned waits, yields;
	struct pair p;

	open_pair(&p);
	post_recv(&p.b);
	assert_true(post_send(&p.a, WR_SEND));
	until_complete(&p.a);
	virtual_pass(1 * ms);
	waits = virtual.waits;
	yields = virtual.yields;
	virtual_pass(98 * ms);
	assert_in_range(virtual.waits - waits, 49, 60);
	virtual_pass(10 * ms);
	waits = virtual.waits;
	virtual_pass(3600 * s);
	assert_int_equal(virtual.waits, waits);
	assert_int_equal(virtual.yields, yields);
	close_pair(&p);
}

/*
 * A thread that waited for the lock would be woken at the end of each of the poller's turns, and mostly come too late.
 * Here a poll goes on for longer than the thread ever left the group alone.
 */
TEST(who_polls_serves_the_group_instead_of_the_thread)
{
	struct pair p;
	bool wants;

	open_pair(&p);
	poll_with_traffic(&p, 300 * us);
	engine_lock_quietly(engine);
	atomic_store(&engine->polls.polled_ns, virtual.now_ns + 60 * s);
	atomic_store(&engine->moved_ns, virtual.now_ns);
	virtual_pass(5 * ms + 100 * us);
	wants = atomic_load(&engine->serve_wanted) && !lock_is_wanted(&engine->lock);
	engine_unlock(engine);
	assert_true(wants);
	engine_poll(engine);
	assert_false(atomic_load(&engine->serve_wanted));
	close_pair(&p);
}

/* Its sends may take longer than the thread waits for the next poll. */
TEST(the_turn_of_a_post_is_no_time_without_polls)
{
	struct pair p;

	open_pair(&p);
	poll_with_traffic(&p, 300 * us);
	virtual_pass(10 * us); /* longer than KICK_STREAM_NS: the only message does not wait for a poll */
	virtual.reading_ns = 30 * us;
	assert_true(post_send(&p.a, WR_WRITE));
	assert_int_equal(atomic_load(&engine->polls.post_turns_ns), virtual.reading_ns);
	virtual.reading_ns = 0;
	assert_int_equal(atomic_load(&engine->state), THREAD_NAP);
	virtual_pass(35 * us - virtual.wire_ns);
	assert_int_equal(atomic_load(&engine->state), THREAD_NAP);
	until_complete(&p.a);

	/* Who handed over polls no more, whatever it posts. */
	reap(&p.a);
	poll_with_traffic(&p, 300 * us);
	engine_hand_over(engine);
	virtual_pass(10 * us);
	assert_true(post_send(&p.a, WR_WRITE));
	assert_int_equal(atomic_load(&engine->polls.polled_ns), 0);
	close_pair(&p);
}

/* The holder may be waiting for a processor that the polling threads have. */
TEST(polls_that_find_the_lock_held_give_the_processor_away)
{
	unsigned before = virtual.programs_yields;

	engine_lock_quietly(engine);
	for (int i = 0; i < 2000; i++)
		engine_poll(engine);
	/* Now and then: one that finds it held for a moment loses no time. */
	assert_int_equal(virtual.programs_yields - before, 2000 / 64);
	engine_unlock(engine);
	calm_down();
}

/* The first makes the QP busy, and those after it may be left to a poll. */
TEST(posts_that_were_left_to_a_poll_leave_50_us_after_the_last_one)
{
	uint32_t before;
	struct pair p;

	open_pair(&p);
	poll_with_traffic(&p, 300 * us);
	virtual_pass(10 * us);
	before = virtual.tail;
	for (int i = 0; i < 5; i++)
		assert_true(post_send(&p.a, WR_WRITE));
	assert_int_equal(virtual.tail - before, 1);
	virtual_pass(20 * us);
	assert_int_equal(virtual.tail - before, 1);
	virtual_pass(100 * us);
	assert_int_equal(cq_depth(p.a.cq), 5);
	close_pair(&p);
}

TEST(a_deadline_that_a_program_leaves_behind_wakes_the_thread)
{
	struct pair p;

	open_pair(&p);
	assert_true(post_send(&p.a, WR_WRITE));
	virtual.head = virtual.tail; /* lost */
	assert_true(virtual.woken);
	until_complete(&p.a);
	close_pair(&p);
}

struct work {
	struct pair pair;
	uint32_t posted, done;
};

/* What a program may do at any time. */
static void act(struct work *w, struct prng *r)
{
	switch (prng_below(r, 8)) {
	case 0: engine_hand_over(engine); break;
	case 1: virtual_pass(prng_below(r, 2000) * us); break;
	case 2: virtual.head += virtual.head != virtual.tail; break; /* a packet is lost */
	case 3: w->done += reap(&w->pair.a); break;
	case 4: poll_for(prng_below(r, 300) * us); break;
	case 5: virtual_pass(prng_below(r, 20) * us); break;
	default: w->posted += post_send(&w->pair.a, WR_WRITE); break;
	}
}

/* Each request completes without another poll, and then the thread sleeps for good. */
TEST_ALWAYS(no_order_of_polls_posts_and_waits_loses_work)
{
	for (uint64_t seed = 1; seed <= (test_many ? 1000 : 100); seed++) {
		struct work w = {0};
		struct prng r;

		prng_init(&r, seed);
		open_pair(&w.pair);
		for (int i = 0; i < 60; i++)
			act(&w, &r);
		virtual_pass(30 * s);
		w.done += reap(&w.pair.a);
		if (w.done != w.posted || virtual.until_ns != UINT64_MAX)
			fail_msg("seed %d: %u of %u complete", (int)seed, w.done, w.posted);
		close_pair(&w.pair);
	}
}

static int start(void **state)
{
	alarm(STUCK_S); /* two threads that wait for each other wait for ever */
	engine_set_env(virtual_env);
	return engine_ends_start();
}

TEST_PROGRAM(start, NULL)
