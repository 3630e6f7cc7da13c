/* SPDX-License-Identifier: BSD-2-Clause */
/* A sending end: its calls, the packets that they make, and the grants that they need. */
#include <errno.h>

#include "base/prng.h"
#include "sdr/message/grants.h"
#include "sdr/message/receiver.h"
#include "sdr/message/sender.h"
#include "support/heap.h"
#include "support/sdr_small.h"
#include "support/test.h"

enum { ITV_NS = 1000, CTS_BYTES = CTS_FIXED_LEN + 4 * CTS_GRANT_LEN };

/* Both ends; carry() is the network. */
struct fixture {
	struct heap heap;
	struct alloc alloc;
	struct sender s;
	struct receiver r;
	struct grants g;
	struct worker w;
};

static int make(void **state)
{
	static struct fixture f;

	f = (struct fixture){.heap = HEAP_INIT};
	f.alloc = heap_alloc(&f.heap);
	*state = &f;
	return sender_init(&f.s, &small, &f.alloc) || receiver_init(&f.r, &small, &f.alloc) ||
	       grants_init(&f.g, small.slots, ITV_NS, &f.alloc);
}

static int unmake(void **state)
{
	struct fixture *f = *state;

	worker_rest(&f->w);
	sender_free(&f->s);
	receiver_free(&f->r);
	grants_free(&f->g);
	return (int)f->heap.blocks;
}

/* Carries what is due of grants; how many CTS. The flags are the last one's. */
static int tell(struct fixture *f, uint64_t now_ns, uint16_t *flags, bool lost)
{
	uint8_t payload[CTS_BYTES];
	struct cts cts;
	int n = 0;

	while (grants_tell(&f->g, payload, sizeof(payload), flags, now_ns)) {
		cts_decode(&cts, payload);
		if (!lost)
			sender_cts(&f->s, &cts, payload);
		n++;
	}
	return n;
}

static uint64_t post(struct fixture *f, uint64_t bytes)
{
	uint64_t number = UINT64_MAX;
	uint16_t flags;

	assert_int_equal(receiver_post(&f->r, bytes, &number), 0);
	grants_confirm(&f->g, f->s.granted);
	grants_add(&f->g, (struct grant){bytes, (uint32_t)(100 + number)}, 0);
	assert_true(tell(f, 0, &flags, false) > 0);
	return number;
}

static void complete(struct fixture *f, uint64_t number)
{
	struct slot *slot = receiver_complete(&f->r, number);

	assert_non_null(slot);
	worker_rest(&f->w);
	slot_reset(slot);
}

/* Everything that is queued arrives; how many packets. */
static int carry(struct fixture *f)
{
	struct send_packet p;
	int n = 0;

	for (; sender_peek(&f->s, &p); n++) {
		sender_sent(&f->s);
		sender_returned(&f->s, p.slot, 1);
		worker_note(&f->w, &f->r, p.generation, p.imm, p.bytes);
	}
	return n;
}

static struct send_block block(uint64_t offset, uint64_t bytes)
{
	return (struct send_block){.addr = 0x10000 + offset, .bytes = bytes, .offset = offset, .lkey = 7};
}

#define CASE(name) TEST_WITH(name, make, unmake)

CASE(sender_waits_for_a_grant)
{
	struct fixture *f = *state;
	struct send_block b = block(0, 256);
	uint64_t number;

	assert_int_equal(sender_post(&f->s, NULL, &b, &number), -EAGAIN);
	assert_int_equal(sender_start(&f->s, NULL, &number), -EAGAIN);
	post(f, 256);
	assert_int_equal(sender_post(&f->s, NULL, &b, &number), 0);
	assert_int_equal(number, 0);
	assert_int_equal(sender_post(&f->s, NULL, &b, &number), -EAGAIN);
}

