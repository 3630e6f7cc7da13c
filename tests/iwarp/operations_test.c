/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation arrives, however the stream is cut, with CRC and without, with markers and without. With the argument
 * "many": long messages too where it is cut into the smallest pieces, and more seeds.
 */

#include "iwarp/pipe.h"
#include "mem/mw.h"
#include "support/test.h"

static struct pipe p;

static void fill(uint8_t *to, size_t len, uint64_t seed)
{
	struct prng rng;

	prng_init(&rng, seed);
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = prng_next(&rng);

		memcpy(to + i, &word, len - i < 8 ? len - i : 8);
	}
}

static const uint32_t lengths[] = {0, 1, 2, 3, 4, 5, 127, 1424, 1425, 1428, 1429, 4096, 65536, 100001};

enum { LENGTHS = sizeof(lengths) / sizeof(*lengths), TARGET = 512 << 10, SMALL_PIECE = 7, OF_SMALL_PIECES = 4096 };

static void check_write(uint32_t len)
{
	fill(p.end[PIPE_A].mem, len, len + 1);
	memset(p.end[PIPE_B].mem + TARGET, 0xee, len + 64);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = len, .to = TARGET, .wr_id = len});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, len, WC_SUCCESS);
	assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem, len);
	assert_int_equal(p.end[PIPE_B].mem[TARGET + len], 0xee);
}

static void check_read(uint32_t len)
{
	fill(p.end[PIPE_B].mem + TARGET, len, len + 2);
	memset(p.end[PIPE_A].mem, 0xee, len + 64);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = len, .to = TARGET, .wr_id = len});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, len, WC_SUCCESS);
	assert_memory_equal(p.end[PIPE_A].mem, p.end[PIPE_B].mem + TARGET, len);
	assert_int_equal(p.end[PIPE_A].mem[len], 0xee);
}

static void check_send(uint32_t len, uint32_t flags)
{
	struct cqe e;

	fill(p.end[PIPE_A].mem, len, len + 3);
	memset(p.end[PIPE_B].mem + TARGET, 0xee, len + 64);
	pipe_post_recv(&p, PIPE_B, 77, TARGET, len + 10);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .flags = flags, .len = len, .wr_id = len});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, len, WC_SUCCESS);
	assert_true(pipe_poll(&p, PIPE_B, &e));
	assert_true(e.status == WC_SUCCESS && e.wr_id == 77 && e.byte_len == len && e.opcode == WC_RECV);
	assert_int_equal(e.solicited, flags & WR_SOLICITED ? 1 : 0);
	assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem, len);
	assert_int_equal(p.end[PIPE_B].mem[TARGET + len], 0xee);
}

/* Returns how many bytes were put where they belong, and not handed over. */
static uint64_t check_all(const struct pipe_config *c)
{
	/* Only segments of long messages are read straight into the region. */
	bool in_small_pieces = !test_many && c->piece_max && c->piece_max <= SMALL_PIECE && !(c->places && c->no_crc);

	pipe_open(&p, c);
	for (size_t i = 0; i < LENGTHS; i++) {
		if (in_small_pieces && lengths[i] > OF_SMALL_PIECES)
			continue;
		check_write(lengths[i]);
		check_read(lengths[i]);
		check_send(lengths[i], 0);
		check_send(lengths[i], WR_SOLICITED);
		if (lengths[i] <= 127)
			check_send(lengths[i], WR_INLINE);
	}
	pipe_close(&p);
	return p.placed;
}

TEST_ALWAYS(operations_arrive_in_any_pieces)
{
	static const size_t pieces[] = {0, 1, 7, 1500, 70000};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
		check_all(&(struct pipe_config){.seed = i, .piece_max = pieces[i]});
}

TEST_ALWAYS(operations_arrive_without_crc_and_with_markers)
{
	check_all(&(struct pipe_config){.seed = 1, .piece_max = 999, .no_crc = true});
	check_all(&(struct pipe_config){.seed = 2, .piece_max = 999, .markers = true});
	check_all(&(struct pipe_config){.seed = 3, .piece_max = 3, .markers = true, .no_crc = true});
	check_all(&(struct pipe_config){.seed = 4, .piece_max = 0, .markers = true, .segment_bytes = 65483});
}

TEST(operations_arrive_in_segments_of_any_size)
{
	static const uint16_t segments[] = {1, 536, 1448, 8948, 65483, 65535};

	for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++)
		check_all(&(struct pipe_config){.seed = i, .piece_max = 40000, .segment_bytes = segments[i]});
}

TEST_ALWAYS(operations_arrive_in_place)
{
	static const size_t pieces[] = {0, 1, 7, 1500, 20000, 70000};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		struct pipe_config c = {
			.seed = i, .piece_max = pieces[i], .no_crc = true, .places = true, .segment_bytes = 65483};

		/* In one piece there is never a part of an FPDU. */
		assert_int_equal(check_all(&c) > 4000, pieces[i] != 0);
		c.no_crc = false;
		assert_int_equal(check_all(&c), 0);
	}
}

