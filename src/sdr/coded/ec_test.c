/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure-coded messages over a channel in virtual time, which loses, doubles and reorders pieces
 * and control messages. The bytes are real: what the receiver has in the end is compared with what
 * was sent.
 */
#include <math.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "sdr/ec/kernel.h"
#include "sdr/coded/ec_bytes.h"
#include "sdr/coded/ec_receiver.h"
#include "sdr/coded/ec_sender.h"
#include "support/events.h"
#include "support/heap.h"
#include "support/test.h"

enum {
	PIECES_MAX = 4096,
	PARITIES_MAX = 4096,
	PIECE = 32,
	PAYLOAD_MAX = 512,
	WORDS_MAX = 1024,
	PARITY = 1 << 30, /* of an event's index: a parity piece */
};

#define MS UINT64_C(1000000)

enum kind { PIECE_COMES, WORD_COMES, END_COMES };

/* How a run differs from the usual. */
struct wish {
	struct ec_config c;
	double loss, control_loss, twice;
	uint32_t burst;      /* mean length of a burst of losses; 0: losses are independent */
	uint32_t lose_first; /* the first so many pieces are lost */
	uint32_t lost_words; /* the first so many EC_ACKs are lost */
	uint32_t lost_ends;  /* and EC_ENDs */
	uint64_t jitter_ns;
	uint64_t seed;
};

static struct run {
	struct wish w;
	struct heap heap;
	struct alloc alloc;
	struct ec_sender s;
	struct ec_receiver r;
	struct ec_code code;
	struct prng rng;
	struct events events;
	uint64_t data_bits[PIECES_MAX / 64], parity_bits[PARITIES_MAX / 64];
	uint8_t sent[PIECES_MAX * PIECE], got[PIECES_MAX * PIECE];
	uint8_t parity_sent[PARITIES_MAX * PIECE], parity_got[PARITIES_MAX * PIECE];
	uint8_t spare[2][EC_BYTES_SPARE(PIECE)];
	struct {
		enum control_type type;
		uint8_t payload[PAYLOAD_MAX];
	} words[WORDS_MAX];
	uint32_t said, ends, shorts, nacks, pieces_sent;
	bool in_burst;
	uint64_t now_ns, free_ns; /* free_ns: when the link takes the next piece */
} run;

static bool drawn(double chance)
{
	return (double)prng_below(&run.rng, 1u << 30) < chance * (double)(1u << 30);
}

/* Gilbert's channel: it loses everything in a burst and nothing outside. */
static bool lost(void)
{
	if (!run.w.burst)
		return drawn(run.w.loss);
	if (run.in_burst)
		run.in_burst = !drawn(1.0 / run.w.burst);
	else
		run.in_burst = drawn(run.w.loss / (1 - run.w.loss) / run.w.burst);
	return run.in_burst;
}

static uint64_t way_ns(void)
{
	return run.w.c.rtt_ns / 2 + (run.w.jitter_ns ? prng_below(&run.rng, run.w.jitter_ns) : 0);
}

static uint64_t message_bytes(void)
{
	return (uint64_t)run.w.c.layout.pieces * PIECE - run.w.seed % PIECE;
}

static struct ec_bytes bytes_of(uint8_t *data, uint8_t *parity, uint8_t *spare)
{
	return (struct ec_bytes){.layout = &run.w.c.layout,
				 .code = &run.code,
				 .data = data,
				 .bytes = message_bytes(),
				 .parity = parity,
				 .piece = PIECE,
				 .spare = spare};
}

