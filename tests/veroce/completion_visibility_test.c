/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that polls a completion sees the bytes that the completion reports (out-of-order R6):
 * programs post, poll and read memory beside the thread that runs the nics. Only the rings order
 * the threads, nothing in this test does. ThreadSanitizer, with which this test and the core are
 * built (CMakeLists.txt), judges it; without that only the bytes are compared.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/test.h"
#include "veroce/veroce.h"

enum { ROUNDS = 200, SLOTS = 8, SLOT_BYTES = 4096, LENGTH = 3000 };

struct program {
	struct duo_qp *q;
	struct duo_buf *buf, *peer;
	enum wr_opcode opcode; /* what A does */
	uint64_t slots;        /* of B's memory, used by turns */
	uint64_t wrong;        /* wrong completions or bytes */
};

static atomic_bool over;
static atomic_uint programs_left;

/* Of round i, in every byte: what was read of a slot too early is of the round before. */
static uint8_t mark(uint64_t i)
{
	return (uint8_t)(1 + i % 251);
}

static uint64_t slot(uint64_t i, uint64_t slots)
{
	return i % slots * SLOT_BYTES;
}

static uint64_t wrong_bytes(const uint8_t *bytes, uint8_t right)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < LENGTH; k++)
		n += bytes[k] != right;
	return n;
}

/* Until a completion is there; NULL: the nics stopped before. */
static const struct cqe *poll(struct cq *cq)
{
	const struct cqe *e;

	while (!(e = cq_peek(cq, 0))) {
		if (over)
			return NULL;
		sched_yield();
	}
	return e;
}

static void expect(struct program *p, struct cq *cq, uint64_t wr_id)
{
	const struct cqe *e = poll(cq);

	p->wrong += !e || e->wr_id != wr_id || e->status != WC_SUCCESS;
	if (e)
		cq_consume(cq, 1);
}

static void post(struct program *p, const struct duo_wr *w)
{
	while (!duo_post(p->q, w) && !over)
		sched_yield();
}

/* SENDs or WRITEs with immediate, from memory that the last round is done with. */
static void *send(void *arg)
{
	struct program *p = arg;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t from = slot(i, SLOTS);
		struct duo_wr w = duo_write_wr(i, p->buf, from, LENGTH, p->peer, slot(i, p->slots));

		w.opcode = p->opcode;
		if (i >= SLOTS)
			expect(p, p->q->send_cq, i - SLOTS);
		memset(p->buf->p + from, mark(i), LENGTH);
		post(p, &w);
	}
	for (uint64_t i = ROUNDS - SLOTS; i < ROUNDS; i++)
		expect(p, p->q->send_cq, i);
	programs_left--;
	return NULL;
}

static void *receive(void *arg)
{
	struct program *p = arg;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = slot(i, p->slots), next = i + SLOTS;

		expect(p, p->q->recv_cq, i);
		p->wrong += wrong_bytes(p->buf->p + at, mark(i));
		memset(p->buf->p + at, 0, LENGTH);
		if (next < ROUNDS)
			duo_recv(p->q, next, p->buf, slot(next, p->slots), SLOT_BYTES);
	}
	programs_left--;
	return NULL;
}

/* READs of what does not change, into memory that does. */
static void *read_often(void *arg)
{
	struct program *p = arg;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = slot(i, SLOTS);
		struct duo_wr w = duo_read_wr(i, p->buf, at, LENGTH, p->peer, 0);

		memset(p->buf->p + at, 0, LENGTH);
		post(p, &w);
		expect(p, p->q->send_cq, i);
		p->wrong += wrong_bytes(p->buf->p + at, mark(0));
	}
	programs_left--;
	return NULL;
}

/* Two paths that reorder, and some loss: most packets are placed out of their turn. */
static struct sim start(struct program p[DUO_SIDES])
{
	struct sim s = VEROCE_SIM(v.paths = 2, o.rnr_retry = 7, o.min_rnr_timer = 1, o.cap.max_recv_wr = SLOTS);

	s.duo->path_ns[1] = 3000;
	s.duo->steps_left = UINT64_MAX;
	for (int side = 0; side < DUO_SIDES; side++) {
		s.duo->faults[side] = (struct duo_faults){.drop_ppm = 10000, .delay_ppm = 200000, .delay_ns_max = 5000};
		p[side].q = side == DUO_A ? s.a : s.b;
		p[side].q->manual = true;
		p[side].buf = duo_buf(p[side].q->host, ROUNDS * SLOT_BYTES, ALL_ACCESS);
	}
	p[DUO_A].peer = p[DUO_B].buf;
	p[DUO_B].peer = p[DUO_A].buf;
	return s;
}

/* The nics run until the programs are done, or hours of virtual time have passed. */
static void run(struct sim *s, struct program p[DUO_SIDES], void *(*a)(void *), void *(*b)(void *))
{
	pthread_t threads[DUO_SIDES];

	over = false;
	programs_left = b ? 2 : 1;
	assert_int_equal(pthread_create(&threads[DUO_A], NULL, a, &p[DUO_A]), 0);
	if (b)
		assert_int_equal(pthread_create(&threads[DUO_B], NULL, b, &p[DUO_B]), 0);
	while (programs_left && s->duo->now_ns < UINT64_C(100000000000000)) {
		duo_run_for(s->duo, 1000);
		sched_yield();
	}
	over = true;
	pthread_join(threads[DUO_A], NULL);
	if (b)
		pthread_join(threads[DUO_B], NULL);
	assert_int_equal(p[DUO_A].wrong, 0);
	assert_int_equal(p[DUO_B].wrong, 0);
	assert_true(nic_counters(s->b->host->nic)->rx_out_of_sequence +
		    nic_counters(s->a->host->nic)->rx_out_of_sequence);
	sim_end(s);
}

/*
 * A buffer that a SEND fills comes back with a new receive; after a WRITE no program waits for the
 * peer's.
 */
TEST(a_receive_completion_comes_after_the_bytes)
{
	static const struct {
		enum wr_opcode opcode;
		uint64_t slots;
	} cases[] = {{WR_SEND, SLOTS}, {WR_WRITE_IMM, ROUNDS}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct program p[DUO_SIDES] = {
			{.opcode = cases[i].opcode, .slots = cases[i].slots},
			{.slots = cases[i].slots},
		};
		struct sim s = start(p);

		for (uint64_t k = 0; k < SLOTS; k++)
			assert_true(duo_recv(s.b, k, p[DUO_B].buf, slot(k, cases[i].slots), SLOT_BYTES));
		run(&s, p, send, receive);
	}
}

TEST(a_send_completion_comes_after_what_was_read)
{
	struct program p[DUO_SIDES] = {{0}};
	struct sim s = start(p);

	memset(p[DUO_B].buf->p, mark(0), LENGTH);
	run(&s, p, read_often, NULL);
}