/* RFC 5040 4.3: the key of a Send with Invalidate opens nothing to peers any more, and the receiver is told. */
PIPE_TEST(send_with_invalidate_closes_the_region)
{
	struct cqe e;

	pipe_post_recv(&p, PIPE_B, 1, 0, 100);
	pipe_post(
		&p, PIPE_A,
		&(struct pipe_wr){
			.opcode = WR_SEND_INV, .flags = WR_SOLICITED, .len = 10, .imm_or_key = p.end[PIPE_B].mr->key});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 0, WC_SUCCESS);
	assert_true(pipe_poll(&p, PIPE_B, &e));
	assert_int_equal(e.flags, WC_WITH_INV);
	assert_int_equal(e.imm_or_key, p.end[PIPE_B].mr->key);
	assert_true(e.solicited);
	assert_int_equal(p.end[PIPE_B].mr->access, MR_LOCAL_WRITE);
}

/* B's request without a message: a window of type 2 over 100 bytes at 4096 is bound to that key, or the key is taken
 * back. */
static void post_local(enum wr_opcode opcode, const struct mw *mw, uint32_t key, uint64_t wr_id)
{
	struct pipe_end *b = &p.end[PIPE_B];
	struct sq *sq = qp_sq(b->qp);
	struct send_wqe *w = sq_slot(sq, 0);

	w->wr_id = wr_id;
	w->opcode = (uint8_t)opcode;
	w->flags = WR_SIGNALED;
	w->length = 0;
	w->num_sge = 0;
	if (opcode == WR_BIND_MW) {
		w->rkey = key;
		w->bind = (struct wqe_bind){.addr = PIPE_IOVA + 4096,
					    .length = 100,
					    .handle = mw->anchor.key,
					    .lkey = b->mr->key,
					    .access = MR_REMOTE_WRITE};
	} else {
		w->imm_or_key = key;
	}
	sq_post(sq, 1);
	nic_doorbell(b->nic, b->qp);
}

/* IBTA 10.6.7, RFC 5040 6.3: its key is an STag like a region's, for as long as the window is bound. */
PIPE_TEST(a_window_opens_its_bytes_while_it_is_bound, .piece_max = 100)
{
	struct pipe_end *b = &p.end[PIPE_B];
	uint32_t key;
	struct mw *mw;

	b->mr->access = MR_LOCAL_WRITE | MR_MW_BIND;
	assert_int_equal(nic_mw_alloc(b->nic, b->pd, MW_TYPE_2, &mw), 0);
	key = mw->opened.key ^ 1; /* the consumer's part of the key is new */
	/* Behind a READ it completes behind it, though it is done before. */
	pipe_post(&p, PIPE_B, &(struct pipe_wr){.opcode = WR_READ, .at = 8192, .len = 3000, .wr_id = 1});
	post_local(WR_BIND_MW, mw, key, 2);
	pipe_post(&p, PIPE_B, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .wr_id = 3});
	pipe_run(&p);
	for (uint64_t id = 1; id <= 3; id++)
		pipe_expect(&p, PIPE_B, id, WC_SUCCESS);
	fill(p.end[PIPE_A].mem, 100, 9);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 100, .to = 4096, .rkey = key, .wr_id = 4});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 4, WC_SUCCESS);
	assert_memory_equal(b->mem + 4096, p.end[PIPE_A].mem, 100);
	post_local(WR_LOCAL_INV, mw, key, 5);
	pipe_run(&p);
	pipe_expect(&p, PIPE_B, 5, WC_SUCCESS);
	memset(p.end[PIPE_A].mem, 0, 100);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 100, .to = 4096, .rkey = key, .wr_id = 6});
	pipe_run(&p);
	assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_ACCESS_ERR);
	assert_int_not_equal(b->mem[4096] | b->mem[4097] | b->mem[4098], 0);
	nic_mw_free(b->nic, mw);
}

PIPE_TEST(shared_receive_queue_serves, .srq = true, .piece_max = 100)
{
	struct cqe e;

	for (uint32_t i = 0; i < 10; i++) {
		pipe_post_recv(&p, PIPE_B, i, TARGET + i * 4096, 4096);
		p.end[PIPE_A].mem[i] = (uint8_t)(i + 1);
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .at = i, .len = 3000, .quiet = true});
	}
	pipe_run(&p);
	for (uint32_t i = 0; i < 10; i++) {
		pipe_expect(&p, PIPE_B, i, WC_SUCCESS);
		assert_int_equal(p.end[PIPE_B].mem[TARGET + i * 4096], i + 1);
	}
	assert_false(pipe_poll(&p, PIPE_A, &e)); /* unsignalled */
}

