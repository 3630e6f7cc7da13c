/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of waiting, one by one, in virtual time. */
#include "engine/waiting.h"
#include "support/test.h"

static const uint64_t us = 1000, ms = 1000000, s = 1000000000;
static const uint64_t spin = 20000;

/* A thread that has just been started, and for which the port and the group are not due for a while. */
static struct waiting w;
static struct waiting_seen seen;
static uint64_t now;

static void begin(void)
{
	now = 10 * s;
	w = (struct waiting){.spin_ns = spin, .serve_due_ns = now + 3600 * s, .look_due_ns = now + 3600 * s};
	seen = (struct waiting_seen){0};
}

static struct waiting_step see(enum waiting_sight what)
{
	seen.what = what;
	return waiting_next(&w, &seen);
}

static struct waiting_step look_at(uint64_t ns)
{
	seen.now_ns = now = ns;
	return see(SEEN_TRACES);
}

static void expect(struct waiting_step step, enum waiting_act act)
{
	assert_int_equal(step.act, act);
}

/* until_ns may be in terms of what is now when the step is done. */
#define expect_until(step, expected_act, expected_until_ns)          \
	do {                                                         \
		struct waiting_step step_ = (step);                  \
                                                                     \
		assert_int_equal(step_.act, expected_act);           \
		assert_int_equal(step_.until_ns, expected_until_ns); \
	} while (0)

/* A program polls all the time, and packets move. */
static struct waiting_step look_while_polled(uint64_t ns)
{
	seen.polled_ns = seen.moved_ns = ns;
	return look_at(ns);
}

static struct waiting_step poll_for(uint64_t ns)
{
	uint64_t until_ns = now + ns;
	struct waiting_step step = look_while_polled(now);

	while (step.until_ns < until_ns) {
		expect(step, WAITING_NAP);
		step = look_while_polled(step.until_ns);
	}
	return look_while_polled(until_ns);
}

/* ---- while a program polls ---- */

TEST(while_a_program_polls_the_thread_naps_50_us_at_a_time)
{
	begin();
	expect_until(look_while_polled(now), WAITING_NAP, now + 50 * us);
	seen.polled_ns = now + 30 * us;
	expect_until(look_at(now + 40 * us), WAITING_NAP, seen.polled_ns + 50 * us);
}

TEST(who_has_not_polled_for_50_us_has_stopped)
{
	begin();
	look_while_polled(now);
	expect(look_at(now + 50 * us - 1), WAITING_NAP);
	expect(look_at(now + 1), WAITING_MEASURE);
}

TEST(who_handed_over_has_stopped_at_once)
{
	begin();
	look_while_polled(now);
	seen.polled_ns = 0;
	expect(look_at(now + 1), WAITING_TRY);
}

TEST(a_poll_that_goes_on_is_no_time_without_polls)
{
	begin();
	seen.moved_ns = now;
	seen.polled_ns = now + TURN_NS_MAX;
	expect_until(look_at(now), WAITING_NAP, now + 50 * us);
	seen.moved_ns = now + 9 * ms;
	expect_until(look_at(now + 9 * ms), WAITING_NAP, now + 9 * ms / 16);
}

TEST(the_turns_of_posts_are_no_time_without_polls)
{
	begin();
	look_while_polled(now);
	seen.post_turns_ns = 400 * us;
	expect_until(look_at(now + 440 * us), WAITING_NAP, seen.polled_ns + 450 * us);
	expect(look_at(seen.polled_ns + 450 * us), WAITING_MEASURE);
	/* Who handed over polls no more, whatever it posts. */
	seen.polled_ns = 0;
	expect(look_at(now), WAITING_TRY);
}

TEST(a_poll_that_found_the_lock_held_is_a_poll)
{
	begin();
	look_while_polled(now);
	seen.bounced = true;
	expect_until(look_at(now + 500 * us), WAITING_NAP, now + 50 * us);
	seen.bounced = false;
	expect(look_at(now + 50 * us), WAITING_MEASURE);
}

TEST(naps_grow_to_a_16th_of_the_time_of_polling_and_to_a_millisecond)
{
	begin();
	expect_until(poll_for(800 * us), WAITING_NAP, now + 50 * us);
	expect_until(poll_for(800 * us), WAITING_NAP, now + 100 * us);
	expect_until(poll_for(6400 * us), WAITING_NAP, now + 500 * us);
	expect_until(poll_for(1 * s), WAITING_NAP, now + 1 * ms);
}

TEST(who_polled_for_long_has_stopped_after_a_quarter_of_a_nap)
{
	begin();
	poll_for(8 * ms);
	/* A nap is 500 us now; a gap of 50 us is none of its own, so the nap ends with the quarter. */
	expect_until(look_at(now + 100 * us), WAITING_NAP, seen.polled_ns + 125 * us + (100 * us / 64));
	poll_for(1 * s);
	expect_until(look_at(now + 249 * us), WAITING_NAP, seen.polled_ns + 250 * us);
	expect(look_at(now + 1 * us), WAITING_MEASURE);
}

