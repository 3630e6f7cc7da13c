/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Repeat over a channel in virtual time: chunks leave one behind the other, and chunks
 * and control messages may be lost. The tests check that everything arrives, and when, and that
 * wrong control messages do no harm.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/prng.h"
#include "sdr/repeat/sr_receiver.h"
#include "sdr/repeat/sr_sender.h"
#include "support/events.h"
#include "support/heap.h"
#include "support/test.h"

enum { CHUNKS_MAX = 4096, PAYLOAD_MAX = 1024, WORDS_MAX = 256 };

#define MS UINT64_C(1000000)

/* How a run differs from a channel without losses. */
struct wish {
	uint32_t chunks;
	uint64_t inject_ns, rtt_ns, rto_ns, jitter_ns, timeout_ns;
	uint32_t tries_max;
	bool nack;
	double loss, control_loss;
	uint32_t lost_chunk; /* its first sending; UINT32_MAX: none */
	uint32_t lost_words; /* the first so many words about the whole */
	uint32_t room;       /* bytes of a word; 0: PAYLOAD_MAX */
	uint64_t seed;
};

static struct run {
	struct wish w;
	struct heap heap;
	struct alloc alloc;
	struct sr_sender s;
	struct sr_receiver r;
	struct prng rng;
	uint64_t bits[CHUNKS_MAX / 64];
	struct events events; /* kind 0 is a chunk, 1 a word of the receiver's, 2 a PROBE */
	struct {
		enum control_type type;
		uint8_t payload[PAYLOAD_MAX];
	} words[WORDS_MAX];
	uint32_t said, chunks_sent, chunks_lost, probes;
	uint64_t now_ns, free_ns; /* free_ns: when the link takes the next chunk */
} run;

static bool drawn(double chance)
{
	return (double)prng_below(&run.rng, 1u << 30) < chance * (double)(1u << 30);
}

static uint64_t way_ns(void)
{
	return run.w.rtt_ns / 2 + (run.w.jitter_ns ? prng_below(&run.rng, run.w.jitter_ns) : 0);
}

static void start(struct wish w)
{
	struct sr_config config = {.rtt_ns = w.rtt_ns,
				   .rto_ns = w.rto_ns,
				   .timeout_ns = w.timeout_ns ? w.timeout_ns : 1000 * w.rtt_ns,
				   .tries_max = w.tries_max ? w.tries_max : 64};
	struct sr_receiver_config rconfig = {.rtt_ns = w.rtt_ns, .ack_ns = w.rtt_ns / 64, .reorder = 2, .nack = w.nack};

	memset(&run, 0, sizeof(run));
	run.w = w;
	run.heap = (struct heap)HEAP_INIT;
	run.alloc = heap_alloc(&run.heap);
	prng_init(&run.rng, w.seed);
	assert_int_equal(sr_sender_init(&run.s, &config, w.chunks, 0, &run.alloc), 0);
	assert_int_equal(sr_receiver_init(&run.r, &rconfig, run.bits, w.chunks, 0, &run.alloc), 0);
}

static void finish(void)
{
	sr_sender_free(&run.s);
	sr_receiver_free(&run.r);
	assert_int_equal(run.heap.blocks, 0);
}

/* A chunk has left when its last byte has. */
static void send_some(void)
{
	uint32_t chunk;

	while (run.free_ns <= run.now_ns && sr_sender_next(&run.s, &chunk)) {
		bool first = run.s.chunk[chunk].tries == 0;

		run.free_ns = run.now_ns + run.w.inject_ns;
		sr_sender_sent(&run.s, chunk, run.free_ns);
		run.chunks_sent++;
		if ((first && chunk == run.w.lost_chunk) || drawn(run.w.loss))
			run.chunks_lost++;
		else
			events_add(&run.events, run.free_ns + way_ns(), 0, chunk);
	}
	if (sr_sender_take_probe(&run.s)) {
		run.probes++;
		if (!drawn(run.w.control_loss))
			events_add(&run.events, run.now_ns + way_ns(), 2, 0);
	}
}

static void tell_some(void)
{
	enum control_type type;
	uint8_t payload[PAYLOAD_MAX];
	size_t room = run.w.room ? run.w.room : PAYLOAD_MAX;

	sr_receiver_look(&run.r, run.now_ns);
	while (sr_receiver_tell(&run.r, payload, room, &type, run.now_ns)) {
		uint32_t i = run.said++ % WORDS_MAX;

		memcpy(run.words[i].payload, payload, sizeof(payload));
		run.words[i].type = type;
		if (sr_receiver_whole(&run.r) && run.w.lost_words) {
			run.w.lost_words--;
			continue;
		}
		if (!drawn(run.w.control_loss))
			events_add(&run.events, run.now_ns + way_ns(), 1, i);
	}
}

