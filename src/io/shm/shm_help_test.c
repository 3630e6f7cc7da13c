/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes read the memory of one of them together. The ends are of one process, and each may have a thread of its
 * own. */
#include "support/shm_ends.h"

#include <pthread.h>
#include <sched.h>

#include "base/prng.h"
#include "io/shm/shm_state.h"
#include "support/test.h"

enum {
	TRAIN = 2,
	TRAINS = 16,
	PACKETS = TRAIN * TRAINS,
	BYTES = 30 << 10,
	FAR_AT = 40,
	FAR_LEN = FAR_AT + BYTES + 4,
	ROUNDS_MAX = 20000
};

static uint8_t lent[PACKETS][BYTES], to[PACKETS][BYTES];

struct pair {
	struct end *a, *b;
	pthread_mutex_t lock; /* a's */
	_Atomic bool over;
	size_t asked;
	uint64_t lot;
};

static size_t place(void *ctx, const struct pkt *pkts, size_t n, bool begins, uint8_t **spots)
{
	struct pair *p = ctx;
	size_t i = 0;

	if (begins)
		p->asked = 0;
	for (; i < n && pkts[i].far_bytes && p->asked < PACKETS; i++)
		spots[i] = to[p->asked++];
	return i;
}

static struct shm_job *job_of(struct pair *p)
{
	return &((struct shm *)p->a->io)->out[B].memory->job;
}

/* Asks for bytes as a reader does. */
static void open_job(struct pair *p, void *here, const void *there, size_t bytes)
{
	struct shm_mark *mark = ((struct shm *)p->b->io)->mark;

	shm_job_open(job_of(p), (struct iovec){&mark->written, sizeof(mark->written)}, &(struct iovec){here, bytes},
		     &(struct iovec){(void *)there, bytes}, 1);
}

static void begin(struct pair *p)
{
	*p = (struct pair){.a = end_new(A), .b = end_new(B), .lock = PTHREAD_MUTEX_INITIALIZER};
	shm_set_placer(p->b->io, (struct shm_placer){.place = place, .ctx = p});
	connect_ends(p->a, A, p->b, B);
	connect_ends(p->b, B, p->a, A);
	send(p->a, B, 0, 1);
	expect(p->b, 0, 1);
	send(p->b, A, 0, 1);
	expect(p->a, 0, 1);
}

static void end(struct pair *p)
{
	end_free(p->a);
	end_free(p->b);
}

