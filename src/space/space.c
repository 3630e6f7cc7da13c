/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs of units, taken from the lowest addresses that are free, and above them a pool for what is shorter than a unit.
 * What is taken is noted in bits outside of the reservation. Units below `ready` are one readable and writable mapping,
 * but for the files that are mapped there, so that the process has few mappings. The pages of a run that is given back
 * are the kernel's again, also where the program locks all of its memory.
 */
#include "space/space.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/pool.h"

/* Since Linux 5.18; older headers lack it. */
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum {
	UNIT_BYTES = 64 << 10,
	UNITS_MAX = 1 << 20, /* 64 GiB, which hold the rings to all processes of a host and 100,000 queue pairs several
				times */
	LIMIT_PART = 8,      /* the part of a limited address space that is reserved */
	SMALL_BYTES_MAX = POOL_SLAB_BYTES / 2,
	SLABS_KEPT = 16 /* of each size: to take pages from the kernel again and again costs more than an object */
};

static void *pages_get(void *ctx, size_t bytes);
static void pages_put(void *ctx, void *p, size_t bytes);

static const struct alloc pages = {.get = pages_get, .put = pages_put};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *base;                  /* NULL: there is no reservation (yet) */
static size_t unit_count;              /* a multiple of 64 */
static size_t ready;                   /* units from the first on that are mapped to be used */
static bool empties;                   /* madvise() does what it says */
static size_t lowest;                  /* no unit before this one is free */
static uint64_t taken[UNITS_MAX / 64]; /* a bit for each unit */
static struct pool pool;

/* The linker's names for the first and last byte of the library, or of a program that has these files in it. */
extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden")));
extern const uint8_t _end[] __attribute__((visibility("hidden")));

struct own space_own;

/* ---- the reservation --------------------------------------------------------------------------- */

