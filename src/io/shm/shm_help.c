/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process helps another one to read its memory: two processors copy more than one, and each has its own caches. A
 * job (shm_job.h) lies in the ring. A process that polls and finds no packets looks for one. If it does not poll, or
 * sleeps, the reader copies everything alone.
 *
 * Who helps gives only what packets in that ring have left out, unless it was taken back, so nobody can ask for other
 * memory, and writes it to the process that the ring's other end is proved to be in, if that is still there
 * (shm_mark.h).
 */
#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "io/clock.h"
#include "io/shm/shm_state.h"

enum {
	CHUNK_BYTES = 64 << 10,
	HELP_CHUNKS = 2,           /* claimed at a time: whoever has claimed some is waited for */
	JOB_BYTES_MIN = 256 << 10, /* less is read before a helper comes */
	WAIT_NS_MAX = 500000000,   /* copying takes 0.1 ms, if its process runs */
	ASK_NS = 1000000,          /* after that, and each time again, whether it lives is asked */
	LOOKS_PER_YIELD = 100
};

/* ---- the end that is read ---- */

void shm_lend(struct shm *s, struct ring_out *r, const struct pkt *pkts, size_t n)
{
	unsigned slot = (unsigned)(r - s->out);

	for (size_t i = 0; i < n; i++) {
		struct lent *last = &r->lent[r->lent_last];
		struct pkt_far far;
		uintptr_t from;

		memcpy(&far, pkts[i].data + pkts[i].far_at, sizeof(far));
		from = (uintptr_t)far.from;
		if (from < last->from || from > last->end || last->first <= s->loans[slot].taken_back) {
			r->lent_last = (r->lent_last + 1) % SHM_LENT_MAX;
			last = &r->lent[r->lent_last];
			*last = (struct lent){from, from, far.lot, far.lot};
		}
		if (from + pkts[i].far_bytes > last->end)
			last->end = from + pkts[i].far_bytes;
		last->last = far.lot;
	}
	s->lending[slot / 64] |= UINT64_C(1) << slot % 64;
}

static bool is_lent(const struct ring_out *r, uint64_t taken_back, uintptr_t from, size_t bytes)
{
	for (size_t i = 0; i < SHM_LENT_MAX; i++) {
		const struct lent *l = &r->lent[i];

		if (l->first > taken_back && from >= l->from && from < l->end && bytes <= l->end - from)
			return true;
	}
	return false;
}

/* Whether the process that takes from that ring is the one whose ring comes in, and may be written to. Looks once. */
static bool may_help(struct shm *s, unsigned slot)
{
	struct ring_out *r = &s->out[slot];
	struct ring_in *back = &s->in[slot];

	if (!back->memory || back->mine)
		return false;
	if (r->helped_pid != back->process.pid) {
		const struct shm_process taker = shm_process_of(back->process.pid, &r->memory->taker_probe);

		r->helped_pid = taker.pid;
		r->helps = shm_process_is(&taker);
	}
	return r->helps;
}

/* Copies chunks that it has claimed. */
static bool give(const struct shm *s, unsigned slot, struct shm_run run)
{
	const struct ring_out *r = &s->out[slot];
	const struct shm_job *job = &r->memory->job;
	uint64_t nothing = 0;
	struct iovec from[HELP_CHUNKS], pieces[2 * HELP_CHUNKS];
	size_t bytes = 0;

	shm_job_look(job, run, from);
	for (size_t i = 0; i < run.count; i++) {
		if (!is_lent(r, s->loans[slot].taken_back, (uintptr_t)from[i].iov_base, from[i].iov_len))
			return false;
		pieces[2 * i] = (struct iovec){&nothing, sizeof(nothing)};
		pieces[2 * i + 1] = from[i];
		bytes += sizeof(nothing) + from[i].iov_len;
	}
	return process_vm_writev(s->in[slot].process.pid, pieces, 2 * run.count, &job->targets[run.first].mark,
				 2 * run.count, 0) == (ssize_t)bytes;
}

