/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end. A file is read once, block by block, into the memory that messages are sent from. One that becomes
 * shorter, changes, or cannot be read meanwhile is left out: zeroes take its place.
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
#include "sdr/cp_items.h"
#include "sdr/cp_summary.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

#define NONE UINT32_MAX

enum { HASH_BYTES = sizeof(XXH128_canonical_t) };

struct sending {
	struct cp *cp;
	struct cp_out out;
	uint32_t file; /* that is open; NONE */
	int fd;
	char path[PATH_MAX]; /* its */
	struct cp_cursor at; /* what is read next */
};

/* ---- files */

static void file_close(struct sending *s)
{
	if (s->file != NONE && s->fd >= 0)
		close(s->fd);
	s->file = NONE;
}

static bool is_changed(const struct cp_entry *e, const struct stat *st)
{
	return !S_ISREG(st->st_mode) || (uint64_t)st->st_size != e->bytes || st->st_mtim.tv_sec != e->seconds ||
	       (uint32_t)st->st_mtim.tv_nsec != e->nanoseconds;
}

/* What of it has arrived gets no name. */
static void file_spoil(struct sending *s, uint32_t i, const char *why)
{
	struct cp_entry *e = &s->cp->list.entry[i];
	uint8_t frame[4];

	if (e->bad)
		return;
	e->bad = true;
	s->cp->left_out++;
	cp_progress_clear(&s->cp->progress);
	fprintf(stderr, "sdr_cp: %s: %s: left out\n", s->path, why);
	put_be32(frame, i);
	cp_say(CP_BAD, frame, sizeof(frame));
}

static void file_check(struct sending *s)
{
	struct stat st;

	if (s->fd < 0 || s->cp->list.entry[s->file].bad)
		return;
	if (fstat(s->fd, &st))
		file_spoil(s, s->file, strerror(errno));
	else if (is_changed(&s->cp->list.entry[s->file], &st))
		file_spoil(s, s->file, "it has changed while it was copied");
}

static void file_open(struct sending *s, uint32_t i)
{
	if (s->file == i)
		return;
	file_close(s);
	s->file = i;
	s->fd = -1;
	if (!cp_list_path(&s->cp->list, i, s->path, sizeof(s->path)))
		snprintf(s->path, sizeof(s->path), "%s", s->cp->list.entry[i].name);
	else
		s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (i ? O_NOFOLLOW : 0));
	if (s->fd < 0)
		file_spoil(s, i, strerror(errno));
	file_check(s);
}

/* Zeroes follow where a file ends too early. */
static void block_read(struct sending *s, uint32_t i, uint32_t block, uint8_t *p)
{
	struct cp_entry *e = &s->cp->list.entry[i];
	uint64_t bytes = cp_block_bytes(e, block), at = 0;

	file_open(s, i);
	while (at < bytes && !e->bad) {
		ssize_t n = pread(s->fd, p + at, bytes - at, (off_t)((uint64_t)block * CP_BLOCK + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			file_spoil(s, i, n ? strerror(errno) : "it has changed while it was copied");
		at += n > 0 ? (uint64_t)n : 0;
	}
	memset(p + at, 0, bytes - at);
}

/* ---- the list */

static uint64_t list_bytes(const struct cp_list *l)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < l->count; i++)
		bytes += cp_entry_length(&l->entry[i]);
	return bytes;
}

/* The list as bytes, of which the next are asked for. An entry may be in two messages. */
struct list_reading {
	uint32_t next;
	size_t at, len; /* in entry */
	uint8_t entry[CP_ENTRY_MAX];
};

static uint64_t list_read(struct list_reading *r, const struct cp_list *l, uint8_t *p, uint64_t room)
{
	uint64_t done = 0;

	while (done < room) {
		size_t n;

		if (r->at == r->len && r->next == l->count)
			break;
		if (r->at == r->len) {
			r->len = cp_entry_encode(l, r->next++, r->entry);
			r->at = 0;
		}
		n = r->len - r->at < room - done ? r->len - r->at : (size_t)(room - done);
		memcpy(p + done, r->entry + r->at, n);
		r->at += n;
		done += n;
	}
	return done;
}