CASE(sender_cuts_a_block_into_packets)
{
	struct fixture *f = *state;
	struct send_block b = block(256, 321);
	struct send_packet p;
	uint64_t number;

	post(f, 577);
	assert_int_equal(sender_post(&f->s, NULL, &b, &number), 0);
	for (uint32_t i = 0; i < 6; i++) {
		assert_true(sender_peek(&f->s, &p));
		assert_int_equal(p.offset, 256 + 64 * i);
		assert_int_equal(p.addr, 0x10000 + 256 + 64 * i);
		assert_int_equal(p.bytes, i < 5 ? 64 : 1);
		assert_int_equal(p.channel, i % 2);
		assert_int_equal(p.generation, 0);
		assert_int_equal(p.rkey, 100);
		assert_int_equal(p.lkey, 7);
		assert_int_equal(imm_unpack(small.split, p.imm).offset, 4 + i);
		assert_int_equal(sender_done(&f->s, number), 0);
		sender_sent(&f->s);
	}
	assert_false(sender_peek(&f->s, &p));
	assert_int_equal(sender_done(&f->s, number), 0);
	sender_returned(&f->s, 0, 6);
	assert_int_equal(sender_done(&f->s, number), 1);
	assert_int_equal(sender_done(&f->s, number), -EINVAL);
}

CASE(sender_refuses_blocks_that_do_not_fit_and_uses_no_number)
{
	static const struct {
		uint64_t offset, bytes;
	} row[] = {
		{0, 0},    /* empty, without an immediate */
		{64, 256}, /* starts within a chunk */
		{0, 255},  /* ends within one */
		{0, 768},  /* beyond what was granted */
		{512, 257}, {768, 256}, {UINT64_MAX - 255, 256}, {256, UINT64_MAX - 255},
	};
	struct fixture *f = *state;
	uint64_t number;

	post(f, 700);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct send_block b = block(row[i].offset, row[i].bytes);

		assert_int_equal(sender_post(&f->s, NULL, &b, &number), -EINVAL);
	}
	assert_int_equal(f->s.started, 0);
	assert_int_equal(sender_post(&f->s, NULL, &(struct send_block){.offset = 512, .bytes = 188}, &number), 0);
}

CASE(sender_streams_blocks_in_any_order_and_again)
{
	struct fixture *f = *state;
	struct send_block last = block(256, 100), first = block(0, 256);
	uint64_t n = post(f, 356), number;

	assert_int_equal(sender_start(&f->s, NULL, &number), 0);
	assert_int_equal(sender_add(&f->s, number, &last), 0);
	assert_int_equal(carry(f), 2);
	assert_int_equal(receiver_slot(&f->r, n)->chunk_bits[0], 2);
	assert_int_equal(sender_add(&f->s, number, &last), 0);
	assert_int_equal(sender_add(&f->s, number, &first), 0);
	assert_int_equal(sender_done(&f->s, number), 0);
	assert_int_equal(carry(f), 6);
	assert_int_equal(f->w.verdicts[SDR_DUP], 2);
	assert_int_equal(receiver_slot(&f->r, n)->chunk_bits[0], 3);
	assert_int_equal(sender_done(&f->s, number), 0);
	assert_int_equal(sender_end(&f->s, number), 0);
	assert_int_equal(sender_end(&f->s, number), -EINVAL);
	assert_int_equal(sender_add(&f->s, number, &first), -EINVAL);
	assert_int_equal(sender_done(&f->s, number), 1);
	assert_int_equal(sender_add(&f->s, number, &first), -EINVAL);
}

CASE(sender_block_without_bytes_is_refused)
{
	struct fixture *f = *state;
	struct send_block none = block(0, 0);
	uint64_t number;

	post(f, 256);
	assert_int_equal(sender_start(&f->s, NULL, &number), 0);
	assert_int_equal(sender_add(&f->s, number, &none), -EINVAL);
	assert_int_equal(sender_end(&f->s, number), 0);
	assert_int_equal(carry(f), 0);
	assert_int_equal(sender_done(&f->s, number), 1); /* an empty message is one */
}

CASE(sender_queue_is_bounded)
{
	struct fixture *f = *state;
	struct send_block b = block(0, 256);
	uint64_t number;

	post(f, 256);
	assert_int_equal(sender_start(&f->s, NULL, &number), 0);
	for (int i = 0; i < SENDER_BLOCKS; i++)
		assert_int_equal(sender_add(&f->s, number, &b), 0);
	assert_int_equal(sender_add(&f->s, number, &b), -EAGAIN);
	assert_int_equal(carry(f), 4 * SENDER_BLOCKS);
	assert_int_equal(sender_add(&f->s, number, &b), 0);
}