TEST(naps_begin_short_again_after_polling_has_stopped)
{
	begin();
	poll_for(1 * s);
	seen.polled_ns = 0;
	expect(look_at(now + 1), WAITING_TRY);
	see(SEEN_TURN);
	expect_until(look_while_polled(now + 1), WAITING_NAP, now + 50 * us);
}

TEST(a_poller_without_traffic_lets_the_thread_block)
{
	begin();
	look_while_polled(now);
	seen.polled_ns = now + 1 * ms;
	expect(look_at(now + 1 * ms), WAITING_NAP);
	seen.polled_ns = now + 1;
	assert_true(look_at(now + 1).output);
	seen.locked = true;
	expect(see(SEEN_SERVED), WAITING_REST);
	/* Unless it had something to send, or the poller has the lock. */
	look_at(now);
	seen.moved = true;
	expect_until(see(SEEN_SERVED), WAITING_NAP, w.nap_until_ns);
	look_at(now);
	seen.moved = seen.locked = false;
	expect_until(see(SEEN_SERVED), WAITING_NAP, w.nap_until_ns);
}

/* Another thread's turn has read the clock later. */
TEST(packets_of_the_future_are_traffic)
{
	begin();
	seen.polled_ns = now;
	seen.moved_ns = now + 5 * ms;
	expect(look_at(now), WAITING_NAP);
}

/* ---- the group and the port ---- */

TEST(beside_a_poller_the_group_is_served_every_5_ms)
{
	struct waiting_step step;

	begin();
	w.serve_due_ns = now;
	step = look_while_polled(now);
	expect(step, WAITING_SERVE);
	assert_true(step.serve && !step.output);
	expect(look_while_polled(now + 5 * ms - 1), WAITING_NAP);
	expect(look_while_polled(now + 1), WAITING_SERVE);
}

TEST(the_group_is_served_when_it_asks)
{
	begin();
	seen.group_asks = true;
	expect(see(SEEN_WAKING), WAITING_LOOK);
	seen.group_asks = false;
	expect(look_while_polled(now), WAITING_SERVE);
	see(SEEN_SERVED);
	expect(look_while_polled(now), WAITING_NAP);
	/* Without a poller by the next turn, also if the lock is held at first. */
	seen.group_asks = true;
	see(SEEN_WAKING);
	seen.group_asks = false;
	seen.polled_ns = 0;
	assert_true(look_at(now).serve);
	see(SEEN_HELD);
	assert_true(look_at(now).serve);
	see(SEEN_TURN);
	assert_false(look_at(now).serve);
}

TEST(what_a_poller_was_left_to_serve_the_thread_serves_if_it_stops)
{
	begin();
	seen.serve_wanted = true;
	assert_true(look_at(now).serve);
}

TEST(the_port_is_looked_at_when_it_asks_and_every_5_ms)
{
	begin();
	assert_false(waiting_port_is_due(&w, now));
	seen.port_asks = true;
	see(SEEN_WAKING);
	assert_true(waiting_port_is_due(&w, now));
	assert_false(waiting_port_is_due(&w, now + 5 * ms - 1));
	assert_true(waiting_port_is_due(&w, now + 5 * ms));
}

/* ---- a poller that waits for a processor ---- */

/* A program polled, and the thread has slept for 50 us since. */
static void stop_polling(void)
{
	begin();
	look_while_polled(now);
	expect(look_at(now + 50 * us), WAITING_MEASURE);
}

static struct waiting_step answer(uint64_t ran_ns, bool wants, bool may_wait)
{
	struct waiting_step step;

	seen.ran_ns = ran_ns;
	step = see(SEEN_RAN);
	if (step.act != WAITING_QUESTION)
		return step;
	seen.wants = wants;
	seen.may_wait = may_wait;
	return see(SEEN_WANTS);
}

TEST(a_poller_that_waits_for_a_processor_is_awaited_four_times_as_long)
{
	uint64_t polled_ns;

	stop_polling();
	polled_ns = seen.polled_ns;
	expect_until(answer(0, true, true), WAITING_AWAIT, polled_ns + 200 * us);
	expect(look_at(polled_ns + 200 * us), WAITING_MEASURE);
	expect_until(answer(0, true, true), WAITING_AWAIT, polled_ns + 800 * us);
	expect(look_at(polled_ns + 3200 * us), WAITING_MEASURE);
	expect_until(answer(0, true, true), WAITING_AWAIT, polled_ns + 10 * ms);
	expect(look_at(polled_ns + 10 * ms), WAITING_TRY);
}

