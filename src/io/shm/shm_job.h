/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying that two processes share: one reads the other's memory, and the other, while it waits, writes some of the
 * same bytes to where they belong. Each takes a few chunks after the other, so whoever is slow, or away, has few of
 * them or none. Pure.
 *
 * The job lies in memory that both have. The reader makes it and keeps its own copy of it: of that memory it reads
 * nothing but the state of each chunk. The helper reads a chunk once it has claimed it, and judges it as any stranger's
 * word.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { SHM_CHUNKS_MAX = 32 };

enum shm_chunk_state {
	SHM_CHUNK_NONE,
	SHM_CHUNK_OPEN,
	SHM_CHUNK_CLAIMED,
	SHM_CHUNK_DONE,
	SHM_CHUNK_FAILED /* who had claimed it has not copied it */
};

struct shm_job {
	_Atomic uint32_t count; /* of its chunks; 0: there is none. Helpers look at this line again and again */
	_Alignas(64) _Atomic uint32_t states[SHM_CHUNKS_MAX]; /* enum shm_chunk_state, or nonsense */
	struct shm_job_target {
		struct iovec mark, to; /* in the reader's memory; its helper's kernel reads this */
	} targets[SHM_CHUNKS_MAX];
	struct iovec from[SHM_CHUNKS_MAX]; /* in the helper's; of the same lengths */
};

/* Chunks [first, first + count) of a job. */
struct shm_run {
	size_t first, count;
};

/*
 * Opens a job of n chunks, 1 .. SHM_CHUNKS_MAX, each of one piece here and there. No chunk of the job before is
 * claimed. Before each chunk helpers write to `mark`.
 */
void shm_job_open(struct shm_job *, struct iovec mark, const struct iovec *here, const struct iovec *there, size_t n);
/* How many of its n chunks nobody has. */
size_t shm_job_left(const struct shm_job *, size_t n);
/* The next of its n chunks that nobody has, at most `most` but at least one, which are the caller's then; no chunk: all
 * are taken. */
struct shm_run shm_job_claim(struct shm_job *, size_t n, size_t most);
/* What became of chunks that the caller has claimed. */
void shm_job_settle(struct shm_job *, struct shm_run, bool done);
enum shm_chunk_state shm_job_state(const struct shm_job *, size_t chunk);
/* Helpers that have claimed chunks and have not begun to write them will write nothing. Who has begun goes on. */
void shm_job_cancel(struct shm_job *);
/* Nobody is to look for chunks any more. */
void shm_job_close(struct shm_job *);

/* How many chunks a helper finds, at most SHM_CHUNKS_MAX. */
size_t shm_job_chunks(const struct shm_job *);
/* The sources of chunks that the helper has claimed, copied to from[0 .. run.count). Addresses and lengths may be
 * anything. */
void shm_job_look(const struct shm_job *, struct shm_run, struct iovec *from);
