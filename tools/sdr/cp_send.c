/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end. A file is read once, block by block, into the memory that messages are sent from, and must not
 * become shorter or change meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "sdr/cp.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

#define NONE UINT32_MAX

enum { HASH_BYTES = sizeof(XXH128_canonical_t) };

struct sending {
	struct cp *cp;
	uint32_t file; /* that is open; NONE */
	int fd;
	char path[PATH_MAX];  /* its */
	struct cp_cursor at;  /* what is read next */
	uint32_t digested;    /* entries before have had their digests sent */
	uint64_t read, there; /* messages */
	uint64_t read_bytes;
	uint64_t bytes[CP_DEPTH]; /* of messages */
	bool started[CP_DEPTH];
	struct verbena_sdr_send send[CP_DEPTH];
	uint64_t start_ns;
	struct verbena_sdr_ec_attr said; /* the choice that was printed last */
};

/* ---- files */

static void file_close(struct sending *s)
{
	if (s->file != NONE)
		close(s->fd);
	s->file = NONE;
}

static bool is_changed(const struct cp_entry *e, const struct stat *st)
{
	return !S_ISREG(st->st_mode) || (uint64_t)st->st_size != e->bytes || st->st_mtim.tv_sec != e->seconds ||
	       (uint32_t)st->st_mtim.tv_nsec != e->nanoseconds;
}

static void file_check(const struct sending *s)
{
	struct stat st;

	if (fstat(s->fd, &st))
		die("%s: %s", s->path, strerror(errno));
	if (is_changed(&s->cp->list.entry[s->file], &st))
		die("%s has changed while it was copied", s->path);
}

static void file_open(struct sending *s, uint32_t i)
{
	if (s->file == i)
		return;
	file_close(s);
	if (!cp_list_path(&s->cp->list, i, s->cp->path, s->path, sizeof(s->path)))
		die("%s: %s", s->cp->list.entry[i].name, strerror(ENAMETOOLONG));
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (i ? O_NOFOLLOW : 0));
	if (s->fd < 0)
		die("%s: %s", s->path, strerror(errno));
	s->file = i;
	file_check(s);
}

