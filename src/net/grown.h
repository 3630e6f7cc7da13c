/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow by one element at a time, to twice their size. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { GROWN_FIRST = 64 };

/*
 * The array of `count` elements of `size` bytes with room for one more, moved if need be, and then *room is what it has
 * room for. NULL: no memory, or 2^31 elements; nothing has changed.
 */
static inline void *grown(void *array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t want = *room ? 2 * *room : GROWN_FIRST;
	void *p;

	if (count < *room)
		return array;
	p = want ? reallocarray(array, want, size) : NULL;
	if (p)
		*room = want;
	return p;
}