static void *map(void *at, size_t bytes, int prot)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0);
	void *p = mmap(at, bytes, prot, flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void own_set(int range, uintptr_t from, uintptr_t end)
{
	atomic_store_explicit(&space_own.range[range].from, from, memory_order_relaxed);
	atomic_store_explicit(&space_own.range[range].end, end, memory_order_relaxed);
}

/* Emulators take advice that they do not know for a hint, and say that it is done. */
static bool can_empty(void)
{
	volatile uint8_t *page = map(NULL, UNIT_BYTES, PROT_READ | PROT_WRITE);
	bool can;

	if (!page)
		return false;
	*page = 1;
	can = !madvise((void *)page, UNIT_BYTES, MADV_DONTNEED_LOCKED) && !*page;
	munmap((void *)page, UNIT_BYTES);
	return can;
}

/* Lock held. */
static void open_once(void)
{
	static bool opened;
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (opened)
		return;
	opened = true;
	pool_init(&pool, &pages);
	pool.empty_min = SLABS_KEPT;
	empties = can_empty();
	getrlimit(RLIMIT_AS, &limit);
	unit_count = limit.rlim_cur / LIMIT_PART / UNIT_BYTES / 64 * 64;
	if (unit_count > UNITS_MAX)
		unit_count = UNITS_MAX;
	base = unit_count ? map(NULL, unit_count * UNIT_BYTES, PROT_NONE) : NULL;
	if (!base)
		unit_count = 0;
	own_set(0, (uintptr_t)base, (uintptr_t)base + unit_count * UNIT_BYTES);
	own_set(1, (uintptr_t)__ehdr_start, (uintptr_t)_end);
}

bool space_has(const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p, from = (uintptr_t)base;

	return base && at < from + unit_count * UNIT_BYTES && (at >= from || from - at < bytes);
}

/* ---- runs of units ------------------------------------------------------------------------------ */

static size_t units_of(size_t bytes)
{
	return bytes / UNIT_BYTES + (bytes % UNIT_BYTES != 0);
}

static bool is_taken(size_t unit)
{
	return taken[unit / 64] >> unit % 64 & 1;
}

static void note(size_t unit, size_t n, bool is)
{
	for (; n; n--, unit++) {
		uint64_t bit = UINT64_C(1) << unit % 64;

		taken[unit / 64] = is ? taken[unit / 64] | bit : taken[unit / 64] & ~bit;
	}
}

/* The first of n free ones in a row. False: there are not so many. */
static bool find(size_t n, size_t *first)
{
	size_t from = lowest;

	for (size_t i = from; i < unit_count && i - from < n;) {
		if (i % 64 == 0 && taken[i / 64] == UINT64_MAX)
			from = i += 64;
		else if (is_taken(i))
			from = ++i;
		else
			i++;
	}
	*first = from;
	return n <= unit_count - from;
}

static bool make_ready(size_t end)
{
	if (end <= ready)
		return true;
	if (mprotect(base + ready * UNIT_BYTES, (end - ready) * UNIT_BYTES, PROT_READ | PROT_WRITE))
		return false;
	ready = end;
	return true;
}

/* Lock held. NULL: there is no room. */
static void *take(size_t bytes)
{
	size_t n = units_of(bytes), first;

	open_once();
	if (!find(n, &first) || !make_ready(first + n))
		return NULL;
	note(first, n, true);
	if (first == lowest)
		lowest += n;
	return base + first * UNIT_BYTES;
}

/* Lock held. If the mapping can neither be emptied nor made anew, the addresses are not used any more. */
static void give_back(void *p, size_t bytes, bool is_file)
{
	size_t n = units_of(bytes), first = (size_t)((uint8_t *)p - base) / UNIT_BYTES;
	bool empty = !is_file && empties && !madvise(p, n * UNIT_BYTES, MADV_DONTNEED_LOCKED);

	if (!empty && !map(p, n * UNIT_BYTES, PROT_READ | PROT_WRITE))
		return;
	note(first, n, false);
	if (first < lowest)
		lowest = first;
}

static void *pages_get(void *ctx, size_t bytes)
{
	void *p = take(bytes);

	if (p)
		return p;
	p = map(NULL, bytes, PROT_READ | PROT_WRITE);
	if (p)
		own_set(0, 0, UINTPTR_MAX);
	return p;
}

/* Lock held. */
static void end(void *p, size_t bytes, bool is_file)
{
	if (space_has(p, bytes))
		give_back(p, bytes, is_file);
	else
		munmap(p, bytes);
}

static void pages_put(void *ctx, void *p, size_t bytes)
{
	end(p, bytes, false);
}

/* ---- the calls ----------------------------------------------------------------------------------- */

void *space_get(size_t bytes)
{
	bool small = bytes <= SMALL_BYTES_MAX;
	void *p;

	pthread_mutex_lock(&lock);
	open_once();
	p = small ? pool_get(&pool, bytes) : pages_get(NULL, bytes);
	pthread_mutex_unlock(&lock);
	if (!p)
		errno = ENOMEM;
	return p && small ? memset(p, 0, bytes) : p;
}

void space_put(void *p, size_t bytes)
{
	int saved = errno;

	if (!p)
		return;
	pthread_mutex_lock(&lock);
	if (bytes <= SMALL_BYTES_MAX)
		pool_put(&pool, p, bytes);
	else
		pages_put(NULL, p, bytes);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

static void *core_get(void *ctx, size_t bytes)
{
	return space_get(bytes);
}

static void core_put(void *ctx, void *p, size_t bytes)
{
	space_put(p, bytes);
}

const struct alloc space_alloc = {.get = core_get, .put = core_put};

void *space_map(int fd, size_t bytes)
{
	void *at, *p;

	pthread_mutex_lock(&lock);
	at = take(bytes);
	p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED && at) {
		int saved = errno;

		give_back(at, bytes, true);
		errno = saved;
	}
	if (p != MAP_FAILED && !at)
		own_set(0, 0, UINTPTR_MAX);
	pthread_mutex_unlock(&lock);
	return p == MAP_FAILED ? NULL : p;
}

void space_unmap(void *p, size_t bytes)
{
	pthread_mutex_lock(&lock);
	end(p, bytes, true);
	pthread_mutex_unlock(&lock);
}

void space_fork_begin(void)
{
	pthread_mutex_lock(&lock);
}

void space_fork_end(void)
{
	pthread_mutex_unlock(&lock);
}