/* Both directions at once: responses and requests share a stream, and neither waits for the other for ever. */
TEST(reads_and_writes_cross)
{
	pipe_open(&p, &(struct pipe_config){.seed = 5, .piece_max = 3000});
	for (int side = 0; side < PIPE_SIDES; side++) {
		fill(p.end[side].mem, 100000, (uint64_t)side + 9);
		for (uint32_t i = 0; i < 20; i++)
			pipe_post(&p, (enum pipe_side)side,
				  &(struct pipe_wr){.opcode = i % 2 ? WR_READ : WR_WRITE,
						    .at = i % 2 ? 200000 : 0,
						    .len = 100000,
						    .to = i % 2 ? 0 : 400000,
						    .wr_id = i});
	}
	pipe_run(&p);
	for (int side = 0; side < PIPE_SIDES; side++) {
		for (uint32_t i = 0; i < 20; i++)
			pipe_expect(&p, (enum pipe_side)side, i, WC_SUCCESS);
		assert_memory_equal(p.end[side].mem + 200000, p.end[!side].mem, 100000);
		assert_memory_equal(p.end[side].mem + 400000, p.end[!side].mem, 100000);
	}
	pipe_close(&p);
}

/* Any work, in any pieces: each WQE completes once, in order, and memory is as the model says. */
static void swarm(uint64_t seed)
{
	struct pipe_config c = {.seed = seed};
	uint64_t wr_id[PIPE_SIDES] = {0}, done[PIPE_SIDES] = {0};
	struct prng rng;
	static uint8_t model[PIPE_MEM];

	prng_init(&rng, seed);
	c.piece_max = prng_below(&rng, 3) ? (size_t)prng_below(&rng, 5000) : 1 + (size_t)prng_below(&rng, 3);
	c.no_crc = prng_below(&rng, 4) == 0;
	c.markers = prng_below(&rng, 4) == 0;
	c.segment_bytes = (uint16_t)(100 + prng_below(&rng, 3000));
	c.reads = (uint8_t)(1 + prng_below(&rng, 9));
	c.rfc7306 = prng_below(&rng, 2);
	c.places = c.no_crc && seed % 2;
	if (c.places)
		c.segment_bytes = 65483;
	pipe_open(&p, &c);
	for (int side = 0; side < PIPE_SIDES; side++) {
		/* Sources in the first half are never written to; each message has a target of its own. */
		fill(p.end[side].mem, PIPE_MEM / 2, seed + (uint64_t)side);
	}
	for (uint32_t i = 0; i < 40; i++) {
		enum pipe_side side = (enum pipe_side)prng_below(&rng, 2);
		uint32_t len = (uint32_t)prng_below(&rng, prng_below(&rng, 2) ? c.places ? 8192 : 6000 : 200);
		uint32_t source = (uint32_t)prng_below(&rng, PIPE_MEM / 2 - len), target = PIPE_MEM / 2 + i * 8192;
		static const enum wr_opcode kinds[] = {WR_SEND, WR_WRITE, WR_READ, WR_WRITE_IMM, WR_CMP_SWAP};
		enum wr_opcode kind = kinds[prng_below(&rng, c.rfc7306 ? 5 : 3)];
		bool fetches = kind == WR_READ || kind == WR_CMP_SWAP;
		struct pipe_wr wr = {.opcode = kind, .len = len, .at = source, .to = target, .wr_id = wr_id[side]++};
		struct pipe_end *to = &p.end[fetches ? side : !side];

		/* It does not compare, so it only fetches. */
		if (kind == WR_CMP_SWAP) {
			wr.len = len = 8;
			source &= ~7u;
		}
		if (fetches) {
			wr.at = target;
			wr.to = source;
		} else if (kind == WR_SEND || kind == WR_WRITE_IMM) {
			pipe_post_recv(&p, !side, 1000 + i, target, 8192);
		}
		wr.flags = prng_below(&rng, 5) ? 0 : WR_FENCE;
		pipe_post(&p, side, &wr);
		memcpy(model + target, (fetches ? p.end[!side].mem : p.end[side].mem) + source, len);
		for (uint64_t steps = prng_below(&rng, 20); steps; steps--)
			pipe_step(&p);
		if (i % 8 == 7) {
			pipe_run(&p);
			assert_memory_equal(to->mem + target, model + target, len);
		}
	}
	pipe_run(&p);
	for (int side = 0; side < PIPE_SIDES; side++) {
		struct cqe e;

		while (pipe_poll(&p, (enum pipe_side)side, &e)) {
			assert_int_equal(e.status, WC_SUCCESS);
			if (e.wr_id < 1000)
				assert_int_equal(e.wr_id, done[side]++);
		}
		assert_int_equal(done[side], wr_id[side]);
	}
	pipe_close(&p);
}

TEST_ALWAYS(any_work_in_any_pieces)
{
	for (uint64_t seed = 1; seed <= (test_many ? 150 : 50); seed++)
		swarm(seed);
}