static void start(const struct wish *w)
{
	const struct ec_layout *l = &w->c.layout;

	memset(&run, 0, sizeof(run));
	run.w = *w;
	run.heap = (struct heap)HEAP_INIT;
	run.alloc = heap_alloc(&run.heap);
	prng_init(&run.rng, w->seed);
	assert_true(l->pieces <= PIECES_MAX && l->parity_max * l->groups <= PARITIES_MAX);
	for (uint32_t i = 0; i < l->pieces * PIECE; i++)
		run.sent[i] = (uint8_t)prng_next(&run.rng);
	assert_int_equal(ec_code_init(&run.code, w->c.kind, l->data, l->parity_max, ec_kernel_best(), &run.alloc), 0);
	assert_int_equal(ec_sender_init(&run.s, &w->c, 0, &run.alloc), 0);
	assert_int_equal(ec_receiver_init(&run.r, &w->c, run.data_bits, run.parity_bits, 0, &run.alloc), 0);
}

static void finish(void)
{
	ec_sender_free(&run.s);
	ec_receiver_free(&run.r);
	ec_code_fini(&run.code);
	assert_int_equal(run.heap.blocks, 0);
}

/* ---- the channel */

static void piece_leaves(const struct ec_piece *p, bool in_turn)
{
	struct ec_bytes b = bytes_of(run.sent, run.parity_sent, run.spare[0]);
	uint32_t copies = 1 + drawn(run.w.twice);

	/* What follows unasked was made piece by piece; what was asked for is made now. */
	if (!p->parity && in_turn)
		ec_bytes_add(&b, p->at, 1);
	if (p->parity && !in_turn)
		ec_bytes_make(&b, p->group, p->index, 1);
	if (run.pieces_sent++ < run.w.lose_first)
		return;
	while (copies--) {
		if (!lost())
			events_add(&run.events, run.free_ns + way_ns(), PIECE_COMES, p->at | (p->parity ? PARITY : 0));
	}
}

static void send_some(void)
{
	uint8_t payload[EC_END_LEN];
	enum control_type type;
	struct ec_piece p;
	uint16_t len;

	while (run.free_ns <= run.now_ns && ec_sender_next(&run.s, &p)) {
		uint64_t asked = run.s.answered;

		run.free_ns = run.now_ns + run.w.c.inject_ns;
		ec_sender_sent(&run.s, run.free_ns);
		piece_leaves(&p, asked == run.s.answered);
	}
	while (run.free_ns <= run.now_ns && ec_sender_tell(&run.s, payload, &len, &type, run.now_ns)) {
		run.ends++;
		assert_int_equal(type, run.w.c.end_marker ? CONTROL_EC_END : CONTROL_PROBE);
		if (run.w.lost_ends)
			run.w.lost_ends--;
		else if (!drawn(run.w.control_loss))
			events_add(&run.events, run.now_ns + way_ns(), END_COMES,
				   type == CONTROL_EC_END ? get_be32(payload) : 0);
	}
}

static bool word_lost(enum control_type type)
{
	run.shorts += type == CONTROL_EC_SHORT;
	run.nacks += type == CONTROL_EC_NACK;
	if (type == CONTROL_EC_ACK && run.w.lost_words) {
		run.w.lost_words--;
		return true;
	}
	return drawn(run.w.control_loss);
}

static void tell_some(void)
{
	enum control_type type;
	uint8_t payload[PAYLOAD_MAX];
	uint16_t len;

	ec_receiver_look(&run.r, run.now_ns);
	while ((len = ec_receiver_tell(&run.r, payload, sizeof(payload), &type, run.now_ns))) {
		uint32_t i = run.said++ % WORDS_MAX;

		assert_true(len <= sizeof(payload));
		memcpy(run.words[i].payload, payload, sizeof(payload));
		run.words[i].type = type;
		if (!word_lost(type))
			events_add(&run.events, run.now_ns + way_ns(), WORD_COMES, i);
	}
}

