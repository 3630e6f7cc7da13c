/* SPDX-License-Identifier: BSD-2-Clause */
/* Coding over a link in virtual time that loses packets and words: how long messages take, and what lies do. */
#include <errno.h>
#include <stdio.h>

#include "sdr/ec/wide.h"
#include "support/coded_link.h"
#include "support/test.h"

static const struct coded_link_wish base = {
	.packets = 2048, .rtt_ns = 25000000, .packet_ns = 84, .word_loss = -1, .seed = 1};

static double ideal_ns(const struct coded_link_wish *w)
{
	return (double)w->packets * (double)w->packet_ns + (double)w->rtt_ns;
}

struct times {
	double mean, most; /* by the ideal time */
	double extra;      /* packets beyond the message's, by these */
};

static struct times run_many(struct coded_link_wish w, uint32_t count, struct loss_estimate *e)
{
	struct times t = {0};

	for (uint32_t i = 0; i < count; i++) {
		struct coded_link_result r;
		double by;

		w.seed += i + 1;
		r = coded_link_run(&w, e);
		assert_int_equal(r.end, SR_DONE);
		assert_true(r.whole_ns <= r.done_ns);
		by = (double)r.done_ns / ideal_ns(&w);
		t.mean += by / count;
		t.most = by > t.most ? by : t.most;
		t.extra += ((double)r.packets / w.packets - 1) / count;
	}
	return t;
}

static void train(struct loss_estimate *e, const struct coded_link_wish *w)
{
	loss_estimate_init(e);
	run_many(*w, 50, e);
}

TEST(a_link_without_loss_costs_little)
{
	struct coded_link_wish w = base;
	struct loss_estimate e;
	struct times t;

	train(&e, &w);
	t = run_many(w, 20, &e);
	assert_true(t.most < 1.001);
	assert_true(t.extra < 0.02);
}

TEST_MANY(losses_are_made_good_without_a_second_round)
{
	static const double losses[] = {1e-3, 1e-2, 5e-2};
	static const double extras[] = {0.02, 0.085, 0.25};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		struct coded_link_wish w = base;
		struct loss_estimate e;
		struct times t;

		w.loss = losses[i];
		train(&e, &w);
		t = run_many(w, 200, &e);
		assert_true(t.mean < 1.02);
		assert_true(t.extra < extras[i]);
	}
}

TEST_MANY(bursts_are_spread_over_groups)
{
	struct coded_link_wish w = base;
	struct loss_estimate e;

	w.packets = 32768;
	w.loss = 1e-3;
	w.burst = 16;
	train(&e, &w);
	assert_true(run_many(w, 30, &e).most < 1.1);
}

/* A message of many round trips: what is lost early is repaired meanwhile, and only the tail has parities. */
TEST_MANY(early_losses_cost_no_time)
{
	struct coded_link_wish w = base;
	struct loss_estimate e;
	struct times t;

	w.packets = 60000;
	w.rtt_ns = 500000; /* 6000 packets */
	w.loss = 1e-2;
	train(&e, &w);
	t = run_many(w, 20, &e);
	assert_true(t.mean < 1.03);
	assert_true(t.extra < 0.03); /* 1 % of these were lost */
}

/* Assumed ten times too low, a message needs a second round, and not a third; ten times too high costs parities. */
TEST(a_wrong_assumption_costs_a_round_at_most)
{
	struct coded_link_wish w = base;
	struct loss_estimate e;
	struct times low, high;

	loss_estimate_init(&e);
	w.loss = 1e-2;
	w.assumed = 1e-3;
	low = run_many(w, 200, &e);
	assert_true(low.most > 1.9);
	assert_true(low.most < 2.2);
	w.assumed = 0.1;
	high = run_many(w, 50, &e);
	assert_true(high.most < 1.02);
}

