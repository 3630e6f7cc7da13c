/* SPDX-License-Identifier: BSD-2-Clause */
/* Payload that is lent to the back end: which is, and that its memory is the program's again only when it is back. */

#include "iwarp/fpdu.h"
#include "iwarp/pipe.h"
#include "iwarp/state.h"
#include "support/test.h"

enum { LEN = 100000, TARGET = 512 << 10 };

static struct pipe p;

/* All seeds. Most are the argument `many`'s, as each takes megabytes of fresh pages under the sanitizers. */

static struct stream_lent of(enum pipe_side side, uint32_t key)
{
	return (struct stream_lent){.key = key, .before = nic_streams_lent(p.end[side].nic)};
}

static bool lends(enum pipe_side side, uint32_t key)
{
	struct stream_lent which = of(side, key);

	return nic_streams_lend(p.end[side].nic, &which);
}

static uint64_t lent_bytes(enum pipe_side side)
{
	return nic_counters(p.end[side].nic)->tx_lent_bytes;
}

static void fill(uint8_t *to, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)((i + seed) * 2654435761u >> 17);
}

static void open_lending(struct pipe_config c)
{
	c.lends = true;
	pipe_open(&p, &c);
	fill(p.end[PIPE_A].mem, PIPE_MEM / 2, 1);
}

static int move(enum pipe_side side, enum qp_state to)
{
	return nic_qp_modify(p.end[side].nic, p.end[side].qp, &(struct qp_attr){.state = to, .port = 1}, QPA_STATE,
			     p.now_ns);
}

static void none_is_complete(enum pipe_side side)
{
	struct cqe e;

	assert_false(pipe_poll(&p, side, &e));
}

/* ---- what is lent -------------------------------------------------------------------------------- */

TEST(long_pieces_are_lent_and_arrive)
{
	for (int crc = 0; crc < 2; crc++) {
		for (uint16_t segment = 1448; segment; segment = segment == 1448 ? 65483 : 0) {
			open_lending((struct pipe_config){.seed = segment, .no_crc = !crc, .segment_bytes = segment});
			pipe_post_recv(&p, PIPE_B, 1, 900000, LEN);
			pipe_post(&p, PIPE_A,
				  &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 1});
			pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .at = 5, .len = LEN, .wr_id = 2});
			pipe_run(&p);
			pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
			pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
			pipe_expect(&p, PIPE_B, 1, WC_SUCCESS);
			assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem, LEN);
			assert_memory_equal(p.end[PIPE_B].mem + 900000, p.end[PIPE_A].mem + 5, LEN);
			/* Each has two elements; what lies in both is copied, as what is left of one is that is short.
			 */
			assert_in_range(lent_bytes(PIPE_A), 2 * LEN * 6 / 10, 2 * LEN * 99 / 100);
			assert_false(lends(PIPE_A, 0));
			pipe_close(&p);
		}
	}
}

/* A READ's response only where no CRC can come to be wrong when the program changes what is read. */
TEST(responses_are_lent_without_crc)
{
	for (int crc = 0; crc < 2; crc++) {
		open_lending((struct pipe_config){.seed = 3, .no_crc = !crc});
		pipe_post(&p, PIPE_B, &(struct pipe_wr){.opcode = WR_READ, .at = TARGET, .len = LEN, .wr_id = 1});
		p.keeps = true;
		pipe_run(&p);
		pipe_expect(&p, PIPE_B, 1, WC_SUCCESS);
		assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem, LEN);
		assert_int_equal(lends(PIPE_A, 0), !crc);
		assert_int_equal(lends(PIPE_A, p.end[PIPE_A].mr->key), !crc);
		assert_false(lends(PIPE_A, p.end[PIPE_A].mr->key + 1));
		assert_int_equal(lent_bytes(PIPE_A) > LEN / 2, !crc);
		/* Pieces that were lent later are not asked for. */
		assert_false(nic_streams_lend(p.end[PIPE_A].nic, &(struct stream_lent){.before = 0}));
		p.keeps = false;
		pipe_run(&p);
		assert_false(lends(PIPE_A, 0));
		pipe_close(&p);
	}
}

TEST(other_payload_is_copied)
{
	static const struct {
		struct pipe_wr wr;
		bool markers;
	} cases[] = {
		{.wr = {.opcode = WR_WRITE, .len = IWARP_LEND_MIN - 1}},
		{.wr = {.opcode = WR_WRITE, .len = 120, .flags = WR_INLINE}},
		{.wr = {.opcode = WR_WRITE, .len = LEN}, .markers = true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pipe_wr wr = cases[i].wr;

		open_lending((struct pipe_config){.seed = i, .markers = cases[i].markers});
		wr.to = TARGET;
		pipe_post(&p, PIPE_A, &wr);
		pipe_run(&p);
		pipe_expect(&p, PIPE_A, 0, WC_SUCCESS);
		assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem, wr.len);
		assert_int_equal(lent_bytes(PIPE_A), 0);
		pipe_close(&p);
	}
}