static void piece_comes(uint32_t index)
{
	uint32_t at = index & ~(uint32_t)PARITY;
	uint64_t *bits = index & PARITY ? run.parity_bits : run.data_bits;
	const uint8_t *from = index & PARITY ? run.parity_sent : run.sent;

	/* What comes when all is there is not written: the owner recovers in peace. */
	if (ec_receiver_whole(&run.r))
		return;
	memcpy((index & PARITY ? run.parity_got : run.got) + at * PIECE, from + at * PIECE, PIECE);
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

static void happen(struct event e)
{
	uint8_t marker[EC_END_LEN];

	switch (e.kind) {
	case PIECE_COMES: piece_comes(e.index); break;
	case WORD_COMES:
		assert_true(ec_sender_take(&run.s, run.words[e.index].type, run.words[e.index].payload, run.now_ns));
		break;
	default:
		put_be32(marker, e.index);
		assert_true(ec_receiver_take(&run.r, e.index ? CONTROL_EC_END : CONTROL_PROBE, marker, run.now_ns));
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Lets time pass until the sender has ended; when that was. */
static uint64_t play(void)
{
	struct ec_piece p;
	uint32_t steps = 0;

	while (run.s.end == SR_RUNNING) {
		uint64_t next = least(ec_sender_deadline(&run.s), ec_receiver_deadline(&run.r));

		assert_true(steps++ < 10000000);
		if (ec_sender_next(&run.s, &p))
			next = least(next, run.free_ns);
		if (run.events.count)
			next = least(next, run.events.heap[0].at_ns);
		assert_true(next != UINT64_MAX);
		if (next > run.now_ns)
			run.now_ns = next;
		while (run.events.count && run.events.heap[0].at_ns <= run.now_ns)
			happen(events_take(&run.events));
		ec_sender_expire(&run.s, run.now_ns);
		tell_some();
		send_some();
	}
	return run.now_ns;
}

static bool has(const void *of, const struct ec_piece *p)
{
	return ec_receiver_has(of, p);
}

/* Plays a message to its end, and recovers it. */
static uint64_t time_of(const struct wish *w)
{
	struct ec_bytes b;
	uint64_t t;

	start(w);
	t = play();
	assert_int_equal(run.s.end, SR_DONE);
	assert_true(ec_receiver_whole(&run.r));
	b = bytes_of(run.got, run.parity_got, run.spare[1]);
	for (uint32_t g = 0; g < w->c.layout.groups; g++)
		assert_int_equal(ec_bytes_recover(&b, &(struct ec_presence){has, &run.r}, g), 0);
	assert_memory_equal(run.got, run.sent, message_bytes());
	finish();
	return t;
}

/* ---- what is usual */

/* 25 ms of RTT, 10 us a piece, groups of 32 and 8. */
static struct wish usual(enum ec_kind kind, enum ec_fallback fallback, uint32_t pieces)
{
	struct wish w = {
		.c = {.layout = {.pieces = pieces,
				 .data = 32,
				 .parity = 8,
				 .parity_max = fallback == EC_FALLBACK_PARITY ? 40 : 8,
				 .depth = 1},
		      .kind = kind,
		      .fallback = fallback,
		      .end_marker = fallback == EC_FALLBACK_PARITY,
		      .nack = false,
		      .reorder = 2,
		      .tries_max = 64,
		      .rtt_ns = 25 * MS,
		      .rto_ns = 75 * MS,
		      .timeout_ns = 100000 * MS,
		      .inject_ns = 10000,
		      .guard_ns = 25 * MS / 64,
		      .ack_ns = 25 * MS / 64},
		.seed = 32,
	};

	assert_true(ec_layout_settle(&w.c.layout));
	w.c.fallback_ns = ec_fallback_ns(&w.c.layout, w.c.inject_ns, w.c.rtt_ns, w.c.rto_ns);
	return w;
}

/* The time that all pieces take that are sent unasked. */
static uint64_t injection_ns(const struct wish *w)
{
	return ec_layout_all(&w->c.layout) * w->c.inject_ns;
}

/* ---- without losses */

TEST(ec_is_done_when_the_data_is_there)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_SR, 320);

	/* The last group's parities are not waited for. */
	assert_true(time_of(&w) == injection_ns(&w) - 8 * 10000 + 25 * MS);
	assert_int_equal(run.pieces_sent, 400);
	assert_int_equal(run.s.lost, 0);
	w = usual(EC_XOR, EC_FALLBACK_SR, 320);
	assert_true(time_of(&w) == injection_ns(&w) - 8 * 10000 + 25 * MS);
	w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 320);
	assert_true(time_of(&w) == injection_ns(&w) - 8 * 10000 + 25 * MS);
	assert_int_equal(run.shorts, 0);
}