static void hear(uint32_t word)
{
	if (run.words[word].type == CONTROL_SR_NACK)
		assert_true(sr_sender_nack(&run.s, run.words[word].payload, run.now_ns));
	else
		assert_true(sr_sender_ack(&run.s, run.words[word].payload, run.now_ns));
}

static void happen(struct event e)
{
	switch (e.kind) {
	case 0: run.bits[e.index / 64] |= UINT64_C(1) << e.index % 64; break;
	case 1: hear(e.index); break;
	default: sr_receiver_probed(&run.r, run.now_ns);
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Lets time pass until the sender has ended; when that was. */
static uint64_t play(void)
{
	uint32_t chunk, steps = 0;

	while (run.s.end == SR_RUNNING) {
		uint64_t next = least(sr_sender_deadline(&run.s), sr_receiver_deadline(&run.r));

		assert_true(steps++ < 10000000);
		if (sr_sender_next(&run.s, &chunk))
			next = least(next, run.free_ns);
		if (run.events.count)
			next = least(next, run.events.heap[0].at_ns);
		assert_true(next != UINT64_MAX);
		if (next > run.now_ns)
			run.now_ns = next;
		while (run.events.count && run.events.heap[0].at_ns <= run.now_ns)
			happen(events_take(&run.events));
		sr_sender_expire(&run.s, run.now_ns);
		tell_some();
		send_some();
	}
	return run.now_ns;
}

static uint64_t time_of(struct wish w)
{
	uint64_t t;

	start(w);
	t = play();
	assert_int_equal(run.s.end, SR_DONE);
	for (uint32_t i = 0; i < w.chunks; i++)
		assert_true(run.bits[i / 64] >> i % 64 & 1);
	finish();
	return t;
}

/* 25 ms of RTT, 100 chunks of 10 us each: most of it is the way. */
static struct wish usual(void)
{
	return (struct wish){.chunks = 100,
			     .inject_ns = 10000,
			     .rtt_ns = 25 * MS,
			     .rto_ns = 75 * MS,
			     .lost_chunk = UINT32_MAX,
			     .seed = 1};
}

TEST(sr_without_losses_takes_the_injection_and_a_round_trip)
{
	struct wish w = usual();

	assert_true(time_of(w) == 100 * 10000 + 25 * MS);
	assert_int_equal(run.chunks_sent, 100);
	w.nack = true;
	assert_true(time_of(w) == 100 * 10000 + 25 * MS);
	assert_int_equal(run.chunks_sent, 100);
}

TEST(sr_sends_a_lost_chunk_again_after_its_rto_alone)
{
	struct wish w = usual();

	w.lost_chunk = 50;
	/* Sent at 0.51 ms, again after an RTO, and then there is the injection and a round trip. */
	assert_true(time_of(w) == 510000 + 75 * MS + 10000 + 25 * MS);
	assert_int_equal(run.chunks_sent, 101);
}

TEST(sr_sends_what_the_receiver_names_at_once)
{
	struct wish w = usual();

	w.lost_chunk = 50;
	w.nack = true;
	/* Overtaken two chunks later, by which the receiver knows. */
	assert_true(time_of(w) == 530000 + 25 * MS + 10000 + 25 * MS);
	assert_int_equal(run.chunks_sent, 101);
}

/* No packet overtakes the last chunk: a silence of a quarter of a round trip shows its loss. */
TEST(sr_names_the_tail_after_a_silence)
{
	struct wish w = usual();
	uint64_t t;

	w.lost_chunk = 99;
	w.nack = true;
	t = time_of(w);
	assert_true(t > 990000 + 56 * MS && t < 1000000 + 57 * MS);
	assert_int_equal(run.chunks_sent, 101);
}

TEST(sr_a_lost_word_about_the_whole_is_said_again)
{
	struct wish w = usual();

	w.lost_words = 1;
	assert_true(time_of(w) == 100 * 10000 + 25 * MS + 25 * MS / 8);
	w.lost_words = 2;
	assert_true(time_of(w) == 100 * 10000 + 25 * MS + 25 * MS / 4);
	assert_int_equal(run.probes, 0);
	w.lost_words = 3; /* then a PROBE asks for it */
	assert_true(time_of(w) > 75 * MS);
	assert_int_equal(run.probes, 1);
}

TEST(sr_gives_up_when_nothing_arrives)
{
	struct wish w = usual();

	w.loss = 1;
	w.timeout_ns = 2000 * MS;
	start(w);
	assert_true(play() == 2000 * MS);
	assert_int_equal(run.s.end, SR_TIMED_OUT);
	assert_true(sr_sender_deadline(&run.s) == UINT64_MAX);
	finish();
	w.timeout_ns = 100000 * MS;
	w.tries_max = 5;
	start(w);
	assert_true(play() < 2000 * MS); /* the RTO doubles */
	assert_int_equal(run.s.end, SR_TRIED_TOO_OFTEN);
	finish();
}

/* Losses both ways, other orders, small and large messages, with and without NACK. */
TEST(sr_everything_arrives_on_bad_channels)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct wish w = usual();

		w.seed = seed;
		w.chunks = 1 + (uint32_t)(seed * 37 % 700);
		w.loss = (double)(seed % 5) * 0.1;
		w.control_loss = (double)(seed % 4) * 0.15;
		w.jitter_ns = seed % 3 * MS;
		w.nack = seed % 2;
		time_of(w);
	}
}