/* Where the kernel copies all the same, nothing more is lent. */
TEST(it_ends_where_it_saves_nothing)
{
	uint64_t before;

	open_lending((struct pipe_config){.seed = 1});
	p.copied = true;
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .wr_id = 1});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	before = lent_bytes(PIPE_A);
	assert_true(before);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .wr_id = 2});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
	assert_int_equal(lent_bytes(PIPE_A), before);
	pipe_close(&p);
}

/* More than a back end holds pieces are copied, and complete behind them. */
TEST(a_back_end_is_lent_so_many_at_a_time)
{
	enum { WRS = 200, EACH = 20000 };

	open_lending((struct pipe_config){.seed = 1});
	p.keeps = true;
	for (uint64_t i = 0; i < WRS; i++)
		pipe_post(
			&p, PIPE_A,
			&(struct pipe_wr){
				.opcode = WR_WRITE, .len = 3 * EACH / 2, .at = (uint32_t)i, .to = TARGET, .wr_id = i});
	pipe_run(&p);
	assert_int_equal(p.end[PIPE_A].lent_tail, STREAM_LENT_MAX);
	none_is_complete(PIPE_A);
	assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem + WRS - 1, EACH);
	p.keeps = false;
	pipe_run(&p);
	for (uint64_t i = 0; i < WRS; i++)
		pipe_expect(&p, PIPE_A, i, WC_SUCCESS);
	pipe_close(&p);
}

/* ---- when it is back ----------------------------------------------------------------------------- */

TEST(a_request_is_complete_when_its_pieces_are_back)
{
	open_lending((struct pipe_config){.seed = 1});
	p.keeps = true;
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 100, .to = TARGET, .wr_id = 1});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 2});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 100, .to = TARGET + LEN, .wr_id = 3});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 100, .at = 900000, .wr_id = 4});
	pipe_run(&p);
	assert_memory_equal(p.end[PIPE_B].mem + TARGET + LEN, p.end[PIPE_A].mem, 100);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	none_is_complete(PIPE_A);
	p.keeps = false;
	pipe_run(&p);
	for (uint64_t i = 2; i <= 4; i++)
		pipe_expect(&p, PIPE_A, i, WC_SUCCESS);
	none_is_complete(PIPE_A);
	pipe_close(&p);
}

/* With immediate data, too, which are a message of their own. */
TEST(immediate_data_wait_for_the_write)
{
	open_lending((struct pipe_config){.seed = 1, .rfc7306 = true});
	p.keeps = true;
	pipe_post_recv(&p, PIPE_B, 7, 0, 0);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE_IMM, .len = LEN, .to = TARGET, .wr_id = 1});
	pipe_run(&p);
	pipe_expect(&p, PIPE_B, 7, WC_SUCCESS);
	none_is_complete(PIPE_A);
	p.keeps = false;
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_close(&p);
}

/* What a program of random WRITEs has in flight: the oldest `done` of `posted` are complete. */
struct writer {
	uint32_t at[PIPE_WRS], len[PIPE_WRS];
	uint64_t posted, done;
};

enum { SLOTS = 8, SLOT_BYTES = 64 << 10 };

/* One WRITE out of a slot, and to the same place at the peer, that no other in flight has. */
static void post_one(struct writer *w)
{
	uint64_t i = w->posted % PIPE_WRS;
	uint32_t at = (uint32_t)(w->posted % SLOTS) * SLOT_BYTES,
		 len = 1 + (uint32_t)prng_below(&p.rng, SLOT_BYTES - 1);

	fill(p.end[PIPE_A].mem + at, len, (uint32_t)w->posted);
	w->at[i] = at;
	w->len[i] = len;
	pipe_post(&p, PIPE_A,
		  &(struct pipe_wr){.opcode = WR_WRITE, .at = at, .len = len, .to = at, .wr_id = w->posted++});
}

/* As a program that uses a buffer again as soon as its WRITE is complete. */
static void poll_all(struct writer *w)
{
	struct cqe e;

	while (pipe_poll(&p, PIPE_A, &e)) {
		assert_int_equal(e.wr_id, w->done);
		assert_int_equal(e.status, WC_SUCCESS);
		memset(p.end[PIPE_A].mem + w->at[e.wr_id % PIPE_WRS], 0x55, w->len[e.wr_id % PIPE_WRS]);
		w->done++;
	}
}