/* Ten pieces: one group, most of which is not there. */
TEST(ec_a_message_may_be_smaller_than_a_group)
{
	for (uint32_t pieces = 1; pieces <= 10; pieces++) {
		for (uint32_t lose = 0; lose <= 8; lose++) {
			struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, pieces);

			w.lose_first = lose;
			w.seed = pieces;
			assert_true(time_of(&w) < 27 * MS);
		}
	}
}

/* ---- the code repairs */

TEST(ec_as_many_losses_as_parities_cost_nothing)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_SR, 32);

	w.lose_first = 8;
	assert_true(time_of(&w) == injection_ns(&w) + 25 * MS);
	assert_int_equal(run.nacks, 0);
	assert_int_equal(run.s.lost, 8);
	w = usual(EC_XOR, EC_FALLBACK_SR, 32); /* eight in a row are of eight classes */
	w.lose_first = 8;
	assert_true(time_of(&w) == injection_ns(&w) + 25 * MS);
	assert_int_equal(run.nacks, 0);
}

/* ---- the fall-back to Selective Repeat */

TEST(ec_falls_back_after_its_time_and_repeats_the_failed_groups)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_SR, 320);
	uint64_t first_ns;

	w.lose_first = 9;
	w.c.fallback_ns += 1000; /* not at the very moment of the last piece */
	first_ns = 10 * 10000 + 25 * MS / 2;
	/* Named at the fall-back; half a round trip later the group's pieces begin to go, and one of
	 * them is enough. Those that are there are acknowledged with the naming. */
	assert_true(time_of(&w) == first_ns + w.c.fallback_ns + 25 * MS / 2 + 10000 + 25 * MS);
	assert_int_equal(run.nacks, 1);
	assert_int_equal(run.pieces_sent, 400 + 9);
}

TEST(ec_xor_falls_back_with_two_losses_in_a_class)
{
	struct wish w = usual(EC_XOR, EC_FALLBACK_SR, 64);

	w.lose_first = 9; /* the ninth is of the first's class */
	time_of(&w);
	assert_int_equal(run.nacks, 1);
}

TEST(ec_an_end_marker_spares_the_time)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_SR, 320);

	w.lose_first = 9;
	w.c.end_marker = true;
	assert_true(time_of(&w) == injection_ns(&w) + 25 * MS / 2 + w.c.guard_ns + 25 * MS / 2 + 10000 + 25 * MS);
}

/* ---- parity on demand */

/* Nine of a group with eight parities: one is short, and two more than that come. */
TEST(ec_a_shortage_is_answered_with_fresh_parities)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);

	w.lose_first = 9;
	assert_true(time_of(&w) == injection_ns(&w) + 25 * MS / 2 + w.c.guard_ns + 25 * MS / 2 + 10000 + 25 * MS);
	assert_int_equal(run.pieces_sent, 40 + 3);
	assert_int_equal(run.shorts, 1);
}

/* A group that others have overtaken is repaired while these are sent. */
TEST(ec_early_groups_are_repaired_meanwhile)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 4096);

	w.lose_first = 10;
	w.c.layout.parity_max = 20;
	assert_true(ec_layout_settle(&w.c.layout));
	assert_true(time_of(&w) < injection_ns(&w) + 4 * 10000 + 25 * MS);
	assert_int_equal(run.shorts, 1);
	assert_true(run.s.answered >= 2);
}