/* The same assumptions, at three sizes: parities that go on need no word of what is missing. */
TEST_MANY(idle_fill_saves_that_round)
{
	static const uint32_t packets[] = {256, 2048, 32768};
	static const double losses[] = {1e-3, 1e-2, 0.1};
	struct loss_estimate e;

	for (size_t i = 0; i < 9; i++) {
		struct coded_link_wish w = base;
		struct times with, without;

		loss_estimate_init(&e);
		w.packets = packets[i / 3];
		w.loss = losses[i % 3];
		w.assumed = w.loss / 10;
		w.fill = true;
		with = run_many(w, i < 6 ? 60 : 6, &e);
		w.fill = false;
		without = run_many(w, i < 6 ? 60 : 6, &e);
		assert_true(with.most < 1.2);
		if (i > 0)
			assert_true(without.most > 1.4);
	}
}

TEST(everything_arrives_over_terrible_links)
{
	struct loss_estimate e;

	for (uint32_t i = 0; i < 60; i++) {
		struct coded_link_wish w = base;

		w.fill = i % 5 == 2;

		w.packets = 1 + i * 37;
		w.loss = 0.3 + 0.005 * i;
		w.burst = i % 3 ? 0 : 8;
		w.rtt_ns = 20000 + i * 100000;
		w.seed = i;
		w.assumed = i % 4 == 1 ? 1e-5 : 0;
		loss_estimate_init(&e);
		run_many(w, 1, &e);
	}
}

TEST(a_receiver_that_never_answers_ends_the_message)
{
	struct coded_link_wish w = base;
	struct loss_estimate e;
	struct coded_link_result r;

	loss_estimate_init(&e);
	w.word_loss = 1;
	w.timeout_ns = 20 * w.rtt_ns;
	r = coded_link_run(&w, &e);
	assert_int_equal(r.end, SR_TIMED_OUT);
	assert_true(r.packets < 2 * w.packets);
}

/* ---- lies --------------------------------------------------------------------------------------------- */

static struct heap heap = HEAP_INIT;

static void sender_with(struct coded_sender *s, uint32_t packets, const struct alloc *alloc)
{
	const struct coded_config c = {.rtt_ns = 1000000, .piece_ns = 100, .timeout_ns = 1000000000};
	struct loss_estimate e;
	struct coded_send p;

	loss_estimate_init(&e);
	assert_int_equal(coded_sender_init(s, &c, packets, &e, 0, alloc), 0);
	while (coded_sender_next(s, &p, 0))
		;
}

/* Who names every packet all the time has each sent eight times a round trip at most, and the message ends. */
TEST(naming_everything_bounds_what_is_sent)
{
	const struct alloc alloc = heap_alloc(&heap);
	uint8_t all[SR_NACK_FIXED_LEN + SR_NACK_RUN_LEN];
	struct chunk_run run = {0, 300};
	struct coded_sender s;
	struct coded_send p;
	uint64_t sent = 0;

	sender_with(&s, 300, &alloc);
	sr_nack_encode(all, &run, 1);
	for (uint64_t now_ns = 0; now_ns < 10000000; now_ns += 1000) {
		assert_true(coded_sender_take(&s, CONTROL_SR_NACK, all, now_ns));
		coded_sender_expire(&s, now_ns);
		while (coded_sender_next(&s, &p, now_ns))
			sent++;
	}
	assert_true(sent <= 300 * 8 * 14); /* a naming counts after 3/4 of a round trip */
	coded_sender_free(&s);
	assert_int_equal(heap.blocks, 0);
}

/* Sends all there is to send at once; how many parities. */
static uint64_t parities_of(const struct coded_config *c, uint32_t packets, struct ec_layout *plan)
{
	const struct alloc alloc = heap_alloc(&heap);
	struct loss_estimate e;
	struct coded_sender s;
	struct coded_send out;
	uint64_t parities;

	loss_estimate_init(&e);
	assert_int_equal(coded_sender_init(&s, c, packets, &e, 0, &alloc), 0);
	while (coded_sender_next(&s, &out, 1000))
		assert_true(!out.parity || !c->parity_pieces || out.piece < c->parity_pieces);
	assert_true(coded_sender_all_sent(&s));
	parities = s.parities;
	*plan = s.plan.layout;
	coded_sender_free(&s);
	return parities;
}

