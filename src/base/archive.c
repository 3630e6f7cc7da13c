/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes, numbers of objects, and the headers of records. Saving, the memory doubles as it fills; loading, nothing behind
 * the present record is looked at.
 */
#include "base/archive.h"

#include <assert.h>
#include <string.h>

enum { BYTES_MIN = 4096, OBJECTS_MIN = 64, OWNERS_MIN = 64, LENGTH_AT = 4 };

/* How a time is kept that is none. */
#define TIME_ZERO  INT64_MIN
#define TIME_NEVER INT64_MAX

void archive_save(struct archive *a, const struct alloc *alloc, uint64_t now_ns)
{
	*a = (struct archive){.alloc = alloc, .now_ns = now_ns};
}

void archive_load(struct archive *a, const struct alloc *alloc, const uint8_t *bytes, size_t size, void **owners,
		  size_t owner_count, uint64_t now_ns)
{
	*a = (struct archive){.loads = true,
			      .alloc = alloc,
			      .now_ns = now_ns,
			      .bytes = (uint8_t *)bytes,
			      .size = size,
			      .end = size,
			      .owners = owners,
			      .owner_room = owner_count};
}

void archive_fini(struct archive *a)
{
	if (!a->loads) {
		alloc_put(a->alloc, a->bytes, a->size);
		alloc_put(a->alloc, a->owners, a->owner_room * sizeof(*a->owners));
	}
	alloc_put(a->alloc, a->objects, a->object_room * sizeof(*a->objects));
	*a = (struct archive){0};
}

void archive_failed(struct archive *a, int err)
{
	if (!a->err)
		a->err = err;
}

/* An array twice as long, or of `least` elements. NULL: no memory; the old one is as it was. */
static void *longer(struct archive *a, void *old, size_t count, size_t least, size_t bytes)
{
	size_t room = count ? 2 * count : least;
	void *more = alloc_get(a->alloc, room * bytes);

	if (!more) {
		archive_fail(a, -ENOMEM);
		return NULL;
	}
	if (old)
		memcpy(more, old, count * bytes);
	alloc_put(a->alloc, old, count * bytes);
	return more;
}

static bool has_room(struct archive *a, size_t n)
{
	while (!a->err && n > a->size - a->at) {
		uint8_t *more = longer(a, a->bytes, a->size, BYTES_MIN, 1);

		if (!more)
			break;
		a->bytes = more;
		a->size = a->size ? 2 * a->size : BYTES_MIN;
	}
	return !a->err;
}

void archive_bytes(struct archive *a, void *p, size_t n)
{
	if (a->loads) {
		if (!archive_judge(a, n <= a->end - a->at))
			return;
		memcpy(p, a->bytes + a->at, n);
	} else {
		if (!has_room(a, n))
			return;
		memcpy(a->bytes + a->at, p, n);
	}
	a->at += n;
}

void archive_flag(struct archive *a, void *p, size_t n)
{
	uint8_t byte = *(const bool *)p;

	(void)n;
	archive_bytes(a, &byte, 1);
	if (archive_judge(a, byte <= 1))
		*(bool *)p = byte;
}

uint32_t archive_count(struct archive *a, uint32_t count, uint32_t max)
{
	archive_bytes(a, &count, sizeof(count));
	return archive_judge(a, count <= max) ? count : 0;
}

void archive_time(struct archive *a, uint64_t *t)
{
	int64_t kept = *t == 0 ? TIME_ZERO : *t == UINT64_MAX ? TIME_NEVER : (int64_t)(*t - a->now_ns);

	archive_bytes(a, &kept, sizeof(kept));
	if (!a->loads || a->err)
		return;
	if (kept == TIME_ZERO)
		*t = 0;
	else if (kept == TIME_NEVER)
		*t = UINT64_MAX;
	else if (kept < 0)
		*t = a->now_ns > (uint64_t)-kept ? a->now_ns - (uint64_t)-kept : 1;
	else
		*t = (uint64_t)kept < UINT64_MAX - 1 - a->now_ns ? a->now_ns + (uint64_t)kept : UINT64_MAX - 1;
}

void archive_time32(struct archive *a, uint32_t *t)
{
	int64_t kept = *t ? (int64_t)(int32_t)(*t - (uint32_t)a->now_ns) : TIME_ZERO;

	archive_bytes(a, &kept, sizeof(kept));
	if (!a->loads || a->err)
		return;
	*t = (uint32_t)a->now_ns + (uint32_t)kept;
	if (kept == TIME_ZERO || !*t)
		*t = kept != TIME_ZERO;
}