/* Only the last blocks have parities unasked; the others are repaired while these are sent. */
TEST(ec_parities_may_be_of_the_tail_alone)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 4096);

	w.c.layout.parity_max = 20;
	w.c.layout.coded_from = 40; /* of 128: 88 groups are 28 ms */
	w.loss = w.c.loss = 0.002;
	assert_true(ec_layout_settle(&w.c.layout));
	for (w.seed = 1; w.seed <= 20; w.seed++)
		assert_true(time_of(&w) < injection_ns(&w) + 30 * 10000 + 26 * MS);
	assert_int_equal(run.s.sent_parity, 88 * 8);
}

TEST(ec_a_lost_end_marker_is_sent_again)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);

	w.lose_first = 9;
	w.lost_ends = 1;
	assert_true(time_of(&w) <=
		    injection_ns(&w) + 25 * MS / 8 + 25 * MS / 2 + w.c.guard_ns + 25 * MS / 2 + 10000 + 25 * MS);
	w.lost_ends = 1000; /* silence tells too */
	assert_true(time_of(&w) < injection_ns(&w) + 25 * MS / 4 + 51 * MS);
}

/* All of it is lost, and the marker says that there was something. */
TEST(ec_a_message_may_be_lost_as_a_whole)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);

	w.lose_first = 40;
	assert_true(time_of(&w) < 52 * MS + injection_ns(&w));
}

TEST(ec_a_lost_acknowledgement_is_said_again)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);

	w.lost_words = 2;
	/* The first is lost, and the one that the end marker asks for. */
	assert_true(time_of(&w) == 40 * 10000 + 25 * MS + 25 * MS / 8);
	w.lost_words = 3; /* then the sender asks */
	assert_true(time_of(&w) < 200 * MS);
	w = usual(EC_CAUCHY, EC_FALLBACK_SR, 32);
	w.lost_words = 3;
	assert_true(time_of(&w) < 200 * MS);
}

TEST(ec_a_group_without_fresh_parities_goes_anew)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);

	w.c.layout.parity_max = 8;
	assert_true(ec_layout_settle(&w.c.layout));
	w.lose_first = 20;
	time_of(&w);
	assert_int_equal(run.pieces_sent, 40 + 32);
}

TEST(ec_gives_up_when_nothing_arrives)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);

	w.lose_first = UINT32_MAX;
	w.c.timeout_ns = 1000 * MS;
	start(&w);
	assert_true(play() == 1000 * MS);
	assert_int_equal(run.s.end, SR_TIMED_OUT);
	assert_true(ec_sender_deadline(&run.s) == UINT64_MAX);
	finish();
	w.c.timeout_ns = 1000000 * MS;
	w.c.tries_max = 5;
	start(&w);
	play();
	assert_int_equal(run.s.end, SR_TRIED_TOO_OFTEN);
	assert_true(run.pieces_sent <= 40 + 32 + 5 * 32);
	finish();
}

/* ---- bursts */

/* A burst of 16 takes twice as much from a group as its parities give, or two from each of eight.
 */
TEST(ec_interleaving_divides_a_burst)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 2048);

	w.c.layout.parity_max = 32;
	assert_true(ec_layout_settle(&w.c.layout));
	w.lose_first = 16;
	time_of(&w);
	assert_int_equal(run.shorts, 1);
	w.c.layout.depth = 8;
	assert_true(ec_layout_settle(&w.c.layout));
	time_of(&w);
	assert_int_equal(run.shorts, 0);
}

/* ---- everything at once */

static struct wish drawn_wish(uint64_t seed)
{
	struct prng rng;
	struct wish w;
	bool demand = seed % 3;