TEST(a_poller_that_ran_for_three_quarters_of_the_time_did_not_wait)
{
	stop_polling();
	expect(answer(37 * us, true, true), WAITING_AWAIT);
	stop_polling();
	expect(answer(38 * us, true, true), WAITING_TRY);
	/* Nor did one whose time is not known, nor one that sleeps. */
	stop_polling();
	expect(answer(UINT64_MAX, true, true), WAITING_TRY);
	stop_polling();
	expect(answer(0, false, true), WAITING_TRY);
}

TEST(packets_of_sockets_do_not_wait_for_a_poller)
{
	stop_polling();
	expect(answer(0, true, false), WAITING_TRY);
}

TEST(a_thread_that_works_instead_of_a_poller_goes_on_until_one_polls)
{
	stop_polling();
	expect(answer(0, false, false), WAITING_TRY);
	expect(look_at(now + 1 * us), WAITING_TRY);
	look_while_polled(now + 1 * us);
	expect(look_at(now + 50 * us), WAITING_MEASURE);
}

/* It has polled for long, and still does. */
TEST(a_wait_for_a_processor_does_not_shorten_naps)
{
	begin();
	poll_for(1 * s);
	expect(look_at(now + 250 * us), WAITING_MEASURE);
	expect(answer(0, true, false), WAITING_TRY);
	look_while_polled(now + 1 * ms);
	expect_until(look_while_polled(now + 1 * us), WAITING_NAP, now + 1 * ms);
	/* One that stopped for another reason begins anew, and so does one that waited for longer than 10 ms. */
	expect(look_at(now + 250 * us), WAITING_MEASURE);
	expect(answer(0, false, false), WAITING_TRY);
	look_while_polled(now + 1 * ms);
	expect_until(look_while_polled(now + 1 * us), WAITING_NAP, now + 50 * us);
	poll_for(1 * s);
	expect(look_at(now + 250 * us), WAITING_MEASURE);
	expect(answer(0, true, false), WAITING_TRY);
	look_while_polled(now + 11 * ms);
	expect_until(look_while_polled(now + 1 * us), WAITING_NAP, now + 50 * us);
}

/* ---- the thread at work ---- */

static struct waiting_step turn_at(uint64_t ns, bool moved)
{
	expect(look_at(ns), WAITING_TRY);
	seen.moved = moved;
	if (moved)
		seen.moved_ns = ns;
	return see(SEEN_TURN);
}

TEST(a_lock_that_is_held_is_looked_at_once_more_before_a_wait)
{
	begin();
	look_at(now);
	expect_until(see(SEEN_HELD), WAITING_NAP, now + 50 * us);
	look_at(now + 50 * us);
	expect(see(SEEN_HELD), WAITING_TURN);
	see(SEEN_TURN);
	look_at(now);
	expect(see(SEEN_HELD), WAITING_NAP);
	/* A poll between the two is a new beginning. */
	look_while_polled(now);
	seen.polled_ns = 0;
	look_at(now);
	expect(see(SEEN_HELD), WAITING_NAP);
}

TEST(after_a_turn_that_moved_packets_there_is_another)
{
	begin();
	expect(turn_at(now, true), WAITING_LOOK);
}

TEST(the_thread_spins_for_a_while_after_traffic)
{
	begin();
	turn_at(now, true);
	expect(turn_at(now + spin - 1, false), WAITING_YIELD);
	expect(turn_at(now + 1, false), WAITING_REST);
}

TEST(it_spins_six_times_as_long_while_a_peer_reads)
{
	begin();
	turn_at(now, true);
	seen.lends = true;
	expect(turn_at(now + 6 * spin - 1, false), WAITING_YIELD);
	expect(turn_at(now + 1, false), WAITING_REST);
}

static void yield_for(uint64_t ns)
{
	expect(turn_at(now, false), WAITING_YIELD);
	seen.now_ns = now += ns;
	expect(see(SEEN_YIELD), WAITING_LOOK);
}

TEST(two_long_yields_in_a_row_end_the_spinning_ten_times_as_long)
{
	begin();
	turn_at(now, true);
	w.spin_ns = 10 * s;
	yield_for(21 * us);
	yield_for(20 * us);
	yield_for(21 * us);
	expect(turn_at(now, false), WAITING_YIELD);
	yield_for(30 * us);
	expect(turn_at(now + 300 * us - 1, false), WAITING_REST);
	expect(turn_at(now + 1, false), WAITING_YIELD);
	/* For 20 ms at most. */
	yield_for(1 * s);
	expect(turn_at(now + 20 * ms - 1, false), WAITING_REST);
	expect(turn_at(now + 1, false), WAITING_YIELD);
}

/* ---- sleep ---- */