/* Only lost chunks are repeated, although one SR_ACK shows a small part of the message. */
TEST(sr_every_chunk_is_acknowledged_before_its_rto)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct wish w = usual();

		w.seed = seed;
		w.chunks = CHUNKS_MAX;
		w.inject_ns = 1000;
		w.loss = seed % 2 ? 0.1 : 0.002;
		w.room = seed % 3 ? 64 : 0;
		time_of(w);
		assert_true(run.chunks_lost > 0);
		assert_int_equal(run.chunks_sent, CHUNKS_MAX + run.chunks_lost);
	}
}

/* The completion times of a message of 128 MiB in chunks of 64 KiB at 400 Gbit/s and 25 ms, with a
 * chunk in a thousand lost: 92.379 ms on average where only the RTO repairs (the closed form of the
 * maximum of geometric times). With the argument "many" alone. */
TEST_MANY(sr_mean_time_is_the_closed_forms)
{
	const uint32_t runs = 600;
	double sum = 0;

	for (uint32_t i = 0; i < runs; i++) {
		struct wish w = {.chunks = 2048,
				 .inject_ns = 1311,
				 .rtt_ns = 25 * MS,
				 .rto_ns = 75 * MS,
				 .loss = 1e-3,
				 .lost_chunk = UINT32_MAX,
				 .seed = 1000 + i};

		sum += (double)time_of(w) / 1e6;
	}
	assert_true(fabs(sum / runs - 92.379) < 0.05 * 92.379);
}

/* A sender of ten chunks, five of which were sent. */
static void half_sent(struct heap *heap, struct alloc *alloc, struct sr_sender *s)
{
	const struct sr_config config = {.rtt_ns = 100, .rto_ns = 300, .timeout_ns = 100000, .tries_max = 64};

	*heap = (struct heap)HEAP_INIT;
	*alloc = heap_alloc(heap);
	assert_int_equal(sr_sender_init(s, &config, 10, 0, alloc), 0);
	for (uint32_t i = 0; i < 5; i++)
		sr_sender_sent(s, i, i);
}

/* The first `cum` chunks, and `there` from one on. */
static bool ack(struct sr_sender *s, uint32_t cum, uint32_t from, struct ack_run seen, uint64_t now_ns)
{
	uint8_t payload[SR_ACK_FIXED_LEN + SR_ACK_RUN_LEN];

	sr_ack_encode(payload, &(struct sr_ack){cum, from, 1}, &seen);
	return sr_sender_ack(s, payload, now_ns);
}

static bool nack(struct sr_sender *s, uint32_t first, uint32_t count, uint64_t now_ns)
{
	uint8_t payload[SR_NACK_FIXED_LEN + SR_NACK_RUN_LEN];

	sr_nack_encode(payload, &(struct chunk_run){first, count}, 1);
	return sr_sender_nack(s, payload, now_ns);
}

