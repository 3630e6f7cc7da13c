/* SPDX-License-Identifier: BSD-2-Clause */
/* Codes that the owner chose, of a whole message: over a link in virtual time, and with a peer that lies. */
#include <errno.h>

#include "sdr/coded/coded_plan.h"
#include "support/coded_link.h"
#include "support/test.h"

#define MS       UINT64_C(1000000)
#define RTT_NS   (25 * MS)
#define PIECE_NS UINT64_C(10000)

static struct loss_estimate unused;

/* What answers a group that the code does not give back. */
enum answer { BY_PARITY, BY_REPEAT };

/* 25 ms of RTT, 10 us a piece, groups of 32 and 8. */
struct wish {
	struct coded_link_wish w;
	struct coded_config c;
};

static void settle(struct wish *w)
{
	struct coded_plan *p = &w->c.plan;

	assert_true(ec_layout_settle(&p->layout));
	p->wait_ns = coded_wait_ns(&p->layout, PIECE_NS, RTT_NS, w->c.rto_ns);
}

static struct wish usual(enum answer answer, uint32_t pieces)
{
	struct wish w = {
		.w = {.packets = pieces,
		      .rtt_ns = RTT_NS,
		      .packet_ns = PIECE_NS,
		      .word_loss = 0,
		      .assumed = 0.01,
		      .seed = 1},
		.c = {.plan = {.layout = {.pieces = pieces,
					  .data = 32,
					  .parity = 8,
					  .parity_max = answer == BY_PARITY ? 40 : 8,
					  .depth = 1},
			       .repeats = answer == BY_REPEAT,
			       .rtt_ns = RTT_NS},
		      .fresh = answer == BY_PARITY,
		      .silent = answer == BY_REPEAT,
		      .rto_ns = 3 * RTT_NS,
		      .tries_max = 64},
	};

	settle(&w);
	return w;
}

static struct coded_link_result play(struct wish *w)
{
	struct coded_link_result r;

	w->w.code = &w->c;
	r = coded_link_run(&w->w, &unused);
	assert_int_equal(r.end, SR_DONE);
	return r;
}

/* The time that all pieces take that are sent unasked, and a round trip. */
static uint64_t ideal_ns(const struct wish *w)
{
	const struct ec_layout *l = &w->c.plan.layout;

	return (l->pieces + (uint64_t)l->groups * l->parity) * PIECE_NS + RTT_NS;
}

/* What one case loses, and what follows. Times beyond the ideal one, in RTTs. */
struct row {
	const char *name;
	enum answer answer;
	uint32_t pieces;
	bool is_xor, ends; /* `ends`: it says so where it would not */
	uint32_t lose_first, lose_ends, lose_wholes;
	double least, most;
	uint32_t resent_least, resent_most;
	bool names;
};

static const struct row rows[] = {
	{"done_when_the_data_is_there", BY_PARITY, 320, .least = -.0033, .most = -.0031},
	{"and_with_the_repeat", BY_REPEAT, 320, .least = -.0033, .most = -.0031},
	{"and_with_xor", BY_REPEAT, 320, .is_xor = true, .least = -.0033, .most = -.0031},
	{"as_many_losses_as_parities", BY_REPEAT, 32, .lose_first = 8, .most = 1e-6},
	{"and_of_xor_one_of_each_class", BY_REPEAT, 32, .is_xor = true, .lose_first = 8, .most = 1e-6},
	/* The timer: half of what the RTO leaves is a round trip, which begins with the plan. */
	{"falls_back_after_its_time", BY_REPEAT, 320, .lose_first = 9, .least = 1.9, .most = 2.1, 9, 9, true},
	{"xor_with_two_in_a_class", BY_REPEAT, 64, true, .lose_first = 9, .least = 1.9, .most = 2.1, 2, 9, true},
	{"an_end_marker_spares_the_time", BY_REPEAT, 320, .ends = true, .lose_first = 9, .least = .9, .most = 1.1, 9, 9,
	 true},
	{"all_is_lost", BY_REPEAT, 32, .lose_first = 40, .least = 1.9, .most = 2.3, 32, 32, true},
	/* One is short, and two more than that go, several times. */
	{"a_shortage_is_answered", BY_PARITY, 32, .lose_first = 9, .least = .9, .most = 1.1, 3, 12, true},
	{"all_is_lost_and_answered", BY_PARITY, 32, .lose_first = 40, .least = .9, .most = 1.2, 32, 200, true},
	{"an_early_group_is_repaired_meanwhile", BY_PARITY, 4096, .lose_first = 10, .most = .01, 2, 12, true},
	{"a_lost_end_marker_is_said_again", BY_PARITY, 32, .lose_first = 9, .lose_ends = 1, .least = .9, .most = 1.15,
	 3, 12, true},
	{"silence_says_it_too", BY_PARITY, 32, .lose_first = 9, .lose_ends = 1000, .least = .9, .most = 1.4, 3, 12,
	 true},
	{"a_lost_last_word_is_said_again", BY_PARITY, 32, .lose_wholes = 3, .most = .2},
	{"and_when_the_sender_asks", BY_PARITY, 32, .lose_wholes = 4, .most = 5},
	{"and_with_the_repeat_too", BY_REPEAT, 32, .lose_wholes = 4, .most = 5},
};