static struct waiting_step rest_until(uint64_t deadline_ns)
{
	seen.deadline_ns = deadline_ns;
	return see(SEEN_DEADLINE);
}

TEST(an_idle_thread_sleeps_until_the_deadline_or_for_good)
{
	begin();
	expect(turn_at(now, false), WAITING_REST);
	expect_until(rest_until(now + 7 * s), WAITING_BLOCK, now + 7 * s);
	expect_until(rest_until(UINT64_MAX), WAITING_BLOCK, UINT64_MAX);
	expect(see(SEEN_WAKING), WAITING_LOOK);
}

TEST(what_is_due_is_done_before_a_sleep)
{
	begin();
	turn_at(now, false);
	expect(rest_until(now), WAITING_LOOK);
	expect(rest_until(0), WAITING_LOOK);
}

/* It is the poller's to do; a thread that looked again at once would spin until the next poll. */
TEST(what_is_due_while_a_program_polls_waits_for_a_nap)
{
	begin();
	seen.polled_ns = now;
	seen.moved_ns = now - 2 * ms;
	expect(look_at(now), WAITING_SERVE);
	seen.locked = true;
	seen.moved = false;
	expect(see(SEEN_SERVED), WAITING_REST);
	expect_until(rest_until(now), WAITING_NAP, now + 50 * us);
	/* Nobody has polled since: now it is this thread's. */
	expect(look_at(now + 50 * us), WAITING_MEASURE);
}

TEST(for_100_ms_after_traffic_a_sleep_is_2_ms_at_most)
{
	begin();
	turn_at(now, false);
	seen.stirred_ns = now - 99 * ms;
	expect_until(rest_until(UINT64_MAX), WAITING_BLOCK, now + 2 * ms);
	expect_until(rest_until(now + 1 * ms), WAITING_BLOCK, now + 1 * ms);
	seen.stirred_ns = now - 100 * ms;
	expect_until(rest_until(UINT64_MAX), WAITING_BLOCK, UINT64_MAX);
}

/* ---- threads that poll and post ---- */

static struct polls polls;

TEST(one_of_64_polls_that_find_the_lock_held_yields)
{
	uint32_t bounces = 0, yields = 0;

	polls = (struct polls){0};
	for (int i = 0; i < 640; i++)
		yields += polls_bounce(&polls, &bounces);
	assert_int_equal(yields, 10);
	assert_true(polls.bounced);
	polls_hand_over(&polls);
	assert_false(polls.bounced);
}

TEST(a_post_within_2_us_of_the_last_is_one_of_many)
{
	polls = (struct polls){0};
	polls_post_end(&polls, polls_post_begin(&polls), 1 * s, 1 * s + 5 * us);
	assert_true(polls_are_posts_many(&polls, 1 * s + 7 * us));
	assert_false(polls_are_posts_many(&polls, 1 * s + 7 * us + 1));
	assert_int_equal(polls.post_turns_ns, 5 * us);
}

TEST(a_turn_of_a_post_adds_to_those_since_the_last_poll)
{
	uint64_t before_ns;

	polls = (struct polls){0};
	polls_begin(&polls, 1, 1 * s);
	assert_int_equal(polls.polled_ns, 1 * s + TURN_NS_MAX);
	polls_end(&polls, 1 * s + 3);
	assert_int_equal(polls.polled_ns, 1 * s + 3);
	polls_post_end(&polls, polls_post_begin(&polls), 2 * s, 2 * s + 5 * us);
	before_ns = polls_post_begin(&polls);
	assert_int_equal(polls.post_turns_ns, 5 * us + TURN_NS_MAX);
	polls_post_end(&polls, before_ns, 3 * s, 3 * s + 6 * us);
	assert_int_equal(polls.post_turns_ns, 11 * us);
	polls_begin(&polls, 1, 4 * s);
	assert_int_equal(polls.post_turns_ns, 0);
}

TEST(posts_are_deferred_until_they_make_a_train)
{
	polls = (struct polls){0};
	for (int i = 0; i < DEFERRED_KICKS_MAX; i++)
		assert_true(polls_may_defer(&polls));
	assert_false(polls_may_defer(&polls));
	polls_turn(&polls);
	assert_true(polls_may_defer(&polls));
}

TEST(twenty_posts_in_a_row_are_of_one_queue_pair)
{
	polls = (struct polls){0};
	for (int i = 0; i < NEAR_KICKS_MAX; i++)
		assert_false(polls_run_on(&polls, &now));
	assert_false(polls_run_on(&polls, &w));
	for (int i = 0; i < NEAR_KICKS_MAX; i++)
		assert_false(polls_run_on(&polls, &now));
	assert_true(polls_run_on(&polls, &now));
	polls_turn(&polls);
	assert_false(polls_run_on(&polls, &now));
}