static void turn(struct sending *s)
{
	struct cp_frame f;

	if (cp_out_turn(&s->out))
		return;
	/* The receiver says nothing meanwhile, unless it fails. */
	if (cp_hear(&f))
		cp_nonsense();
	cp_rest(s->cp, true);
}

static void list_send(struct sending *s)
{
	static struct list_reading reading;
	const struct cp_list *l = &s->cp->list;
	uint8_t frame[12], *p;
	uint64_t n = 1;

	s->out.all_bytes = s->cp->list_bytes = list_bytes(l);
	put_be32(frame, l->count);
	put_be64(frame + 4, s->out.all_bytes);
	cp_say(CP_LIST, frame, sizeof(frame));
	while (n || !cp_out_idle(&s->out)) {
		while (n && (p = cp_out_memory(&s->out))) {
			n = list_read(&reading, l, p, CP_MESSAGE);
			if (n)
				cp_out_add(&s->out, n);
		}
		turn(s);
	}
	cp_say(CP_SENT, "", 0);
}

/* ---- what the receiver has */

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
		if (XXH128_isEqual(XXH128_hashFromCanonical(&theirs),
				   XXH3_128bits(memory, cp_block_bytes(&l->entry[entry], b))))
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

static void same_hear(struct cp_list *l, const struct cp_frame *f)
{
	if (f->length % 8)
		cp_nonsense();
	for (size_t at = 0; at < f->length; at += 8) {
		uint32_t entry = get_be32(f->payload + at), count = get_be32(f->payload + at + 4);

		if (entry > l->count || count > l->count - entry)
			cp_nonsense();
		for (uint32_t i = entry; i < entry + count; i++) {
			if (l->entry[i].kind == CP_FILE)
				cp_keep_all(&l->entry[i]);
		}
	}
}

/* True: it was one of those. */
static bool item_hear(struct sending *s, const struct cp_frame *f)
{
	if (f->type != CP_ITEM)
		return false;
	cp_item_hear(s->cp, f);
	return true;
}

static void compare(struct sending *s)
{
	struct cp_cursor from = {0, 0};
	uint8_t *memory = malloc(CP_BLOCK);
	struct cp_frame f;

	if (!memory)
		die("no memory");
	for (;;) {
		cp_await(&f);
		if (item_hear(s, &f))
			continue;
		if (f.type == CP_SAME)
			same_hear(&s->cp->list, &f);
		else if (f.type != CP_HASHES)
			cp_nonsense();
		else if (!f.length)
			break;
		else
			hashes_compare(s, &f, &from, memory);
	}
	free(memory);
}

/* ---- holes: blocks of a file in which there is no data */

struct holes {
	uint8_t frame[CP_FRAME_MAX];
	size_t at;
};

static void hole_add(struct holes *h, uint32_t entry, uint32_t block)
{
	uint8_t *last = h->frame + h->at - 12;

	if (h->at && get_be32(last) == entry && get_be32(last + 4) + get_be32(last + 8) == block) {
		put_be32(last + 8, get_be32(last + 8) + 1);
		return;
	}
	if (h->at + 12 > sizeof(h->frame)) {
		cp_say(CP_HOLES, h->frame, h->at);
		h->at = 0;
	}
	put_be32(h->frame + h->at, entry);
	put_be32(h->frame + h->at + 4, block);
	put_be32(h->frame + h->at + 8, 1);
	h->at += 12;
}

/* What the receiver has stays as it is there. */
static void holes_add(struct holes *h, uint32_t i, struct cp_entry *e, uint32_t from, uint32_t to)
{
	for (uint32_t b = from; b < to; b++) {
		if (cp_kept(e, b))
			continue;
		hole_add(h, i, b);
		cp_keep(e, b);
	}
}