TEST_ALWAYS(memory_is_read_until_its_request_is_complete)
{
	for (uint64_t seed = 1; seed <= (test_many ? 200 : 50); seed++) {
		struct writer w = {0};
		static uint8_t expected[SLOT_BYTES];

		open_lending((struct pipe_config){.seed = seed,
						  .no_crc = seed % 3 == 0,
						  .piece_max = seed % 2 ? 0 : 5000 * (seed % 7),
						  .segment_bytes = seed % 5 ? 0 : 65483,
						  .places = seed % 3 == 0});
		while (w.done < 40) {
			while (w.posted < 40 && w.posted - w.done < SLOTS)
				post_one(&w);
			pipe_step(&p);
			poll_all(&w);
		}
		pipe_run(&p);
		/* The last WRITE to each slot: what the memory had when it was posted. */
		for (uint64_t n = 40 - SLOTS; n < 40; n++) {
			fill(expected, w.len[n % PIPE_WRS], (uint32_t)n);
			assert_memory_equal(p.end[PIPE_B].mem + w.at[n % PIPE_WRS], expected, w.len[n % PIPE_WRS]);
		}
		assert_true(lent_bytes(PIPE_A));
		pipe_close(&p);
	}
}

/* ---- the end ------------------------------------------------------------------------------------- */

TEST(the_end_waits_for_the_last_piece)
{
	open_lending((struct pipe_config){.seed = 1});
	p.keeps = true;
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 1});
	assert_int_equal(move(PIPE_A, QPS_SQD), 0);
	pipe_run(&p);
	assert_false(p.end[PIPE_A].fin);
	p.keeps = false;
	pipe_run(&p);
	assert_true(p.end[PIPE_A].fin && p.end[PIPE_B].fin);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_close(&p);
}

/* In ERR the receives are flushed at once, and sends, whose memory is the program's then, when it is back. */
TEST(a_flush_waits_for_what_is_lent)
{
	for (int by = 0; by < 3; by++) {
		open_lending((struct pipe_config){.seed = 1});
		p.keeps = true;
		pipe_post_recv(&p, PIPE_A, 9, 0, 10);
		pipe_post(&p, PIPE_A,
			  &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 1, .quiet = true});
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .to = TARGET, .wr_id = 2});
		pipe_run(&p);
		if (by == 0)
			assert_int_equal(move(PIPE_A, QPS_ERR), 0);
		else if (by == 1)
			nic_stream_finish(p.end[PIPE_B].nic, p.end[PIPE_B].qp, p.now_ns);
		else
			assert_int_equal(move(PIPE_B, QPS_ERR), 0);
		pipe_run(&p);
		assert_int_equal(qp_state(p.end[PIPE_A].qp), QPS_ERR);
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .wr_id = 3});
		pipe_run(&p);
		pipe_expect(&p, PIPE_A, 9, WC_WR_FLUSH_ERR);
		none_is_complete(PIPE_A);
		assert_true(p.end[PIPE_A].fin);
		p.keeps = false;
		pipe_run(&p);
		for (uint64_t i = 1; i <= 3; i++)
			pipe_expect(&p, PIPE_A, i, WC_WR_FLUSH_ERR);
		none_is_complete(PIPE_A);
		pipe_close(&p);
	}
}

TEST(a_reset_gives_all_back)
{
	for (int before = 0; before < 2; before++) {
		open_lending((struct pipe_config){.seed = 1});
		p.keeps = true;
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 1});
		pipe_run(&p);
		if (before)
			assert_int_equal(move(PIPE_A, QPS_ERR), 0);
		none_is_complete(PIPE_A);
		assert_true(lends(PIPE_A, 0));
		pipe_reset(&p, PIPE_A);
		pipe_run(&p);
		assert_false(lends(PIPE_A, 0));
		pipe_expect(&p, PIPE_A, 1, WC_WR_FLUSH_ERR);
		none_is_complete(PIPE_A);
		pipe_close(&p);
	}
}

/* The core does not wait for what a destroyed QP has lent: its caller has to, before (nic_streams_lend()). */
TEST(a_qp_that_goes_forgets_what_it_lent)
{
	for (int resets = 0; resets < 2; resets++) {
		open_lending((struct pipe_config){.seed = 1});
		p.keeps = true;
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 1});
		pipe_run(&p);
		assert_true(lends(PIPE_A, p.end[PIPE_A].mr->key));
		if (resets) {
			assert_int_equal(move(PIPE_A, QPS_RESET), 0);
		} else {
			nic_qp_destroy(p.end[PIPE_A].nic, p.end[PIPE_A].qp);
			p.end[PIPE_A].qp = NULL;
		}
		assert_false(lends(PIPE_A, 0));
		p.keeps = false;
		pipe_run(&p);
		pipe_close(&p);
	}
}