/* The chunks that the packets ahead are of; one letter a packet. */
static void chunks_ahead(struct fixture *f, char *text, uint32_t packets)
{
	struct send_packet p;

	for (uint32_t i = 0; i < packets; i++) {
		assert_true(sender_peek(&f->s, &p));
		text[i] = (char)('a' + p.offset / small.chunk_bytes);
		sender_sent(&f->s);
		sender_returned(&f->s, p.slot, 1);
	}
	text[packets] = 0;
}

CASE(sender_repeats_go_before_new_blocks_and_in_their_order)
{
	struct fixture *f = *state;
	struct send_block all = block(0, 768), second = block(256, 256), first = block(0, 256);
	char order[32];
	uint64_t number;

	post(f, 768);
	assert_int_equal(sender_start(&f->s, NULL, &number), 0);
	assert_int_equal(sender_add(&f->s, number, &all), 0);
	chunks_ahead(f, order, 2);
	assert_int_equal(sender_repeat(&f->s, number, &second), 0);
	assert_int_equal(sender_repeat(&f->s, number, &first), 0);
	chunks_ahead(f, order + 2, 18);
	assert_string_equal(order, "aa"
				   "bbbb"
				   "aaaa"
				   "aabbbbcccc");
	assert_true(sender_idle(&f->s));
}

CASE(sender_says_how_much_waits)
{
	struct fixture *f = *state;
	struct send_block all = block(0, 612), second = block(256, 256);
	uint64_t number, bytes;
	char order[32];

	post(f, 612);
	assert_int_equal(sender_start(&f->s, &(uint32_t){7}, &number), 0);
	assert_int_equal(sender_waiting(&f->s, number, &bytes), 0);
	assert_int_equal(bytes, 0);
	sender_add(&f->s, number, &all);
	sender_repeat(&f->s, number, &second);
	assert_int_equal(sender_waiting(&f->s, number, &bytes), 0);
	assert_int_equal(bytes, 612 + 256);
	chunks_ahead(f, order, 5);
	assert_int_equal(sender_waiting(&f->s, number, &bytes), 0);
	assert_int_equal(bytes, 612 - 64);
	assert_int_equal(carry(f), 9);
	assert_int_equal(sender_waiting(&f->s, number, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(sender_waiting(&f->s, number + 1, &bytes), -EINVAL);
}

/* What the transport has is waited for, and messages before and behind lose nothing. */
CASE(sender_cancels_one_message)
{
	struct fixture *f = *state;
	struct send_block b = block(0, 256);
	uint64_t before, cancelled, behind;
	struct send_packet p;

	post(f, 256);
	post(f, 256);
	post(f, 256);
	assert_int_equal(sender_start(&f->s, NULL, &cancelled), 0);
	assert_int_equal(sender_start(&f->s, NULL, &before), 0);
	assert_int_equal(sender_add(&f->s, cancelled, &b), 0);
	assert_int_equal(sender_add(&f->s, before, &b), 0);
	assert_int_equal(sender_add(&f->s, cancelled, &b), 0);
	assert_int_equal(sender_repeat(&f->s, cancelled, &b), 0);
	assert_int_equal(sender_post(&f->s, NULL, &b, &behind), 0);
	assert_true(sender_peek(&f->s, &p));
	sender_sent(&f->s);
	assert_int_equal(sender_cancel(&f->s, cancelled), 0);
	assert_int_equal(sender_add(&f->s, cancelled, &b), -EINVAL);
	assert_int_equal(sender_done(&f->s, cancelled), 0);
	sender_returned(&f->s, p.slot, 1);
	assert_int_equal(sender_done(&f->s, cancelled), 1);
	assert_int_equal(sender_cancel(&f->s, cancelled), -EINVAL);
	assert_int_equal(carry(f), 8);
	assert_int_equal(sender_done(&f->s, behind), 1);
	assert_int_equal(receiver_slot(&f->r, before)->chunk_bits[0], 1);
	assert_int_equal(receiver_slot(&f->r, behind)->chunk_bits[0], 1);
	assert_int_equal(receiver_slot(&f->r, cancelled)->chunk_bits[0], 0);
}

/* The lengths of one-shot messages with an immediate, and how many packets they take. */
CASE(sender_immediate_arrives_whatever_the_length)
{
	static const struct {
		uint32_t bytes;
		int packets;
	} row[] = {{0, 8}, {1, 8}, {64, 8}, {256, 8}, {321, 8}, {512, 8}, {577, 10}, {16384, 256}};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint32_t imm = 0x89abcdef + (uint32_t)i, got = 0;
		struct send_block b = block(0, row[i].bytes);
		uint64_t n = post(f, row[i].bytes ? row[i].bytes : 256), number;

		assert_int_equal(sender_post(&f->s, &imm, &b, &number), 0);
		assert_int_equal(carry(f), row[i].packets);
		assert_true(slot_imm(receiver_slot(&f->r, n), small.split, &got));
		assert_int_equal(got, imm);
		assert_int_equal(sender_done(&f->s, number), 1);
		complete(f, n);
	}
}

CASE(sender_stream_brings_the_rest_of_its_immediate_at_the_end)
{
	struct fixture *f = *state;
	struct send_block b = block(256, 256);
	uint32_t imm = 0x13579bdf, got;
	uint64_t n = post(f, 1024), number;

	assert_int_equal(sender_start(&f->s, &imm, &number), 0);
	assert_int_equal(sender_add(&f->s, number, &b), 0);
	assert_int_equal(carry(f), 4);
	assert_int_equal(sender_end(&f->s, number), 0);
	assert_int_equal(carry(f), 4);
	assert_true(slot_imm(receiver_slot(&f->r, n), small.split, &got));
	assert_int_equal(got, imm);
}

CASE(sender_last_chunk_repeats_the_immediate)
{
	struct fixture *f = *state;
	struct send_block b = block(256, 64);
	uint32_t imm = 1;
	uint64_t number;

	post(f, 320);
	assert_int_equal(sender_start(&f->s, &imm, &number), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sender_add(&f->s, number, &b), 0);
		assert_int_equal(carry(f), 8);
	}
}

