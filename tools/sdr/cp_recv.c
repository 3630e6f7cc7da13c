/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end. Messages are taken in their order, so a file is written from its beginning; it is finished when
 * its last block is written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/cp.h"
#include "sdr/cp_items.h"
#include "sdr/cp_target.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

enum { HASH_BYTES = sizeof(XXH128_canonical_t), QUESTIONS = 4 };

struct receiving {
	struct cp *cp;
	struct cp_in in;
	struct cp_target target;
	struct cp_cursor at;   /* what is written next */
	struct cp_cursor post; /* what the next receive is for */
	uint32_t finished;     /* entries before are */
	bool sent;             /* the sender has nothing more to say */
	uint64_t done_bytes;
};

/* ---- what the sender says beside messages */

static void bad_hear(struct cp_list *l, const struct cp_frame *f)
{
	uint32_t i = f->length == 4 ? get_be32(f->payload) : l->count;

	if (i >= l->count || l->entry[i].kind != CP_FILE)
		cp_nonsense();
	l->entry[i].bad = true;
}

/* A frame that may come while messages do. */
static void frame_take(struct receiving *r, const struct cp_frame *f)
{
	switch (f->type) {
	case CP_BAD: bad_hear(&r->cp->list, f); break;
	case CP_DIGEST:
		if (f->length != HASH_BYTES || !cp_in_digest(&r->in, f->payload))
			cp_nonsense();
		break;
	case CP_SENT:
		if (f->length == 4)
			r->cp->left_out = get_be32(f->payload);
		r->sent = true;
		break;
	default: cp_nonsense();
	}
}

/* Takes what is there, or waits if nothing else is to be done. */
static void frames_hear(struct receiving *r, bool busy)
{
	struct cp_frame f;

	while (!r->sent && cp_hear(&f)) {
		frame_take(r, &f);
		busy = true;
	}
	if (!busy)
		cp_rest(r->cp, !r->sent);
}

/* ---- the list */

struct list_hearing {
	uint64_t left;   /* bytes that have not been posted */
	uint8_t *memory; /* what of an entry was in the message before, and the next */
	size_t len;
};

static void list_take(struct cp_list *l, struct list_hearing *h, const uint8_t *p, uint64_t bytes)
{
	size_t at = 0;
	int64_t n;

	memcpy(h->memory + h->len, p, bytes);
	h->len += bytes;
	while ((n = cp_entry_decode(l, h->memory + at, h->len - at)) > 0)
		at += (size_t)n;
	if (n == CP_ENTRY_WRONG)
		die("the list of files has an entry that is not allowed");
	h->len -= at;
	memmove(h->memory, h->memory + at, h->len);
}

static void list_receive(struct receiving *r)
{
	struct list_hearing h = {.memory = malloc(CP_MESSAGE + CP_ENTRY_MAX)};
	struct cp_list *l = &r->cp->list;
	const uint8_t *p;
	struct cp_frame f;
	uint64_t bytes;
	uint32_t count;
	bool right;

	cp_expect(&f, CP_LIST);
	count = f.length == 12 ? get_be32(f.payload) : 0;
	if (!count || !h.memory)
		cp_nonsense();
	h.left = r->cp->list_bytes = get_be64(f.payload + 4);
	while (!r->sent || r->in.there < r->in.posted || h.left) {
		bool busy = verbena_sdr_progress(r->cp->ctx);

		while (h.left && cp_in_post(&r->in, h.left < CP_MESSAGE ? h.left : CP_MESSAGE))
			h.left -= h.left < CP_MESSAGE ? h.left : CP_MESSAGE;
		while ((p = cp_in_take(&r->in, &bytes, &right))) {
			if (!right)
				die("the list of files has not arrived as it was sent");
			list_take(l, &h, p, bytes);
			cp_in_done(&r->in);
			busy = true;
		}
		frames_hear(r, busy);
	}
	if (h.len || l->count != count)
		die("the list of files has an entry that is not allowed");
	free(h.memory);
	r->sent = false;
}

/* ---- what of it is here */

/* Hashes that the other end is asked about. Answers are not waited for one by one, as there are many small files. */
struct asking {
	uint8_t frame[CP_FRAME_MAX];
	size_t at;
	uint32_t open; /* frames that are not answered yet */
};

static void answer_hear(struct receiving *r, struct cp_frame *f, enum cp_frame_type type)
{
	for (;;) {
		cp_await(f);
		if (f->type == type)
			return;
		if (f->type != CP_BAD)
			cp_nonsense();
		bad_hear(&r->cp->list, f);
	}
}