void archive_period(struct archive *a, uint32_t *n, uint64_t period_ns)
{
	uint32_t now = (uint32_t)(a->now_ns / period_ns), kept = *n - now;

	archive_bytes(a, &kept, sizeof(kept));
	if (a->loads && !a->err)
		*n = now + kept;
}

void archive_owner(struct archive *a, void **owner)
{
	if (a->loads) {
		if (archive_judge(a, a->owner_count < a->owner_room))
			*owner = a->owners[a->owner_count++];
		return;
	}
	if (!a->err && a->owner_count == a->owner_room) {
		void **more = longer(a, a->owners, a->owner_room, OWNERS_MIN, sizeof(*more));

		if (!more)
			return;
		a->owners = more;
		a->owner_room = a->owner_room ? 2 * a->owner_room : OWNERS_MIN;
	}
	if (!a->err)
		a->owners[a->owner_count++] = *owner;
}

/* ---- records ------------------------------------------------------------------------------------ */

void archive_begin(struct archive *a, uint16_t type, uint16_t version)
{
	uint16_t t = type, v = version;
	uint32_t length = 0;

	a->record = a->at;
	archive_bytes(a, &t, sizeof(t));
	archive_bytes(a, &v, sizeof(v));
	archive_bytes(a, &length, sizeof(length));
	if (a->loads && archive_judge(a, t == type && v >= version && length <= a->size - a->at))
		a->end = a->at + length;
}

void archive_end(struct archive *a)
{
	uint32_t length = (uint32_t)(a->at - a->record - (LENGTH_AT + sizeof(length)));

	if (a->err)
		return;
	if (a->loads) {
		a->at = a->end;
		a->end = a->size;
	} else {
		memcpy(a->bytes + a->record + LENGTH_AT, &length, sizeof(length));
	}
}

/* ---- objects ------------------------------------------------------------------------------------ */

static struct archive_object *place_of(const struct archive *a, const void *at)
{
	uint64_t hash = (uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	struct archive_object *o;

	do
		o = &a->objects[hash++ & (a->object_room - 1)];
	while (o->at && o->at != at);
	return o;
}

/* Room for one more: loading, they lie by number; saving, half of the places are empty. */
static bool has_place(struct archive *a)
{
	uint32_t room = a->object_room;
	struct archive_object *old = a->objects;

	if (a->err || a->object_count < room / (a->loads ? 1 : 2))
		return !a->err;
	if (a->loads) {
		struct archive_object *more = longer(a, old, room, OBJECTS_MIN, sizeof(*more));

		if (!more)
			return false;
		a->objects = more;
		a->object_room = room ? 2 * room : OBJECTS_MIN;
		return true;
	}
	a->object_room = room ? 2 * room : OBJECTS_MIN;
	a->objects = alloc_get(a->alloc, a->object_room * sizeof(*a->objects));
	if (!a->objects) {
		a->objects = old;
		a->object_room = room;
		archive_fail(a, -ENOMEM);
		return false;
	}
	for (uint32_t i = 0; i < room; i++) {
		if (old[i].at)
			*place_of(a, old[i].at) = old[i];
	}
	alloc_put(a->alloc, old, room * sizeof(*old));
	return true;
}

void archive_define(struct archive *a, void *at, uint32_t kind)
{
	struct archive_object *o;

	if (!has_place(a))
		return;
	o = a->loads ? &a->objects[a->object_count] : place_of(a, at);
	assert(!o->at);
	*o = (struct archive_object){.at = at, .kind = kind, .number = ++a->object_count};
}

void *archive_refer(struct archive *a, void *at, uint32_t kind)
{
	const struct archive_object *o;
	uint32_t number = 0;

	if (!a->loads && at && !a->err) {
		o = place_of(a, at);
		assert(o->at && o->kind == kind);
		number = o->number;
	}
	archive_bytes(a, &number, sizeof(number));
	if (!a->loads || a->err)
		return at;
	if (!number)
		return NULL;
	if (!archive_judge(a, number <= a->object_count && a->objects[number - 1].kind == kind))
		return at;
	return a->objects[number - 1].at;
}

void archive_list(struct archive *a, struct list *head, uint32_t kind, size_t node)
{
	struct list *l = head->next;
	uint32_t count = 0;

	for (struct list *i = head->next; !a->loads && i != head; i = i->next)
		count++;
	count = archive_count(a, count, UINT32_MAX);
	for (uint32_t i = 0; i < count && !a->err; i++) {
		uint8_t *object = a->loads ? NULL : (uint8_t *)l - node;

		object = archive_refer(a, object, kind);
		if (!a->loads) {
			l = l->next;
			continue;
		}
		if (!archive_judge(a, object && list_empty((struct list *)(object + node))))
			return;
		list_append(head, (struct list *)(object + node));
	}
}