CASE(sender_generation_follows_the_number)
{
	struct fixture *f = *state;
	struct send_block b = block(0, 64);
	struct send_packet p;

	for (uint64_t n = 0; n < 30; n++) {
		uint64_t number;

		assert_int_equal(post(f, 64), n);
		assert_int_equal(sender_post(&f->s, NULL, &b, &number), 0);
		assert_true(sender_peek(&f->s, &p));
		assert_int_equal(p.generation, n / 4 % 3);
		assert_int_equal(p.slot, n % 4);
		carry(f);
		assert_int_equal(receiver_slot(&f->r, n)->chunk_bits[0], 1);
		assert_int_equal(sender_done(&f->s, number), 1);
		complete(f, n);
	}
}

CASE(grants_that_are_lost_are_told_again_and_then_no_more)
{
	struct fixture *f = *state;
	uint16_t flags;

	for (int i = 0; i < 3; i++)
		grants_add(&f->g, (struct grant){256, 1}, 0);
	assert_int_equal(tell(f, 0, &flags, true), 1);
	assert_int_equal(flags, 0);
	assert_int_equal(tell(f, ITV_NS - 1, &flags, true), 0);
	assert_int_equal(tell(f, ITV_NS, &flags, true), 1);
	assert_int_equal(flags, CONTROL_ANSWER);
	assert_int_equal(tell(f, 2 * ITV_NS, &flags, true), 0); /* the wait has doubled */
	assert_int_equal(tell(f, 3 * ITV_NS, &flags, false), 1);
	assert_int_equal(f->s.granted, 3);
	grants_confirm(&f->g, f->s.granted);
	assert_true(grants_due(&f->g) == UINT64_MAX);
	assert_int_equal(f->g.repeated, 2);
}