static void keep_hear(struct receiving *r, struct asking *a)
{
	struct cp_list *l = &r->cp->list;
	struct cp_frame f;

	answer_hear(r, &f, CP_KEEP);
	a->open--;
	if (f.length % 8)
		cp_nonsense();
	for (size_t at = 0; at < f.length; at += 8) {
		uint32_t entry = get_be32(f.payload + at), block = get_be32(f.payload + at + 4);

		if (entry >= l->count || block >= l->entry[entry].here)
			cp_nonsense();
		cp_keep(&l->entry[entry], block);
	}
}

static void ask(struct receiving *r, struct asking *a)
{
	if (!a->at)
		return;
	if (a->open == QUESTIONS)
		keep_hear(r, a);
	cp_say(CP_HASHES, a->frame, a->at);
	a->at = 0;
	a->open++;
}

static void hashes_add(struct receiving *r, struct asking *a, uint32_t entry)
{
	const struct cp_entry *e = &r->cp->list.entry[entry];

	for (uint32_t first = 0, n; first < e->here; first += n) {
		uint8_t *p;

		if (a->at + CP_RECORD_LEN + HASH_BYTES > CP_FRAME_MAX)
			ask(r, a);
		p = a->frame + a->at;
		n = (uint32_t)((CP_FRAME_MAX - a->at - CP_RECORD_LEN) / HASH_BYTES);
		n = n < e->here - first ? n : e->here - first;
		put_be32(p, entry);
		put_be32(p + 4, first);
		put_be32(p + 8, n);
		for (uint32_t i = 0; i < n; i++) {
			XXH128_canonical_t text;

			XXH128_canonicalFromHash(&text, e->hash[first + i]);
			memcpy(p + CP_RECORD_LEN + (size_t)i * HASH_BYTES, &text, HASH_BYTES);
		}
		a->at += CP_RECORD_LEN + (size_t)n * HASH_BYTES;
	}
}

static bool has_blocks(const struct cp_entry *e)
{
	return e->kind == CP_FILE && e->bytes && !e->same;
}

/* Files in a row make one record. */
static void same_tell(const struct cp_list *l)
{
	uint8_t frame[CP_FRAME_MAX];
	size_t at = 0;

	for (uint32_t i = 0, end; i < l->count; i = end) {
		for (end = i; end < l->count && (l->entry[end].same || l->entry[end].kind != CP_FILE); end++)
			;
		if (end > i) {
			put_be32(frame + at, i);
			put_be32(frame + at + 4, end - i);
			at += 8;
		}
		end += end == i;
		if (at == sizeof(frame) || (end == l->count && at)) {
			cp_say(CP_SAME, frame, at);
			at = 0;
		}
	}
}

static void blocks_compare(struct receiving *r)
{
	struct cp_list *l = &r->cp->list;
	struct asking a = {.at = 0};

	for (uint32_t i = 0; i < l->count; i++) {
		if (!has_blocks(&l->entry[i]))
			continue;
		cp_target_compare(&r->target, i);
		hashes_add(r, &a, i);
	}
	ask(r, &a);
	while (a.open)
		keep_hear(r, &a);
	for (uint32_t i = 0; i < l->count && !r->target.dry; i++) {
		if (has_blocks(&l->entry[i]))
			cp_target_keep(&r->target, i);
	}
}

static void items_tell(struct receiving *r)
{
	struct cp_list *l = &r->cp->list;

	for (uint32_t i = 0; i < l->count; i++) {
		struct cp_entry *e = &l->entry[i];

		if (e->kind == CP_FILE && !e->same && (!e->bytes || e->kept_bytes < e->bytes))
			e->item |= ITEM_CONTENT;
		cp_item_say(r->cp, i);
	}
}

static void compare(struct receiving *r)
{
	struct cp_list *l = &r->cp->list;

	for (uint32_t i = 0; i < l->count; i++)
		cp_target_look(&r->target, i);
	same_tell(l);
	blocks_compare(r);
	items_tell(r);
	cp_say(CP_HASHES, "", 0);
}

static void hole_take(struct receiving *r, const uint8_t *p)
{
	uint32_t entry = get_be32(p), first = get_be32(p + 4), count = get_be32(p + 8);
	struct cp_list *l = &r->cp->list;

	if (entry >= l->count || l->entry[entry].kind != CP_FILE || first > cp_blocks(&l->entry[entry]) ||
	    count > cp_blocks(&l->entry[entry]) - first)
		cp_nonsense();
	for (uint32_t b = first; b < first + count; b++) {
		if (cp_kept(&l->entry[entry], b))
			cp_nonsense();
		if (!r->target.dry)
			cp_target_write(&r->target, entry, b, NULL);
		cp_keep(&l->entry[entry], b);
	}
}

