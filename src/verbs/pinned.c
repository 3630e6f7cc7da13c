/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A registration fails at once if the range does not exist, as with a driver that pins it. For a short range one
 * madvise() call brings its pages in. A long one may be most of an address space of which little is ever used,
 * so /proc/self/maps is read instead, as on kernels before 5.14, which lack that advice.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/pinned.h"

/* Since Linux 5.14; older headers lack them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { POPULATE_BYTES_MAX = 256 << 10 };

static bool advice_is_known(void)
{
	static const char here;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	return madvise((void *)((uintptr_t)&here & ~(page - 1)), page, MADV_POPULATE_READ) == 0;
}

/* Whether maps, sorted by address, cover [at, end) with the needed permissions. */
static int maps_check(uintptr_t at, uintptr_t end, bool write)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool line_starts = true;

	if (!f)
		return 0; /* cannot be checked: believe the program */
	while (at < end && fgets(line, sizeof(line), f)) {
		uintptr_t from, to;
		char mode[5];
		bool whole = line_starts;

		line_starts = strchr(line, '\n') != NULL;
		if (!whole || sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) != 3)
			continue;
		if (to <= at)
			continue;
		if (from > at || mode[0] != 'r' || (write && mode[1] != 'w'))
			break;
		at = to;
	}
	fclose(f);
	return at < end ? EFAULT : 0;
}

/* The pages with these bytes; an empty range if there are none. False: they end behind the address space. */
static bool pages_of(const void *addr, size_t length, uintptr_t *from, uintptr_t *to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	*from = *to = (uintptr_t)addr & ~(page - 1);
	if (length > UINTPTR_MAX - page - (uintptr_t)addr)
		return false;
	if (length)
		*to = ((uintptr_t)addr + length + page - 1) & ~(page - 1);
	return true;
}

static int bring_in(uintptr_t from, uintptr_t to, bool write)
{
	while (from < to && madvise((void *)from, to - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ)) {
		if (errno == EINTR || errno == EAGAIN)
			continue;
		/* The advice also fails with EINVAL for a mapping without the permission. */
		return errno != EINVAL || advice_is_known() ? EFAULT : maps_check(from, to, write);
	}
	return 0;
}

int pages_bring_in(const void *addr, size_t length, bool write)
{
	int err, saved = errno;
	uintptr_t from, to;

	err = pages_of(addr, length, &from, &to) ? bring_in(from, to, write) : EFAULT;
	errno = saved;
	return err;
}

int pages_check(const void *addr, size_t length, bool write)
{
	int err, saved = errno;
	uintptr_t from, to;

	if (!pages_of(addr, length, &from, &to))
		return EFAULT;
	err = length > POPULATE_BYTES_MAX ? maps_check(from, to, write) : bring_in(from, to, write);
	errno = saved;
	return err;
}
