/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of a job, with threads in the place of processes. */
#include <pthread.h>
#include <sched.h>

#include "io/shm/shm_job.h"
#include "support/test.h"

enum {
	JOBS = 1000,
	CHUNKS = 18,
	BYTES = 64,
	HELPED_AT_A_TIME = 2,
	CHUNK_TURNS = 300, /* a chunk takes longer than the other processor takes to see that somebody has it */
	OVER = JOBS + 1
};

static struct shm_job job;
static uint8_t memory[JOBS][CHUNKS];
static _Atomic size_t opened, met; /* jobs; OVER: there are no more */
static size_t helped;

/* Each chunk of the n-th job is one byte of memory[n], and so many others of its length. */
static struct iovec chunk_of(size_t n, size_t i)
{
	return (struct iovec){&memory[n][i], BYTES + i};
}

static void take(struct shm_run run)
{
	struct iovec from[CHUNKS];

	shm_job_look(&job, run, from);
	for (size_t i = 0; i < run.count; i++) {
		if (from[i].iov_len != BYTES + run.first + i)
			abort();
		++*(uint8_t *)from[i].iov_base;
		for (volatile int turn = 0; turn < CHUNK_TURNS; turn++)
			;
	}
	shm_job_settle(&job, run, true);
}

/* Mostly without giving up the processor: the threads are to be on two of them. */
static void wait_a_little(unsigned turn)
{
	if (turn % 4096 == 0)
		sched_yield();
}

/* They begin with a job at the same time, so that they meet in it. */
static void *help(void *ctx)
{
	size_t n;

	for (unsigned turn = 1; (n = atomic_load(&opened)) != OVER; turn++) {
		struct shm_run run;

		if (n == atomic_load(&met)) {
			wait_a_little(turn);
			continue;
		}
		if (shm_job_chunks(&job) != CHUNKS)
			abort();
		atomic_store(&met, n);
		while ((run = shm_job_claim(&job, CHUNKS, HELPED_AT_A_TIME)).count) {
			take(run);
			helped += run.count;
		}
	}
	return NULL;
}

TEST(each_chunk_is_copied_once)
{
	struct iovec here[CHUNKS], there[CHUNKS];
	pthread_t helper;

	assert_int_equal(pthread_create(&helper, NULL, help, NULL), 0);
	for (size_t n = 0; n < JOBS; n++) {
		for (size_t i = 0; i < CHUNKS; i++)
			here[i] = there[i] = chunk_of(n, i);
		shm_job_open(&job, (struct iovec){0}, here, there, CHUNKS);
		atomic_store(&opened, n + 1);
		for (unsigned turn = 1; atomic_load(&met) != n + 1; turn++)
			wait_a_little(turn);
		for (struct shm_run run;
		     (run = shm_job_claim(&job, CHUNKS, (shm_job_left(&job, CHUNKS) + 1) / 2)).count;)
			take(run);
		for (size_t i = 0; i < CHUNKS; i++) {
			for (unsigned turn = 1; shm_job_state(&job, i) != SHM_CHUNK_DONE; turn++)
				wait_a_little(turn);
			assert_int_equal(memory[n][i], 1);
		}
		shm_job_close(&job);
		assert_int_equal(shm_job_chunks(&job), 0);
	}
	atomic_store(&opened, OVER);
	pthread_join(helper, NULL);
	print_message("%zu of %d chunks were the helper's\n", helped, JOBS * CHUNKS);
}

TEST(a_run_ends_where_somebody_has_the_next)
{
	struct iovec pieces[CHUNKS];
	struct shm_run run;

	for (size_t i = 0; i < CHUNKS; i++)
		pieces[i] = chunk_of(0, i);
	shm_job_open(&job, (struct iovec){0}, pieces, pieces, CHUNKS);
	assert_int_equal(shm_job_chunks(&job), CHUNKS);
	run = shm_job_claim(&job, CHUNKS, 1);
	assert_int_equal(run.first, 0);
	assert_int_equal(run.count, 1);
	atomic_store(&job.states[4], SHM_CHUNK_CLAIMED);
	run = shm_job_claim(&job, CHUNKS, CHUNKS);
	assert_int_equal(run.first, 1);
	assert_int_equal(run.count, 3);
	shm_job_settle(&job, run, false);
	assert_int_equal(shm_job_state(&job, 3), SHM_CHUNK_FAILED);
	assert_int_equal(shm_job_left(&job, CHUNKS), CHUNKS - 5);
	run = shm_job_claim(&job, CHUNKS, CHUNKS);
	assert_int_equal(run.first, 5);
	assert_int_equal(run.count, CHUNKS - 5);
	assert_int_equal(shm_job_claim(&job, CHUNKS, 1).count, 0);
	shm_job_cancel(&job);
	for (size_t i = 0; i < CHUNKS; i++)
		assert_int_equal(job.targets[i].to.iov_len, 0);
}

TEST(nonsense_is_no_chunk)
{
	atomic_store(&job.count, UINT32_MAX);
	assert_int_equal(shm_job_chunks(&job), SHM_CHUNKS_MAX);
	for (size_t i = 0; i < SHM_CHUNKS_MAX; i++)
		atomic_store(&job.states[i], SHM_CHUNK_FAILED + 1 + (uint32_t)i);
	assert_int_equal(shm_job_left(&job, SHM_CHUNKS_MAX), 0);
	assert_int_equal(shm_job_claim(&job, SHM_CHUNKS_MAX, 1).count, 0);
	assert_int_equal(shm_job_state(&job, 0), SHM_CHUNK_NONE);
	shm_job_close(&job);
	assert_int_equal(shm_job_chunks(&job), 0);
}