TEST(sr_words_that_cannot_be_change_nothing)
{
	uint8_t payload[SR_NACK_FIXED_LEN + 2 * SR_NACK_RUN_LEN];
	struct heap heap;
	struct alloc alloc;
	struct sr_sender s;

	half_sent(&heap, &alloc, &s);
	assert_false(ack(&s, 11, 0, (struct ack_run){1, 0}, 10));
	assert_false(ack(&s, UINT32_MAX, 0, (struct ack_run){1, 0}, 10));
	assert_false(ack(&s, 5, 5, (struct ack_run){6, 0}, 10));
	assert_false(ack(&s, 5, 5, (struct ack_run){5, 1}, 10));
	assert_false(ack(&s, 5, UINT32_MAX, (struct ack_run){2, 0}, 10));
	assert_false(nack(&s, 10, 1, 10));
	assert_false(nack(&s, 3, 8, 10));
	assert_false(nack(&s, 3, UINT32_MAX, 10));
	assert_false(nack(&s, 3, 0, 10));
	sr_nack_encode(payload, (struct chunk_run[]){{2, 2}, {3, 1}}, 2); /* they overlap */
	assert_false(sr_sender_nack(&s, payload, 10));
	assert_int_equal(s.acked, 0);
	assert_int_equal(s.due.first, UINT32_MAX);
	sr_sender_free(&s);
}

TEST(sr_asks_are_suppressed_for_what_is_under_way)
{
	struct heap heap;
	struct alloc alloc;
	struct sr_sender s;
	uint32_t chunk;

	half_sent(&heap, &alloc, &s);
	assert_true(nack(&s, 6, 4, 10)); /* never sent */
	assert_true(sr_sender_next(&s, &chunk));
	assert_int_equal(chunk, 5);
	assert_true(nack(&s, 2, 1, 110));
	assert_true(sr_sender_next(&s, &chunk)); /* before new ones */
	assert_int_equal(chunk, 2);
	assert_true(nack(&s, 2, 1, 110)); /* is due already */
	sr_sender_sent(&s, 2, 120);
	assert_true(nack(&s, 2, 1, 219)); /* within an RTT */
	assert_true(sr_sender_next(&s, &chunk));
	assert_int_equal(chunk, 5);
	assert_true(nack(&s, 2, 1, 220));
	assert_true(sr_sender_next(&s, &chunk));
	assert_int_equal(chunk, 2);
	assert_int_equal(s.suppressed, 6);
	sr_sender_free(&s);
}

/* An acknowledgement that takes longer than the RTO would else have everything repeated. */
TEST(sr_rto_is_twice_what_acknowledgements_take)
{
	struct heap heap;
	struct alloc alloc;
	struct sr_sender s;

	half_sent(&heap, &alloc, &s);
	assert_int_equal(sr_sender_deadline(&s), 300);
	assert_true(ack(&s, 1, 0, (struct ack_run){0, 0}, 250));
	assert_int_equal(sr_sender_deadline(&s), 1 + 500);
	/* What was repeated says nothing, and silence doubles it, to eight times at most. */
	sr_sender_expire(&s, 501);
	assert_true(s.due.first == UINT32_MAX || s.due.first == 1);
	sr_sender_sent(&s, 1, 501);
	assert_true(ack(&s, 2, 0, (struct ack_run){0, 0}, 502));
	assert_true(s.rto_ns >= 500);
	for (uint32_t i = 0; i < 40; i++) {
		uint64_t now_ns = sr_sender_deadline(&s);
		uint32_t chunk;

		sr_sender_expire(&s, now_ns);
		while (s.due.first != UINT32_MAX && sr_sender_next(&s, &chunk))
			sr_sender_sent(&s, chunk, now_ns);
	}
	assert_int_equal(s.rto_ns, 8 * 300);
	sr_sender_free(&s);
}

/* A code repairs a chunk, or its packets still wait for the wire, when it is acknowledged. */
TEST(sr_an_acknowledgement_before_the_sending_is_no_round_trip)
{
	struct heap heap;
	struct alloc alloc;
	struct sr_sender s;
	uint32_t chunk;

	half_sent(&heap, &alloc, &s);
	assert_true(sr_sender_next(&s, &chunk));
	sr_sender_sent(&s, chunk, 260);
	assert_true(ack(&s, chunk + 1, 0, (struct ack_run){0, 0}, 250));
	assert_int_equal(s.rto_ns, 500);
	sr_sender_free(&s);
}

TEST(sr_stale_acks_take_nothing_back)
{
	struct heap heap;
	struct alloc alloc;
	struct sr_sender s;

	half_sent(&heap, &alloc, &s);
	assert_true(ack(&s, 2, 3, (struct ack_run){2, 1}, 10));
	assert_int_equal(s.acked, 4);
	assert_true(ack(&s, 1, 0, (struct ack_run){0, 0}, 11));
	assert_int_equal(s.acked, 4);
	/* The receiver may know more than was sent: by redundancy, or because it needs no more. */
	assert_true(ack(&s, 10, 0, (struct ack_run){0, 0}, 12));
	assert_int_equal(s.end, SR_DONE);
	sr_sender_free(&s);
}