/* The first block at or behind `b` in which there is data. */
static uint32_t data_behind(int fd, const struct cp_entry *e, uint32_t b)
{
	off_t at = lseek(fd, (off_t)((uint64_t)b * CP_BLOCK), SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? cp_blocks(e) : b;
	return (uint64_t)at / CP_BLOCK < cp_blocks(e) ? (uint32_t)((uint64_t)at / CP_BLOCK) : cp_blocks(e);
}

static void file_holes(struct sending *s, uint32_t i, struct holes *h)
{
	struct cp_entry *e = &s->cp->list.entry[i];
	uint32_t b = 0, end = cp_blocks(e);

	file_open(s, i);
	while (b < end && !e->bad) {
		uint32_t data = data_behind(s->fd, e, b);
		off_t hole;

		holes_add(h, i, e, b, data);
		if (data == end)
			break;
		hole = lseek(s->fd, (off_t)((uint64_t)data * CP_BLOCK), SEEK_HOLE);
		b = hole < 0 || (uint64_t)hole / CP_BLOCK >= end ? end : (uint32_t)((uint64_t)hole / CP_BLOCK);
		b = b > data ? b : data + 1;
	}
}

/* A file that takes as many blocks on the disk as it has bytes has none. */
static bool may_have_holes(struct sending *s, uint32_t i)
{
	const struct cp_entry *e = &s->cp->list.entry[i];
	char path[PATH_MAX];
	struct stat st;

	if (e->kind != CP_FILE || e->same || e->bytes < CP_BLOCK || !cp_list_path(&s->cp->list, i, path, sizeof(path)))
		return false;
	return !stat(path, &st) && (uint64_t)st.st_blocks * 512 < e->bytes;
}

static void holes_tell(struct sending *s)
{
	static struct holes h;

	for (uint32_t i = 0; i < s->cp->list.count; i++) {
		if (may_have_holes(s, i))
			file_holes(s, i, &h);
	}
	if (h.at)
		cp_say(CP_HOLES, h.frame, h.at);
	cp_say(CP_HOLES, "", 0);
}

/* ---- messages */

/* False: everything has been read, or there is no place. */
static bool message_read(struct sending *s)
{
	struct cp_list *l = &s->cp->list;
	uint8_t *p = cp_out_memory(&s->out);
	struct cp_cursor at = s->at;
	uint64_t bytes = p ? cp_message(l, &s->at) : 0;

	for (uint64_t left = bytes, n; left; left -= n) {
		cp_cursor_settle(l, &at);
		n = cp_block_bytes(&l->entry[at.entry], at.block);
		block_read(s, at.entry, at.block++, p);
		if (at.block == cp_blocks(&l->entry[at.entry]))
			file_check(s);
		p += n;
		verbena_sdr_progress(s->cp->ctx);
		cp_progress_file(&s->cp->progress, l, at);
	}
	if (bytes)
		cp_out_add(&s->out, bytes);
	return bytes;
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
	needed = s->cp->plan[PLAN_MTU] ? s->out.there_bytes / s->cp->plan[PLAN_MTU] : 0;
	if (scheme_numbers(s->cp->way.scheme) == 2 || st.sent < 1000 || !needed || !cp_out_idle(&s->out))
		return -1;
	return st.sent > needed ? 1 - (double)needed / (double)st.sent : 0;
}

static void files_send(struct sending *s)
{
	struct cp_out *o = &s->out;

	o->start_ns = 0;
	o->start_bytes = o->there_bytes;
	o->all_bytes = o->filled_bytes + s->cp->bytes;
	do {
		while (message_read(s))
			;
		turn(s);
		cp_progress_show(&s->cp->progress, o->there_bytes - o->start_bytes, loss_seen(s));
	} while (o->there_bytes < o->all_bytes);
	cp_progress_clear(&s->cp->progress);
}

/* The receiver finishes files and folders, which may take it a while. */
static void verdict_hear(struct sending *s)
{
	uint8_t left_out[4];
	struct cp_frame f;

	put_be32(left_out, s->cp->left_out);
	cp_say(CP_SENT, left_out, sizeof(left_out));
	do {
		while (!cp_hear(&f))
			cp_rest(s->cp, true);
	} while (item_hear(s, &f));
	if (f.type != CP_VERDICT || f.length != 8)
		cp_nonsense();
	s->cp->wrong = get_be32(f.payload);
	s->cp->failed = get_be32(f.payload + 4);
}

void cp_send(struct cp *cp)
{
	static struct sending s;

	s = (struct sending){.cp = cp, .file = NONE, .out = {.cp = cp}};
	list_send(&s);
	compare(&s);
	holes_tell(&s);
	cp->bytes = cp->plan[PLAN_DRY] ? 0 : cp_bytes_left(&cp->list);
	cp_start(cp);
	if (!cp->plan[PLAN_DRY])
		files_send(&s);
	cp->end_ns = now_ns();
	verdict_hear(&s);
	file_close(&s);
}