/* Whether something may still be read that was lent to that slot; one of `lending`, which it is no more if not. */
static bool still_lends(struct shm *s, unsigned slot)
{
	struct ring_out *r = &s->out[slot];

	if (loan_is_out(&s->loans[slot], r->lent[r->lent_last].last))
		return true;
	memset(r->lent, 0, sizeof(r->lent));
	s->lending[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	return false;
}

static bool help(struct shm *s, unsigned slot)
{
	struct shm_job *job = &s->out[slot].memory->job;
	size_t n = shm_job_chunks(job);
	struct shm_run run;
	bool given;

	if (!still_lends(s, slot) || !n || !may_help(s, slot))
		return false;
	run = shm_job_claim(job, n, HELP_CHUNKS);
	if (!run.count)
		return false;
	given = give(s, slot, run);
	shm_job_settle(job, run, given);
	s->config.counters->shm_helped += given ? run.count : 0;
	return true;
}

bool shm_help(struct shm *s)
{
	bool helped = false;

	for (unsigned i = 0; i < 2; i++) {
		for (uint64_t left = s->lending[i]; left; left &= left - 1)
			helped |= help(s, i * 64 + (unsigned)__builtin_ctzll(left));
	}
	return helped;
}

/* ---- the end that reads ---- */

/* Cuts pieces into chunks, each of one piece here and there. Their number; 0: they would be too many. */
static size_t cut(struct iovec *here, struct iovec *there, const struct iovec *to, const struct iovec *from,
		  size_t bytes)
{
	size_t n = 0, to_done = 0, from_done = 0, len;

	for (; bytes; bytes -= len, n++) {
		if (n == SHM_CHUNKS_MAX)
			return 0;
		len = to->iov_len - to_done;
		len = len < from->iov_len - from_done ? len : from->iov_len - from_done;
		len = len < CHUNK_BYTES ? len : CHUNK_BYTES;
		here[n] = (struct iovec){(uint8_t *)to->iov_base + to_done, len};
		there[n] = (struct iovec){(uint8_t *)from->iov_base + from_done, len};
		to_done += len;
		from_done += len;
		if (to_done == to->iov_len) {
			to++;
			to_done = 0;
		}
		if (from_done == from->iov_len) {
			from++;
			from_done = 0;
		}
	}
	return n;
}

static bool read_chunks(struct ring_in *r, const struct iovec *here, const struct iovec *there, struct shm_run run)
{
	struct iovec to[1 + SHM_CHUNKS_MAX], from[1 + SHM_CHUNKS_MAX];
	size_t bytes = 0;

	for (size_t i = 0; i < run.count; i++) {
		to[1 + i] = here[run.first + i];
		from[1 + i] = there[run.first + i];
		bytes += to[1 + i].iov_len;
	}
	return shm_read(r, (struct shm_pieces){to, 1 + run.count}, (struct shm_pieces){from, 1 + run.count}, bytes);
}

/* A process that was killed while it copied settles nothing any more. */
static bool is_dead(const struct shm *s, unsigned slot)
{
	return s->config.lives && !s->config.lives(s->config.lives_ctx, slot);
}

static bool some_claimed(const struct shm_job *job, size_t chunks)
{
	for (size_t i = 0; i < chunks; i++) {
		if (shm_job_state(job, i) == SHM_CHUNK_CLAIMED)
			return true;
	}
	return false;
}

/* Waits until no chunk is claimed: the process with that slot settles them, unless it is dead. False: that took too
 * long. */
static bool wait_for_claimed(const struct shm *s, unsigned slot, const struct shm_job *job, size_t chunks)
{
	uint64_t begin_ns = 0, ask_ns = 0, now_ns;

	for (unsigned looks = 1; some_claimed(job, chunks); looks++) {
		if (looks % LOOKS_PER_YIELD)
			continue;
		now_ns = clock_now_ns();
		if (!begin_ns) {
			begin_ns = now_ns;
			ask_ns = now_ns + ASK_NS;
		} else if (now_ns - begin_ns > WAIT_NS_MAX) {
			return false;
		} else if (now_ns > ask_ns) {
			if (is_dead(s, slot))
				return true;
			ask_ns = now_ns + ASK_NS;
		}
		sched_yield();
	}
	return true;
}

/*
 * Waits until the helper has settled what it has claimed. A process that does not for so long may have been stopped
 * before it began: then it is kept from beginning. It is not relied on any more.
 */
static void wait_for_helper(struct shm *s, struct ring_in *r, size_t chunks)
{
	struct shm_job *job = &r->memory->job;
	unsigned slot = (unsigned)(r - s->in);

	if (wait_for_claimed(s, slot, job, chunks))
		return;
	shm_job_cancel(job);
	wait_for_claimed(s, slot, job, chunks);
	r->unhelped = true;
}

enum shm_help_result shm_read_with_help(struct shm *s, struct ring_in *r, const struct iovec *to,
					const struct iovec *from, size_t bytes)
{
	struct iovec here[SHM_CHUNKS_MAX], there[SHM_CHUNKS_MAX];
	struct shm_job *job = &r->memory->job;
	bool all = true;
	struct shm_run run;
	size_t n;

	if (bytes < JOB_BYTES_MIN || r->mine || r->unhelped || !s->out[r - s->in].memory)
		return SHM_UNHELPED;
	n = cut(here, there, to, from, bytes);
	if (!n)
		return SHM_UNHELPED;
	shm_job_open(job, (struct iovec){&s->mark->written, sizeof(s->mark->written)}, here, there, n);
	/* Half of the rest each time: few calls if nobody helps. No more than all of it, if somebody opens chunks
	 * again. */
	for (size_t claimed = 0; claimed < n; claimed += run.count) {
		run = shm_job_claim(job, n, (shm_job_left(job, n) + 1) / 2);
		if (!run.count)
			break;
		all = all && read_chunks(r, here, there, run);
		shm_job_settle(job, run, all);
	}
	wait_for_helper(s, r, n);
	for (size_t i = 0; i < n; i++) {
		if (shm_job_state(job, i) != SHM_CHUNK_DONE)
			all = all && read_chunks(r, here, there, (struct shm_run){i, 1});
	}
	shm_job_close(job);
	return all ? SHM_ALL : SHM_NOT_ALL;
}