TEST(codes_do_what_they_can)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct wish w = usual(row->answer, row->pieces);
		struct coded_link_result r;
		double by;

		w.c.plan.is_xor = row->is_xor;
		w.c.silent &= !row->ends;
		w.w.lose_first = row->lose_first;
		w.w.lose_ends = row->lose_ends;
		w.w.lose_wholes = row->lose_wholes;
		r = play(&w);
		by = ((double)r.done_ns - (double)ideal_ns(&w)) / (double)RTT_NS;
		if (by < row->least || by > row->most || r.resent < row->resent_least || r.resent > row->resent_most ||
		    (r.names > 0) != row->names)
			fail_msg("%s: %.4f, %u sent again, %u names", row->name, by, (unsigned)r.resent, r.names);
	}
}

/* One group, most of which is not there. */
TEST(a_message_may_be_smaller_than_a_group)
{
	for (uint32_t pieces = 1; pieces <= 10; pieces++) {
		for (uint32_t lose = 0; lose <= 8; lose++) {
			struct wish w = usual(BY_PARITY, pieces);

			w.w.lose_first = lose;
			assert_true(play(&w).done_ns < 27 * MS);
		}
	}
}

/* Only the last pieces have parities; the others are repaired while these are sent. */
TEST(parities_may_be_of_the_tail_alone)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct wish w = usual(BY_PARITY, 4096);
		struct coded_link_result r;

		w.c.plan.layout.first = 1280; /* 88 groups are 35 ms */
		w.w.loss = w.w.assumed = 0.002;
		w.w.seed = seed;
		settle(&w);
		r = play(&w);
		assert_true(r.done_ns < ideal_ns(&w) + 30 * PIECE_NS + 1 * MS);
		assert_int_equal(r.parities, 88 * 8);
	}
}

/* Where no parity is left, the pieces that were named go. */
TEST(a_group_without_fresh_parities_is_sent_again)
{
	struct wish w = usual(BY_PARITY, 32);
	struct coded_link_result r;

	w.c.plan.layout.parity_max = 8;
	settle(&w);
	w.w.lose_first = 20;
	r = play(&w);
	assert_true(r.done_ns < ideal_ns(&w) + RTT_NS * 11 / 10);
	assert_in_range(r.resent, 12, 20 * 8);
}

TEST(whoever_gets_nothing_gives_up)
{
	for (enum answer answer = BY_PARITY; answer <= BY_REPEAT; answer++) {
		struct wish w = usual(answer, 32);
		struct coded_link_result r;

		w.w.code = &w.c;
		w.w.lose_first = UINT32_MAX;
		w.w.timeout_ns = 1000 * MS;
		r = coded_link_run(&w.w, &unused);
		assert_int_equal(r.end, SR_TIMED_OUT);
		w.w.timeout_ns = 1000000 * MS;
		w.c.tries_max = 5;
		r = coded_link_run(&w.w, &unused);
		assert_int_equal(r.end, SR_TRIED_TOO_OFTEN);
		assert_true(r.packets <= 40 + 32 + 6 * 8 * 34);
	}
}

/* A burst of 16 takes twice as much from a group as its parities give, or two from each of eight. */
TEST(interleaving_divides_a_burst)
{
	struct wish w = usual(BY_PARITY, 2048);

	w.w.lose_first = 16;
	assert_true(play(&w).names > 0);
	w.c.plan.layout.depth = 8;
	settle(&w);
	assert_int_equal(play(&w).names, 0);
}

static struct wish drawn_wish(uint64_t seed)
{
	struct prng rng;
	bool demand = seed % 3;
	struct ec_layout *l;
	struct wish w;

