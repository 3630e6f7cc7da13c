/* SPDX-License-Identifier: BSD-2-Clause */
/* See shm_job.h. */
#include "io/shm/shm_job.h"

#include <assert.h>

void shm_job_open(struct shm_job *j, struct iovec mark, const struct iovec *here, const struct iovec *there, size_t n)
{
	assert(n && n <= SHM_CHUNKS_MAX);
	for (size_t i = 0; i < n; i++) {
		j->targets[i] = (struct shm_job_target){mark, here[i]};
		j->from[i] = there[i];
		atomic_store_explicit(&j->states[i], SHM_CHUNK_OPEN, memory_order_release);
	}
	atomic_store_explicit(&j->count, (uint32_t)n, memory_order_release);
}

static bool is_open(const struct shm_job *j, size_t chunk)
{
	return atomic_load_explicit(&j->states[chunk], memory_order_relaxed) == SHM_CHUNK_OPEN;
}

size_t shm_job_left(const struct shm_job *j, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		left += is_open(j, i);
	return left;
}

static bool claim(struct shm_job *j, size_t chunk)
{
	uint32_t open = SHM_CHUNK_OPEN;

	return is_open(j, chunk) && atomic_compare_exchange_strong_explicit(&j->states[chunk], &open, SHM_CHUNK_CLAIMED,
									    memory_order_acquire, memory_order_relaxed);
}

struct shm_run shm_job_claim(struct shm_job *j, size_t n, size_t most)
{
	struct shm_run run = {0};

	while (run.first < n && !claim(j, run.first))
		run.first++;
	if (run.first == n)
		return run;
	do
		run.count++;
	while (run.count < most && run.first + run.count < n && claim(j, run.first + run.count));
	return run;
}

void shm_job_settle(struct shm_job *j, struct shm_run run, bool done)
{
	for (size_t i = run.first; i < run.first + run.count; i++)
		atomic_store_explicit(&j->states[i], done ? SHM_CHUNK_DONE : SHM_CHUNK_FAILED, memory_order_release);
}

enum shm_chunk_state shm_job_state(const struct shm_job *j, size_t chunk)
{
	uint32_t state = atomic_load_explicit(&j->states[chunk], memory_order_acquire);

	return state <= SHM_CHUNK_FAILED ? (enum shm_chunk_state)state : SHM_CHUNK_NONE;
}

void shm_job_cancel(struct shm_job *j)
{
	for (size_t i = 0; i < SHM_CHUNKS_MAX; i++)
		__atomic_store_n(&j->targets[i].to.iov_len, 0, __ATOMIC_SEQ_CST);
}

void shm_job_close(struct shm_job *j)
{
	atomic_store_explicit(&j->count, 0, memory_order_relaxed);
}

size_t shm_job_chunks(const struct shm_job *j)
{
	uint32_t n = atomic_load_explicit(&j->count, memory_order_acquire);

	return n < SHM_CHUNKS_MAX ? n : SHM_CHUNKS_MAX;
}

void shm_job_look(const struct shm_job *j, struct shm_run run, struct iovec *from)
{
	for (size_t i = 0; i < run.count; i++)
		from[i] = ((const volatile struct shm_job *)j)->from[run.first + i];
}
