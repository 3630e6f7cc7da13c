/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A state as bytes, both ways. For each struct there is one function, x_archive(), that names each member once, and the
 * archive saves it or loads it. So what is saved and what is loaded cannot differ.
 *
 * An image is a row of records: a type, a version, a length, and members in the order in which the function names them.
 * Numbers have the byte order of the machine. A new member is named behind all others of its record; who does not know
 * it skips it.
 *
 * Pointers are numbers: an object is defined when its record is archived, and from then on others refer to it. What the
 * caller alone knows, the owners of objects, stays outside the image, in a table.
 *
 * Loaded bytes are judged as a packet is. The first error ends it: archive.err has the error, members keep the values
 * that they have, and counts are 0.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"

struct archive_object {
	void *at;
	uint32_t kind;
	uint32_t number; /* saving, in the table by address */
};

struct archive {
	bool loads;      /* or else it saves */
	int err;         /* 0 or a negative errno */
	uint64_t now_ns; /* times are kept as differences from it */
	const struct alloc *alloc;
	uint8_t *bytes; /* saving: the archive's; loading: borrowed, and only read */
	size_t size;    /* saving: of the memory */
	size_t at;
	size_t end; /* loading: of the record */
	size_t record;
	void **owners; /* likewise */
	size_t owner_count, owner_room;
	/* Saving: open addressing by address; loading: by number. */
	struct archive_object *objects;
	uint32_t object_count, object_room;
};

/* Both borrow alloc until archive_fini(). */
void archive_save(struct archive *, const struct alloc *, uint64_t now_ns);
/* Borrows bytes and owners too. */
void archive_load(struct archive *, const struct alloc *, const uint8_t *bytes, size_t size, void **owners,
		  size_t owner_count, uint64_t now_ns);
/* Frees the memory; bytes and owners too, unless the caller has taken them and set them to NULL. */
void archive_fini(struct archive *);

/* archive_fail() where there is an error: the first one stays. */
__attribute__((cold, noinline)) void archive_failed(struct archive *, int err);
/* An error, unless there was one; 0: none. */
static inline void archive_fail(struct archive *a, int err)
{
	if (err)
		archive_failed(a, err);
}

/* What was loaded is possible only if that holds. False, too, after an error. Saving, it holds. */
static inline bool archive_judge(struct archive *a, bool holds)
{
	if (a->loads && !holds)
		archive_fail(a, -EINVAL);
	return !a->err;
}

/* A record, to which everything until archive_end() belongs. Loading, another type or an older version is an error. */
void archive_begin(struct archive *, uint16_t type, uint16_t version);
void archive_end(struct archive *);

/* Saves so many bytes as they are. Loading, they are overwritten with those that were saved. */
void archive_bytes(struct archive *, void *, size_t);
/* A bool: 0 or 1. */
void archive_flag(struct archive *, void *, size_t);
/* A number of things, at most max. Returns it. */
uint32_t archive_count(struct archive *, uint32_t count, uint32_t max);
/* 0 and UINT64_MAX stand for themselves. A time before the loading nic's clock began becomes 1. */
void archive_time(struct archive *, uint64_t *);
/* The low 32 bits of one; 0 stands for itself. */
void archive_time32(struct archive *, uint32_t *);
/* The number of a period of so many nanoseconds. */
void archive_period(struct archive *, uint32_t *, uint64_t period_ns);
/* An owner: loading, it becomes what the table has in its place. */
void archive_owner(struct archive *, void **);

/* The object gets the next number. Each address is defined once. */
void archive_define(struct archive *, void *, uint32_t kind);
/* A reference to an object of that kind that was defined before, or NULL. */
void *archive_refer(struct archive *, void *, uint32_t kind);
/*
 * The order of objects of that kind in a list, whose nodes are so far behind their beginnings. Loading, none of them is
 * in a list.
 */
void archive_list(struct archive *, struct list *, uint32_t kind, size_t node);

/* ---- members ------------------------------------------------------------------------------------ */