static void holes_hear(struct receiving *r)
{
	struct cp_frame f;

	while (answer_hear(r, &f, CP_HOLES), f.length) {
		if (f.length % 12)
			cp_nonsense();
		for (size_t at = 0; at < f.length; at += 12)
			hole_take(r, f.payload + at);
	}
}

/* ---- messages: between files the sender is answered, as a message may be of a hundred thousand */

static bool post_some(struct receiving *r)
{
	struct cp_cursor next = r->post;
	uint64_t bytes;
	bool any = false;

	while ((bytes = cp_message(&r->cp->list, &next)) && cp_in_post(&r->in, bytes)) {
		r->post = next;
		any = true;
	}
	return any;
}

static void message_write(struct receiving *r, const uint8_t *p, uint64_t left, bool right)
{
	struct cp_list *l = &r->cp->list;

	r->done_bytes += left;
	while (left && cp_cursor_settle(l, &r->at)) {
		struct cp_entry *e = &l->entry[r->at.entry];
		uint64_t n = cp_block_bytes(e, r->at.block);

		if (!right && !e->bad) {
			cp_progress_clear(&r->cp->progress);
			fprintf(stderr, "sdr_cp: %s has arrived, but not as it was sent\n", e->name);
			e->bad = true;
			r->cp->wrong++;
		}
		if (!e->bad)
			cp_target_write(&r->target, r->at.entry, r->at.block, p);
		r->at.block++;
		verbena_sdr_progress(r->cp->ctx);
		cp_progress_file(&r->cp->progress, l, r->at);
		p += n;
		left -= n;
	}
}

static bool take_some(struct receiving *r)
{
	const uint8_t *p;
	uint64_t bytes;
	bool any = false, right;

	while ((p = cp_in_take(&r->in, &bytes, &right))) {
		message_write(r, p, bytes, right);
		cp_in_done(&r->in);
		any = true;
	}
	return any;
}

/* Whether a file is bad is said before its last message's digest. */
static bool finish_some(struct receiving *r)
{
	bool more = cp_cursor_settle(&r->cp->list, &r->at);
	uint32_t written = more ? r->at.entry : r->cp->list.count, before = r->finished;

	while (r->finished < written) {
		cp_target_finish(&r->target, r->finished++);
		verbena_sdr_progress(r->cp->ctx);
	}
	return r->finished > before;
}

/* The sender may not know yet that all has arrived, so it is answered until it does. */
static void files_receive(struct receiving *r)
{
	while (r->finished < r->cp->list.count || !r->sent) {
		bool busy = verbena_sdr_progress(r->cp->ctx);

		busy |= post_some(r);
		busy |= take_some(r);
		busy |= finish_some(r);
		frames_hear(r, busy);
		cp_progress_show(&r->cp->progress, r->done_bytes, -1);
	}
	cp_progress_clear(&r->cp->progress);
}

static void nothing_receive(struct receiving *r)
{
	while (!r->sent)
		frames_hear(r, verbena_sdr_progress(r->cp->ctx));
}

static void delete (struct receiving *r)
{
	if (!r->cp->plan[PLAN_DELETE])
		return;
	if (r->cp->left_out)
		fprintf(stderr, "sdr_cp: nothing is deleted, as the sender has left out what it could not read\n");
	else
		cp_delete(r->cp, &r->target, &r->cp->filter);
}

static void target_open(struct receiving *r)
{
	const struct cp *cp = r->cp;

	r->target =
		(struct cp_target){.list = &r->cp->list,
				   .path = cp->path[0],
				   .base = cp->base,
				   .wants = {.owners = cp->plan[PLAN_OWNERS], .attributes = cp->plan[PLAN_ATTRIBUTES]},
				   .dry = cp->plan[PLAN_DRY],
				   .checksum = cp->plan[PLAN_CHECKSUM]};
	cp_target_open(&r->target);
}

void cp_receive(struct cp *cp)
{
	static struct receiving r;
	uint8_t verdict[8];

	r.cp = r.in.cp = cp;
	list_receive(&r);
	target_open(&r);
	compare(&r);
	holes_hear(&r);
	cp->bytes = cp->plan[PLAN_DRY] ? 0 : cp_bytes_left(&cp->list);
	cp_start(cp);
	if (cp->plan[PLAN_DRY])
		nothing_receive(&r);
	else
		files_receive(&r);
	delete (&r);
	cp_target_close(&r.target, cp->sync);
	cp->end_ns = now_ns();
	cp->failed = r.target.failed;
	put_be32(verdict, cp->wrong);
	put_be32(verdict + 4, cp->failed);
	cp_say(CP_VERDICT, verdict, sizeof(verdict));
}