	prng_init(&rng, seed);
	w = usual(!demand && seed % 2 ? EC_XOR : EC_CAUCHY, demand ? EC_FALLBACK_PARITY : EC_FALLBACK_SR,
		  1 + (uint32_t)prng_below(&rng, 1200));
	w.c.layout.data = 8 + (uint32_t)prng_below(&rng, 40);
	w.c.layout.parity = (uint32_t)prng_below(&rng, 8) + (w.c.kind == EC_XOR);
	w.c.layout.parity_max =
		w.c.kind == EC_XOR ? w.c.layout.parity : 1 + w.c.layout.parity + (uint32_t)prng_below(&rng, 12);
	w.c.layout.depth = 1 + (uint32_t)prng_below(&rng, 8);
	w.c.layout.coded_from = (uint32_t)prng_below(&rng, 4);
	assert_true(ec_layout_settle(&w.c.layout));
	w.c.end_marker = demand || prng_below(&rng, 2);
	w.c.nack = prng_below(&rng, 2);
	w.loss = (double)prng_below(&rng, 5) * 0.08;
	w.c.loss = (double)prng_below(&rng, 5) * 0.08;
	w.control_loss = (double)prng_below(&rng, 4) * 0.15;
	w.twice = (double)prng_below(&rng, 3) * 0.1;
	w.burst = prng_below(&rng, 2) ? 1 + (uint32_t)prng_below(&rng, 60) : 0;
	w.jitter_ns = prng_below(&rng, 3) * MS;
	w.seed = seed;
	return w;
}

TEST(ec_every_byte_is_right_on_bad_channels)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct wish w = drawn_wish(seed);

		time_of(&w);
	}
}

/* 32 groups at 3 %: every eighth message of (16,2) and its like has a short group; what it takes
 * then is little more than one more round trip. */
TEST(ec_one_answer_is_enough)
{
	uint32_t shorts = 0, second = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 320);

		w.c.layout.parity = 3;
		w.c.layout.parity_max = 60;
		assert_true(ec_layout_settle(&w.c.layout));
		w.seed = seed;
		w.loss = w.c.loss = 0.03;
		second += time_of(&w) > injection_ns(&w) + 2 * 25 * MS + 2 * w.c.guard_ns + 1 * MS;
		shorts += run.shorts > 0;
	}
	assert_true(shorts > 30);
	assert_true(second <= shorts / 100);
}

/* ---- a peer that lies */

static void half_sent(const struct wish *w)
{
	struct ec_piece p;

	start(w);
	for (uint32_t i = 0; i < 60 && ec_sender_next(&run.s, &p); i++)
		ec_sender_sent(&run.s, i);
}

static bool say_short(uint32_t marker, uint32_t group, uint16_t pieces, uint64_t now_ns)
{
	uint8_t payload[EC_SHORT_FIXED_LEN + EC_SHORT_GROUP_LEN];

	ec_short_encode(payload, &(struct ec_short){.marker = marker, .count = 1}, &(struct ec_lack){group, pieces});
	return ec_sender_take(&run.s, CONTROL_EC_SHORT, payload, now_ns);
}

TEST(ec_words_that_cannot_be_change_nothing)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 300);
	uint8_t payload[EC_SHORT_FIXED_LEN + 2 * EC_SHORT_GROUP_LEN];

	half_sent(&w);
	assert_false(say_short(0, 10, 1, 10));
	assert_false(say_short(0, UINT32_MAX, 1, 10));
	assert_false(say_short(0, 0, 0, 10));
	assert_false(say_short(0, 0, 33, 10));
	ec_short_encode(payload, &(struct ec_short){.groups = 11}, NULL);
	assert_false(ec_sender_take(&run.s, CONTROL_EC_SHORT, payload, 10));
	ec_short_encode(payload, &(struct ec_short){.count = 2}, (struct ec_lack[]){{0, 1}, {0, 1}});
	assert_false(ec_sender_take(&run.s, CONTROL_EC_SHORT, payload, 10));
	put_be32(payload, 301);
	assert_false(ec_sender_take(&run.s, CONTROL_EC_ACK, payload, 10));
	assert_false(ec_sender_take(&run.s, CONTROL_SR_ACK, payload, 10));
	assert_false(ec_sender_take(&run.s, CONTROL_EC_NACK, payload, 10));
	assert_false(ec_sender_take(&run.s, CONTROL_CTS, payload, 10));
	assert_int_equal(run.s.due.first, UINT32_MAX);
	assert_int_equal(run.s.end, SR_RUNNING);
	assert_false(ec_receiver_take(&run.r, CONTROL_EC_SHORT, payload, 10));
	finish();
}