	prng_init(&rng, seed);
	w = usual(demand ? BY_PARITY : BY_REPEAT, 1 + (uint32_t)prng_below(&rng, 1200));
	l = &w.c.plan.layout;
	w.c.plan.is_xor = !demand && seed % 2;
	l->data = 8 + (uint32_t)prng_below(&rng, 40);
	l->parity = (uint32_t)prng_below(&rng, 8) + w.c.plan.is_xor;
	l->parity_max = w.c.plan.is_xor ? l->parity : 1 + l->parity + (uint32_t)prng_below(&rng, 12);
	l->depth = 1 + (uint32_t)prng_below(&rng, 8);
	l->first = prng_below(&rng, 2) ? (uint32_t)prng_below(&rng, l->pieces) : 0;
	w.c.silent = !demand && prng_below(&rng, 2);
	w.c.plan.nack = !demand && prng_below(&rng, 2);
	w.w.loss = (double)prng_below(&rng, 5) * 0.08;
	w.w.assumed = 0.01 + (double)prng_below(&rng, 5) * 0.08;
	w.w.word_loss = (double)prng_below(&rng, 4) * 0.15;
	w.w.twice = (double)prng_below(&rng, 3) * 0.1;
	w.w.burst = prng_below(&rng, 2) ? 1 + (double)prng_below(&rng, 60) : 0;
	w.w.jitter_ns = prng_below(&rng, 3) * MS;
	w.w.seed = seed;
	settle(&w);
	return w;
}

TEST(every_message_ends_on_bad_channels)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct wish w = drawn_wish(seed);

		play(&w);
	}
}

/* 10 groups at 3 %: what a short group takes is little more than one more round trip. */
TEST(one_answer_is_enough)
{
	uint32_t shorts = 0, second = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct wish w = usual(BY_PARITY, 320);
		struct coded_link_result r;

		w.c.plan.layout.parity = 3;
		w.c.plan.layout.parity_max = 60;
		settle(&w);
		w.w.seed = seed;
		w.w.loss = w.w.assumed = 0.03;
		r = play(&w);
		second += r.done_ns > ideal_ns(&w) + RTT_NS * 11 / 10;
		shorts += r.names > 0;
	}
	assert_true(shorts > 30);
	assert_true(second <= shorts / 100);
}

/* ---- a peer that lies */

static struct heap heap = HEAP_INIT;

/* Has sent so many pieces. */
static void half_sent(struct coded_sender *s, const struct wish *w, uint32_t sent, const struct alloc *alloc)
{
	struct coded_config c = w->c;
	struct coded_send p;

	c.rtt_ns = RTT_NS;
	c.piece_ns = PIECE_NS;
	c.timeout_ns = 100000 * MS;
	c.loss = 0.01;
	assert_int_equal(coded_sender_init(s, &c, w->w.packets, &unused, 0, alloc), 0);
	for (uint32_t i = 0; i < sent && coded_sender_next(s, &p, i); i++)
		;
}

static bool name(struct coded_sender *s, uint32_t first, uint32_t count, uint64_t now_ns)
{
	uint8_t word[SR_NACK_FIXED_LEN + SR_NACK_RUN_LEN];

	sr_nack_encode(word, &(struct chunk_run){first, count}, 1);
	return coded_sender_take(s, CONTROL_SR_NACK, word, now_ns);
}

/* Nothing goes again that was not sent, or by a word that cannot be. */
TEST(what_was_not_sent_is_not_owed)
{
	const struct alloc alloc = heap_alloc(&heap);

	for (enum answer answer = BY_PARITY; answer <= BY_REPEAT; answer++) {
		struct wish w = usual(answer, 300);
		uint8_t ack[SR_ACK_FIXED_LEN];
		struct coded_sender s;
		struct coded_send p;

		half_sent(&s, &w, 60, &alloc);
		assert_false(name(&s, 300, 1, RTT_NS));
		assert_false(name(&s, 0, 0, RTT_NS));
		assert_false(coded_sender_take(&s, CONTROL_CTS, ack, RTT_NS));
		sr_ack_encode(ack, &(struct sr_ack){.cum = 301}, NULL);
		assert_false(coded_sender_take(&s, CONTROL_SR_ACK, ack, RTT_NS));
		assert_true(name(&s, 60, 240, RTT_NS));
		assert_true(coded_sender_next(&s, &p, RTT_NS) && !p.resent);
		assert_true(name(&s, 3, 1, RTT_NS));
		assert_true(coded_sender_next(&s, &p, RTT_NS) && p.resent);
		assert_int_equal(p.parity, answer == BY_PARITY);
		assert_int_equal(p.piece, answer == BY_PARITY ? 80 : 3);
		coded_sender_free(&s);
		assert_int_equal(heap.blocks, 0);
	}
}