CASE(grants_confirmed_are_never_more_than_made)
{
	struct fixture *f = *state;

	grants_add(&f->g, (struct grant){256, 1}, 0);
	grants_confirm(&f->g, 2);
	assert_int_equal(f->g.known, 0);
	grants_confirm(&f->g, 1);
	grants_confirm(&f->g, 0);
	assert_int_equal(f->g.known, 1);
}

CASE(grants_have_room_for_as_many_as_slots)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < small.slots; i++) {
		assert_true(grants_room(&f->g, 1));
		grants_add(&f->g, (struct grant){256, 1}, 0);
	}
	assert_false(grants_room(&f->g, 1));
	grants_confirm(&f->g, 1);
	assert_true(grants_room(&f->g, 1));
}

CASE(sender_ignores_grants_that_are_old_early_or_senseless)
{
	struct fixture *f = *state;
	uint8_t payload[CTS_FIXED_LEN + 8 * CTS_GRANT_LEN];
	struct grant run[8];

	for (uint32_t i = 0; i < 8; i++)
		run[i] = (struct grant){256, i};
	cts_encode(payload, &(struct cts){8, 1, 2}, run);
	sender_cts(&f->s, &(struct cts){8, 1, 2}, payload); /* 0 is missing */
	assert_int_equal(f->s.granted, 0);
	cts_encode(payload, &(struct cts){8, 0, 8}, run);
	sender_cts(&f->s, &(struct cts){8, 0, 8}, payload); /* more than slots */
	assert_int_equal(f->s.granted, 4);
	sender_cts(&f->s, &(struct cts){8, 0, 8}, payload);
	assert_int_equal(f->s.granted, 4);
	f->s.started = 4;
	run[0].bytes = 16385;
	cts_encode(payload, &(struct cts){8, 4, 1}, run);
	sender_cts(&f->s, &(struct cts){8, 4, 1}, payload); /* longer than any message */
	assert_int_equal(f->s.granted, 4);
}

/* Streams over a channel that loses, doubles and delays: what the receiver still lacks is sent again, until all is
 * there. Slots and generations wrap several times, and packets come after their message was completed. */
CASE(sender_and_receiver_agree_on_a_bad_channel)
{
	struct fixture *f = *state;
	struct send_packet kept[64];
	struct prng rng;
	int held = 0;

	prng_init(&rng, 7);
	for (uint64_t n = 0; n < 60; n++) {
		uint64_t bytes = 1 + prng_below(&rng, 4096), number;
		uint32_t chunks = shape_chunks(&small, bytes);

		assert_int_equal(post(f, bytes), n);
		assert_int_equal(sender_start(&f->s, NULL, &number), 0);
		while (receiver_slot(&f->r, n)->chunk_bits[0] != (UINT64_C(1) << chunks) - 1) {
			uint64_t have = receiver_slot(&f->r, n)->chunk_bits[0];
			struct send_packet p;

			for (uint32_t c = 0; c < chunks; c++) {
				struct send_block b = block((uint64_t)c * 256, 256);

				if (b.offset + b.bytes > bytes)
					b.bytes = bytes - b.offset;
				if (!(have >> c & 1))
					assert_int_equal(sender_add(&f->s, number, &b), 0);
			}
			while (sender_peek(&f->s, &p)) {
				uint64_t fate = prng_below(&rng, 10);

				sender_sent(&f->s);
				sender_returned(&f->s, p.slot, 1);
				if (fate < 2)
					continue;
				if (fate == 2 && held < 64)
					kept[held++] = p;
				else
					worker_note(&f->w, &f->r, p.generation, p.imm, p.bytes);
				if (held && fate == 3) {
					p = kept[--held];
					worker_note(&f->w, &f->r, p.generation, p.imm, p.bytes);
				}
			}
		}
		assert_int_equal(sender_end(&f->s, number), 0);
		assert_int_equal(sender_done(&f->s, number), 1);
		complete(f, n);
	}
	assert_true(f->w.verdicts[SDR_DROP_LATE] > 0);
	assert_int_equal(f->w.verdicts[SDR_DROP_LEN] + f->w.verdicts[SDR_DROP_OFFSET] + f->w.verdicts[SDR_DROP_ID], 0);
}