/* Sends packets that leave out all of `lent`. */
static void send_lent(struct pair *p)
{
	static uint8_t bytes[TRAIN][FAR_LEN];
	struct pkt train[TRAIN];

	pthread_mutex_lock(&p->lock);
	p->lot++;
	for (size_t i = 0; i < TRAINS; i++) {
		for (size_t k = 0; k < TRAIN; k++) {
			const struct pkt_far far = {.from = lent[i * TRAIN + k], .lot = p->lot};

			bytes[k][5] = B << 1;
			memcpy(bytes[k] + FAR_AT, &far, sizeof(far));
			train[k] = (struct pkt){.data = bytes[k],
						.flow = &within,
						.len = FAR_LEN,
						.ip_id = (uint16_t)k,
						.train = (uint16_t)(TRAIN - k),
						.far_at = FAR_AT,
						.far_bytes = BYTES};
		}
		assert_int_equal(io_send(p->a->io, train, TRAIN, 1), TRAIN);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Another packet, which leaves out these bytes. */
static void send_another(struct pair *p, const uint8_t *from)
{
	static uint8_t bytes[FAR_LEN];
	const struct pkt_far far = {.from = from, .lot = ++p->lot};
	struct pkt pkt = {
		.data = bytes, .flow = &within, .len = FAR_LEN, .train = 1, .far_at = FAR_AT, .far_bytes = BYTES};

	bytes[5] = B << 1;
	memcpy(bytes + FAR_AT, &far, sizeof(far));
	assert_int_equal(io_send(p->a->io, &pkt, 1, 1), 1);
}

/* All packets come, and what they left out is in its place. */
static void expect_lent(struct pair *p)
{
	struct pkt pkts[BURST];

	memset(to, 0, sizeof(to));
	assert_int_equal(io_recv(p->b->io, pkts, BURST, 1), PACKETS);
	assert_memory_equal(to, lent, sizeof(to));
}

static void change(unsigned seed)
{
	for (size_t i = 0; i < PACKETS; i++)
		memset(lent[i], (int)(seed * 31 + i), BYTES);
}

static void *poll_a(void *ctx)
{
	struct pair *p = ctx;
	struct pkt pkts[BURST];

	while (!atomic_load(&p->over)) {
		pthread_mutex_lock(&p->lock);
		io_recv(p->a->io, pkts, BURST, 1);
		pthread_mutex_unlock(&p->lock);
		sched_yield();
	}
	return NULL;
}

static bool has_helped(struct pair *p)
{
	bool helped;

	pthread_mutex_lock(&p->lock);
	helped = p->a->counters.shm_helped;
	pthread_mutex_unlock(&p->lock);
	return helped;
}

TEST(who_is_read_helps)
{
	struct pair p;
	pthread_t poller;
	unsigned rounds = 0;

	begin(&p);
	/* Alone it does as well. */
	change(rounds);
	send_lent(&p);
	expect_lent(&p);
	assert_ptr_equal(job_of(&p)->targets[0].mark.iov_base, &((struct shm *)p.b->io)->mark->written);
	assert_int_equal(pthread_create(&poller, NULL, poll_a, &p), 0);
	while (!has_helped(&p) && ++rounds < ROUNDS_MAX) {
		change(rounds);
		send_lent(&p);
		expect_lent(&p);
	}
	for (unsigned i = 0; i < 100; i++) {
		change(rounds + i);
		send_lent(&p);
		expect_lent(&p);
	}
	atomic_store(&p.over, true);
	pthread_join(poller, NULL);
	assert_true(p.a->counters.shm_helped);
	assert_int_equal(p.b->counters.shm_far_failed, 0);
	end(&p);
}

/* However much there is to copy, packets of other hosts are asked for. */
TEST(who_helps_looks_at_the_sockets)
{
	enum { STEP_NS = 1000000, STEPS = 20 };
	struct pkt pkts[BURST];
	struct pair p;

	begin(&p);
	change(1);
	send_lent(&p);
	p.a->lower->looks = 0;
	for (uint64_t i = 1; i <= STEPS; i++) {
		open_job(&p, to, lent, BYTES);
		assert_int_equal(io_recv(p.a->io, pkts, BURST, i * STEP_NS), 0);
		assert_int_equal(p.a->counters.shm_helped, i);
		assert_int_equal(p.a->lower->looks, i);
	}
	end(&p);
}

/* Whether bytes come that are asked for. */
static bool is_given(struct pair *p, const void *from, size_t bytes)
{
	static uint8_t here[BYTES];
	struct pkt pkts[BURST];
	bool given;

	memset(here, 0xa5, sizeof(here));
	open_job(p, here, from, bytes);
	assert_int_equal(io_recv(p->a->io, pkts, BURST, 1), 0);
	assert_int_not_equal(shm_job_state(job_of(p), 0), SHM_CHUNK_CLAIMED);
	given = shm_job_state(job_of(p), 0) == SHM_CHUNK_DONE;
	for (size_t i = 0; i < bytes && i < BYTES; i++)
		assert_int_equal(here[i], given ? ((const uint8_t *)from)[i] : 0xa5);
	shm_job_close(job_of(p));
	return given;
}

/* A process that lies about what it reads gets what it was sent, and no more. */
TEST(nothing_is_given_but_what_was_lent)
{
	static uint8_t other[BYTES];
	struct pkt pkts[BURST];
	struct pair p;

	begin(&p);
	change(1);
	send_lent(&p);
	assert_true(is_given(&p, lent, BYTES));
	assert_true(is_given(&p, lent[PACKETS - 1], BYTES));
	assert_true(is_given(&p, (uint8_t *)lent + 1000, BYTES));
	assert_false(is_given(&p, other, BYTES));
	assert_false(is_given(&p, (void *)((uintptr_t)lent - 1), 8));
	assert_false(is_given(&p, (void *)((uintptr_t)lent + sizeof(lent) - 8), 9));
	assert_false(is_given(&p, lent, SIZE_MAX));
	/* The program has got its memory back. */
	loan_take_back(look_at(p.a, B, 1)->loan, p.lot);
	send_another(&p, other);
	assert_true(is_given(&p, other, BYTES));
	assert_false(is_given(&p, lent, BYTES));
	assert_int_equal(io_recv(p.b->io, pkts, BURST, 1), 1);
	/* All packets were taken: nothing is lent any more. */
	send_lent(&p);
	assert_true(is_given(&p, lent, BYTES));
	expect_lent(&p);
	assert_false(loan_is_out(look_at(p.a, B, 1)->loan, p.lot));
	send(p.a, B, 1, 1);
	open_job(&p, other, lent, 8);
	assert_int_equal(io_recv(p.a->io, pkts, BURST, 1), 0);
	assert_int_equal(shm_job_state(job_of(&p), 0), SHM_CHUNK_OPEN);
	end(&p);
}

/* The slot is another process's by now: it is not written to. */
TEST(another_process_is_not_written_to)
{
	struct pkt pkts[BURST];
	struct pair p;
	struct ring_in *back;

	begin(&p);
	change(1);
	send_lent(&p);
	assert_true(is_given(&p, lent, BYTES));
	back = &((struct shm *)p.a->io)->in[B];
	back->process.pid = getppid();
	open_job(&p, to, lent, 8);
	assert_int_equal(io_recv(p.a->io, pkts, BURST, 1), 0);
	assert_int_equal(shm_job_state(job_of(&p), 0), SHM_CHUNK_OPEN);
	end(&p);
}

static void change_nothing(void *ctx)
{
}

/* Its id is another process's by now, which may have memory at the same addresses. */
TEST(another_process_with_that_id_is_not_written_to)
{
	static uint8_t here[BYTES], theirs[BYTES];
	struct pkt pkts[BURST];
	pid_t stranger;
	struct pair p;

	begin(&p);
	change(1);
	send_lent(&p);
	assert_true(is_given(&p, lent, BYTES));
	stranger = stranger_new(change_nothing, NULL);
	((struct shm *)p.a->io)->in[B].process.pid = ((struct shm *)p.a->io)->out[B].helped_pid = stranger;
	open_job(&p, here, lent, BYTES);
	assert_int_equal(io_recv(p.a->io, pkts, BURST, 1), 0);
	assert_int_equal(shm_job_state(job_of(&p), 0), SHM_CHUNK_FAILED);
	assert_int_equal(
		process_vm_readv(stranger, &(struct iovec){theirs, BYTES}, 1, &(struct iovec){here, BYTES}, 1, 0),
		BYTES);
	assert_memory_equal(theirs, here, BYTES);
	stranger_end(stranger);
	end(&p);
}

TEST(nonsense_is_given_nothing)
{
	struct pkt pkts[BURST];
	struct prng rng;
	struct pair p;

	begin(&p);
	change(1);
	send_lent(&p);
	prng_init(&rng, 37);
	for (int i = 0; i < 20000; i++) {
		uint32_t *words = (uint32_t *)job_of(&p);

		for (size_t k = 0; k < sizeof(struct shm_job) / 4; k++)
			words[k] = prng_next(&rng) % 2 ? (uint32_t)prng_next(&rng) : (uint32_t)(prng_next(&rng) % 4);
		assert_int_equal(io_recv(p.a->io, pkts, BURST, 1), 0);
	}
	for (size_t i = 0; i < PACKETS; i++)
		assert_int_equal(lent[i][BYTES - 1], lent[i][0]);
	end(&p);
}

/* Claims chunks, and does nothing. */
static void *claim_only(void *ctx)
{
	struct pair *p = ctx;
	struct shm_job *job = job_of(p);

	while (!atomic_load(&p->over)) {
		size_t n = shm_job_chunks(job);

		if (n)
			shm_job_claim(job, n, 2);
	}
	return NULL;
}

/*
 * A process that was stopped between its claim and its first byte, or lies: the reader gets all, relies on it no more,
 * and what it writes later is nothing.
 */
TEST(who_claims_and_does_not_copy_is_relied_on_once)
{
	struct shm_job *job;
	pthread_t claimer;
	struct pair p;
	unsigned rounds = 0;

	begin(&p);
	job = job_of(&p);
	assert_int_equal(pthread_create(&claimer, NULL, claim_only, &p), 0);
	while (!((struct shm *)p.b->io)->in[A].unhelped && ++rounds < ROUNDS_MAX) {
		change(rounds);
		send_lent(&p);
		expect_lent(&p);
	}
	atomic_store(&p.over, true);
	pthread_join(claimer, NULL);
	assert_true(((struct shm *)p.b->io)->in[A].unhelped);
	for (size_t i = 0; i < SHM_CHUNKS_MAX; i++)
		assert_int_equal(
			process_vm_writev(getpid(), &(struct iovec){lent, BYTES}, 1, &job->targets[i].to, 1, 0), 0);
	change(++rounds);
	send_lent(&p);
	expect_lent(&p);
	assert_int_equal(shm_job_chunks(job), 0);
	assert_int_equal(p.b->counters.shm_far_failed, 0);
	end(&p);
}

static void *open_again(void *ctx)
{
	struct pair *p = ctx;

	while (!atomic_load(&p->over)) {
		for (size_t i = 0; i < SHM_CHUNKS_MAX; i++)
			atomic_store(&job_of(p)->states[i], SHM_CHUNK_OPEN);
	}
	return NULL;
}

/* It reads them once, and no more than once again. */
TEST(a_job_ends_though_its_chunks_are_opened_again)
{
	struct pkt pkts[BURST];
	pthread_t opener;
	struct pair p;

	begin(&p);
	assert_int_equal(pthread_create(&opener, NULL, open_again, &p), 0);
	for (unsigned i = 0; i < 100; i++) {
		change(i);
		send_lent(&p);
		assert_int_equal(io_recv(p.b->io, pkts, BURST, 1), PACKETS);
	}
	atomic_store(&p.over, true);
	pthread_join(opener, NULL);
	end(&p);
}