TEST(parities_have_the_room_that_the_receiver_gives)
{
	struct coded_config c = {.rtt_ns = 25000000, .piece_ns = 84, .timeout_ns = 1000000000, .loss = 0.3};
	struct ec_layout plan;
	uint64_t wanted = parities_of(&c, 2048, &plan);

	assert_true(wanted > 1000);
	c.parity_pieces = 500;
	assert_in_range(parities_of(&c, 2048, &plan), 400, 500);
}

/* Losses can be repaired while the messages behind are sent. */
TEST(a_message_with_others_behind_it_has_a_shorter_tail)
{
	struct coded_config c = {.rtt_ns = 25000000, .piece_ns = 84, .timeout_ns = 1000000000, .loss = 0.01};
	struct ec_layout plan;
	uint64_t alone = parities_of(&c, 400000, &plan), half;

	c.behind_ns = c.rtt_ns / 2;
	half = parities_of(&c, 400000, &plan);
	assert_true(half < alone * 6 / 10 && half > alone * 4 / 10);
	c.behind_ns = c.rtt_ns;
	assert_int_equal(parities_of(&c, 400000, &plan), 0);
	assert_true(plan.first < 400000);
}

/* Takes all that goes unasked. */
static void filler_init(struct coded_sender *s, const struct coded_config *c, uint32_t packets,
			const struct alloc *alloc)
{
	struct loss_estimate e;
	struct coded_send p;

	loss_estimate_init(&e);
	assert_int_equal(coded_sender_init(s, c, packets, &e, 0, alloc), 0);
	assert_false(coded_sender_fill(s, &p, 0));
	while (coded_sender_next(s, &p, 0))
		assert_false(p.fill);
}

/* Even without a word from the receiver, at most a round trip's packets are filled in, and each parity goes once. */
TEST(idle_fill_is_bounded)
{
	static const uint64_t rtts_ns[] = {20000, 1000000};
	const struct alloc alloc = heap_alloc(&heap);

	for (int i = 0; i < 4; i++) {
		struct coded_config c = {.rtt_ns = rtts_ns[i % 2],
					 .piece_ns = 100,
					 .timeout_ns = 1000000000,
					 .fill = true,
					 .parity_pieces = i / 2 ? 90 : 0};
		uint64_t way_packets = c.rtt_ns / c.piece_ns, fills = 0;
		struct coded_sender s;
		struct coded_send p;
		bool went[4096] = {false};

		filler_init(&s, &c, 300, &alloc);
		for (uint64_t now_ns = 0; now_ns < 100 * c.rtt_ns; now_ns += 50) {
			while (coded_sender_fill(&s, &p, now_ns)) {
				assert_true(p.fill && p.parity && !went[p.piece]);
				assert_true(p.piece >= s.plan.layout.parity * s.plan.layout.groups);
				assert_true(p.piece < (c.parity_pieces ? 90 : coded_parity_pieces(&c, 300)));
				went[p.piece] = true;
				fills++;
			}
		}
		assert_in_range(fills, 1, way_packets);
		assert_true(fills <= (s.plan.layout.parity_max - s.plan.layout.parity) * s.plan.layout.groups);
		assert_int_equal(coded_sender_fill_deadline(&s), UINT64_MAX);
		coded_sender_free(&s);
	}
	assert_int_equal(heap.blocks, 0);
}

