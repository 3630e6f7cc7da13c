/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end. Messages are taken in their order, so a file is written from its beginning; it is finished when
 * its last block is written and the sender's digest of it is here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/cp.h"
#include "sdr/cp_target.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

enum { HASH_BYTES = sizeof(XXH128_canonical_t), QUESTIONS = 4 };

struct receiving {
	struct cp *cp;
	struct cp_target target;
	struct cp_cursor at;      /* what is written next */
	struct cp_cursor post;    /* what the next receive is for */
	uint32_t finished;        /* entries before are */
	uint32_t digested;        /* entries before have their digests here */
	XXH128_hash_t *digest;    /* of every entry */
	uint64_t posted, there;   /* messages */
	uint64_t bytes[CP_DEPTH]; /* of messages */
	struct verbena_sdr_recv recv[CP_DEPTH];
	uint32_t wrong; /* files that are not what was sent */
};

/* ---- what is sent, and what of it is here */

static void list_hear(struct cp_list *l)
{
	struct cp_frame f;

	for (;;) {
		cp_expect(&f, CP_LIST);
		if (!f.length)
			break;
		for (size_t at = 0, n; at < f.length; at += n) {
			n = cp_entry_decode(l, f.payload + at, f.length - at);
			if (!n)
				die("the list of files has an entry that is not allowed");
		}
	}
	if (!l->count)
		cp_nonsense();
}

/* Hashes that the other end is asked about. Answers are not waited for one by one, as there are many small files. */
struct asking {
	uint8_t frame[CP_FRAME_MAX];
	size_t at;
	uint32_t open; /* frames that are not answered yet */
};

