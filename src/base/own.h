/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of a process that are the device's own. A region of the whole address space opens all others, so a peer
 * that holds its key reaches neither rings nor keys nor what other processes share with the device.
 *
 * Ranges only grow, while other threads look: a reader that misses the newest bytes for a moment misses bytes that
 * nothing is in yet.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { OWN_RANGES = 2 };

struct own {
	/* [from, end): 0 to 0 is none, 0 to UINTPTR_MAX all */
	struct {
		_Atomic uintptr_t from, end;
	} range[OWN_RANGES];
};

/* Whether any of these bytes are; of no bytes none are. What ends behind the address space counts as its end. */
static inline bool own_has(const struct own *own, uintptr_t at, uint64_t bytes)
{
	for (int i = 0; i < OWN_RANGES; i++) {
		uintptr_t from = atomic_load_explicit(&own->range[i].from, memory_order_relaxed);
		uintptr_t end = atomic_load_explicit(&own->range[i].end, memory_order_relaxed);

		if (at < end && (at >= from || from - at < bytes))
			return true;
	}
	return false;
}