/* The receiver had enough, or says so: it is not asked why. */
TEST(an_acknowledgement_ends_what_is_not_sent_yet)
{
	const struct alloc alloc = heap_alloc(&heap);
	struct wish w = usual(BY_PARITY, 300);
	uint8_t word[CODED_STATE_LEN];
	struct coded_sender s;
	struct coded_send p;

	half_sent(&s, &w, 60, &alloc);
	coded_state_encode(word, &(struct coded_state){.seen = 60, .whole = true});
	assert_true(coded_sender_take(&s, CONTROL_CODED_STATE, word, 100));
	assert_int_equal(s.end, SR_DONE);
	assert_false(coded_sender_next(&s, &p, 100));
	assert_true(coded_sender_deadline(&s) == UINT64_MAX);
	coded_sender_free(&s);
}

/* It says that everything lacks everything, whenever it is listened to. */
TEST(a_liar_costs_a_bounded_number_of_pieces)
{
	const struct alloc alloc = heap_alloc(&heap);
	struct wish w = usual(BY_PARITY, 320);
	struct coded_sender s;
	struct coded_send p;
	uint64_t sent = 0;

	half_sent(&s, &w, UINT32_MAX, &alloc);
	for (uint64_t now_ns = RTT_NS; s.end == SR_RUNNING; now_ns += RTT_NS / 8) {
		name(&s, 0, 320, now_ns);
		for (; coded_sender_next(&s, &p, now_ns); sent++)
			assert_true(!p.parity || p.piece < 400);
		assert_true(now_ns < 100 * RTT_NS);
	}
	assert_int_equal(s.end, SR_TRIED_TOO_OFTEN);
	assert_true(sent <= UINT64_C(8) * 64 * 320);
	coded_sender_free(&s);
}

/* Eight parities came, and of a class two pieces are missing. */
TEST(xor_gives_one_of_a_class)
{
	const struct alloc alloc = heap_alloc(&heap);
	struct wish w = usual(BY_REPEAT, 32);
	uint8_t word[CODED_PLAN_LEN_MAX];
	struct coded_receiver r;

	w.c.plan.is_xor = true;
	coded_plan_encode(word, &w.c.plan);
	assert_int_equal(coded_receiver_init(&r, RTT_NS, 32, 8, 0, &alloc), 0);
	assert_true(coded_receiver_take(&r, CONTROL_CODED_PLAN, word, 0));
	for (uint32_t i = 0; i < 32; i++) {
		if (i != 3 && i != 11)
			coded_receiver_came(&r, false, i, 1);
	}
	for (uint32_t i = 0; i < 8; i++)
		coded_receiver_came(&r, true, i, 1);
	assert_false(coded_receiver_whole(&r));
	coded_receiver_came(&r, false, 11, 2);
	assert_true(coded_receiver_whole(&r));
	coded_receiver_free(&r);
}

TEST(memory_may_run_out_at_both_ends)
{
	const struct alloc alloc = heap_alloc(&heap);

	for (enum answer answer = BY_PARITY; answer <= BY_REPEAT; answer++) {
		struct wish w = usual(answer, 300);
		struct coded_config c = w.c;
		uint8_t word[CODED_PLAN_LEN_MAX];
		struct coded_sender s;
		struct coded_receiver r;

		c.rtt_ns = c.piece_ns = c.timeout_ns = 1000;
		coded_plan_encode(word, &c.plan);
		for (int i = 0; i < 4; i++) {
			heap.gets_left = i;
			assert_int_equal(coded_sender_init(&s, &c, 300, &unused, 0, &alloc), -ENOMEM);
		}
		heap.gets_left = -1;
		assert_int_equal(coded_receiver_init(&r, RTT_NS, 300, 600, 0, &alloc), 0);
		for (int i = 0; i < (answer == BY_PARITY ? 1 : 2); i++) {
			heap.gets_left = i;
			assert_false(coded_receiver_take(&r, CONTROL_CODED_PLAN, word, 0));
		}
		heap.gets_left = -1;
		assert_true(coded_receiver_take(&r, CONTROL_CODED_PLAN, word, 0));
		coded_receiver_free(&r);
		assert_int_equal(heap.blocks, 0);
	}
}