/* Packets that were named go before it, one of it goes in a packet's time, and none once all is there. */
TEST(idle_fill_gives_way)
{
	const struct coded_config c = {.rtt_ns = 1000000, .piece_ns = 100, .timeout_ns = 1000000000, .fill = true};
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_state whole = {.seen = 300, .whole = true};
	struct chunk_run run = {7, 2};
	uint8_t word[64];
	struct coded_sender s;
	struct coded_send p;

	filler_init(&s, &c, 300, &alloc);
	assert_true(coded_sender_fill(&s, &p, 1000));
	assert_false(coded_sender_fill(&s, &p, 1099));
	assert_int_equal(coded_sender_fill_deadline(&s), 1100);
	assert_true(coded_sender_fill(&s, &p, 1100));
	sr_nack_encode(word, &run, 1);
	assert_true(coded_sender_take(&s, CONTROL_SR_NACK, word, 1000000));
	assert_false(coded_sender_fill(&s, &p, 1000000));
	while (coded_sender_next(&s, &p, 1000000))
		assert_in_range(p.piece, 7, 8);
	assert_true(coded_sender_fill(&s, &p, 1000000));
	/* Their second copies are due. */
	assert_false(coded_sender_fill(&s, &p, 1000000 + c.rtt_ns / 256));
	coded_state_encode(word, &whole);
	assert_true(coded_sender_take(&s, CONTROL_CODED_STATE, word, 1100000));
	assert_false(coded_sender_fill(&s, &p, 1200000));
	assert_int_equal(coded_sender_fill_deadline(&s), UINT64_MAX);
	coded_sender_free(&s);
}

TEST(nobody_fills_unasked_or_behind_whom_more_is_sent)
{
	struct coded_config c = {.rtt_ns = 1000000, .piece_ns = 100, .timeout_ns = 1000000000};
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_sender s;
	struct coded_send p;

	for (int i = 0; i < 2; i++) {
		c.fill = i;
		c.behind_ns = i * c.rtt_ns;
		filler_init(&s, &c, 300, &alloc);
		assert_false(coded_sender_fill(&s, &p, 1000));
		coded_sender_free(&s);
	}
}

TEST(words_of_no_such_message_are_refused)
{
	const struct alloc alloc = heap_alloc(&heap);
	static const struct chunk_run wrong[] = {{300, 1}, {299, 2}, {0, 0}, {1, UINT32_MAX}};
	static const struct coded_state lies[] = {{301, 0, 0, false}, {300, 301, 1, false}, {300, 1, 2, false}};
	static const struct coded_plan plans[] = {
		{.layout = {.pieces = 301, .data = 10, .depth = 1, .parity_max = 1}},
		{.layout = {.pieces = 300, .first = 300, .data = 10, .depth = 1}},
		{.layout = {.pieces = 300, .data = 1, .depth = 1, .parity_max = 200}}, /* more than there is room for */
	};
	uint8_t bytes[64];
	struct coded_sender s;
	struct coded_receiver r;

	sender_with(&s, 300, &alloc);
	assert_int_equal(coded_receiver_init(&r, 1000000, 300, 600, 0, &alloc), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		sr_nack_encode(bytes, &wrong[i], 1);
		assert_false(coded_sender_take(&s, CONTROL_SR_NACK, bytes, 5000000));
	}
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		coded_state_encode(bytes, &lies[i]);
		assert_false(coded_sender_take(&s, CONTROL_CODED_STATE, bytes, 5000000));
	}
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		coded_plan_encode(bytes, &plans[i]);
		assert_false(coded_receiver_take(&r, CONTROL_CODED_PLAN, bytes, 0));
	}
	assert_false(r.planned);
	coded_receiver_came(&r, false, 300, 0);
	coded_receiver_came(&r, true, 600, 0);
	assert_int_equal(r.have, 0);
	coded_sender_free(&s);
	coded_receiver_free(&r);
}

/* Workers look at their clock once a pass, and a receive may be posted during it. */
TEST(a_clock_from_before_the_receive_delays_nothing)
{
	const uint64_t rtt_ns = 25000000, start_ns = UINT64_C(1000000000000);
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_receiver r;
	enum control_type type;
	uint8_t word[256];

	assert_int_equal(coded_receiver_init(&r, rtt_ns, 64, 16, start_ns, &alloc), 0);
	coded_receiver_came(&r, false, 5, start_ns - 200000);
	assert_true(coded_receiver_deadline(&r) < start_ns + rtt_ns / 64);
	assert_int_not_equal(coded_receiver_tell(&r, word, sizeof(word), &type, start_ns + rtt_ns / 64), 0);
	assert_int_equal(type, CONTROL_SR_NACK);
	assert_int_equal(sr_nack_run(word, 0).count, 5);
	coded_receiver_free(&r);
}