/* The receiver had enough, or says so: it is not asked why. */
TEST(ec_an_acknowledgement_ends_what_is_not_sent_yet)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 300);
	uint8_t payload[EC_ACK_LEN];
	struct ec_piece p;

	half_sent(&w);
	assert_true(ec_sender_next(&run.s, &p));
	put_be32(payload, 7);
	assert_true(ec_sender_take(&run.s, CONTROL_EC_ACK, payload, 100));
	assert_int_equal(run.s.end, SR_DONE);
	assert_false(ec_sender_next(&run.s, &p));
	assert_true(ec_sender_deadline(&run.s) == UINT64_MAX);
	finish();
}

TEST(ec_nothing_is_owed_of_groups_that_were_not_sent)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 300);

	half_sent(&w); /* the first group, and half of the second */
	assert_true(say_short(0, 1, 5, 10));
	assert_int_equal(run.s.suppressed, 1);
	assert_int_equal(run.s.due.first, UINT32_MAX);
	assert_true(say_short(0, 0, 5, 10));
	assert_int_equal(run.s.due.first, 0);
	finish();
}

/* A second word about what was answered counts when its marker came after the answer, or in a round
 * trip. */
TEST(ec_a_stale_shortage_is_not_answered_again)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 32);
	struct ec_piece p;

	half_sent(&w);
	assert_int_equal(run.s.marker, 1);
	assert_true(say_short(1, 0, 1, 100));
	assert_true(say_short(1, 0, 2, 100)); /* is being answered */
	for (int i = 0; i < 3; i++) {
		assert_true(ec_sender_next(&run.s, &p) && p.parity && p.index == 8u + (uint32_t)i);
		ec_sender_sent(&run.s, 200);
	}
	assert_false(ec_sender_next(&run.s, &p));
	assert_true(say_short(1, 0, 1, 300));
	assert_false(ec_sender_next(&run.s, &p));
	assert_true(say_short(2, 0, 1, 300));
	assert_true(ec_sender_next(&run.s, &p) && p.index == 11);
	while (ec_sender_next(&run.s, &p))
		ec_sender_sent(&run.s, 400);
	assert_true(say_short(1, 0, 1, 400 + 25 * MS - 1));
	assert_false(ec_sender_next(&run.s, &p));
	assert_true(say_short(1, 0, 1, 400 + 25 * MS));
	assert_true(ec_sender_next(&run.s, &p));
	finish();
}

/* It says that everything lacks everything, whenever it is listened to. */
TEST(ec_a_liar_costs_a_bounded_number_of_pieces)
{
	struct wish w = usual(EC_CAUCHY, EC_FALLBACK_PARITY, 320);
	struct ec_piece p;
	uint32_t sent = 0;

	start(&w);
	for (uint64_t i = 0; run.s.end == SR_RUNNING; i++) {
		for (; ec_sender_next(&run.s, &p); sent++)
			ec_sender_sent(&run.s, i);
		for (uint32_t g = 0; g < 10; g++)
			say_short(UINT32_MAX, g, 32, i);
		assert_true(i < 1000);
	}
	assert_int_equal(run.s.end, SR_TRIED_TOO_OFTEN);
	assert_true(sent <= 320 + 10 * (40 + 64 * 32));
	finish();
}
