/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which calls with MSG_ZEROCOPY the kernel has done with. It counts a socket's calls that took bytes from 0 on, modulo
 * 2^32, and says "from this one to that one" in any order.
 *
 * Private to src/io.
 */
#ifndef IO_TCP_CALLS_H
#define IO_TCP_CALLS_H

#include <stdint.h>

enum { TCP_CALLS_MAX = 256 /* that it has not done with */ };

struct tcp_calls {
	uint32_t made;
	uint32_t done;                     /* the first that the kernel has not done with; made: there is none */
	uint64_t late[TCP_CALLS_MAX / 64]; /* those behind that it has done with, a bit each */
};

/* The kernel has done with calls first .. last. Others than those that it has not done with are passed over. */
static inline void tcp_calls_note(struct tcp_calls *c, uint32_t first, uint32_t last)
{
	uint32_t count = last - first + 1;

	for (uint32_t i = 0; i < count && i < TCP_CALLS_MAX; i++) {
		uint32_t call = first + i;

		if (call - c->done < c->made - c->done)
			c->late[call % TCP_CALLS_MAX / 64] |= UINT64_C(1) << call % 64;
	}
	while (c->done != c->made && c->late[c->done % TCP_CALLS_MAX / 64] >> c->done % 64 & 1) {
		c->late[c->done % TCP_CALLS_MAX / 64] &= ~(UINT64_C(1) << c->done % 64);
		c->done++;
	}
}

#endif
