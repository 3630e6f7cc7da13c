/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What packets leave out: how it is read in the memory of the process that sent them, and how that process takes its
 * memory back.
 *
 * Who takes it back tells its count of revocations to all rings, and then waits for those that read at this moment; who
 * reads says so first, and then looks at the count. So one of the two sees the other, and memory that the program uses
 * again is never read to a place in a region.
 */
#include <assert.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "io/shm_state.h"

enum {
	WAIT_NS_MAX = 500000000, /* reading takes 0.1 ms, if its process runs */
	ASK_NS = 1000000,        /* after that, and each time again, whether it lives is asked */
	LOOKS_PER_YIELD = 100
};

/* ---- the end that is read ---- */

bool shm_reads(const struct ring_out *r)
{
	return !r->held_up && shm_is_read(&r->putter);
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A process that was killed while it read does not say that it has stopped. */
static bool is_dead(const struct shm *s, unsigned slot)
{
	return s->config.lives && !s->config.lives(s->config.lives_ctx, slot);
}

bool shm_wait_while(const struct shm *s, unsigned slot, bool (*is)(const void *ctx), const void *ctx)
{
	uint64_t begin_ns = 0, ask_ns = 0, now_ns;

	for (unsigned looks = 1; is(ctx); looks++) {
		if (looks % LOOKS_PER_YIELD)
			continue;
		now_ns = clock_ns();
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

static bool is_reading(const void *ctx)
{
	return shm_is_reading(ctx);
}

bool shm_wait_for_reader(const struct shm *s, unsigned slot)
{
	return shm_wait_while(s, slot, is_reading, &s->out[slot].putter);
}

void shm_revoke(struct io *io, uint64_t revocations)
{
	struct shm *s = (struct shm *)io;

	s->revocations = revocations;
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		if (s->out[i].memory) {
			shm_set_revocations(&s->out[i].putter, revocations);
			shm_forget_lent(&s->out[i]);
		}
	}
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		struct ring_out *r = &s->out[i];

		if (!r->memory || r->held_up || shm_wait_for_reader(s, i))
			continue;
		/* Its process was stopped while it read, or lies. */
		r->held_up = true;
		s->reach.readers[i / 64] &= ~(UINT64_C(1) << i % 64);
		s->reach_changed = true;
	}
}

bool shm_still_lends(struct shm *s, unsigned slot)
{
	struct ring_out *r = &s->out[slot];

	if (!shm_spill_is_empty(r->spill) || !shm_is_empty(&r->putter))
		return true;
	shm_forget_lent(r);
	s->lending[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	return false;
}

bool shm_is_taken(struct io *io)
{
	struct shm *s = (struct shm *)io;
	bool all = true;

	for (unsigned i = 0; i < 2; i++) {
		for (uint64_t left = s->lending[i]; left; left &= left - 1)
			all &= !shm_still_lends(s, i * 64 + (unsigned)__builtin_ctzll(left));
	}
	return all;
}

/* ---- the end that reads ---- */

bool shm_lay_out(struct shm *s, struct shm_train *t, uint8_t *to)
{
	struct far_train train = {.here = s->far.here_count, .there = s->far.there_count};
	uint32_t bytes = t->len - SHM_FAR_HEAD_BYTES;

	if (t->len <= SHM_FAR_HEAD_BYTES || t->len > sizeof(s->description))
		return false;
	memcpy(&s->description, to, t->len);
	train.revocations = s->description.revocations;
	t->len = shm_far_lay_out(s->description.packets, bytes, t->segment, to, SHM_PLACED_BYTES - s->used, &s->far);
	s->far_trains[s->far_count] = train;
	return t->len;
}

void shm_forget_last(struct shm *s)
{
	s->far.here_count = s->far_trains[s->far_count].here;
	s->far.there_count = s->far_trains[s->far_count].there;
}

/* Pieces that lie behind each other become one: each costs the kernel a look-up of its pages. Their number. */
static size_t join(struct iovec *to, const struct iovec *from, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		struct iovec *last = count ? &to[count - 1] : NULL;

		if (last && (uint8_t *)last->iov_base + last->iov_len == from[i].iov_base)
			last->iov_len += from[i].iov_len;
		else
			to[count++] = from[i];
	}
	return count;
}

bool shm_read(struct ring_in *r, struct shm_pieces to, struct shm_pieces from, size_t bytes)
{
	ssize_t n = shm_process_read(&r->process, to.pieces, to.count, from.pieces, from.count);

	if (n < 0)
		shm_accept(&r->taker, false);
	return n == (ssize_t)bytes;
}

/* Reads what the trains [first, end) lack. False: not all of it is there. */
static bool read_trains(struct shm *s, struct ring_in *r, size_t first, size_t end)
{
	struct iovec to[1 + SHM_FAR_PIECES_MAX], from[1 + SHM_FAR_PIECES_MAX];
	const struct shm_far *f = &s->far;
	size_t here = s->far_trains[first].here, there = s->far_trains[first].there;
	size_t here_end = end < s->far_count ? s->far_trains[end].here : f->here_count;
	size_t there_end = end < s->far_count ? s->far_trains[end].there : f->there_count;
	size_t bytes = 0, to_count, from_count;
	enum shm_help_result result;

	for (size_t i = here; i < here_end; i++)
		bytes += f->here[i].iov_len;
	to_count = join(to + 1, f->here + here, here_end - here);
	from_count = join(from + 1, f->there + there, there_end - there);
	result = shm_read_with_help(s, r, to + 1, from + 1, bytes);
	if (result != SHM_UNHELPED)
		return result == SHM_ALL;
	return shm_read(r, (struct shm_pieces){to, 1 + to_count}, (struct shm_pieces){from, 1 + from_count}, bytes);
}

void shm_ask_for_places(struct shm *s, struct pkt *pkts)
{
	const struct far_train *t = &s->far_trains[s->far_count - 1];

	for (size_t i = t->packet; i < t->packets_end && s->placing; i++) {
		struct iovec *here = &s->far.here[s->placed];
		uint32_t at = (uint32_t)((uint8_t *)here->iov_base - pkts[i].data);
		struct pkt_far far = {
			.from = s->placer.place(s->placer.ctx, &pkts[i], at, (uint32_t)here->iov_len, !s->placed)};

		s->placing = far.from;
		if (!s->placing)
			break;
		memcpy(pkts[i].data + at, &far, sizeof(far));
		pkts[i].far_at = (uint16_t)at;
		pkts[i].far_bytes = (uint16_t)here->iov_len;
		here->iov_base = (void *)(uintptr_t)far.from;
		s->placed++;
	}
}

void shm_ask_to_pass(struct shm *s, const struct pkt *pkts, size_t first, size_t n)
{
	for (size_t i = first; i < n && s->placing; i++)
		s->placing = s->placer.passes && s->placer.passes(s->placer.ctx, &pkts[i]);
}

/* Forgets the places: then all payload is read into the packets. */
static void forget_places(struct shm *s, struct pkt *pkts)
{
	for (const struct far_train *t = s->far_trains; s->placed && t < s->far_trains + s->far_count; t++) {
		for (size_t i = t->packet; i < t->packets_end && pkts[i].far_bytes; i++) {
			s->far.here[t->here + i - t->packet].iov_base = pkts[i].data + pkts[i].far_at;
			pkts[i].far_at = pkts[i].far_bytes = 0;
		}
	}
	s->placed = 0;
}

/* Whether what the placed packets left out may be read. */
static bool placed_may_be_read(const struct shm *s, uint64_t revocations)
{
	for (size_t i = 0; i < s->far_count && s->far_trains[i].here < s->placed; i++) {
		if (s->far_trains[i].revocations != revocations)
			return false;
	}
	return true;
}

size_t shm_fetch(struct shm *s, struct ring_in *r, struct pkt *pkts, size_t n)
{
	size_t handed_out = n;
	bool all;

	shm_begin_reading(&r->taker);
	if (!placed_may_be_read(s, shm_revocations(&r->taker)))
		forget_places(s, pkts);
	all = read_trains(s, r, 0, s->far_count);
	/* Memory here may be what is missing, and only the nic can say so. */
	if (!all && s->placed) {
		forget_places(s, pkts);
		all = read_trains(s, r, 0, s->far_count);
	}
	for (size_t i = s->far_count; i-- > 0;) {
		const struct far_train *t = &s->far_trains[i];

		if ((all || (s->far_count > 1 && read_trains(s, r, i, i + 1))) &&
		    shm_revocations(&r->taker) == t->revocations)
			continue;
		s->config.counters->shm_far_failed++;
		if (t->packets_end == handed_out)
			s->left = 0;
		memmove(pkts + t->packet, pkts + t->packets_end, (n - t->packets_end) * sizeof(*pkts));
		n -= t->packets_end - t->packet;
	}
	shm_end_reading(&r->taker);
	return n;
}