static void keep_hear(struct cp_list *l, struct asking *a)
{
	struct cp_frame f;

	cp_expect(&f, CP_KEEP);
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

static void ask(struct cp_list *l, struct asking *a)
{
	if (!a->at)
		return;
	if (a->open == QUESTIONS)
		keep_hear(l, a);
	cp_say(CP_HASHES, a->frame, a->at);
	a->at = 0;
	a->open++;
}

static void hashes_add(struct cp_list *l, struct asking *a, uint32_t entry)
{
	const struct cp_entry *e = &l->entry[entry];

	for (uint32_t first = 0, n; first < e->here; first += n) {
		uint8_t *p;

		if (a->at + CP_RECORD_LEN + HASH_BYTES > CP_FRAME_MAX)
			ask(l, a);
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
	return e->kind == CP_FILE && e->bytes;
}

static void compare(struct receiving *r)
{
	struct cp_list *l = &r->cp->list;
	struct asking a = {.at = 0};

	for (uint32_t i = 0; i < l->count; i++) {
		if (!has_blocks(&l->entry[i]))
			continue;
		cp_target_compare(&r->target, i);
		hashes_add(l, &a, i);
	}
	ask(l, &a);
	while (a.open)
		keep_hear(l, &a);
	for (uint32_t i = 0; i < l->count; i++) {
		if (has_blocks(&l->entry[i]))
			cp_target_keep(&r->target, i);
	}
	cp_say(CP_HASHES, "", 0);
}

/* ---- messages */

static bool post_one(struct receiving *r)
{
	struct cp_cursor next = r->post;
	uint64_t bytes = cp_message(&r->cp->list, &next);
	struct verbena_sdr_recv_attr attr = {
		.address = cp_memory(r->cp, r->posted), .max_length = bytes, .lkey = r->cp->lkey};
	int res;

	if (!bytes)
		return false;
	res = scheme_recv_post(r->cp->qp, &r->cp->way, &attr, &r->recv[r->posted % CP_DEPTH]);
	if (res == VERBENA_SDR_RETRY)
		return false;
	if (res)
		die("posting a receive: %s", strerror(errno));
	r->bytes[r->posted++ % CP_DEPTH] = bytes;
	r->post = next;
	return true;
}

static void message_write(struct receiving *r)
{
	const uint8_t *p = cp_memory(r->cp, r->there);
	uint64_t left = r->bytes[r->there % CP_DEPTH];

	r->cp->done_bytes += left;
	while (left && cp_cursor_settle(&r->cp->list, &r->at)) {
		uint64_t n = cp_block_bytes(&r->cp->list.entry[r->at.entry], r->at.block);

		cp_target_write(&r->target, r->at.entry, r->at.block++, p);
		p += n;
		left -= n;
	}
	r->there++;
}

static bool take_one(struct receiving *r)
{
	bool done = false;

	if (r->there == r->posted)
		return false;
	if (scheme_recv_poll(&r->cp->way, &r->recv[r->there % CP_DEPTH], &done))
		die("receiving: %s", strerror(errno));
	if (!done)
		return false;
	if (verbena_sdr_recv_complete(&r->recv[r->there % CP_DEPTH]))
		die("completing a receive: %s", strerror(errno));
	message_write(r);
	return true;
}

/* ---- digests */

static void digest_take(struct receiving *r, const struct cp_frame *f)
{
	const struct cp_list *l = &r->cp->list;
	XXH128_canonical_t text;

	while (r->digested < l->count && l->entry[r->digested].kind != CP_FILE)
		r->digested++;
	if (f->type != CP_DIGEST || f->length != 4 + sizeof(text) || r->digested == l->count ||
	    get_be32(f->payload) != r->digested)
		cp_nonsense();
	memcpy(&text, f->payload + 4, sizeof(text));
	r->digest[r->digested++] = XXH128_hashFromCanonical(&text);
}

/* Whether the next entry that is not finished can be. */
static bool is_ready(struct receiving *r)
{
	bool more = cp_cursor_settle(&r->cp->list, &r->at);
	uint32_t written = more ? r->at.entry : r->cp->list.count;

	if (r->finished >= written)
		return false;
	return r->cp->list.entry[r->finished].kind != CP_FILE || r->finished < r->digested;
}

static void finish_one(struct receiving *r)
{
	const struct cp_entry *e = &r->cp->list.entry[r->finished];
	bool wrong = e->kind == CP_FILE && !XXH128_isEqual(cp_digest(e), r->digest[r->finished]);

	if (wrong) {
		cp_progress_clear(&r->cp->progress);
		fprintf(stderr, "sdr_cp: %s has arrived, but not as it was sent\n", e->name);
		r->wrong++;
	}
	cp_target_finish(&r->target, r->finished++, wrong);
}

static bool finish_some(struct receiving *r)
{
	uint32_t before = r->finished;

	while (is_ready(r))
		finish_one(r);
	return r->finished > before;
}

static void receive_all(struct receiving *r)
{
	struct cp_frame f;
	bool busy;

	while (r->finished < r->cp->list.count) {
		busy = verbena_sdr_progress(r->cp->ctx);
		while (r->posted - r->there < CP_DEPTH && post_one(r))
			busy = true;
		busy |= take_one(r);
		while (r->digested < r->cp->list.count && cp_hear(&f, 0)) {
			digest_take(r, &f);
			busy = true;
		}
		busy |= finish_some(r);
		cp_progress_show(&r->cp->progress, r->cp->done_bytes, -1);
		if (!busy && cp_hear(&f, 1))
			digest_take(r, &f);
	}
	cp_progress_clear(&r->cp->progress);
}

/* It may not know yet that all has arrived, so it is answered until it does. */
static void sent_hear(struct receiving *r)
{
	struct cp_frame f;

	while (!cp_hear(&f, 1))
		verbena_sdr_progress(r->cp->ctx);
	if (f.type != CP_SENT)
		cp_nonsense();
}

int cp_receive(struct cp *cp)
{
	static struct receiving r;
	struct verbena_sdr_stats stats;
	uint8_t verdict[4];

	r.cp = cp;
	list_hear(&cp->list);
	r.digest = calloc(cp->list.count, sizeof(*r.digest));
	if (!r.digest)
		die("no memory");
	cp_target_open(&r.target, &cp->list, cp->path);
	compare(&r);
	cp_connect(cp);
	receive_all(&r);
	sent_hear(&r);
	cp_target_close(&r.target, cp->sync);
	put_be32(verdict, r.wrong);
	cp_say(CP_VERDICT, verdict, sizeof(verdict));
	verbena_sdr_qp_stats_get(cp->qp, &stats);
	printf("%llu bytes, %llu packets, %llu computed, %llu again, %llu late\n", (unsigned long long)cp->bytes,
	       (unsigned long long)stats.packets, (unsigned long long)stats.ec_recovered,
	       (unsigned long long)stats.duplicates, (unsigned long long)stats.dropped_late);
	free(r.digest);
	cp_close(cp);
	return r.wrong != 0;
}