/* Its hash becomes known. */
static void block_read(struct sending *s, uint32_t i, uint32_t block, uint8_t *p)
{
	struct cp_entry *e = &s->cp->list.entry[i];
	uint64_t bytes = cp_block_bytes(e, block), at = 0;

	file_open(s, i);
	while (at < bytes) {
		ssize_t n = pread(s->fd, p + at, bytes - at, (off_t)((uint64_t)block * CP_BLOCK + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("%s: %s", s->path, strerror(errno));
		if (!n)
			die("%s has changed while it was copied", s->path);
		at += (uint64_t)n;
	}
	cp_entry_hashes(e);
	e->hash[block] = XXH3_128bits(p, bytes);
}

/* ---- what the receiver has */

static void list_tell(const struct cp_list *l)
{
	uint8_t frame[CP_FRAME_MAX];
	size_t at = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		size_t n = cp_entry_encode(l, i, frame + at, sizeof(frame) - at);

		if (!n) {
			cp_say(CP_LIST, frame, at);
			at = 0;
			i--;
			continue;
		}
		at += n;
	}
	cp_say(CP_LIST, frame, at);
	cp_say(CP_LIST, frame, 0);
}

/* Compares one record. Returns its length; 0: it makes no sense. `from` is the first place that may come now. */
static size_t record_compare(struct sending *s, const uint8_t *p, size_t len, struct cp_cursor *from, uint8_t *memory)
{
	struct cp_list *l = &s->cp->list;
	uint32_t entry, first, count;

	if (len < CP_RECORD_LEN)
		return 0;
	entry = get_be32(p);
	first = get_be32(p + 4);
	count = get_be32(p + 8);
	if (entry >= l->count || l->entry[entry].kind != CP_FILE || entry < from->entry ||
	    (entry == from->entry && first < from->block) || first > cp_blocks(&l->entry[entry]) ||
	    count > cp_blocks(&l->entry[entry]) - first || count > (len - CP_RECORD_LEN) / HASH_BYTES)
		return 0;
	for (uint32_t b = first; b < first + count; b++) {
		XXH128_canonical_t theirs;

		memcpy(&theirs, p + CP_RECORD_LEN + (size_t)(b - first) * HASH_BYTES, HASH_BYTES);
		block_read(s, entry, b, memory);
		if (XXH128_isEqual(XXH128_hashFromCanonical(&theirs), l->entry[entry].hash[b]))
			cp_keep(&l->entry[entry], b);
	}
	*from = (struct cp_cursor){entry, first + count};
	return CP_RECORD_LEN + (size_t)count * HASH_BYTES;
}

static size_t kept_write(const struct cp_list *l, const uint8_t *p, uint8_t *keep)
{
	uint32_t entry = get_be32(p), first = get_be32(p + 4), count = get_be32(p + 8);
	size_t at = 0;

	for (uint32_t b = first; b < first + count; b++) {
		if (!cp_kept(&l->entry[entry], b))
			continue;
		put_be32(keep + at, entry);
		put_be32(keep + at + 4, b);
		at += 8;
	}
	return at;
}

static void hashes_compare(struct sending *s, const struct cp_frame *f, struct cp_cursor *from, uint8_t *memory)
{
	uint8_t keep[CP_FRAME_MAX];
	size_t kept = 0;

	for (size_t at = 0, n; at < f->length; at += n) {
		n = record_compare(s, f->payload + at, f->length - at, from, memory);
		if (!n)
			cp_nonsense();
		kept += kept_write(&s->cp->list, f->payload + at, keep + kept);
	}
	cp_say(CP_KEEP, keep, kept);
}

static void compare(struct sending *s)
{
	struct cp_cursor from = {0, 0};
	uint8_t *memory = malloc(CP_BLOCK);
	struct cp_frame f;

	if (!memory)
		die("no memory");
	for (;;) {
		cp_expect(&f, CP_HASHES);
		if (!f.length)
			break;
		hashes_compare(s, &f, &from, memory);
	}
	free(memory);
}

/* ---- messages */

/* Says the digests of files all of which has been read. */
static void digests_tell(struct sending *s)
{
	bool more = cp_cursor_settle(&s->cp->list, &s->at);
	uint32_t end = more ? s->at.entry : s->cp->list.count;

	for (; s->digested < end; s->digested++) {
		const struct cp_entry *e = &s->cp->list.entry[s->digested];
		XXH128_canonical_t text;
		uint8_t frame[4 + sizeof(text)];

		if (e->kind != CP_FILE)
			continue;
		XXH128_canonicalFromHash(&text, cp_digest(e));
		put_be32(frame, s->digested);
		memcpy(frame + 4, &text, sizeof(text));
		cp_say(CP_DIGEST, frame, sizeof(frame));
	}
}

/* False: everything has been read. */
static bool message_read(struct sending *s)
{
	struct cp_cursor from = s->at, at = from;
	uint8_t *p = cp_memory(s->cp, s->read);
	uint64_t bytes = cp_message(&s->cp->list, &s->at);

	for (uint64_t left = bytes; left;) {
		uint64_t n;

		cp_cursor_settle(&s->cp->list, &at);
		n = cp_block_bytes(&s->cp->list.entry[at.entry], at.block);
		block_read(s, at.entry, at.block++, p);
		if (at.block == cp_blocks(&s->cp->list.entry[at.entry]))
			file_check(s);
		p += n;
		left -= n;
	}
	if (!bytes)
		return false;
	s->bytes[s->read % CP_DEPTH] = bytes;
	s->started[s->read % CP_DEPTH] = false;
	s->read_bytes += bytes;
	s->read++;
	digests_tell(s);
	return true;
}

/* Says what is chosen, and why, when it is another code than before. */
static void say_choice(struct sending *s, const struct verbena_sdr_ec_attr *a, const char *reason)
{
	if (a->data == s->said.data && a->parity == s->said.parity)
		return;
	cp_progress_clear(&s->cp->progress);
	if (a->parity)
		printf("%u parities with %u packets, at %.2g %% of loss: %s\n", a->parity, a->data, a->loss * 100,
		       reason);
	else
		printf("parities on demand alone: %s\n", reason);
	s->said = *a;
}

static bool message_send(struct sending *s, uint64_t n)
{
	struct verbena_sdr_block b = {
		.address = cp_memory(s->cp, n), .length = s->bytes[n % CP_DEPTH], .lkey = s->cp->lkey};
	uint64_t behind = s->cp->bytes - s->read_bytes;
	struct verbena_sdr_ec_attr attr = {0};
	const char *reason;
	int r = scheme_send(s->cp->qp, &s->cp->way, &b, behind, &attr, &reason, &s->send[n % CP_DEPTH]);

	if (r == VERBENA_SDR_ERROR)
		die("sending: %s", strerror(errno));
	if (!r && attr.data)
		say_choice(s, &attr, reason);
	s->started[n % CP_DEPTH] = !r;
	return !r;
}

/* One message is read before it is sent, and there may be no credit for it yet. */
static void messages_send(struct sending *s)
{
	for (;;) {
		if (s->read > s->there && !s->started[(s->read - 1) % CP_DEPTH] && !message_send(s, s->read - 1))
			return;
		if (s->read - s->there == CP_DEPTH || !message_read(s))
			return;
	}
}

static bool messages_poll(struct sending *s)
{
	bool any = false, done = true;

	while (s->there < s->read && s->started[s->there % CP_DEPTH] && done) {
		if (scheme_poll(&s->cp->way, &s->send[s->there % CP_DEPTH], &done))
			die("sending: %s", errno == ETIMEDOUT ? "the peer does not answer any more" : strerror(errno));
		if (!done)
			break;
		s->cp->done_bytes += s->bytes[s->there++ % CP_DEPTH];
		if (s->there > CP_DEPTH)
			scheme_learn(&s->cp->way, s->cp->done_bytes, now_ns() - s->start_ns);
		any = true;
	}
	return any;
}

/* Of packets, as far as the receiver has said; Selective Repeat knows how many it has sent twice. */
static double loss_seen(const struct sending *s)
{
	struct verbena_sdr_stats st;
	uint64_t needed;

	if (verbena_sdr_qp_stats_get(s->cp->qp, &st))
		return -1;
	if (st.ec_pieces)
		return (double)st.ec_lost / (double)st.ec_pieces;
	needed = s->cp->plan[PLAN_MTU] ? s->cp->done_bytes / s->cp->plan[PLAN_MTU] : 0;
	if (scheme_numbers(s->cp->way.scheme) == 2 || st.sent < 1000 || !needed || s->there < s->read)
		return -1;
	return st.sent > needed ? 1 - (double)needed / (double)st.sent : 0;
}

/* The receiver says nothing meanwhile, unless it fails. */
static void send_all(struct sending *s)
{
	struct cp_frame f;
	bool busy;

	s->start_ns = now_ns();
	digests_tell(s);
	do {
		busy = verbena_sdr_progress(s->cp->ctx);
		messages_send(s);
		busy |= messages_poll(s);
		cp_progress_show(&s->cp->progress, s->cp->done_bytes, loss_seen(s));
		if (!busy && cp_hear(&f, 1))
			cp_nonsense();
	} while (s->there < s->read || s->cp->done_bytes < s->cp->bytes);
	cp_progress_clear(&s->cp->progress);
}

/* The receiver finishes files and folders, which may take it a while. */
static void verdict_hear(struct sending *s)
{
	struct cp_frame f;

	while (!cp_hear(&f, 1))
		verbena_sdr_progress(s->cp->ctx);
	if (f.type != CP_VERDICT || f.length != 4)
		cp_nonsense();
	if (get_be32(f.payload))
		die("%u files have arrived, but not as they were sent", get_be32(f.payload));
}

/* What the codes over the tail were chosen by in the end. */
static void say_link(const struct cp *cp)
{
	const struct scheme_way *w = &cp->way;
	uint64_t mbps = w->rate_mbps ? w->rate_mbps : w->seen_mbps;
	double loss;

	if (w->scheme != SCHEME_TAIL || verbena_sdr_tail_loss_get(cp->qp, &loss))
		return;
	printf("in the end the codes reckoned with a loss of %.2g %%", loss * 100);
	if (mbps)
		printf(" and %llu Mbit/s, as %s\n", (unsigned long long)mbps, w->rate_mbps ? "told" : "measured");
	else
		printf("\n");
}

int cp_send(struct cp *cp)
{
	static struct sending s;
	struct verbena_sdr_stats stats;
	char kept[16];
	uint64_t ns;

	s = (struct sending){.cp = cp, .file = NONE};
	list_tell(&cp->list);
	compare(&s);
	cp_connect(cp);
	if (cp->bytes < cp->list.bytes)
		printf("%s are there already\n", cp_bytes_text(cp->list.bytes - cp->bytes, kept));
	send_all(&s);
	ns = now_ns() - s.start_ns;
	cp_say(CP_SENT, "", 0);
	verdict_hear(&s);
	verbena_sdr_qp_stats_get(cp->qp, &stats);
	printf("%llu bytes in %.3f s, %.3f Gbit/s, %llu packets, a round trip of %.1f ms\n",
	       (unsigned long long)cp->bytes, (double)ns / 1e9, (double)cp->bytes * 8 / (double)(ns ? ns : 1),
	       (unsigned long long)stats.sent, (double)cp->way.rtt_ns / 1e6);
	say_link(cp);
	file_close(&s);
	cp_close(cp);
	return 0;
}