/* f(a, s, member) for each member. */
#define ARCHIVE_EACH(f, a, s, ...)                                 \
	do {                                                       \
		ARCHIVE_EXPAND(ARCHIVE_STEP(f, a, s, __VA_ARGS__)) \
	} while (0)
#define ARCHIVE_STEP(f, a, s, m, ...) \
	f(a, s, m);                   \
	__VA_OPT__(ARCHIVE_AGAIN ARCHIVE_PARENS(f, a, s, __VA_ARGS__))
#define ARCHIVE_AGAIN()      ARCHIVE_STEP
#define ARCHIVE_PARENS       ()
#define ARCHIVE_EXPAND(...)  ARCHIVE_EXPAND3(ARCHIVE_EXPAND3(ARCHIVE_EXPAND3(__VA_ARGS__)))
#define ARCHIVE_EXPAND3(...) ARCHIVE_EXPAND2(ARCHIVE_EXPAND2(ARCHIVE_EXPAND2(__VA_ARGS__)))
#define ARCHIVE_EXPAND2(...) ARCHIVE_EXPAND1(ARCHIVE_EXPAND1(ARCHIVE_EXPAND1(__VA_ARGS__)))
#define ARCHIVE_EXPAND1(...) __VA_ARGS__

/* Only numbers and bools: another member does not compile. */
#define ARCHIVE_CALL(value)                \
	_Generic((value), bool             \
		 : archive_flag, uint8_t   \
		 : archive_bytes, uint16_t \
		 : archive_bytes, uint32_t \
		 : archive_bytes, uint64_t \
		 : archive_bytes, int64_t  \
		 : archive_bytes)
#define ARCHIVE_MEMBER(a, s, m) ARCHIVE_CALL((s)->m)(a, &(s)->m, sizeof((s)->m))
#define ARCHIVE_IS_POINTER(x)   __builtin_types_compatible_p(__typeof__(x), __typeof__(&(x)[0]))
#define ARCHIVE_ARRAY(a, s, m) \
	((void)sizeof(char[1 - 2 * ARCHIVE_IS_POINTER((s)->m)]), ARCHIVE_CALL((s)->m[0])(a, (s)->m, sizeof((s)->m)))
#define ARCHIVE_ATOMIC(a, s, m)                                                             \
	do {                                                                                \
		__typeof__(atomic_load_explicit(&(s)->m, memory_order_relaxed)) archived_ = \
			atomic_load_explicit(&(s)->m, memory_order_relaxed);                \
		ARCHIVE_CALL(archived_)(a, &archived_, sizeof(archived_));                  \
		atomic_store_explicit(&(s)->m, archived_, memory_order_relaxed);            \
	} while (0)
#define ARCHIVE_BIT(a, s, m)                                    \
	do {                                                    \
		bool archived_ = (s)->m;                        \
		archive_flag(a, &archived_, sizeof(archived_)); \
		(s)->m = archived_;                             \
	} while (0)
#define ARCHIVE_TIME(a, s, m) archive_time(a, &(s)->m)

/* Members of *s by their names: numbers and bools, arrays of numbers, atomics, bit-fields that are bools, times. */
#define ARCHIVE(a, s, ...)         ARCHIVE_EACH(ARCHIVE_MEMBER, a, s, __VA_ARGS__)
#define ARCHIVE_ARRAYS(a, s, ...)  ARCHIVE_EACH(ARCHIVE_ARRAY, a, s, __VA_ARGS__)
#define ARCHIVE_ATOMICS(a, s, ...) ARCHIVE_EACH(ARCHIVE_ATOMIC, a, s, __VA_ARGS__)
#define ARCHIVE_BITS(a, s, ...)    ARCHIVE_EACH(ARCHIVE_BIT, a, s, __VA_ARGS__)
#define ARCHIVE_TIMES(a, s, ...)   ARCHIVE_EACH(ARCHIVE_TIME, a, s, __VA_ARGS__)
/* A pointer to an object that was defined. */
#define ARCHIVE_REF(a, pointer, kind) ((pointer) = archive_refer(a, (void *)(pointer), kind))