/* A receiver that would look for what is missing, and then has everything, has nothing to look for. */
TEST(whoever_has_everything_is_not_woken_for_what_is_missing)
{
	const struct coded_plan plan = {.layout = {.pieces = 64, .data = 64, .depth = 1, .parity_max = 2},
					.ended = true};
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_receiver r;
	enum control_type type;
	uint8_t word[256];

	assert_int_equal(coded_receiver_init(&r, 25000000, 64, 16, 0, &alloc), 0);
	for (uint32_t i = 1; i < 64; i++)
		coded_receiver_came(&r, false, i, 1000);
	coded_plan_encode(word, &plan);
	assert_true(coded_receiver_take(&r, CONTROL_CODED_PLAN, word, 2000));
	coded_receiver_came(&r, true, 1, 3000);
	assert_true(coded_receiver_whole(&r));
	for (uint64_t now_ns = 3000; now_ns < 25000000; now_ns = coded_receiver_deadline(&r)) {
		coded_receiver_expire(&r, now_ns);
		while (coded_receiver_tell(&r, word, sizeof(word), &type, now_ns))
			;
		assert_true(coded_receiver_deadline(&r) > now_ns);
	}
	coded_receiver_free(&r);
}

/* The first two packets of a group of 300 that two parities do not give back. */
static void find_unsolvable(uint16_t lost[2])
{
	static const uint8_t rows[2] = {0, 1};

	for (lost[0] = 0; lost[0] < 300; lost[0]++) {
		for (lost[1] = lost[0] + 1; lost[1] < 300; lost[1]++) {
			if (!ec_wide_solve(lost, 2, rows, 2, NULL, NULL))
				return;
		}
	}
	fail();
}

/* As many parities as packets are missing: the receiver must see that these do not do, and name them. */
TEST(a_wide_group_is_whole_only_if_its_parities_do)
{
	const struct coded_plan plan = {.layout = {.pieces = 300, .data = 300, .depth = 1, .parity_max = 2},
					.ended = true};
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_receiver r;
	enum control_type type;
	uint8_t word[256];
	uint16_t lost[2];

	find_unsolvable(lost);
	assert_int_equal(coded_receiver_init(&r, 25000000, 300, 600, 0, &alloc), 0);
	coded_plan_encode(word, &plan);
	assert_true(coded_receiver_take(&r, CONTROL_CODED_PLAN, word, 0));
	for (uint32_t i = 0; i < 300; i++) {
		if (i != lost[0] && i != lost[1])
			coded_receiver_came(&r, false, i, 1000);
	}
	coded_receiver_came(&r, true, 0, 1000);
	coded_receiver_came(&r, true, 1, 1000);
	assert_false(coded_receiver_whole(&r));
	coded_receiver_expire(&r, 1000000);
	while (coded_receiver_tell(&r, word, sizeof(word), &type, 2000000) && type != CONTROL_SR_NACK)
		;
	assert_int_equal(type, CONTROL_SR_NACK);
	assert_int_equal(sr_nack_run(word, 0).first, lost[0]);
	coded_receiver_came(&r, false, lost[0], 3000000);
	assert_true(coded_receiver_whole(&r));
	coded_receiver_free(&r);
}

TEST(memory_may_run_out)
{
	const struct coded_config c = {.rtt_ns = 1000000, .piece_ns = 100, .timeout_ns = 1000000000};
	const struct alloc alloc = heap_alloc(&heap);
	struct loss_estimate e;
	struct coded_receiver r;
	struct coded_sender s;

	loss_estimate_init(&e);
	for (int i = 0; i < 3; i++) {
		heap.gets_left = i;
		assert_int_equal(coded_sender_init(&s, &c, 300, &e, 0, &alloc), -ENOMEM);
		heap.gets_left = i;
		assert_int_equal(coded_receiver_init(&r, 1000000, 300, 600, 0, &alloc), -ENOMEM);
		assert_int_equal(heap.blocks, 0);
	}
	heap.gets_left = -1;
}
