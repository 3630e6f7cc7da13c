/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What packets leave out: how it is read in the memory of the process that sent them. Who lends takes lots back without
 * a word (base/loan.h). So they are looked at before, lest memory that the program has again is read to a place in a
 * region, and afterwards, when it has changed meanwhile, and what came is dropped.
 */
#include <assert.h>
#include <string.h>
#include <sys/uio.h>

#include "io/shm/shm_state.h"

bool shm_lay_out(struct shm *s, struct shm_train *t, uint8_t *to)
{
	struct far_train train = {.here = s->far.here_count, .there = s->far.there_count};
	uint32_t bytes = t->len - SHM_FAR_HEAD_BYTES;

	if (t->len <= SHM_FAR_HEAD_BYTES || t->len > sizeof(s->description))
		return false;
	memcpy(&s->description, to, t->len);
	train.lot = s->description.lot;
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

/* At most PKT_TRAIN_MAX packets. */
static void ask(struct shm *s, struct pkt *pkts, size_t first, size_t far, size_t n)
{
	uint8_t *spots[PKT_TRAIN_MAX];
	size_t known, piece = s->placed;

	for (size_t i = first < far ? far : first; i < n; i++, piece++) {
		pkts[i].far_at = (uint16_t)((uint8_t *)s->far.here[piece].iov_base - pkts[i].data);
		pkts[i].far_bytes = (uint16_t)s->far.here[piece].iov_len;
	}
	known = first + s->placer.place(s->placer.ctx, pkts + first, n - first, !s->asked, spots);
	s->asked = true;
	s->placing = known == n;
	for (size_t i = first < far ? far : first; i < n; i++) {
		struct pkt_far place;

		if (i >= known) {
			pkts[i].far_at = pkts[i].far_bytes = 0;
			continue;
		}
		place = (struct pkt_far){.from = spots[i - first]};
		memcpy(pkts[i].data + pkts[i].far_at, &place, sizeof(place));
		s->far.here[s->placed++].iov_base = spots[i - first];
	}
}

void shm_ask_for_places(struct shm *s, struct pkt *pkts, size_t first, size_t far, size_t n)
{
	for (size_t end; first < n && s->placing; first = end) {
		end = n - first < PKT_TRAIN_MAX ? n : first + PKT_TRAIN_MAX;
		ask(s, pkts, first, far, end);
	}
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
static bool placed_may_be_read(const struct shm *s, uint64_t taken_back)
{
	for (size_t i = 0; i < s->far_count && s->far_trains[i].here < s->placed; i++) {
		if (s->far_trains[i].lot <= taken_back)
			return false;
	}
	return true;
}

size_t shm_fetch(struct shm *s, struct ring_in *r, struct pkt *pkts, size_t n)
{
	size_t handed_out = n;
	bool all;

	if (!placed_may_be_read(s, shm_taken_back(&r->taker)))
		forget_places(s, pkts);
	all = read_trains(s, r, 0, s->far_count);
	/* Memory of this process may be gone, and only the nic can say so. */
	if (!all && s->placed) {
		forget_places(s, pkts);
		all = read_trains(s, r, 0, s->far_count);
	}
	for (size_t i = s->far_count; i-- > 0;) {
		const struct far_train *t = &s->far_trains[i];

		if ((all || (s->far_count > 1 && read_trains(s, r, i, i + 1))) && t->lot > shm_taken_back(&r->taker))
			continue;
		s->config.counters->shm_far_failed++;
		if (t->packets_end == handed_out)
			s->left = 0;
		memmove(pkts + t->packet, pkts + t->packets_end, (n - t->packets_end) * sizeof(*pkts));
		n -= t->packets_end - t->packet;
	}
	shm_give_back(&r->taker, s->far_trains[s->far_count - 1].lot);
	return n;
}