/* The READ that a Terminate names has its status, though it is told only when the WRITE before it is flushed. */
TEST(a_refused_read_behind_a_piece_says_why)
{
	open_lending((struct pipe_config){.seed = 1});
	p.keeps = true;
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = LEN, .to = TARGET, .wr_id = 1});
	pipe_post(&p, PIPE_A,
		  &(struct pipe_wr){.opcode = WR_READ, .len = 100, .at = 900000, .rkey = 0x1234, .wr_id = 2});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 100, .at = 900000, .wr_id = 3});
	pipe_run(&p);
	assert_int_equal(qp_state(p.end[PIPE_A].qp), QPS_ERR);
	none_is_complete(PIPE_A);
	p.keeps = false;
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_WR_FLUSH_ERR);
	pipe_expect(&p, PIPE_A, 2, WC_REM_ACCESS_ERR);
	pipe_expect(&p, PIPE_A, 3, WC_WR_FLUSH_ERR);
	none_is_complete(PIPE_A);
	pipe_close(&p);
}

/* A request whose last bytes are refused when its first ones are lent. */
TEST(a_request_that_fails_halfway_waits_too)
{
	struct pipe_end *a = &p.end[PIPE_A];
	struct send_wqe *w;

	open_lending((struct pipe_config){.seed = 1});
	p.keeps = true;
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 6 * LEN, .to = 0, .wr_id = 1});
	w = sq_at(qp_sq(a->qp), 0);
	assert_int_equal(w->num_sge, 2);
	pipe_step(&p);
	assert_true(lends(PIPE_A, 0));
	w->sge[1].lkey ^= 1;
	pipe_run(&p);
	assert_int_equal(qp_state(a->qp), QPS_RTS);
	none_is_complete(PIPE_A);
	p.keeps = false;
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_LOC_PROT_ERR);
	none_is_complete(PIPE_A);
	assert_int_equal(qp_state(a->qp), QPS_ERR);
	pipe_close(&p);
}

/* Random traffic, notices and ends: each request completes once and in order, and nothing is left. */
TEST_ALWAYS(whatever_happens_each_request_completes_once)
{
	for (uint64_t seed = 1; seed <= (test_many ? 300 : 75); seed++) {
		uint64_t next[PIPE_SIDES] = {0}, posted[PIPE_SIDES] = {0};
		int steps;

		open_lending((struct pipe_config){.seed = seed,
						  .no_crc = seed % 2,
						  .piece_max = seed % 3 ? 0 : 20000,
						  .segment_bytes = seed % 5 ? 0 : 65483});
		steps = (int)prng_below(&p.rng, 60);
		for (int i = 0; i < steps; i++) {
			enum pipe_side side = (enum pipe_side)prng_below(&p.rng, 2);

			p.keeps = prng_below(&p.rng, 3) == 0;
			if (posted[side] < PIPE_WRS)
				pipe_post(&p, side,
					  &(struct pipe_wr){.opcode = prng_below(&p.rng, 3) ? WR_WRITE : WR_READ,
							    .wr_id = posted[side]++,
							    .at = TARGET,
							    .len = (uint32_t)prng_below(&p.rng, LEN)});
			pipe_step(&p);
		}
		switch (seed % 4) {
		case 0: pipe_reset(&p, PIPE_A); break;
		case 1: move(PIPE_A, QPS_ERR); break;
		case 2: nic_stream_finish(p.end[PIPE_A].nic, p.end[PIPE_A].qp, p.now_ns); break;
		default: p.end[PIPE_B].mr->access = 0; /* what comes next is refused */
		}
		p.keeps = false;
		pipe_run(&p);
		if (seed % 4 == 0) {
			pipe_reset(&p, PIPE_B);
			pipe_run(&p);
		}
		for (int side = 0; side < PIPE_SIDES; side++) {
			struct cqe e;

			while (pipe_poll(&p, (enum pipe_side)side, &e))
				assert_int_equal(e.wr_id, next[side]++);
			if (qp_state(p.end[side].qp) == QPS_ERR)
				assert_int_equal(next[side], posted[side]);
			assert_false(lends((enum pipe_side)side, 0));
		}
		pipe_close(&p);
	}
}
